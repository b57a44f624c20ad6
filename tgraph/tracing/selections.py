"""What a traced function selects by data: positions, whose number only a call can tell.

Their number is an open size, as those of arguments that `dynamic` names: it is known at each call
before what comes of it is computed. For the traced call it is found at once, by computing what the
selection is made of; a graph that is built up front is for no certain call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import Node
from ..compiler.ir.dim import Dim
from ..core.provenance import user_site
from ..core.tensor import Tensor, intern_type, wrap
from ..core.trace_state import Source, TraceError, TraceInput
from ..runtime.dtypes import int64
from ..runtime.records import NamedTuple
from .open_sizes import dims_of

if TYPE_CHECKING:
    from .trace_context import Trace

Count = Callable[["Trace", Node], tuple[Any, ...]]
"""Gives the positions at which a node of the trace is not zero, in the traced call. None of them
where no certain call is traced."""


def of_no_call(trace: Trace, mask: Node) -> tuple[Any, ...]:
    """A Count: what is asked of the number is answered for a typical one."""
    return ()


class Selection(NamedTuple):
    """Where `mask` is not zero: `inputs` stand for the positions along each of its axes.

    `dim` is their number, `now` are those of the traced call. `where` is the user's line.
    """

    mask: Node
    inputs: tuple[TraceInput, ...]
    dim: Dim
    now: tuple[Any, ...]
    where: str


def select(trace: Trace, mask: Tensor, count: Count) -> tuple[Tensor, ...]:
    """The positions of `mask`, as tensors of the trace."""
    node = trace.value_of(mask)
    found = trace.selections.get(node)
    if found is None:
        found = trace.selections[node] = _selection(trace, node, count)
    return tuple(wrap(each.node, each.node.type) for each in found.inputs)


def _selection(trace: Trace, mask: Node, count: Count) -> Selection:
    now, where = count(trace, mask), str(user_site())
    size = trace.sizes.selected(mask.type.shape, len(now[0]) if now else None, where)
    type_ = intern_type((size,), int64, mask.type.device)
    inputs = tuple(
        trace.new_input(Source("selected", (mask, axis)), f"positions{axis}", type_)
        for axis in range(mask.type.ndim)
    )
    (dim,) = size.dims
    return Selection(mask, inputs, dim, now, where)


class Counted:
    """Tells which selections a node depends on by itself, not by its operands: it is their
    positions, has as many elements, or computes with their number.

    `numbers` has the expressions of inputs that stand for numbers.
    """

    def __init__(self, selections: Sequence[Selection], numbers: Mapping[Node, Any]) -> None:
        self._of_dim = {each.dim: each for each in selections}
        self._of_input = {entry.node: each for each in selections for entry in each.inputs}
        self._numbers = numbers

    @classmethod
    def of_trace(cls, trace: Trace) -> Counted:
        numbers = {node: expression for (expression, _), node in list(trace.numbers.items())}
        return cls(list(trace.selections.values()), numbers)

    def of(self, node: Node) -> Iterator[Selection]:
        if node in self._of_input:
            yield self._of_input[node]
        elif self._of_dim:
            number = self._numbers.get(node)
            for dim in dims_of((node.type, *node.attrs.values(), number)):
                if dim in self._of_dim:
                    yield self._of_dim[dim]


def settle(trace: Trace) -> None:
    """Lets go of the traced call. TraceError where something can only be done once in a call, which
    selecting divides."""
    trace.count = None  # which knows its arguments
    if not trace.selections:
        return
    trace.selections = {node: each._replace(now=()) for node, each in trace.selections.items()}
    first = next(iter(trace.selections.values()))
    what = ""
    if trace.last_token is not None:
        what = "an ordered host_call"
    elif any(hasattr(each.key, "first") for each in trace.host_reads):
        what = "tg.host()"
    if what:
        raise TraceError(
            f"{trace.function} selects by data at {first.where}, and makes use of {what}, which "
            "cannot be compiled together; move one of them out of the compiled function"
        )
