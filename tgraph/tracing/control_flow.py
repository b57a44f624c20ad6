"""Branches in a trace, from bodies that were traced, and a body by itself.

The gradient of a branch is a branch over the gradients of its bodies. Loops are in `loops.py`,
those over rows in `scans.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply_several, attach
from ..core.grad_mode import unrecorded
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from .bodies import Body, union_of
from .body_calls import at_home

if TYPE_CHECKING:
    from .trace_context import Trace


class Recorded:
    """An operation of several results that is recorded as one step, in a primitive's place."""

    keeps_handles = True  # bodies know by their identity what they captured

    def __init__(self, name: str) -> None:
        self.name = name


INLINED = Recorded("body")
BRANCH = Recorded("cond")


def attached(
    operation: Recorded, operands: Sequence[Tensor], attrs: dict[str, Any],
    results: Sequence[Tensor], histories: Sequence[bool], saved: int = 0,
) -> list[Tensor]:  # fmt: skip
    """The results, of which some have `histories`; the rule reads the first `saved` of them."""
    if state.grad_enabled and any(histories):
        attach(operation, tuple(operands), attrs, tuple(results), range(saved))
        for each, has_history in zip(results, histories, strict=True):
            if not has_history:
                each._record, each._index, each._requires_grad = None, 0, False
    return list(results)


def as_they_are(trace: Trace, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Operands, to which what is written afterwards does not matter."""
    return [trace.scope.operand_of(trace, each) for each in tensors]


def flags_of(tensors: Sequence[Tensor]) -> list[bool]:
    return [each._requires_grad for each in tensors]


def turning(
    body: Body, flags: Sequence[bool], carried: int, captured: Sequence[Tensor]
) -> list[bool]:
    """Which results have a history after any turns, from a state and rows with these `flags`."""
    flags = list(flags)
    while True:
        found = body.histories(flags, captured)
        state_ = [flag or more for flag, more in zip(flags, found[:carried])]
        if flags[:carried] == state_:
            return [*state_, *found[carried:]]
        flags[:carried] = state_


def all_operands(wanted: Wanted) -> range:
    return range(len(wanted))


# --- a body by itself ----------------------------------------------------------------------------


def inlined(body: Body, *given: Tensor) -> list[Tensor]:
    """What a body gives for `given`, as nodes of the running scope."""
    given = as_they_are(body.trace, given)
    operands = [*given, *body.captured]
    trace, graph = body.trace, body.graph(body.captured)
    nodes = dict(zip(graph.inputs, map(trace.value_of, operands), strict=True))
    for node in graph.nodes:
        if node not in nodes:
            nodes[node] = trace.rebuild(node, [nodes[each] for each in node.inputs])
    results = [wrap(nodes[each], each.type) for each in graph.outputs]
    histories = body.histories(flags_of(given), body.captured)
    return attached(INLINED, operands, {"body": body}, results, histories)


def split(body: Body, operands: Sequence[Any], wanted: Wanted) -> tuple[Any, Any]:
    """Which parameters are wanted, and the captured tensors that are."""
    count = len(body.parameters)
    captured = [
        each for each, is_wanted in zip(operands[count:], wanted[count:], strict=True) if is_wanted
    ]
    return wanted[:count], captured


def spread(found: Sequence[Tensor], wanted: Wanted) -> list[Tensor | None]:
    left = iter(found)
    return [next(left) if is_wanted else None for is_wanted in wanted]


@vjp(INLINED, saves=all_operands)
@at_home
def _inlined_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Sequence[Any], attrs: Attrs, wanted: Wanted
) -> Cotangents:
    body: Body = attrs["body"]
    parameters, captured = split(body, inputs, wanted)
    given = [each is not None for each in cotangents]
    gradient = body.gradient(parameters, captured, given)
    incoming = [each for each in cotangents if each is not None]
    return spread(inlined(gradient, *inputs[: len(body.parameters)], *incoming), wanted)


# --- branches ------------------------------------------------------------------------------------


def branch(index: Tensor, bodies: Sequence[Body], given: Sequence[Tensor] = ()) -> list[Tensor]:
    """What one of the bodies gives for `given`: that of the number `index`."""
    captured = union_of(bodies)
    index, *given = as_they_are(bodies[0].trace, [index, *given])
    operands = [index, *given, *captured]
    graphs = tuple(each.graph(captured) for each in bodies)
    with unrecorded():
        results = apply_several(p.branch, *operands, branches=graphs)
    found = [each.histories(flags_of(given), each.captured) for each in bodies]
    histories = [any(each) for each in zip(*found, strict=True)]
    return attached(BRANCH, operands, {"bodies": tuple(bodies)}, results, histories)


@vjp(BRANCH, saves=all_operands)
@at_home
def _branch_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Sequence[Any], attrs: Attrs, wanted: Wanted
) -> Cotangents:
    bodies: Sequence[Body] = attrs["bodies"]
    index, *operands = inputs
    parameters, captured = split(bodies[0], operands, wanted[1:])
    given = [each is not None for each in cotangents]
    gradients = [each.gradient(parameters, captured, given) for each in bodies]
    incoming = [each for each in cotangents if each is not None]
    known = operands[: len(bodies[0].parameters)]
    return spread(branch(index, gradients, [*known, *incoming]), wanted)
