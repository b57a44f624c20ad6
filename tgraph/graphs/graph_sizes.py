"""Sizes that a graph leaves open until placeholders are fed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn

from ..compiler.ir import Node, TensorType, dim, layouts, toposort
from ..compiler.ir.dim import Dim, SizeGuard, SymInt, is_open
from ..core.provenance import is_internal, user_site
from ..core.trace_state import TraceError
from ..tracing.open_sizes import TYPICAL, OpenSizes

_DIM, _LAYOUTS = dim.__file__, layouts.__file__


_WAY_OUT = {
    False: "Give the placeholder a number there, or compute with the size as it is.",
    True: "Compute with it as it is, or fetch what is selected and go on in Python.",
}


def _asking() -> FrameType:
    """The code that asks something of a size."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in (__file__, _DIM) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_about_memory() -> bool:
    """Whether a question is about the order of elements in memory.

    That decides which results share memory in eager code. Where an axis of open size has one
    element or none, strides tell nothing, and nothing is taken for granted.
    """
    return _asking().f_code.co_filename == _LAYOUTS


def _dims_below(nodes: Collection[Node]) -> dict[Node, set[Dim]]:
    """The open sizes that there are in the types of nodes, and of what they are computed from."""
    found: dict[Node, set[Dim]] = {}
    for node in toposort(nodes):
        own = found[node] = set().union(*(found[each] for each in node.inputs))
        several = type(node.type) is not TensorType
        types: tuple[TensorType, ...] = node.type if several else (node.type,)
        own.update(d for type_ in types for size in type_.shape if is_open(size) for d in size.dims)
    return found


class GraphSizes(OpenSizes):
    """The open sizes of one graph: those of placeholders.

    Two that have to be equal, as in `x + y`, are taken to be one from then on. That, and whatever
    else is taken for granted, is checked when placeholders are fed, as a graph is built once.
    `axes_of` tells which axis of which placeholder a dim is, or where its number is selected.
    """

    def __init__(self, trace: Any) -> None:
        super().__init__(trace)
        self.named: dict[str, SymInt] = {}
        self.axes_of: dict[Dim, str] = {}
        self._asked: dict[tuple[str, str], list[Any]] = {}  # by what, for each guard
        self.questions = 0
        self._same: dict[Dim, SymInt] = {}  # a dim -> the one that it is equal to

    def of_axis(self, name: str, axis: str) -> SymInt:
        """The size `name`, which `axis` has; one that is known by this name already, or new."""
        found = self.named.get(name)
        if found is None:
            found = self.named[name] = self.new(name, TYPICAL)
            self.axes_of[self.dims[-1]] = axis
        return found

    def selected(self, shape: Sequence[Any], now: int | None, where: str) -> SymInt:
        size = super().selected(shape, now, where)
        self.axes_of[self.dims[-1]] = f"the number of elements that are selected at {where}"
        return size

    def known(self, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
        """The sizes of all dims, as far as those that stand for them are known."""
        ones = {dim: self.one_of(dim) for dim in list(self.dims)}
        return {dim: sizes[one] for dim, one in ones.items() if one in sizes}

    def one_of(self, dim: Dim) -> Dim:
        """The dim that stands for all that are equal to `dim`."""
        while dim in self._same:
            (dim,) = self._same[dim].dims
        return dim

    def check(self, size: SymInt) -> None:
        """A graph may always be asked, also between two parts of its construction."""

    def refuse(self, size: SymInt, what: str) -> NoReturn:
        is_counted = not self.counts.keys().isdisjoint(size.dims)
        raise TraceError(
            f"{what} asks for the value of {size.text} at {user_site()}, while a graph is built: "
            f"it is known only when the graph runs ({self.told(size)}). {_WAY_OUT[is_counted]}"
        )

    def written(self, size: SymInt, what: str) -> str:
        return size.text

    def told(self, size: SymInt) -> str:
        """Where the dims of a size come from, in words."""
        dims = sorted(size.dims, key=lambda each: each.name)
        return ", ".join(f"{each.name} is {self.axes_of[each]}" for each in dims)

    def is_same(self, size: SymInt, other: Any) -> bool:
        if not is_open(other):
            return False
        return bool(self._plain(size).terms == self._plain(other).terms)

    def is_zero(self, size: SymInt) -> bool:
        plain = self._plain(size)
        if not is_open(plain):
            return bool(plain == 0)
        if _is_about_memory():
            return False
        return self._unite(plain) or super().is_zero(plain)

    def is_positive(self, size: SymInt) -> bool:
        plain = self._plain(size)
        return super().is_positive(plain) if is_open(plain) else bool(plain > 0)

    def _assume(self, size: SymInt, relation: str) -> None:
        frame = _asking()
        if frame.f_code.co_filename == _LAYOUTS:
            return
        super()._assume(size, relation)
        by_user = not is_internal(frame.f_code.co_filename)
        now = None if by_user else (self.trace.recorded_count, self.trace.site())
        self._asked.setdefault((size.key, relation), []).append(now)
        self.questions += 1

    def assumed_by(self, needed: Collection[Node]) -> list[SizeGuard]:
        """What is taken for granted of sizes by what makes `needed` nodes of the trace.

        What an operation asks counts for what it records of these sizes; what the user's code
        asks, for all.
        """
        guards = list(self.guards.items())
        dims = _dims_below(needed) if guards else {}
        return [
            guard
            for key, guard in guards
            if any(self._counts(now, guard, dims) for now in self._asked.get(key, ()))
        ]

    def _counts(
        self, asked: tuple[int, Any] | None, guard: SizeGuard, dims: Mapping[Node, set[Dim]]
    ) -> bool:
        if asked is None:
            return True
        own = list(self.trace.recorded_at(*asked))
        below = _dims_below(own)
        of_size = [node for node in own if not below[node].isdisjoint(guard.size.dims)]
        return not own or any(node in dims for node in of_size or own)

    def agree(self, size: SymInt, other: Any) -> bool:
        if not is_open(other):
            return False
        difference = self._plain(size) - self._plain(other)
        return self._unite(difference) if is_open(difference) else bool(difference == 0)

    def _plain(self, size: SymInt) -> Any:
        """A size in terms of dims that stand for all that are equal to them."""
        if not self._same or self._same.keys().isdisjoint(size.dims):
            return size
        return size.at({dim: self._symbol(self.one_of(dim)) for dim in size.dims})

    def _symbol(self, dim: Dim) -> Any:
        return SymInt(self, {(dim,): 1})

    def _unite(self, difference: SymInt) -> bool:
        """Whether two dims differ by this: they are one from now on."""
        terms: Mapping[Any, int] = difference.terms
        if sorted(terms.values()) != [-1, 1]:
            return False
        atoms = [each[0] for each in terms if len(each) == 1 and type(each[0]) is Dim]
        if len(atoms) != 2:
            return False
        first, second = sorted(atoms, key=self.dims.index)
        guard = SizeGuard(difference, "==", self.where())
        self.guards[difference.key, "=="] = guard
        self._same[second] = self._symbol(first)
        return True
