"""Functions of users that run as one plan in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType
from typing import Any, ParamSpec, TypeVar

from ..core.planned import Planned
from ..core.provenance import is_internal

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def fused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function of tensors run as one plan in eager mode. A decorator.

    The function takes tensors, numbers and what can be hashed, and gives new tensors. What it
    computes depends on its arguments alone, and on numbers that it reads itself from globals and
    closures. A function of elementwise operations is one kernel on any device, whatever else it
    does (reductions, products) as few steps as in `tgraph.compile`.

    It runs as it is written when it is first called with arguments of some types and memory order,
    and is compiled when these come a second time; floats are read at each call, so that a new
    learning rate compiles nothing. (A float whose value the function asks for, as `if rate > 0`
    does, is fixed, and so are whole numbers.) On a CUDA device new shapes hardly compile either,
    once two have been seen: their sizes are parameters of the same kernels. Gradients of any order
    are right: one step is recorded. Results have the types and the memory order of the function as
    it is written; 16-bit floats are computed in float32 and rounded once, when stored, and denormal
    numbers are kept.

    Where it cannot be compiled (one of its results is an argument or a view of one, say, or it
    reads other tensors), the function runs as it is written at each call, and so it does inside of
    functions that are traced.

    >>> import tgraph as tg
    >>> @tg.fused
    ... def swish(x, slope):
    ...     return x / (1 + tg.exp(-slope * x))
    >>> swish(tg.tensor([0.0, 1.0]), 2.0)
    tensor([0.0000, 0.8808])
    """
    return _function(function, writes=False)


def fused_update(function: Callable[..., None]) -> Callable[..., None]:
    """As `fused`, for a function that writes some of its arguments in place and gives nothing.

    No gradient is recorded. The arguments it writes must not share memory with one another.
    """
    return _function(function, writes=True)


def _function(function: Callable[..., Any], writes: bool) -> Callable[..., Any]:
    code = getattr(function, "__code__", None)
    if code is None or is_internal(code.co_filename):
        return Planned(function, writes).decorated()
    return Planned(function, writes, lambda: _numbers_read(function)).decorated()


def _numbers_read(function: Any) -> Iterator[Any]:
    """The numbers that a function itself finds in globals and closures now."""
    found = function.__globals__
    for name in function.__code__.co_names:
        value = found.get(name)
        if type(value) in _NUMBERS:
            yield value
    for cell in function.__closure__ or ():
        if cell != _EMPTY and type(cell.cell_contents) in _NUMBERS:
            yield cell.cell_contents


_NUMBERS = frozenset({float, int, bool})
_EMPTY = CellType()
