"""Branches, loops and scans in a trace, from bodies that were traced.

A scan is a loop that counts: it reads a row of what it goes over and writes a row of each result.
Its gradient is a scan the other way, over the states that each turn began with, whose body is the
gradient of the body; what the body computes is computed again there. That of a branch is a branch
over the gradients of its bodies. A loop whose number of turns is not known keeps no states, and has
no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..compiler.ir import Graph, TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, apply_several, attach, make_source
from ..core.grad_mode import no_grad
from ..core.state import state
from ..core.tensor import Tensor, intern_type, wrap
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from ..runtime.device import CPU
from ..runtime.dtypes import int64
from .bodies import Body, trace_body, union_of, zeros

if TYPE_CHECKING:
    from .trace_context import Trace


class _Recorded:
    """An operation of several results that is recorded as one step, in a primitive's place."""

    keeps_handles = True  # bodies know by their identity what they captured

    def __init__(self, name: str) -> None:
        self.name = name


INLINED = _Recorded("body")
BRANCH = _Recorded("cond")
LOOP = _Recorded("while_loop")
SCAN = _Recorded("scan")


def _attached(
    operation: _Recorded, operands: Sequence[Tensor], attrs: dict[str, Any],
    results: Sequence[Tensor], histories: Sequence[bool],
) -> list[Tensor]:  # fmt: skip
    """The results, of which some have `histories`."""
    if state.grad_enabled and any(histories):
        attach(operation, tuple(operands), attrs, tuple(results))
        for each, has_history in zip(results, histories, strict=True):
            if not has_history:
                each._record, each._index, each._requires_grad = None, 0, False
    return list(results)


