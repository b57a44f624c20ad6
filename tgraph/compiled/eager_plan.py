"""The plan of a function of tensors for one signature of its arguments, in eager mode.

The function is traced once, with nothing but its own arguments to read. What comes of it is a
`GraphFunction`, like that of a compiled function: gradients of any order are derived from the same
trace, what is saved obeys versions, and a call is recorded as one step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Graph, Node
from ..compiler.ir import primitives as p
from ..compiler.ir.layouts import memory_order, node_strides, row_major
from ..core import pytree
from ..core.inplace import check_memory, count_writes
from ..core.node_names import camel, node_name
from ..core.out_of_memory import note
from ..core.plan_table import Plan
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor, intern_type, root_of, wrap
from ..core.trace_state import Source, TraceInput
from ..core.traced_number import number_value
from ..runtime.arrays import writes_meet
from ..runtime.cuda.arrays import ALIGNMENT
from ..runtime.records import NamedTuple
from ..tracing.trace_context import Trace
from ..tracing.traced_gradients import trace_gradients
from .compiled_record import CompiledRecord
from .graph_function import GraphFunction

Array = np.ndarray[Any, Any]


class NotPlannableError(Exception):
    """What a function does cannot be a plan: it runs as it is written."""


class Call(NamedTuple):
    """How a function is called with leaves of arguments.

    `build` puts leaves together to (args, kwargs). Tensors among them tell types, strides and
    whether they require grad; numbers at the positions `numbers` may be others at each call.
    """

    function: Callable[..., Any]
    name: str
    build: Callable[[Sequence[Any]], tuple[Any, Any]]
    numbers: frozenset[int]
    writes: bool


class EagerPlan(Plan):
    """What a call does, compiled: `plan(leaves)` gives the function's result.

    It holds for leaves whose tensors are as those of `leaves`, and whose other values are equal.
    """

    __slots__ = (
        "_draws", "_function", "_is_noted", "_is_plain", "_only_read", "_places", "_reads",
        "_run", "_tree", "_types", "_written", "hits", "kept",
    )  # fmt: skip

    def __init__(self, traced: TracedCall, kept: Any) -> None:
        self.hits, self.kept = 0, kept
        self._function, self._tree = traced.function, traced.tree
        self._types, self._written = traced.types, traced.written
        arguments = [e.source.key for e in traced.trace.inputs if e.source.kind == "argument"]
        self._only_read = [at for at in arguments if at not in traced.written]
        uses = traced.trace.draws.generators.values()
        if any(use.counts for use in uses):
            raise NotPlannableError("it draws random numbers in a branch or loop")
        self._draws = [(use.generator, use.calls) for use in uses]
        sources = [entry.source for entry in traced.trace.inputs]
        self._reads = tuple(map(_reader, sources))
        self._places = [each.key if each.kind == "argument" else None for each in sources]
        executable = self._function.executable  # compiled here: calls find nothing left to do
        if not executable.is_straight:
            raise NotPlannableError("it computes on several devices")
        self._run = executable.run
        self._is_noted = any(not type_.device.is_host for type_ in self._types)
        # One new tensor comes of it, without a history.
        self._is_plain = self._tree is None and self._function.outputs.simple and not (
            self._function.differentiable or self._written
        )  # fmt: skip

    def __call__(self, leaves: Sequence[Any]) -> Any:
        if self._written:
            for at in self._written:
                check_memory(leaves[at])
            self._check_apart(leaves)
        arrays = [read(leaves) for read in self._reads]
        values = self._run(arrays)
        for generator, calls in self._draws:
            generator.counter += calls
        if self._is_noted:
            for value in values:
                note(value)
        if self._is_plain:
            return wrap(values[0], self._types[0])
        for at in self._written:
            count_writes(leaves[at], 1)
        return None if self._written else self._results(leaves, arrays, values)

    def _check_apart(self, leaves: Sequence[Any]) -> None:
        """A plan reads and writes in an order of its own."""
        written = [leaves[at]._value for at in self._written]
        read = [leaves[at]._value for at in self._only_read]
        if writes_meet(written, read):
            raise NotPlannableError("it writes what it reads through another argument")

    def _results(self, leaves: Sequence[Any], arrays: list[Array], values: list[Array]) -> Any:
        outputs = self._function.outputs
        values = outputs.laid(values)
        results = [
            wrap(value, type_) for value, type_ in zip(outputs.expand(values, arrays), self._types)
        ]
        differentiable = self._function.differentiable
        if differentiable:
            record = PlannedRecord(self._function, self._given(leaves, arrays), arrays, values)
            record.attach({number: results[number] for number in differentiable})
        return results[0] if self._tree is None else self._tree.unflatten(results)

    def _given(self, leaves: Sequence[Any], arrays: Sequence[Array]) -> list[Any]:
        """The tensors behind the arrays, where there are any."""
        return [array if at is None else leaves[at] for at, array in zip(self._places, arrays)]


class PlannedRecord(CompiledRecord):
    """The call of a plan, recorded as one step under the function's name."""

    __slots__ = ()

    def name(self) -> str:
        name = self.function.name
        return node_name([*self.site.calls, name], self) or f"{camel(name)}Backward0"


