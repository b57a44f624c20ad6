"""Sizes that a trace leaves open: what the function asks of them, and what stands for them."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any, NoReturn

from ..compiler.ir import Graph, TensorType, dim
from ..compiler.ir.dim import Dim, SizeGuard, Sizes, SizeScope, SymInt, is_open
from ..core.provenance import is_internal, user_site
from ..core.tensor import Size
from ..core.trace_state import Source, TraceError
from ..core.traced_float import Specialize
from ..core.traced_number import FixedNumber, NumberExpression, OpenNumber, TracedNumber

TYPICAL = 720720
"""What is asked of a size, and cannot be known, is answered for this one: large, and divisible by
what sizes are divided by. The answer is then required."""

# The same for counts: each has more divisors than any smaller number.
_TYPICAL_COUNTS = (TYPICAL, 55440, 5040, 2520, 840, 360, 120, 60, 24, 12, 6, 4, 2, 1, 0)

_RECORDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recording") + os.sep


class OpenSizes(SizeScope):
    """The open sizes of one Trace.

    `axes` tells which those are: position of an argument -> axis -> its size. `refused` says of
    the last number that was asked for what asked for it, and at which line.
    """

    def __init__(self, trace: Any) -> None:
        super().__init__()
        self.trace = trace
        self.axes: dict[int, dict[int, SymInt]] = {}
        self.joined: list[tuple[Dim, Dim]] = []
        self.said: dict[Dim, Dim] = {}  # a dim -> the one that the user named
        self.refused = ""
        self.is_over = False
        self._unmet: SizeGuard | None = None
        self.counts: dict[Dim, str] = {}  # what is selected by data -> the user's line
        self.asks_counts = False  # also whether they are 1, as broadcasting would

    def open(
        self,
        places: Mapping[tuple[int, int], SymInt | None],
        leaves: Sequence[Any],
        known: Sizes,
        joined: Mapping[Dim, Dim],
    ) -> dict[tuple[int, int], SymInt]:
        """Leave sizes of arguments open; gives the size of each place.

        Those that say what their size is computed from have dims as said, with the sizes that are
        `known` now; where two are `joined`, the second of both. Of others, equal ones are one.
        """
        own: dict[Dim, SymInt] = {}
        by_size: dict[int, SymInt] = {}
        self.joined = list(joined.items())
        named = {dim.name for dim in known}
        names = [each for each in "nmkpqrstuvw" if each not in named]
        found: dict[tuple[int, int], SymInt] = {}
        for size in places.values():
            for each in () if size is None else sorted(size.dims, key=_key):
                last = each
                while last in joined:
                    last = joined[last]
                if last not in own:
                    own[last] = self.new(last.name, known[last], last.bounds)
                    self.said[self.dims[-1]] = last
                own[each] = own[last]
        for (at, axis), size in places.items():
            hint = leaves[at]._type.shape[axis]
            if size is not None:
                found[at, axis] = by_size[hint] = size.at(own)  # type: ignore[assignment]
        for (at, axis), size in places.items():
            hint = leaves[at]._type.shape[axis]
            if size is None and hint not in by_size:
                by_size[hint] = self.new(names[len(self.dims) % len(names)], hint)
            if size is None:
                found[at, axis] = by_size[hint]
        for (at, axis), size in found.items():
            self.axes.setdefault(at, {})[axis] = size
        return {place: found[place] for place in places}

    def selected(self, shape: Sequence[Any], now: int | None, where: str) -> SymInt:
        """The number of elements of `shape` that are selected by data, at a line; open from now on.

        It cannot be fixed, so that what is asked of it is answered as it is in the traced call,
        where it is `now`; for a typical number if no certain call is traced.
        """
        name = f"count{len(self.counts) + 1}" if self.counts else "count"
        most = None if any(map(is_open, shape)) else math.prod(shape)
        typical = (each for each in _TYPICAL_COUNTS if most is None or each <= most)
        size = self.new(name, next(typical) if now is None else now, (0, most))
        self.counts[self.dims[-1]] = where
        return size

    def may_be_equal(self, size: SymInt) -> bool:
        return super().may_be_equal(size) or not self.counts.keys().isdisjoint(size.dims)

    def is_same(self, size: SymInt, other: Any) -> bool:
        if not self.asks_counts or self.counts.keys().isdisjoint(size.dims):
            return super().is_same(size, other)
        return size == other

    def agree(self, size: SymInt, other: Any) -> bool:
        """They do not, but where they would have to and could in the traced call, it is noted."""
        difference = size - other
        if is_open(difference) and self.may_be_equal(difference) and difference.at(self.hints) == 0:
            return self.is_zero(difference)
        for each in (size - other, size - 1, 1 - other):
            if is_open(each) and each.at(self.hints) == 0:
                self._unmet = SizeGuard(each, "!=", self.where())
                break
        return False

    @property
    def accident(self) -> SizeGuard | None:
        """The last equality of sizes of the traced call that was taken for an accident."""
        hints = self.hints
        wrong = [each for each in self.guards.values() if not each.holds(hints)]
        return self._unmet or (wrong[-1] if wrong else None)

    def where(self) -> str:
        return str(user_site())

    def check(self, size: SymInt) -> None:
        """Plans were made by what was asked in the trace: nothing may come later."""
        if self.is_over:
            raise self.trace.leaked_size(size)

    def refuse(self, size: SymInt, what: str) -> NoReturn:
        self.check(size)
        for each in size.dims:
            if each in self.counts:
                raise TraceError(
                    f"{what} asks at {user_site()} for the number of elements that are selected at "
                    f"{self.counts[each]}, but {self.trace.function} is being traced: it is known "
                    "only when the compiled function runs. Compute with it as it is, pad to a "
                    "known size, or move this out of the compiled function."
                )
        self.refused = f"{what} asks for the value of {size.text} at {user_site()}"
        raise Specialize(_sources(size))

    def may_hash(self, size: SymInt) -> None:
        """Our own tables are of expressions; the user's may hold numbers."""
        if not _is_asked_by_us():
            self.refuse(size, "a look-up")

    def written(self, size: SymInt, what: str) -> str:
        """Our own errors tell an expression; the user's text has a number."""
        if not _is_asked_by_us():
            self.refuse(size, what)
        return size.text

    def number(self, sign: str, left: Any, right: Any) -> Any:
        """A size together with a number that is no size, computed by each call."""
        first, second = (self.as_number(each) if is_open(each) else each for each in (left, right))
        if type(first) is TracedNumber:
            return first._combine(sign, second, reflected=False)
        return second._combine(sign, first, reflected=True)

    def as_number(self, size: SymInt) -> TracedNumber:
        return TracedNumber(self.trace, Source("size", size), int, _sources(size), size.text)

    @contextmanager
    def asked_at(self, sizes: Sizes) -> Iterator[dict[tuple[str, str], SizeGuard]]:
        """What is asked meanwhile is answered for these sizes; gives what it took for granted."""
        guards, hints, is_over = self.guards, self.hints, self.is_over
        self.guards = added = dict(guards)
        self.is_over = False
        try:
            for dim, size in sizes.items():
                dim.hint = size
            yield added
        finally:
            self.guards, self.is_over = guards, is_over
            for dim, size in hints.items():
                dim.hint = size