def _as_they_are(trace: Trace, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Operands, to which what is written afterwards does not matter."""
    return [trace.scope.operand_of(trace, each) for each in tensors]


def _flags(tensors: Sequence[Tensor]) -> list[bool]:
    return [each._requires_grad for each in tensors]


def _turning(
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


def _all(wanted: Wanted) -> range:
    return range(len(wanted))


# --- a body by itself ----------------------------------------------------------------------------


def inlined(body: Body, *given: Tensor) -> list[Tensor]:
    """What a body gives for `given`, as nodes of the running scope."""
    given = _as_they_are(body.trace, given)
    operands = [*given, *body.captured]
    trace, graph = body.trace, body.graph(body.captured)
    nodes = dict(zip(graph.inputs, map(trace.value_of, operands), strict=True))
    for node in graph.nodes:
        if node not in nodes:
            nodes[node] = trace.rebuild(node, [nodes[each] for each in node.inputs])
    results = [wrap(nodes[each], each.type) for each in graph.outputs]
    histories = body.histories(_flags(given), body.captured)
    return _attached(INLINED, operands, {"body": body}, results, histories)


def _split(body: Body, operands: Sequence[Any], wanted: Wanted) -> tuple[Any, Any]:
    """Which parameters are wanted, and the captured tensors that are."""
    count = len(body.parameters)
    captured = [
        each for each, is_wanted in zip(operands[count:], wanted[count:], strict=True) if is_wanted
    ]
    return wanted[:count], captured


def _spread(found: Sequence[Tensor], wanted: Wanted) -> list[Tensor | None]:
    left = iter(found)
    return [next(left) if is_wanted else None for is_wanted in wanted]


@vjp(INLINED, saves=_all)
def _inlined_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Sequence[Any], attrs: Attrs, wanted: Wanted
) -> Cotangents:
    body: Body = attrs["body"]
    parameters, captured = _split(body, inputs, wanted)
    given = [each is not None for each in cotangents]
    gradient = body.gradient(parameters, captured, given)
    incoming = [each for each in cotangents if each is not None]
    return _spread(inlined(gradient, *inputs[: len(body.parameters)], *incoming), wanted)


# --- branches ------------------------------------------------------------------------------------


def branch(index: Tensor, bodies: Sequence[Body], given: Sequence[Tensor] = ()) -> list[Tensor]:
    """What one of the bodies gives for `given`: that of the number `index`."""
    captured = union_of(bodies)
    index, *given = _as_they_are(bodies[0].trace, [index, *given])
    operands = [index, *given, *captured]
    graphs = tuple(each.graph(captured) for each in bodies)
    with no_grad():
        results = apply_several(p.branch, *operands, branches=graphs)
    found = [each.histories(_flags(given), each.captured) for each in bodies]
    histories = [any(each) for each in zip(*found, strict=True)]
    return _attached(BRANCH, operands, {"bodies": tuple(bodies)}, results, histories)


@vjp(BRANCH, saves=_all)
def _branch_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Sequence[Any], attrs: Attrs, wanted: Wanted
) -> Cotangents:
    bodies: Sequence[Body] = attrs["bodies"]
    index, *operands = inputs
    parameters, captured = _split(bodies[0], operands, wanted[1:])
    given = [each is not None for each in cotangents]
    gradients = [each.gradient(parameters, captured, given) for each in bodies]
    incoming = [each for each in cotangents if each is not None]
    known = operands[: len(bodies[0].parameters)]
    return _spread(branch(index, gradients, [*known, *incoming]), wanted)


# --- loops ---------------------------------------------------------------------------------------


def loop(condition: Body, body: Body, carried: Sequence[Tensor]) -> list[Tensor]:
    """The last state of a loop from `carried`."""
    captured = union_of([condition, body])
    carried = _as_they_are(body.trace, carried)
    operands = [*carried, *captured]
    with no_grad():
        results = _loop(condition.graph(captured), body.graph(captured), operands, len(carried))
    histories = _turning(body, _flags(carried), len(carried), body.captured)
    return _attached(LOOP, operands, {}, results, histories)


def _loop(condition: Graph, body: Graph, operands: Sequence[Tensor], carried: int) -> Any:
    attrs = {"condition": condition, "body": body, "carried": carried}
    return apply_several(p.loop, *operands, **attrs)


@vjp(LOOP)
def _loop_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> NoReturn:
    raise NotImplementedError(
        "while_loop: there is no gradient of a compiled loop whose number of turns is not known; "
        "pass max_iterations, or use fori_loop with Python ints or scan, or detach what it reads; "
        "in Python: for _ in range(most): if not condition: break"
    )


# --- scans ---------------------------------------------------------------------------------------


def scan(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any, reverse: bool
) -> list[Tensor]:
    """The last state, and the stacked results of all turns.

    `step` takes a state and a row of each of `xs`, and gives the next state and a row of each
    result.
    """
    carried, xs = (_as_they_are(step.trace, each) for each in (carried, xs))
    operands = [*carried, *xs, *step.captured]
    histories = _turning(step, _flags([*carried, *xs]), len(carried), step.captured)
    keeps = state.grad_enabled and any(histories)
    with no_grad():
        results = _scan(step, carried, xs, length, reverse, keeps)
    attrs = {"step": step, "carried": len(carried), "length": length, "reverse": reverse}
    starts = histories[: len(carried)] if keeps else []
    made = _attached(SCAN, operands, attrs, results, [*starts, *histories])
    return made[len(carried) :] if keeps else made


def _scan(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any, reverse: bool,
    keeps: bool,
) -> list[Tensor]:  # fmt: skip
    """Before the results of the scan, with `keeps`, the states that the turns began with."""
    trace, count = step.trace, len(carried)
    values = (*carried, *xs, *step.captured, *step.outputs)
    device = next((each._type.device for each in values if each._type.device is not CPU), CPU)
    row_types = [*(step.types[:count] if keeps else []), *step.types[count:]]
    stacked = [
        zeros(intern_type((length, *each.shape), each.dtype, each.device)) for each in row_types
    ]
    first = make_source(p.full, device, shape=(), value=0, dtype=int64)

    def goes_on(turn: Tensor, *_: Tensor) -> list[Tensor]:
        return [apply(p.lt, turn, trace.constant(length, int64, device))]

    def body(turn: Tensor, *state_: Tensor) -> list[Tensor]:
        following = apply(p.add, turn, trace.constant(1, int64, device))
        at = apply(p.sub, trace.constant(length - 1, int64, device), turn) if reverse else turn
        now, written = state_[:count], state_[count:]
        read = [apply(p.index, each, _beside(each, at), axis=0) for each in xs]
        made = inlined(step, *now, *read)
        new = [*(now if keeps else ()), *made[count:]]
        rows = [
            apply(p.index_put, stack, _beside(stack, at), each, axis=0, accumulate=False)
            for stack, each in zip(written, new, strict=True)
        ]
        return [following, *made[:count], *rows]

    begin = [first, *carried, *stacked]
    types = [each._type for each in begin]
    decides = trace_body(trace, goes_on, types, requires_grad=False)
    turns = trace_body(trace, body, types, requires_grad=False)
    found = loop(decides, turns, begin)[1:]
    kept = count + count if keeps else count
    return [*found[count:kept], *found[:count], *found[kept:]]


def _beside(tensor: Tensor, position: Tensor) -> Tensor:
    """A position on the device of a tensor."""
    if position._type.device is tensor._type.device:
        return position
    moved: Tensor = apply(p.transfer, position, device=tensor._type.device)
    return moved


# States come first among results, no more than there are operands.
@vjp(SCAN, saves=_all, saves_outputs=_all)
def _scan_vjp(
    cotangents: Cotangents, outputs: Sequence[Any], inputs: Sequence[Any], attrs: Attrs,
    wanted: Wanted,
) -> Cotangents:  # fmt: skip
    step: Body = attrs["step"]
    count, given_rows = attrs["carried"], len(step.parameters) - attrs["carried"]
    states, xs = outputs[:count], inputs[count : count + given_rows]
    of_states, of_end = cotangents[:count], cotangents[count : 2 * count]
    of_ys = cotangents[2 * count :]
    smooth = [each._requires_grad for each in step.parameters[:count]]
    rows_wanted = wanted[count : count + given_rows]
    captured = _split(step, inputs, wanted)[1]
    gradient = step.gradient(
        [*smooth, *rows_wanted], captured, [*smooth, *(each is not None for each in of_ys)]
    )
    floats = [at for at in range(count) if smooth[at]]
    added = [at for at in floats if of_states[at] is not None]
    ys = [each for each in of_ys if each is not None]
    sums = [zeros(each._type) for each in captured]
    begin = [
        zeros(step.types[at]) if of_end[at] is None else of_end[at] for at in floats
    ] + sums  # fmt: skip
    over = [*states, *xs, *ys, *(of_states[at] for at in added)]

    def back(*given: Tensor) -> list[Tensor]:
        incoming, totals = given[: len(floats)], given[len(floats) : len(begin)]
        rows = given[len(begin) :]
        known, more = rows[: count + given_rows], rows[count + given_rows :]
        found = inlined(gradient, *known, *incoming, *more[: len(ys)])
        following = dict(zip(floats, found, strict=False))
        for at, each in zip(added, more[len(ys) :], strict=True):
            following[at] = apply(p.add, following[at], each)
        of_rows = found[len(floats) : len(found) - len(captured)]
        parts = found[len(found) - len(captured) :]
        totals_ = [apply(p.add, *each) for each in zip(totals, parts, strict=True)]
        return [*following.values(), *totals_, *of_rows]

    types = [each._type for each in begin]
    types += [_row(each._type) for each in over]
    backward = trace_body(step.trace, back, types)
    found = scan(backward, begin, over, attrs["length"], not attrs["reverse"])
    of_begin = dict(zip(floats, found, strict=False))
    gradients = [of_begin[at] if at in of_begin and wanted[at] else None for at in range(count)]
    rest = [*found[len(begin) :], *found[len(floats) : len(begin)]]
    return [*gradients, *_spread(rest, wanted[count:])]


def _row(type_: TensorType) -> TensorType:
    return intern_type(type_.shape[1:], type_.dtype, type_.device)
