"""Loops in a trace that a condition ends, and their gradients.

A gradient goes through the turns backwards, and needs the state that each began with. Where turns
have a bound, all states are kept, in rows made for as many as there may be. Where they have none,
or fewer checkpoints are asked for, there are so many rows: they keep the state of each turn at
first, and whenever they are full, each second one is given up and the distance between them doubles
(online checkpointing: Stumm and Walther, "New algorithms for optimal online checkpointing", 2010;
here the rows are even). What lies between two is computed again and kept in as many rows of its
own: so each turn is computed again once, and from the square of that number of turns on more often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply, apply_several, make_source
from ..core.grad_mode import unrecorded
from ..core.state import state
from ..core.tensor import Tensor, intern_type
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from ..runtime.device import CPU, Device
from ..runtime.dtypes import int64
from .bodies import Body, trace_body, union_of, zeros
from .body_calls import at_home
from .control_flow import (
    Recorded,
    all_operands,
    as_they_are,
    attached,
    flags_of,
    inlined,
    split,
    spread,
    turning,
)

if TYPE_CHECKING:
    from .trace_context import Trace

CHECKPOINTS = 32
"""How many states are kept where nobody says."""

LOOP = Recorded("while_loop")

_Step = Callable[..., Sequence[Tensor]]


def loop(
    condition: Body, body: Body, carried: Sequence[Tensor], bound: Any = None,
    checkpoints: int | None = None,
) -> list[Tensor]:  # fmt: skip
    """The last state of a loop from `carried`; `bound` is the most turns that it may have.

    A gradient keeps the states of so many turns, or of as many as there are `checkpoints`.
    """
    return loop_results(condition, body, carried, bound, checkpoints)[-len(carried) :]


def loop_results(
    condition: Body, body: Body, carried: Sequence[Tensor], bound: Any, checkpoints: int | None,
    keeps: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Before the last state numbers of turns and states that are kept, if there is a gradient or it
    `keeps` some."""
    captured = union_of([condition, body])
    carried = as_they_are(body.trace, carried)
    operands, count = [*carried, *captured], len(carried)
    histories = turning(body, flags_of(carried), count, body.captured)
    if not keeps and not (state.grad_enabled and any(histories)):
        return _plain(condition, body, carried, captured)
    with unrecorded():
        if bound is None or (checkpoints is not None and bound > checkpoints):
            bound, checkpoints = None, checkpoints or CHECKPOINTS
            results = _checkpointed(condition, body, carried, checkpoints)
        else:
            checkpoints = None
            results = _kept(condition, body, carried, bound)
    numbers = [False] * (len(results) - 2 * count)
    flags = [*numbers, *histories, *histories]
    attrs = {
        "condition": condition, "body": body, "bound": bound, "checkpoints": checkpoints
    }  # fmt: skip
    return attached(LOOP, operands, attrs, results, flags, len(results) - count)


def _plain(
    condition: Body, body: Body, carried: Sequence[Tensor], captured: Sequence[Tensor]
) -> list[Tensor]:
    attrs = {"condition": condition.graph(captured), "body": body.graph(captured)}
    with unrecorded():
        return list(
            apply_several(p.loop, *carried, *captured, **attrs, carried=len(carried))
        )  # fmt: skip


def while_(
    trace: Trace, goes_on: _Step, advance: _Step, begin: Sequence[Tensor], bound: Any = None
) -> list[Tensor]:
    """A loop of functions that are traced here."""
    types, gradients = [each._type for each in begin], state.grad_enabled
    decides = trace_body(trace, goes_on, types, requires_grad=gradients)
    turn = trace_body(trace, advance, types, requires_grad=gradients)
    return loop(decides, turn, begin, bound)


# --- rows and numbers ----------------------------------------------------------------------------


def device_of(bodies: Sequence[Body], tensors: Sequence[Tensor]) -> Device:
    """Where the turns of a loop are counted."""
    values = [*tensors, *(each for body in bodies for each in (*body.captured, *body.outputs))]
    return next((each._type.device for each in values if each._type.device is not CPU), CPU)


def first_number(device: Device) -> Tensor:
    return make_source(p.full, device, shape=(), value=0, dtype=int64)


def rows_of(length: Any, types: Sequence[TensorType]) -> list[Tensor]:
    """Zeros for so many rows of each type."""
    return [zeros(intern_type((length, *each.shape), each.dtype, each.device)) for each in types]


def row(rows: Tensor, at: Tensor) -> Tensor:
    return apply(p.index, rows, _beside(rows, at), axis=0)


def with_row(rows: Tensor, at: Tensor, value: Tensor) -> Tensor:
    return apply(p.index_put, rows, _beside(rows, at), value, axis=0, accumulate=False)


