"""Texts of kernels that differ in numbers alone: which of these are to be parameters.

Where a plan is made for size after size, compiling kernels takes longer than all else, and their
texts have the sizes in them, since compilers make better code of what they know. So the first text
of its form is compiled as it is; of the next one those numbers that differ become parameters, and
whatever comes after that has the same text, given other numbers. A number becomes a parameter that
has its value, wherever it stands, so what a kernel computes cannot change.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from ...runtime.memo import Memo


class _Family:
    """Texts of one form: the numbers of the first, and where others have others."""

    def __init__(self, numbers: Sequence[Hashable]) -> None:
        self.first = tuple(numbers)
        self.varying: frozenset[int] = frozenset()


class Families:
    """What was seen of the texts of a target."""

    def __init__(self) -> None:
        self._known: Memo[Hashable, _Family] = Memo(4_000)

    def varying(
        self, form: Hashable, numbers: Sequence[Hashable], always: Collection[int] = ()
    ) -> list[int]:
        """Which of the `numbers` in a text of some form are parameters, by their places.

        Those at the places `always`, which depend on the form alone, are so from the first on.
        """
        family = self._known.get(form)
        if family is None:
            family = self._known.keep(form, _Family(numbers))
        pairs = enumerate(zip(numbers, family.first, strict=True))
        found = {at for at, (mine, first) in pairs if mine != first}.difference(always)
        family.varying |= found
        return sorted({*always, *family.varying} if found else always)
