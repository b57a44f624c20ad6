"""The memory of a plan: slots, and places in one block for what lies between its steps."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.plan_steps import ARENA_SLOT, BufferRef

if TYPE_CHECKING:
    import numpy.typing as npt


class PlanMemory:
    """What all graphs of one plan share: its slots, its constants and the space of its arena.

    `pointers` are the slots that steps bind to places in others.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.slots = 1
        self.constants: dict[int, npt.NDArray[Any]] = {}
        self.pointers: list[int] = []

    def slot(self) -> BufferRef:
        """A new slot."""
        self.slots += 1
        return BufferRef(self.slots - 1)

    def constant(self, value: npt.NDArray[Any]) -> BufferRef:
        """A new slot that has a value from the start."""
        place = self.slot()
        self.constants[place.slot] = np.ascontiguousarray(value)
        return place

    def pointer(self) -> BufferRef:
        """A new slot that is to be bound."""
        place = self.slot()
        self.pointers.append(place.slot)
        return place


class Arena:
    """Places in the arena, for one graph of those of a plan, which know places by their nodes."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.taken: dict[Hashable, tuple[int, int]] = {}

    def take(self, nbytes: int, key: Hashable) -> BufferRef:
        place = self.taken[key] = self.space.take(nbytes)
        return BufferRef(ARENA_SLOT, place[0])

    @contextmanager
    def borrowed(self, nbytes: int) -> Iterator[BufferRef]:
        """A place for what one step needs while it runs."""
        place = self.space.take(nbytes)
        yield BufferRef(ARENA_SLOT, place[0])
        self.space.give_back(*place)

    def is_taken(self, key: Hashable) -> bool:
        return key in self.taken

    def hand_over(self, key: Hashable, other: Hashable) -> None:
        """Let the place of `key` be that of another."""
        self.taken[other] = self.taken.pop(key)

    def release(self, key: Hashable) -> None:
        """Give back what was taken for `key`, a node above all, if there is any."""
        if key in self.taken:
            self.space.give_back(*self.taken.pop(key))

    def release_all(self) -> None:
        """Give back whatever is still taken."""
        for key in list(self.taken):
            self.release(key)


class Space:
    """Offsets in the arena: the lowest gap that fits, reused once released if it is large."""

    def __init__(self, alignment: int, never_reused: int) -> None:
        self.alignment = alignment
        self.never_reused = never_reused
        self.size = 0
        self.gaps: list[tuple[int, int]] = []  # (start, end), ascending, never touching

    def take(self, nbytes: int) -> tuple[int, int]:
        wanted = max(-(-nbytes // self.alignment), 1) * self.alignment
        start = self._fill_gap(wanted)
        if start is None:
            ends_free = self.gaps and self.gaps[-1][1] == self.size
            start = self.gaps.pop()[0] if ends_free else self.size
            self.size = start + wanted
        return start, start + wanted

    def _fill_gap(self, wanted: int) -> int | None:
        for number, (start, end) in enumerate(self.gaps):
            if end - start >= wanted:
                left = [(start + wanted, end)] if end - start > wanted else []
                self.gaps[number : number + 1] = left
                return start
        return None

    def give_back(self, start: int, end: int) -> None:
        if end - start <= self.never_reused:
            return
        at = bisect(self.gaps, (start, end))
        if at < len(self.gaps) and self.gaps[at][0] == end:
            end = self.gaps.pop(at)[1]
        if at and self.gaps[at - 1][1] == start:
            at -= 1
            start = self.gaps.pop(at)[0]
        self.gaps.insert(at, (start, end))