def _beside(tensor: Tensor, position: Tensor) -> Tensor:
    """A position on the device of a tensor."""
    if position._type.device is tensor._type.device:
        return position
    moved: Tensor = apply(p.transfer, position, device=tensor._type.device)
    return moved


# --- keeping states ------------------------------------------------------------------------------


def _kept(condition: Body, body: Body, carried: Sequence[Tensor], bound: Any) -> list[Tensor]:
    """The number of turns, the states that they began with, and the last state."""
    count, device = len(carried), device_of([condition, body], carried)

    def goes_on(turn: Tensor, *values: Tensor) -> list[Tensor]:
        return inlined(condition, *values[:count])

    def advance(turn: Tensor, *values: Tensor) -> list[Tensor]:
        now, rows = values[:count], values[count:]
        kept = [with_row(each, turn, value) for each, value in zip(rows, now, strict=True)]
        return [turn + 1, *inlined(body, *now), *kept]

    begin = [first_number(device), *carried, *rows_of(bound, body.types)]
    turns, *found = while_(body.trace, goes_on, advance, begin)
    return [turns, *found[count:], *found[:count]]


def _checkpointed(
    condition: Body, body: Body, carried: Sequence[Tensor], checkpoints: int
) -> list[Tensor]:
    """The numbers of turns and of those from one checkpoint to the next, checkpoints, last state.

    There is one row more, for what is not kept.
    """
    trace, count, device = body.trace, len(carried), device_of([condition, body], carried)

    def goes_on(turn: Tensor, stride: Tensor, *values: Tensor) -> list[Tensor]:
        return inlined(condition, *values[:count])

    def advance(turn: Tensor, stride: Tensor, *values: Tensor) -> list[Tensor]:
        """As many turns as there are rows for."""
        following = apply(p.maximum, stride * 2, trace.constant(1, int64, device))
        rows = [_each_second(each) for each in values[count:]]

        def has_room(turn: Tensor, *values: Tensor) -> list[Tensor]:
            (decision,) = goes_on(turn, following, *values)
            return [apply(p.logical_and, decision, turn < following * checkpoints)]

        def once(turn: Tensor, *values: Tensor) -> list[Tensor]:
            now, rows = values[:count], values[count:]
            return [turn + 1, *inlined(body, *now), *_with_rows(rows, turn, following, now)]

        turn, *found = while_(trace, has_room, once, [turn, *values[:count], *rows])
        return [turn, following, *found]

    zero = first_number(device)
    begin = [zero, zero, *carried, *rows_of(checkpoints + 1, body.types)]
    turns, stride, *found = while_(trace, goes_on, advance, begin)
    return [turns, stride, *found[count:], *found[:count]]


