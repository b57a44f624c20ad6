"""Functions of one element at a time that run as one kernel in eager mode.

On the CPU such a function is a plan like others (`planned.py`). On a CUDA device it needs none of
the compiler's passes: `fused_function.py`, which is imported where one is called with tensors of a
device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..runtime import interrupts
from .fused_call import with_plans

if TYPE_CHECKING:
    from .fused_function import Fused

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def fused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function of elements run as one kernel in eager mode. A decorator.

    The function takes tensors, which broadcast against each other, and Python numbers, also inside
    of containers, and gives new tensors. It consists of elementwise operations: arithmetic,
    mathematics, comparisons, `where`, casts. What it computes depends on its arguments alone, and
    on numbers that it reads itself from globals and closures.

    On a CUDA device one `cupy.ElementwiseKernel` computes all results of one shape, on any strided
    views without copies. It is compiled once for each combination of dtypes; numbers are arguments
    of the kernel, so that a new learning rate compiles nothing. (A number whose value the function
    asks for, as `if rate > 0` does, is fixed, and so is the exponent of `**`.) 16-bit floats are
    computed in float32 and rounded once, when stored; denormal float32 results become zero, as in
    all that CuPy computes. Gradients of any order are right: one step is recorded, whose backward
    pass is one kernel as well.

    On the CPU the function is compiled when it is called a second time with arguments of the same
    types and memory order, and runs as it is before that, or where it cannot be compiled (one of
    its results is an argument, say). Inside of functions that are traced it runs as it is.

    Raises TypeError, with the line, for operations that are not elementwise (reductions, indexing,
    views of other shapes, random numbers), for writing in place, and for reading tensors that are
    no arguments. These errors come on a CUDA device only.

    >>> import tgraph as tg
    >>> @tg.fused
    ... def swish(x, slope):
    ...     return x / (1 + tg.exp(-slope * x))
    >>> swish(tg.tensor([0.0, 1.0]), 2.0)
    tensor([0.0000, 0.8808])
    """
    return _function(function)


def fused_update(function: Callable[..., None]) -> Callable[..., None]:
    """As `fused`, for a function that writes some of its arguments in place and gives nothing.

    No gradient is recorded. The arguments it writes must not share memory with one another.
    """
    return _function(function, writes=True)


def _function(function: Callable[..., Any], writes: bool = False) -> Callable[..., Any]:
    @functools.cache
    def on_device() -> Fused:
        with interrupts.held():
            from .fused_function import Fused

        return Fused(function, writes=writes)

    return with_plans(function, on_device, writes)
