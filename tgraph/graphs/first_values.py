"""First values of variables that are made inside of `with graph:`, computed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..compiler.ir import Graph, Node, TensorType, effect_of
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import is_open
from ..core.context import use_context
from ..core.eager_context import EAGER
from ..core.provenance import user_site
from ..core.tensor import Tensor, wrap
from ..core.trace_state import TraceError
from .needed import Needed, needed
from .reads import reader

if TYPE_CHECKING:
    from .graph_trace import GraphTrace

Array = Any  # of NumPy or CuPy


def first_value(trace: GraphTrace, node: Node) -> Array:
    """What `node` is now, computed as eager code does, an array of its own.

    Random numbers are drawn, and tensors of the outside are as they are, those that runs write
    included. TraceError for what only a run can tell.
    """
    part = needed(trace, [node], waits=False)
    _check(trace, part)
    with use_context(EAGER):
        known = {entry.node: wrap(reader(entry)(), entry.node.type) for entry in part.inputs}
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
                known[each] = tuple(wrap(*pair) for pair in zip(value, each.type, strict=True))
    return [known[each] for each in graph.outputs]


def _check(trace: GraphTrace, part: Needed) -> None:
    placeholders = {each.node: each for each in trace.graph.placeholders.values()}
    for each in part.graph.nodes:
        if each in placeholders:
            raise _unknown(f"is computed from {placeholders[each]}")
        if type(each.type) is TensorType and any(map(is_open, each.type.shape)):
            open_size = next(size for size in each.type.shape if is_open(size))
            raise _unknown(f"has the size {open_size.text} ({trace.sizes.told(open_size)})")
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
