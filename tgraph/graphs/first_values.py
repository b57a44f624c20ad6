"""First values of variables that are made inside of `with graph:`, computed at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..compiler.ir import Graph, Node, TensorType, effect_of
from ..compiler.ir import primitives as p
from ..core.context import use_context
from ..core.eager_context import EAGER
from ..core.provenance import user_site
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.trace_state import HandleState, TraceError
from ..tracing.open_sizes import dims_of
from ..tracing.trace_context import Trace
from .needed import Needed, needed
from .reads import NumberReads, check_array, numbers_of, reader

Array = Any  # of NumPy or CuPy


class FirstValues(Trace):
    """The part of the trace of a graph that makes Parameters and the state of modules."""

    graph: Any
    of_first_values: set[Node]  # what they were computed as
    scopes_of_state: dict[int, tuple[Any, str]]  # of Parameters and modules, that of their making

    def check_outside(self) -> None:
        """TraceError for a tensor of the outside that is of another type now."""
        for entry in self.inputs:
            tensor = entry.source.key
            if entry.source.kind == "captured" and tensor._type is not entry.node.type:
                check_array(entry.node, tensor._type, tensor._value)

    def state_of(self, tensor: Tensor) -> Any:
        value = tensor._value
        if type(value) is not Node:
            return EAGER.value_of(tensor)
        if self.is_in_body or value not in self.root.own:
            self._refuse_in_body("makes a Parameter, or state of a module")
            raise self.leaked(value)
        self.of_first_values.add(value)
        return first_value(self, value)

    def kept(self, tensor: Tensor) -> Tensor:
        if type(tensor._value) is not Node:
            return tensor
        return wrap(self.state_of(tensor), tensor._type)

    def made(self, state_: Any) -> None:
        if state.module_path:
            self.scopes_of_state[id(state_)] = state_, state.module_path

    def making_state(self, *written: Tensor) -> AbstractContextManager[None]:
        self._refuse_in_body("makes a module, or gives first values")
        for each in written:
            if type(each._value) is Node:
                raise TraceError(
                    f"first values are given at {user_site()} to a tensor of the graph, made at "
                    f"{each._value.where}, which each run computes: give them to a Parameter "
                    "itself, not to what is computed of it"
                )
        return self._outside()

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """As if outside of `with graph:`, for a moment, in which few tensors change."""
        inside = []
        for before in reversed(self.journal.values()):
            if not before.is_current:
                inside.append(HandleState.of(before.tensor))
                before.restore()
        previous, state.context = state.context, None
        scope, state.module_path = state.module_path, ""
        try:
            yield
        finally:
            state.context, state.module_path = previous, scope
            for key, before in self.journal.items():
                if not before.is_current:
                    self.journal[key] = HandleState.of(before.tensor)
            for each in reversed(inside):
                each.restore(grad=False)
        self.check_outside()


def first_value(trace: Any, node: Node) -> Array:
    """What `node` of the trace of a graph is now, computed as eager code does, an array of its own.

    Random numbers are drawn, and tensors of the outside are as they are, those that runs write
    included. TraceError for what only a run can tell.
    """
    part = needed(trace, [node], waits=False)
    _check(trace, part)
    with use_context(EAGER):
        arrays = [None if e.source.kind == "number" else reader(e)() for e in part.inputs]
        devices = [each.node.type.device for each in part.inputs]
        NumberReads(numbers_of(part.inputs), devices).put(arrays, {})
        known = {e.node: wrap(array, e.node.type) for e, array in zip(part.inputs, arrays)}
        for generator, count in part.draws:
            generator.counter += count
        made, *rest = _computed(part.graph, known)
        for generator, at in part.counted:
            generator.counter = int(rest[at - 1]._value)
        return EAGER.evaluate(p.copy, (made,), {}, made._type)


def _computed(graph: Graph, known: dict[Node, Any]) -> list[Tensor]:
    for each in graph.nodes:
        if each.primitive is p.get:
            known[each] = known[each.inputs[0]][each.attrs["index"]]
        elif each not in known:
            operands = tuple([known[operand] for operand in each.inputs])
            value = EAGER.evaluate(each.primitive, operands, dict(each.attrs), each.type)
            if type(each.type) is TensorType:
                known[each] = wrap(value, each.type)
            else:
                types: Any = each.type
                known[each] = tuple(wrap(*pair) for pair in zip(value, types, strict=True))
    return [known[each] for each in graph.outputs]


def _check(trace: Any, part: Needed) -> None:
    placeholders = {each.node: each for each in trace.graph.placeholders.values()}
    numbers = [expression for _, expression in numbers_of(part.inputs)]
    for each in part.graph.nodes:
        if each in placeholders:
            raise _unknown(f"is computed from {placeholders[each]}")
        for dim in dims_of((each.type, *each.attrs.values(), *numbers)):
            raise _unknown(f"depends on the size {dim.name} ({trace.sizes.axes_of[dim]})")
        if effect_of(each) != "pure":
            raise _unknown(f"calls a function of the user's ({each.where})")
    for tensor, _ in part.writes:
        raise _unknown(f"is computed from what a run writes into `{trace.name_of(tensor)}`")


def _unknown(why: str) -> TraceError:
    return TraceError(
        f"the first value of a Parameter, or of the state of a module, is made at {user_site()} "
        f"and {why}, which is known only when the graph runs. A variable begins with values that "
        "are known when the graph is built; a run writes others into it by tg.assign()."
    )