def _with_rows(
    rows: Sequence[Tensor], turn: Tensor, stride: Tensor, values: Sequence[Tensor]
) -> list[Tensor]:
    """`values` in the rows for a turn; in the last ones, which nobody reads, if it has none."""
    last = _constant_beside(turn, _checkpoints_of(rows))
    at = apply(p.where, turn % stride == 0, turn // stride, last)
    return [with_row(each, at, value) for each, value in zip(rows, values, strict=True)]


def _checkpoints_of(rows: Sequence[Tensor]) -> int:
    found: int = rows[0]._type.shape[0] - 1
    return found


def _constant_beside(tensor: Tensor, value: int) -> Tensor:
    return make_source(p.full, tensor._type.device, shape=(), value=value, dtype=int64)


def _at_least(number: Tensor, least: int) -> Tensor:
    """So that there is such a row also of examples that have no turns, or are done."""
    return apply(p.maximum, number, _constant_beside(number, least))


def _chosen(decision: Tensor, one: Tensor, other: Tensor) -> Tensor:
    decision = apply(p.broadcast, _beside(one, decision), shape=one._type.shape)
    return apply(p.where, decision, one, other)


def _each_second(rows: Tensor) -> Tensor:
    """Rows 0, 2, 4, ... first."""
    device = rows._type.device
    size = rows._type.shape[0]
    positions = make_source(p.iota, device, size=size, dtype=int64)
    last = apply(p.broadcast, _constant_beside(positions, size - 1), shape=(size,))
    return apply(p.index, rows, apply(p.minimum, positions * 2, last), axis=0)


# --- the gradient --------------------------------------------------------------------------------


class _Adjoint:
    """What goes through the turns backwards: cotangents of the state, and sums of those of what the
    body reads.

    Of `cotangents`, those of the kept states are added where the states are.
    """

    def __init__(
        self, body: Body, captured: Sequence[Tensor], cotangents: Sequence[Any], count: int
    ) -> None:
        self.body, self.count = body, count
        smooth = flags_of(body.parameters)
        self.gradient = body.gradient(smooth, captured, smooth)
        self.floats = [at for at in range(count) if smooth[at]]
        self.of_kept = [cotangents[len(cotangents) - 2 * count + at] for at in self.floats]
        of_end = cotangents[-count:]
        self.begin = [
            zeros(body.types[at]) if of_end[at] is None else of_end[at] for at in self.floats
        ]  # fmt: skip
        self.begin += [zeros(each._type) for each in captured]

    def back(self, now: Sequence[Tensor], values: Sequence[Tensor]) -> list[Tensor]:
        """Before the turn that began with `now`."""
        incoming, sums = values[: len(self.floats)], values[len(self.floats) :]
        found = inlined(self.gradient, *now, *incoming)
        parts = found[len(self.floats) :]
        added = [apply(p.add, *each) for each in zip(sums, parts, strict=True)]
        return [*found[: len(self.floats)], *added]

    def with_kept(self, values: Sequence[Tensor], at: Tensor) -> list[Tensor]:
        """With the cotangents of the states that are kept in a row."""
        found = list(values)
        for number, rows in enumerate(self.of_kept):
            if rows is not None:
                found[number] = apply(p.add, found[number], row(rows, at))
        return found


@vjp(LOOP, saves=all_operands)
@at_home
def _loop_vjp(
    cotangents: Cotangents, outputs: Sequence[Any], inputs: Sequence[Any], attrs: Attrs,
    wanted: Wanted,
) -> Cotangents:  # fmt: skip
    body: Body = attrs["body"]
    count = len(body.parameters)
    _, captured = split(body, inputs, wanted)
    adjoint = _Adjoint(body, captured, cotangents, count)
    kept = outputs[: len(outputs) - count]
    if attrs["bound"] is None:
        found = _through_checkpoints(adjoint, kept)
    else:
        found = _through_all(adjoint, kept, attrs["bound"])
    of_state = dict(zip(adjoint.floats, found, strict=False))
    gradients = [of_state.get(at) if wanted[at] else None for at in range(count)]
    return [*gradients, *spread(found[len(adjoint.floats) :], wanted[count:])]


def _through_all(adjoint: _Adjoint, kept: Sequence[Tensor], bound: Any) -> list[Tensor]:
    turns, *rows = kept

    def advance(at: Tensor, *values: Tensor) -> list[Tensor]:
        here = _at_least(at, 0)
        before = adjoint.back([row(each, here) for each in rows], values)
        return [at - 1, *adjoint.with_kept(before, here)]

    return while_(
        adjoint.body.trace, _not_below_zero, advance, [turns - 1, *adjoint.begin], bound
    )[1:]  # fmt: skip


def _through_checkpoints(adjoint: _Adjoint, kept: Sequence[Tensor]) -> list[Tensor]:
    turns, stride, *kept_rows = kept
    checkpoints = _checkpoints_of(kept_rows)
    trace, body, count = adjoint.body.trace, adjoint.body, adjoint.count

    def advance(number: Tensor, *values: Tensor) -> list[Tensor]:
        """Through the turns behind a checkpoint."""
        values, rows = values[:-count], values[-count:]
        here = _at_least(number, 0)
        start = [row(each, here) for each in kept_rows]
        length = apply(p.minimum, stride, turns - number * stride)
        distance = _at_least((length + (checkpoints - 1)) // checkpoints, 1)

        def forth(turn: Tensor, *values: Tensor) -> list[Tensor]:
            now = inlined(body, *values[:count])
            return [turn + 1, *now, *_with_rows(values[count:], turn + 1, distance, now)]

        begin = [first_number(turns._type.device), *start, *rows]
        again = while_(trace, lambda turn, *_: [turn < length - 1], forth, begin)
        rows = again[1 + count :]

        def back(turn: Tensor, *values: Tensor) -> list[Tensor]:
            at = _at_least(turn // distance, 0)
            kept = (row(each, at) for each in rows)
            now = [_chosen(at == 0, *each) for each in zip(start, kept, strict=True)]
            begin = [at * distance, *now]
            found = while_(trace, lambda now, *_: [now < turn], once, begin)
            return [turn - 1, *adjoint.back(found[1:], values)]

        def once(turn: Tensor, *values: Tensor) -> list[Tensor]:
            return [turn + 1, *inlined(body, *values)]

        found = while_(trace, _not_below_zero, back, [length - 1, *values])[1:]
        return [number - 1, *adjoint.with_kept(found, here), *rows]

    # No turns have no checkpoint, nor a distance between them.
    number = (turns - 1) // _at_least(stride, 1)
    begin = [number, *adjoint.begin, *rows_of(checkpoints + 1, body.types)]
    return while_(trace, _not_below_zero, advance, begin, checkpoints)[1:-count]


def _not_below_zero(number: Tensor, *_: Tensor) -> list[Tensor]:
    return [number >= 0]
