"""`compile`: run a function as one optimised plan per kind of call.

The function is traced on its first call, and again whenever a call differs in something that the
plan depends on: the structure of the arguments; shape, dtype, memory layout or `requires_grad` of
a tensor; a static value; whatever the function read of the Python world (see `recorder`).
`fn.compiles` tells the reason for each.

- Arguments and results are tensors, other values, and containers of them (see `pytree`). Values
  that are no tensors are fixed in the plan. Numbers that change become inputs of the plan, unless
  the function asks for their value.
- Tensors of closures, globals and modules are found by themselves and read anew at every call. A
  plan keeps them alive. Numbers and tensors that lie at a place where something else lay before
  become inputs, too; what stands in for them lies there while the function is traced, for other
  threads as well.
- In-place changes of tensors, gradients left by `backward()`, optimizer steps, random numbers, and
  what the function writes into Python objects (attributes, items, variables) happen at every call
  as they do in eager code. What reaches the world in other ways (printing, files) happens only
  when the function is traced.
- Results own their memory; views of arguments are views again.
- While Python shuts down, no plans are made: a call that needs a new one runs eagerly.
- While a function is traced, one thread at a time, objects that it changes may look changed to
  other threads.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import (
    TYPE_CHECKING,
    Any,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from ..core.pytorch_options import PyTorchOptions, check_options
from ..runtime import interrupts
from ..runtime.garbage import no_collection

if TYPE_CHECKING:
    from ..compiler.ir import Graph
    from ..nn.module import Module
    from .compilations import CompileRecord
    from .compiled_call import CompiledCall
    from .explain import Explanation
    from .named_size import NamedSizes

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class Compiled(Protocol[_P, _R]):
    """What `compile` makes of a function, for type checkers: a `CompiledFunction`."""

    compiles: list[CompileRecord]

    @property
    def latest(self) -> CompiledCall | None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...
    def explain(self, *args: Any, measure: bool = False, **kwargs: Any) -> Explanation: ...
    def graph(self, *args: Any, **kwargs: Any) -> Graph: ...
    def assert_compiles(self, count: int) -> None: ...
    def assert_new_compiles(self, count: int = ...) -> AbstractContextManager[None]: ...


class _Compiling(Protocol):
    """`compile` with arguments, as a decorator."""

    def __call__(self, function: Callable[_P, _R], /) -> Compiled[_P, _R]: ...


Axis = int | Sequence[int] | Mapping[int, "str | NamedSizes | bool"] | bool
Axes = bool | Mapping[str, "Axis | Mapping[str, Axis]"]


@overload
def compile(
    function: Module, *, check: bool = ..., dynamic: Axes | None = ..., control_flow: bool = ...,
    **pytorch: Unpack[PyTorchOptions],
) -> Any: ...  # fmt: skip
@overload
def compile(
    function: Callable[_P, _R], *, check: bool = ..., dynamic: Axes | None = ...,
    control_flow: bool = ..., **pytorch: Unpack[PyTorchOptions],
) -> Compiled[_P, _R]: ...  # fmt: skip
@overload
def compile(
    function: None = ..., *, check: bool = ..., dynamic: Axes | None = ...,
    control_flow: bool = ..., **pytorch: Unpack[PyTorchOptions],
) -> _Compiling: ...  # fmt: skip
def compile(
    function: Any = None, *, check: bool = False, dynamic: Axes | None = None,
    control_flow: bool = False, fullgraph: bool = False, backend: Any = "inductor",
    mode: str | None = None, options: Mapping[str, Any] | None = None, disable: bool = False,
) -> Any:  # fmt: skip
    """Compile a function, method or module; also a decorator, with or without arguments.

    The first call runs the function once, to record its operations; later calls run the plan made
    of them, not the Python code. A plan holds for the types of the tensors, the values of other
    arguments, and all that the function read of the Python world while it was traced: variables,
    attributes, items, lengths, classes, functions; tensors and objects by identity, numbers,
    strings and flags by value. Where one of them changes, a new plan is made, and `compiles` tells
    why; numbers and tensors that change become inputs instead, wherever they are read. What the
    function changes (parameters, gradients, random state, attributes, lists, dictionaries) is
    changed by every call. What cannot be watched or repeated is refused, with the line. Printing
    happens only while recording. What no result needs is not computed; so a position outside its
    axis is an IndexError where an element of a result would be read or written there. A call is one
    step in the graph of gradients, as in PyTorch: what flows from one of its results to an input
    passes by the others, their hooks and retained gradients, though one be computed from another.

    With `check`, every call also runs eagerly, on copies, and a result that differs is an error
    that names the first operation, kernel and source line that differ. The environment variable
    TGRAPH_COMPILE=0 makes everything run eagerly, and `disable` gives the function itself.

    `fullgraph`, `backend`, `mode` and `options` are accepted for programs written for PyTorch, and
    change nothing: a function is always one graph, and there is one compiler. A backend that is a
    function of the program's is refused.

    `dynamic` names axes of arguments whose size varies, such as ``{"x": 0}`` or ``{"x": (0, 1)}``;
    a tensor in a container goes by its path (``"batch['image']"``, or ``{"batch": {"image": 0}}``),
    and the name of a container stands for all tensors in it. The function is then traced once for
    all sizes of them, also 0 and 1: ``x.shape[0]`` is a number that is not known, with which shapes
    and numbers can be computed. Sizes that are equal in the traced call are taken for one; a call
    in which they differ is traced anew. Comparing a size with another number makes the trace one
    for all sizes with the same answer. What needs the number itself, such as
    ``range(x.shape[0])``, fixes it: then each size is traced; `explain()` says which line did it.
    ``dynamic=True`` leaves all axes open that have not one element.

    Sizes may have names: ``{"x": {0: "batch", 1: tg.Dim("length", max=512)}, "y": {0: "batch"}}``.
    Axes of one name have one size, those of different names are different ones, and an axis may be
    computed from names: ``{"x": {0: "8 * k"}, "mask": {0: "length", 1: "length + 1"}}``. A call
    that has other sizes than were said, or one outside of a range, is a ValueError. See `Dim`.

    With `control_flow`, an `if`, `while` or `for` of the function, and of those that it calls, may
    be decided by tensors: such functions are rewritten from their source, and compiled into
    branches and loops (docs/control_flow.md). A loop has gradients if it goes over rows, or over a
    `range` of numbers that Python knows, also where a tensor ends it early.

    >>> import tgraph as tg
    >>> @tg.compile
    ... def f(x, y):
    ...     return (x * y).sum()
    >>> f(tg.ones(3), tg.ones(3))
    tensor(3.)
    >>> f(tg.ones(4), tg.ones(4))
    tensor(4.)
    >>> [record.reason for record in f.compiles]
    ['first call', 'new shape of argument `x`: float32[3] -> float32[4]']
    >>> mean = tg.compile(lambda x: x.sum() / x.shape[0], dynamic={"x": 0})
    >>> mean(tg.ones(3)), mean(tg.ones(500)), len(mean.compiles)
    (tensor(1.), tensor(1.), 1)
    """
    check_options(backend, mode, options)
    if function is None:
        return functools.partial(
            compile, check=check, dynamic=dynamic, control_flow=control_flow, disable=disable
        )
    if not callable(function):
        raise TypeError(f"compile expected a function or module, got {type(function).__name__}")
    # While Python shuts down nothing can be imported; without a plan a call runs as it is written.
    if disable or sys.is_finalizing():
        return function
    # Imported here, as a quarter of tgraph serves compiled functions alone.
    with interrupts.held(), no_collection():
        from ..tracing.record_call import is_module
        from .compiled_function import compiled

        if not is_module(function):
            return compiled(function, check, dynamic, control_flow)
        from .optimized_module import OptimizedModule

    module = function._orig_mod if isinstance(function, OptimizedModule) else function
    return OptimizedModule(module, compiled(module, check, dynamic, control_flow))
