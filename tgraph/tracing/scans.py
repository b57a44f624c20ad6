"""Scans in a trace: loops that count, over the rows of what they read.

Each turn reads a row of what the scan goes over, and writes a row of each result. The gradient is a
scan the other way, over the states that each turn began with, whose body is the gradient of the
body; what the body computes is computed again there. With fewer `checkpoints` than turns, it is a
scan over scans, of which the inner ones are made again for their gradient.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.grad_mode import unrecorded
from ..core.state import state
from ..core.tensor import Tensor
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from ..runtime.dtypes import int64
from .bodies import Body, trace_body, zeros
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
from .loops import device_of, first_number, row, rows_of, while_, with_row

SCAN = Recorded("scan")


def scan(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any, reverse: bool,
    checkpoints: int | None = None,
) -> list[Tensor]:  # fmt: skip
    """The last state, and the stacked results of all turns.

    `step` takes a state and a row of each of `xs`, and gives the next state and a row of each
    result.
    """
    carried, xs = (as_they_are(step.trace, each) for each in (carried, xs))
    keeps = state.grad_enabled and any(_histories(step, carried, xs))
    if keeps and checkpoints is not None and length > checkpoints:
        return _in_segments(step, carried, xs, operator.index(length), reverse, checkpoints)
    return scan_results(step, carried, xs, length, reverse)[-len(step.types) :]


def _histories(step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor]) -> list[bool]:
    """Which results of the turns have a history."""
    return turning(step, flags_of([*carried, *xs]), len(carried), step.captured)


def scan_results(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any, reverse: bool,
    keeps: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Before what the scan gives the states that its turns began with, if there is a gradient or it
    `keeps` them."""
    carried, xs = (as_they_are(step.trace, each) for each in (carried, xs))
    operands = [*carried, *xs, *step.captured]
    histories = _histories(step, carried, xs)
    keeps = keeps or (state.grad_enabled and any(histories))
    with unrecorded():
        results = _scan(step, carried, xs, length, reverse, keeps)
    attrs = {"step": step, "carried": len(carried), "length": length, "reverse": reverse}
    starts = histories[: len(carried)] if keeps else []
    return attached(SCAN, operands, attrs, results, [*starts, *histories], len(starts))


def _scan(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: Any, reverse: bool,
    keeps: bool,
) -> list[Tensor]:  # fmt: skip
    """Before the results of the scan, with `keeps`, the states that the turns began with."""
    trace, count = step.trace, len(carried)
    device = device_of([step], [*carried, *xs])

    def goes_on(turn: Tensor, *_: Tensor) -> list[Tensor]:
        return [apply(p.lt, turn, trace.constant(length, int64, device))]

    def advance(turn: Tensor, *values: Tensor) -> list[Tensor]:
        at = apply(p.sub, trace.constant(length - 1, int64, device), turn) if reverse else turn
        now, written = values[:count], values[count:]
        made = inlined(step, *now, *(row(each, at) for each in xs))
        new = [*(now if keeps else ()), *made[count:]]
        rows = [with_row(rows, at, each) for rows, each in zip(written, new, strict=True)]
        following = apply(p.add, turn, trace.constant(1, int64, device))
        return [following, *made[:count], *rows]

    types = [*(step.types[:count] if keeps else []), *step.types[count:]]
    begin = [first_number(device), *carried, *rows_of(length, types)]
    found = while_(trace, goes_on, advance, begin)[1:]
    kept = count + count if keeps else count
    return [*found[count:kept], *found[:count], *found[kept:]]


def _in_segments(
    step: Body, carried: Sequence[Tensor], xs: Sequence[Tensor], length: int, reverse: bool,
    checkpoints: int,
) -> list[Tensor]:  # fmt: skip
    """A scan over scans, of which a gradient keeps the states that the outer turns begin with."""
    count, turns = len(carried), -(-length // checkpoints)
    whole = length - length % turns

    def segment(*values: Tensor) -> list[Tensor]:
        return scan(step, values[:count], values[count:], turns, reverse)

    segments = [_reshaped(_part(each, 0, whole), whole // turns, turns) for each in xs]
    types = [*(each._type for each in carried), *map(_row, segments)]
    outer = trace_body(step.trace, segment, types)
    rest = [_part(each, whole, length) for each in xs]
    parts = [(outer, segments, whole // turns), (step, rest, length - whole)]
    now, stacked = list(carried), list[list[Tensor]]()
    for body, rows, number in reversed(parts) if reverse else parts:
        if number:
            found = scan(body, now, rows, number, reverse)
            now, results = found[:count], found[count:]
            is_outer = body is outer
            stacked.append([_reshaped(each, whole) if is_outer else each for each in results])
    pieces = zip(*(reversed(stacked) if reverse else stacked), strict=True)
    return [*now, *(apply(p.concatenate, *each, axis=0) for each in pieces)]


def _part(rows: Tensor, start: int, stop: int) -> Tensor:
    shape = rows._type.shape
    zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
    return apply(
        p.slice_, rows, starts=(start, *zeros), stops=(stop, *shape[1:]), steps=ones
    )  # fmt: skip


def _reshaped(rows: Tensor, *numbers: int) -> Tensor:
    """With such numbers of rows: of segments into rows, or of rows into segments."""
    row = rows._type.shape[1 if len(numbers) > 1 else 2 :]
    return apply(p.reshape, rows, shape=(*numbers, *row))


def _row(rows: Tensor) -> TensorType:
    return rows._type.with_shape(rows._type.shape[1:])


@vjp(SCAN, saves=all_operands)
@at_home
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
    captured = split(step, inputs, wanted)[1]
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
    types += map(_row, over)
    backward = trace_body(step.trace, back, types)
    found = scan(backward, begin, over, attrs["length"], not attrs["reverse"])
    of_begin = dict(zip(floats, found, strict=False))
    gradients = [of_begin[at] if at in of_begin and wanted[at] else None for at in range(count)]
    rest = [*found[len(begin) :], *found[len(floats) : len(begin)]]
    return [*gradients, *spread(rest, wanted[count:])]
