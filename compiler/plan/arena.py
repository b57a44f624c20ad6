"""The memory of a plan for what lies between its steps: places in one block."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from ...runtime.plan_steps import ARENA_SLOT, BufferRef


class Arena:
    """Offsets in the arena: the lowest gap that fits, reused once released if it is large."""

    def __init__(self, alignment: int, never_reused: int) -> None:
        self.alignment = alignment
        self.never_reused = never_reused
        self.size = 0
        self.gaps: list[tuple[int, int]] = []  # (start, end), ascending, never touching
        self.taken: dict[Hashable, tuple[int, int]] = {}

    def take(self, nbytes: int, key: Hashable) -> BufferRef:
        place = self.taken[key] = self._take(nbytes)
        return BufferRef(ARENA_SLOT, place[0])

    def _take(self, nbytes: int) -> tuple[int, int]:
        wanted = max(-(-nbytes // self.alignment), 1) * self.alignment
        start = self._fill_gap(wanted)
        if start is None:
            ends_free = self.gaps and self.gaps[-1][1] == self.size
            start = self.gaps.pop()[0] if ends_free else self.size
            self.size = start + wanted
        return start, start + wanted

    @contextmanager
    def borrowed(self, nbytes: int) -> Iterator[BufferRef]:
        """A place for what one step needs while it runs."""
        place = self._take(nbytes)
        yield BufferRef(ARENA_SLOT, place[0])
        self._give_back(*place)

    def _fill_gap(self, wanted: int) -> int | None:
        for number, (start, end) in enumerate(self.gaps):
            if end - start >= wanted:
                left = [(start + wanted, end)] if end - start > wanted else []
                self.gaps[number : number + 1] = left
                return start
        return None

    def release(self, key: Hashable) -> None:
        """Give back what was taken for `key`, a node above all, if there is any."""
        if key not in self.taken:
            return
        self._give_back(*self.taken.pop(key))

    def _give_back(self, start: int, end: int) -> None:
        if end - start <= self.never_reused:
            return
        at = bisect(self.gaps, (start, end))
        if at < len(self.gaps) and self.gaps[at][0] == end:
            end = self.gaps.pop(at)[1]
        if at and self.gaps[at - 1][1] == start:
            at -= 1
            start = self.gaps.pop(at)[0]
        self.gaps.insert(at, (start, end))