def _reader(source: Source) -> Callable[[Sequence[Any]], Array]:
    """What gives the array of an input, of the leaves of a call."""
    key = source.key
    if source.kind == "argument":
        return lambda leaves: leaves[key]._value  # type: ignore[no-any-return]
    if source.kind == "random":
        return lambda leaves: np.array((key.seed_as_int64, key.counter), np.int64)
    if isinstance(key, Source):
        at = key.key
        return lambda leaves: np.array(leaves[at])  # a float
    return lambda leaves: np.array(number_value(key, lambda each: leaves[each.key]), np.float64)


# --- from a function to a graph ------------------------------------------------------------------


class TracedCall(NamedTuple):
    """The graph of a call, and what its results are made to by it."""

    trace: Trace
    function: GraphFunction
    tree: pytree.TreeSpec | None  # None where the result is one tensor
    types: list[Any]
    written: list[int]  # leaves that the function writes in place


def trace_call(call: Call, leaves: Sequence[Any]) -> TracedCall:
    """The graph of a call; NotPlannableError where its arguments are not all that it needs.

    Also raises what the function raises, and Specialize for the numbers whose values it asks for.
    """
    trace = Trace(function=call.name)
    previous = state.context
    try:
        state.context = trace
        given = [_stand_in(trace, call, at, leaf) for at, leaf in enumerate(leaves)]
        with trace.at_one_line(user_site().provenance):
            args, kwargs = call.build(given)
            returned = call.function(*args, **kwargs)
        _check_reads(trace)
        results, tree, donate = _results(trace, call, returned)
        differentiable = {n: each for n, each in enumerate(results) if each._requires_grad}
        asked = {
            number: entry.differentiable
            for number, entry in enumerate(trace.inputs)
            if entry.differentiable is not None
        }
        nodes = [trace.value_of(each) for each in results]
        traced_gradients = (
            trace_gradients(trace, differentiable, asked, False, None) if differentiable else None
        )
    finally:
        state.context = previous
        final = trace.roll_back()
    if not donate and not all(map(_is_dense, nodes)):
        raise NotPlannableError("a result is not dense")
    graph = Graph([entry.node for entry in trace.inputs], nodes)
    function = GraphFunction(
        graph, trace, final, differentiable, asked, traced_gradients, donate, call.name,
        laid_out=range(len(nodes)),
    )  # fmt: skip
    types = [intern_type(*node.type) for node in nodes]
    function.types = types
    function.keeps_arenas = False  # there are many plans, of which few run at a time
    function.eager, function.aligned = True, all(map(_is_aligned, leaves))
    written = [trace.inputs[at].source.key for at in donate.values()]
    return TracedCall(trace, function, tree, types, written)


def _is_dense(node: Node) -> bool:
    """Whether eager code lays a result out as plans can: by rows, or with permuted axes."""
    shape, strides = node.type.shape, node_strides(node)
    order = memory_order(shape, strides) or tuple(range(len(shape)))
    return tuple(strides[axis] for axis in order) == row_major(tuple(shape[axis] for axis in order))


def _is_aligned(leaf: Any) -> bool:
    """Whether a device can load vectors from where a tensor begins."""
    if not isinstance(leaf, Tensor) or type(leaf._value) is np.ndarray:
        return True
    return not leaf._value.data.ptr % ALIGNMENT


def _stand_in(trace: Trace, call: Call, at: int, leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        twin = wrap(leaf._value, leaf._type)  # without hooks, history and attributes
        twin._requires_grad = state.grad_enabled and not call.writes and leaf._requires_grad
        return trace.argument(Source("argument", at), twin, f"x{at}")
    if at in call.numbers:
        return trace.number(Source("number", at), type(leaf), f"x{at}")
    return leaf


def _check_reads(trace: Trace) -> None:
    kinds = {entry.source.kind for entry in trace.inputs}
    others = trace.static_reads or trace.host_reads or trace.draws.seeds or trace.grads
    others = others or trace.last_token
    if others or not kinds <= {"argument", "number", "random"}:
        raise NotPlannableError("it reads more than its arguments")


def _results(
    trace: Trace, call: Call, returned: Any
) -> tuple[list[Tensor], pytree.TreeSpec | None, dict[int, int]]:
    """New tensors that a call gives, or the arguments that it writes and where they came from."""
    written = {
        number: entry for number, entry in enumerate(trace.inputs) if _is_written(trace, entry)
    }
    if call.writes:
        if returned is not None or any("strides" in each.node.attrs for each in written.values()):
            raise NotPlannableError("it writes what is not contiguous")
        handles = [each.handle for each in written.values() if each.handle is not None]
        return handles, None, dict(enumerate(written))
    leaves, tree = pytree.flatten(returned)
    fresh = all(isinstance(each, Tensor) and _is_fresh(trace, each) for each in leaves)
    if written or not fresh or len({trace.value_of(each) for each in leaves}) < len(leaves):
        raise NotPlannableError("its results are not new tensors")
    return leaves, None if returned is leaves[0] else tree, {}


def _is_written(trace: Trace, entry: TraceInput) -> bool:
    return entry.handle is not None and entry.handle._value is not entry.node


def _is_fresh(trace: Trace, result: Tensor) -> bool:
    """Whether a result has memory of its own in eager code."""
    entries: Mapping[int, Any] = trace.by_handle
    return id(root_of(result)) not in entries and trace.value_of(result).primitive is not p.input_
