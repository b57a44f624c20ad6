"""What a context must be able to do: it computes operations, or records them.

The eager one (`eager_context.py`) computes at once, a tracing one (`trace_context.py`) adds nodes
to its graph. `apply` in `dispatch.py` asks the current one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..compiler.ir import Node, Primitive, TensorType
from ..compiler.ir import primitives as p
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType
from .overlap import Origin
from .provenance import Site
from .state import state
from .tensor import Tensor

# The primitives whose results show the memory of their input, as in PyTorch (where flip copies).
ALIASING = frozenset({
    p.reshape, p.permute, p.broadcast, p.slice_, p.diagonal, p.unfold, p.view_as_real,
    p.view_as_complex, p.bitcast, p.repack,
})  # fmt: skip


class Context:
    """What computes or records operations. The eager one is always at the bottom of the stack."""

    tracing = False
    # Whether functions become the bodies of branches and loops of a graph.
    takes_bodies = False
    # Whether a graph is built up front: histories stay behind a backward pass, and may end at
    # tensors that keep no gradient.
    builds_graph = False
    # Whether a tensor whose `.data` is assigned keeps its memory, into which is written.
    keeps_memory = True
    # Whether gradients may be sparse tensors, of which the parts are values of this context.
    gives_sparse = False
    # Whether it stands over another one, of whose tensors the values of its own are made.
    lifts = False

    def evaluate(
        self,
        primitive: Primitive,
        tensors: tuple[Tensor, ...],
        attrs: dict[str, Any],
        type_: TensorType,
    ) -> Any:
        """The value of applying `primitive`: what becomes `_value` of the result."""
        raise NotImplementedError

    def value_of(self, tensor: Tensor) -> Any:
        """The current value of any tensor, in this context's own terms (ndarray or Node)."""
        raise NotImplementedError

    def state_of(self, tensor: Tensor) -> Any:
        """The value of a tensor that becomes the state of something, such as a Parameter."""
        return self.value_of(tensor)

    def kept(self, tensor: Tensor) -> Tensor:
        """A tensor as it can be kept as the state of something, most often itself."""
        return tensor

    def making_state(self, *written: Tensor) -> AbstractContextManager[None]:
        """Inside, first values are made: at once, also where a graph is built up front.

        An error where a tensor that is to be `written` is none of the outside.
        """
        return nullcontext()

    def label(self, tensor: Tensor, name: str) -> None:
        """Give a tensor a name in the graph that is built up front."""

    def made(self, state: Any) -> None:
        """A Parameter or a module has been made."""

    def may_reshape(self, tensor: Tensor) -> bool:
        """Whether a tensor object itself can get another shape: nobody outside keeps it."""
        return True

    def detached_value_of(self, tensor: Tensor) -> Any:
        """The value of what `detach()` gives."""
        return self.value_of(tensor)

    def rewritten_value(self, before: Tensor, new: Tensor, apart: bool) -> Any:
        """The value of `rewritten`: derivatives are no part of it, but in a lifted context."""
        return self.value_of(new)

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        """The elements, for `operation` such as "item()"; an error where there are none yet."""
        raise NotImplementedError

    def not_rewritten(self, operation: str) -> str:
        """Why code that asks for a value, which there is none of, is not rewritten (see
        `rewriting`). Raises Rewrite where it can be."""
        return ""

    def positions(self, tensor: Tensor, operation: str) -> tuple[Tensor, ...]:
        """Where elements are not zero, an int64 vector for each axis; as `host_array` an error
        where there are none yet. Their count is read, the elements are not."""
        raise NotImplementedError

    def owns(self, tensor: Tensor) -> bool:
        """Whether a tensor was made in this context."""
        return True

    def has_value(self, tensor: Tensor) -> bool:
        """Whether a tensor has one value that Python can go by."""
        return True

    def lowered(self) -> Any:
        """A `with` block that runs in the context below."""
        raise NotImplementedError

    def composite(
        self, operation: Any, tensors: tuple[Tensor, ...], attrs: dict[str, Any]
    ) -> Tensor:
        """The result of a Composite, where this context `lifts`."""
        raise NotImplementedError

    def custom(self, call: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a CustomCall, where this context `lifts`."""
        raise NotImplementedError

    def allow_iteration(self) -> None:
        """An error where a Python loop over a tensor is not what a user can want."""

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        """A 0-d tensor of a Python scalar. `value` arrives just as the user gave it."""
        raise NotImplementedError

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        """A tensor on `device` of an array that nobody else holds."""
        raise NotImplementedError

    def write(self, tensor: Tensor, new: Tensor) -> None:
        """Give `tensor` the value of `new`, of the same type, seen by all views of its memory.

        Values only: the caller keeps versions and history (see `inplace.assign`).
        """
        raise NotImplementedError

    def origin_of(self, root: Tensor) -> Origin:
        """Where a tensor that is no view in this context lies in the storage that others share."""
        return Origin(0, root._type.nbytes, False)

    def base_of(self, root: Tensor) -> Tensor | None:
        """What a tensor that is no view in this context is a view of, outside."""
        return None

    def memory_of(self, tensor: Tensor) -> Any:
        """The array that shows what a write of `tensor` overwrites; None where there is none."""
        return None if type(tensor._value) is Node else tensor._value

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        """Whether the result `value` of a view primitive shows the memory of `source`."""
        raise NotImplementedError

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        """`derived` is the view `tensor` derived again from its base: take over its value."""
        raise NotImplementedError

    def reads_current_device(self, current: Callable[[], int]) -> None:
        """`current()` told which CUDA device is meant: a trace holds as long as it tells this."""

    def host_number(self, getter: Callable[[], float], dtype: DType | None) -> Any:
        """See `tracing.host_scalar`."""
        return getter()

    def host_constant(self, getter: Callable[[], Any], name: str) -> Any:
        """See `tracing.host_constant`."""
        return getter()

    def host_value(self, function: Callable[[], Any]) -> Any:
        """See `tracing.host`."""
        return function()

    def no_longer_used(self, tensor: Tensor) -> None:
        """From now on another tensor is in the place of this one, which is state of the outside.

        Raises TraceAgain where it was read already.
        """

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        """Key and counter of the next `random_bits` on `device`; `generator` goes on by one.

        They are where bits on `device` are made from them.
        """
        raise NotImplementedError

    def random_state(self, generator: Any) -> Tensor:
        """Seed and counter of `generator` as an int64 tensor of two elements."""
        raise NotImplementedError

    def restart(self, generator: Any, random_state: Tensor) -> None:
        """Let `generator` go on from what its `random_state` was."""
        raise NotImplementedError

    def seeded(self, generator: Any, seed: int) -> None:
        """Called before `generator` starts from `seed` (0 to 2**64 - 1), calls counted from 0."""

    def token(self, device: Device) -> Tensor:
        """What the next ordered host call waits for, on `device` (see `compiler/ir/host_calls`)."""
        raise NotImplementedError

    def ordered(self, token: Tensor) -> None:
        """An ordered host call gave this: the next one waits for it."""
        raise NotImplementedError

    def serial(self) -> int:
        """A number that no other random host call has, where equal ones would be one."""
        raise NotImplementedError

    def operation(self, name: str, closing: bool = False) -> AbstractContextManager[Any]:
        """What is written in a `with` block belongs to one operation of a graph that is built.

        With `closing`, so does what was written before it. None where no graph is built.
        """
        return nullcontext()

    def body(
        self, function: Callable[..., Sequence[Tensor]], types: Sequence[TensorType],
        watched: Sequence[Callable[..., Any]],
    ) -> Any:  # fmt: skip
        """A function of tensors of `types` as the body of a branch or loop, in a trace.

        `watched` are the user's functions that it calls. Its `types` are those of the results.
        """
        raise NotImplementedError

    def branch(self, index: Tensor, bodies: Sequence[Any]) -> list[Tensor]:
        """What the body number `index` gives, one that takes nothing."""
        raise NotImplementedError

    def loop(
        self, condition: Any, body: Any, carried: Sequence[Tensor], bound: Any = None,
        checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """The first state, from `carried` on, for which the body `condition` gives false; it does
        so after `bound` turns at the latest, where that is given.

        For gradients, as many states as there are `checkpoints` are kept.
        """
        raise NotImplementedError

    def is_any(self, decision: Tensor) -> bool | None:
        """Whether a single bool is true, of any example; None where there is no value yet."""
        return bool(self.host_array(decision, "item")) if self.has_value(decision) else None

    def loop_below(
        self, decide: Callable[..., Tensor], advance: Callable[..., Sequence[Tensor]],
        carried: Sequence[Tensor], watched: Sequence[Callable[..., Any]] = (),
        checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """A loop with `is_any` of its condition unknown, where this context `lifts`."""
        raise NotImplementedError

    def run_above(
        self, context: Context, function: Callable[..., Sequence[Tensor]],
        tensors: Sequence[Tensor], name: str,
    ) -> list[Tensor]:  # fmt: skip
        """What `function` gives for `tensors` of `context`, which stands over this trace.

        It is recorded here, once, as a body, which is called there by its `name`.
        """
        raise NotImplementedError

    def replayed(self, graph: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        """What a graph of this trace gives, operation by operation in the current context."""
        raise NotImplementedError

    def gradients_off(self) -> None:
        """Called where the user switches the recording of gradients off."""

    def allow_draws(self) -> None:
        """An error where random numbers must not be drawn."""

    def scan(
        self, step: Any, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any,
        reverse: bool, checkpoints: int | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """The last state, and stacked results, of a body that takes a state and rows of `xs`."""
        raise NotImplementedError

    def region(self, policy: Any) -> AbstractContextManager[bool]:
        """Where a checkpointed function runs. Gives False where it has to be recorded by itself."""
        return nullcontext(False)

    def named(self, tensor: Tensor, name: str) -> None:
        """A name by which policies of checkpoints know a value."""

    def pure(self, where: str) -> AbstractContextManager[None]:
        """In a trace: an error where numbers are drawn, or the outside written, in `where`."""
        return nullcontext()

    def selecting(self) -> AbstractContextManager[None]:
        """What runs inside counts for some examples only: what it gives is selected by them."""
        return nullcontext()

    def at_home(self, tensor: Tensor) -> AbstractContextManager[None]:
        """Operations inside belong to where `tensor` was made, in whatever body that is."""
        return nullcontext()

    def update(self, function: Callable[..., None], args: Sequence[Any]) -> None:
        """Call a function that gives nothing and writes some of its arguments: `fused_update`."""
        function(*args)

    def check_view(self, tensor: Tensor) -> None:
        """An error where the value of a view does not follow from that of its base."""

    def replace_memory(self, tensor: Tensor, new: Tensor) -> None:
        """Let `tensor` show the memory of `new`, which has its type."""
        raise NotImplementedError

    def touch(self, tensor: Tensor) -> None:
        """Called before the metadata of a handle changes: history, version, hooks."""

    def backward_of(self, site: Site | None) -> None:
        """Operations from now on belong to the backward pass of those made at `site`."""

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        """The accumulated gradient of `tensor`."""
        return tensor._grad

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Replace the accumulated gradient of `tensor`."""
        tensor._grad = grad


GRAPHS: weakref.WeakSet[Any] = weakref.WeakSet()
"""The contexts of graphs that are built up front (`graphs/graph_trace.py`)."""


class use_context:
    """Run operations of this thread in `context` for the length of a `with` block.

    No generator: one that Ctrl-C left half-way would put its context back whenever it is collected.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.previous = context

    def __enter__(self) -> Context:
        self.previous = state.context
        state.context = self.context
        return self.context

    def __exit__(self, *error: object) -> None:
        state.context = self.previous
