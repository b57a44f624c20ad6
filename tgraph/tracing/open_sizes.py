"""Sizes that a trace leaves open: what the function asks of them, and what stands for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ..compiler.ir.dim import Dim, SizeGuard, Sizes, SizeScope, SymInt, is_open
from ..core.provenance import is_internal, user_site
from ..core.trace_state import Source
from ..core.traced_float import Specialize
from ..core.traced_number import FixedNumber, NumberExpression, OpenNumber, TracedNumber

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
        self.refused = ""
        self.is_over = False

    def open(
        self, places: Sequence[tuple[int, int]], leaves: Sequence[Any]
    ) -> dict[tuple[int, int], Dim]:
        """Leave sizes of arguments open, equal ones as one dim; gives the dim of each place."""
        by_size: dict[int, SymInt] = {}
        found: dict[tuple[int, int], Dim] = {}
        for at, axis in places:
            hint = leaves[at]._type.shape[axis]
            size = by_size.get(hint)
            if size is None:
                size = by_size[hint] = self.new("nmkpqrstuvw"[len(by_size) % 11], hint)
            self.axes.setdefault(at, {})[axis] = size
            (found[at, axis],) = size.dims
        return found

    def where(self) -> str:
        return str(user_site())

    def check(self, size: SymInt) -> None:
        """Plans were made by what was asked in the trace: nothing may come later."""
        if self.is_over:
            raise self.trace.leaked_size(size)

    def refuse(self, size: SymInt, what: str) -> NoReturn:
        self.check(size)
        self.refused = f"{what} asks for the value of {size.text} at {user_site()}"
        raise Specialize(_sources(size))

    def may_hash(self, size: SymInt) -> None:
        """Our own tables are of expressions; the user's may hold numbers."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename == "<string>" and frame.f_back is not None:
            frame = frame.f_back  # a written method, such as those of records
        file = frame.f_code.co_filename
        if not is_internal(file) or file.startswith(_RECORDING):
            self.refuse(size, "a look-up")

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
