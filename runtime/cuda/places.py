"""Where the slots of a plan begin on a device, and the words of its steps that follow from it.

A slot begins at an address that is known when a call begins, but for the pointers of loops: these
are bound to places in other slots, and exchanged, by steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..plan_steps import BindStep, BufferRef, JumpStep

if TYPE_CHECKING:
    import numpy.typing as npt

NUMBER_SLOT = -2
"""Where every number is its own address."""


class Places:
    """`bases` has the beginning of every slot; `words` the address of each of `refs`.

    The last of `bases` is the status, and the one before it where numbers count from.
    """

    def __init__(
        self,
        num_slots: int,
        refs: Sequence[BufferRef],
        words: npt.NDArray[np.int64],
        pointers: Sequence[int],
    ) -> None:
        self.bases: npt.NDArray[np.int64] = np.zeros(num_slots - NUMBER_SLOT, np.int64)
        self.words = words
        self._slots = np.array([ref.slot for ref in refs], np.int64)
        self._offsets = np.array([ref.offset for ref in refs], np.int64)
        self._pointers = np.array(pointers, np.int64)
        self._told: dict[tuple[int, ...], npt.NDArray[np.int64]] = {}
        self._is_told = True

    def fill(self) -> None:
        """Write all words, of slots that begin where `bases` says."""
        np.add(self.bases[self._slots], self._offsets, out=self.words)
        self._is_told = True

    def tell(self) -> None:
        """Let words be those of pointers that were put elsewhere."""
        if not self._is_told:
            self.fill()

    def address(self, ref: BufferRef) -> int:
        """Where a place is now, whatever `words` say."""
        return int(self.bases[ref.slot]) + ref.offset

    def bind(self, step: BindStep) -> None:
        """Let slots begin at places in others."""
        self.bases[list(step.slots)] = [self.address(ref) for ref in step.places]
        self._change(step.slots)

    def exchange(self, step: JumpStep) -> None:
        """Let the slots of each pair change places."""
        if step.exchanged:
            ones, others = map(list, zip(*step.exchanged))
            self.bases[ones + others] = self.bases[others + ones]
            self._change((*ones, *others))

    @property
    def pointers(self) -> bytes:
        """Where pointers are, as something that can be looked up, and put back."""
        return self.bases[self._pointers].tobytes()

    @pointers.setter
    def pointers(self, found: bytes) -> None:
        self.bases[self._pointers] = np.frombuffer(found, np.int64)
        self._is_told = False

    def _change(self, slots: tuple[int, ...]) -> None:
        """Write the words of slots that begin elsewhere now."""
        told = self._told.get(slots)
        if told is None:
            told = self._told[slots] = np.flatnonzero(np.isin(self._slots, slots))
        self.words[told] = self.bases[self._slots[told]] + self._offsets[told]