def _is_asked_by_us() -> bool:
    """Whether it is not for the user, or for hooks in the user's code, that something is asked."""
    frame = sys._getframe(2)
    while _passes_on(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename
    return is_internal(file) and not file.startswith(_RECORDING)


def _passes_on(code: CodeType) -> bool:
    """Whether code asks for its caller: a written method, such as those of records, and the text of
    a shape."""
    return code.co_filename in ("<string>", dim.__file__) or code is Size.__repr__.__code__


def _key(each: Dim) -> int:
    return int(each.key[1:])


def _sources(size: SymInt) -> frozenset[Source]:
    return frozenset(Source("size", dim) for dim in size.dims)


def number_at(expression: Any, sizes: Mapping[Dim, int]) -> Any:
    """An expression of numbers with sizes in it, where those are known."""
    if isinstance(expression, Source) and expression.kind == "size":
        size = expression.key.at(sizes)
        return OpenNumber(size) if is_open(size) else FixedNumber(int, repr(size))
    if not isinstance(expression, NumberExpression):
        return expression
    operands = tuple(number_at(each, sizes) for each in expression.operands)
    return NumberExpression(expression.sign, operands)


def dims_of(value: Any) -> Iterator[Dim]:
    """The open sizes that there are in a type, an attribute of a node, or a number."""
    if is_open(value):
        yield from value.dims
    elif isinstance(value, Source):
        if value.kind == "size":
            yield from dims_of(value.key)
    elif isinstance(value, Graph):
        for node in (*value.inputs, *value.nodes):
            yield from dims_of((node.type, *node.attrs.values()))
    else:
        parts: Any = ()
        if type(value) is TensorType:
            parts = value.shape
        elif isinstance(value, NumberExpression):
            parts = value.operands
        elif type(value) in (tuple, list):
            parts = value
        for each in parts:
            yield from dims_of(each)
