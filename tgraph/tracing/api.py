"""What users ask of a trace: to see one, to be left out of it, and to be asked at each call.

`trace` gives the graph of a function to look at. `host(function)` calls a function at every call of
a compiled one. Some helpers serve code that keeps state between calls, such as optimizers: under
`suspend_tracing()` tensors are computed at once, so that state made inside a traced function is
real; `host_scalar(getter)` reads a hyperparameter anew at every call of the compiled function, so
that changing it needs no new compilation; `host_constant(getter)` fixes one, and compiles anew
when it has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import pytree
from ..core.compile_lock import refuse_at_exit
from ..core.context import use_context
from ..core.eager_context import EAGER, current_context
from ..core.keywords import with_keywords
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..ops.linalg import trace as matrix_trace
from ..runtime.dtypes import DType

if TYPE_CHECKING:
    from ..compiler.targets.cpu.program import CpuProgram


def is_tracing() -> bool:
    """Whether operations of this thread are recorded into a graph now."""
    return current_context().tracing


class suspend_tracing(use_context):
    """Compute at once inside the block, also in a traced function.

    For state that outlives the call, made on first use: what is made here is a real tensor, which
    a compiled function finds by identity and writes in place. Values of traced tensors cannot be
    used inside.

    >>> import tgraph as tg
    >>> state = {}
    >>> @tg.compile
    ... def count(x):
    ...     if not state:
    ...         with tg.tracing.suspend_tracing():
    ...             state["n"] = tg.zeros(())
    ...     state["n"].add_(1)
    ...     return x * state["n"]
    >>> count(tg.ones(2)), count(tg.ones(2)), state["n"]
    (tensor([1., 1.]), tensor([2., 2.]), tensor(2.))
    """

    def __init__(self) -> None:
        super().__init__(EAGER)


def host_scalar(getter: Callable[[], float], dtype: DType | None = None) -> Any:
    """The number that `getter()` gives now and at every later call of the compiled function.

    Outside of a trace simply `getter()`. Inside, something that behaves like a Python float in
    arithmetic with numbers and tensors (with `dtype`: a tensor of no dimensions of that type);
    comparing it, or asking for its value, fixes it, and a change then compiles anew.
    """
    return current_context().host_number(getter, dtype)


def host_constant(getter: Callable[[], Any], name: str = "a setting") -> Any:
    """What `getter()` gives, fixed in the compiled function while it gives an equal value.

    For choices that decide which operations run: a change compiles anew, for the reason that
    `name` changed. Outside of a trace simply `getter()`.
    """
    return current_context().host_constant(getter, name)


def host(function: Callable[[], Any]) -> Any:
    """What `function()` gives, a tensor or a number: called at every call of a compiled function.

    For what is not recorded: the clock, files, random numbers of others. In eager code simply
    `function()`. It must give the same type each time; numbers may be computed with, while asking
    for their value is a TraceError.

    >>> import tgraph as tg
    >>> import itertools
    >>> count = itertools.count(1)
    >>> f = tg.compile(lambda x: x * tg.host(lambda: next(count)))
    >>> f(tg.ones(2)), f(tg.ones(2))
    (tensor([1., 1.]), tensor([2., 2.]))
    """
    context = current_context()
    if not context.tracing or state.recorder is None:
        return context.host_value(function)
    with state.recorder.suspended():
        return context.host_value(function)


@with_keywords
def trace(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The graph of `function(*args, **kwargs)`, which is run once without computing anything.

    (Of a tensor instead of a function: the sum of its diagonal.)

    Outputs are the tensors of the result, then new values of arguments and of tensors of the
    outside that the function changes in place, then gradients that its `backward()` leaves, then
    the counters of generators from which branches and loops draw, then the token of the last
    `host_call` that is ordered, if there is any. Of what selects by data (`x[mask]`), positions are
    inputs, and what they are found in are the last outputs.

    `tg.draw` shows the graph. A `tg.Session` runs it: for that the function is called once more.

    >>> import tgraph as tg
    >>> print(tg.trace(lambda x: (x * 2).sum(), tg.ones(3)))
    graph(%x: float32[3])
      %0: float32[] = full(dtype=float32, shape=(), value=2.0)
      %1: float32[3] = mul(%x, %0)
      %2: float32[] = sum(%1; axes=(0,), keepdims=False)
      return %2
    """
    if isinstance(function, Tensor):
        return matrix_trace(function)
    if is_tracing():
        raise TraceError("tg.trace cannot be called in a function that is being traced")
    refuse_at_exit()
    # Imported here, as most programs look at no graph.
    from .record_call import traced_graph

    return traced_graph(function, *pytree.flatten((args, kwargs)))


def program(function: Any, *args: Any, **kwargs: Any) -> CpuProgram:
    """What `function(*args, **kwargs)` becomes on the CPU: its kernels, and the steps of its plan.

    Nothing is computed or compiled. `source` of the result is the LLVM text of the kernels, `steps`
    are kernels, library calls and copies in order, `buffers` the memory that they work on; `str`
    lists all of it, `save(folder)` writes it as files, and `tg.draw` shows it. `tg.cuda.program`
    tells the same of a GPU.

    Raises TraceError where the function cannot be traced, ValueError where other devices compute.

    >>> import tgraph as tg
    >>> print(tg.tracing.program(lambda x: tg.softmax(x @ x, -1), tg.ones(64, 64)))
    program for a CPU
      status status int64[8] 64 bytes
      arena arena 16384 bytes
      input x float32[64, 64] 16384 bytes
      output result0 float32[64, 64] 16384 bytes
       0  gemm matmul: arena = slot1 @ slot1 m 64 n 64 k 64 float32
       1  kernel k1_max_sum_div(in0 = arena float32[4096], out1 = result0 float32[4096]) \
extent 64
    """
    from ..compiler.targets.cpu.program import cpu_program

    return cpu_program(trace(function, *args, **kwargs).of_known_sizes())
