"""Which outputs of a graph come in memory of their own, and which in that of an input."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from ...runtime.arrays import copy_elements
from ..ir import TensorType

Array = Any  # of NumPy or CuPy


class OutputMemory:
    """The outputs of a graph, of some `types`, as plans compute them.

    `donate` maps outputs to the inputs whose memory they are to take; `places` does so for the
    outputs that have elements and that a kernel may write there, by their place among those: not
    into a `strided` input, which gets a copy.
    """

    def __init__(
        self,
        types: Sequence[TensorType],
        donate: Mapping[int, int] | None,
        strided: Container[int] = (),
    ) -> None:
        self._types = tuple(types)
        self.kept = [number for number, type_ in enumerate(types) if type_.numel]
        self.donate = dict(donate or {})
        self.direct = {
            output: source for output, source in self.donate.items() if source not in strided
        }
        self.places = {
            at: self.direct[number]
            for at, number in enumerate(self.kept)
            if number in self.direct
        }  # fmt: skip
        self.fresh = [number for number in self.kept if number not in self.direct]
        """The outputs that come in memory of their own, in the order of their slots."""
        self.empty = [number for number, type_ in enumerate(types) if not type_.numel]
        self.simple = not (self.donate or self.empty)

    @property
    def count(self) -> int:
        """How many outputs there are."""
        return len(self._types)

    def with_types(self, types: Sequence[TensorType]) -> OutputMemory:
        """The same for outputs of other sizes, of which the same are empty."""
        other = OutputMemory.__new__(OutputMemory)
        other.__dict__.update(
            {name: self.__dict__[name] for name in _OWN if name != "_types"}, _types=tuple(types)
        )
        return other

    def types(self, numbers: Sequence[int]) -> list[TensorType]:
        """The types of some outputs."""
        return [self._types[number] for number in numbers]

    def results(
        self, inputs: Sequence[Array], fresh: list[Array], empty: Callable[[TensorType], Array]
    ) -> list[Array]:
        """One array per output: `fresh` ones, empty ones, and inputs that were written over."""
        if self.simple:
            return fresh
        outputs: list[Array] = [None] * len(self._types)
        for number, type_ in zip(self.empty, self.types(self.empty)):
            outputs[number] = empty(type_)
        for number, array in zip(self.fresh, fresh, strict=True):
            outputs[number] = array
        for number, source in self.donate.items():
            if number not in self.direct:
                copy_elements(inputs[source], outputs[number])
            outputs[number] = inputs[source]
        return outputs


_OWN = ("_types", "kept", "donate", "direct", "places", "fresh", "empty", "simple")
