"""Tangents of branches and loops: those of their bodies, computed beside what they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.pushing import PUSH_RULES, Again, Tangents
from ..core.state import state
from ..core.tensor import Tensor
from .bodies import Body, trace_body, zeros
from .control_flow import BRANCH, INLINED, branch, inlined
from .loops import LOOP, loop_results
from .scans import SCAN, scan_results


def register() -> None:
    """Let tangents go through what bodies are recorded as."""
    PUSH_RULES[INLINED] = _push_body
    PUSH_RULES[BRANCH] = _push_branch
    PUSH_RULES[LOOP] = _push_loop
    PUSH_RULES[SCAN] = _push_scan


class _Pushed:
    """Tangents of what a body takes: those of `given`, and of what it captured."""

    def __init__(self, body: Body, operands: Sequence[Tensor], tangents: Tangents) -> None:
        self.body, count = body, len(body.parameters)
        self.moved = [each is not None for each in tangents[:count]]
        self.given = list(tangents[:count])
        read = set(map(id, body.captured))
        pairs = [
            (operand, tangent)
            for operand, tangent in zip(operands[count:], tangents[count:], strict=True)
            if tangent is not None and id(operand) in read
        ]
        self.captured = [operand for operand, _ in pairs]
        self.of_captured = [tangent for _, tangent in pairs]

    def settle(self, count: int) -> None:
        """Let the first `count`, a state, have tangents where they have some after any turns."""
        while True:
            found = self.pushed.moved[:count]
            state_ = [one or other for one, other in zip(self.moved, found)]
            if state_ == self.moved[:count]:
                break
            self.moved[:count] = state_
        self.given = [
            zeros(each._type) if is_moved and tangent is None else tangent
            for tangent, is_moved, each in zip(self.given, self.moved, self.body.parameters)
        ]

    @property
    def pushed(self) -> Body:
        return self.body.pushed(self.moved, self.captured, state.grad_enabled)

    @property
    def tangents(self) -> list[Tensor]:
        return [each for each in self.given if each is not None]

    def run(self, now: Sequence[Tensor], tangents: Sequence[Tensor]) -> tuple[Any, Any]:
        """What the body gives, and its tangents, None where there are none."""
        pushed = self.pushed
        found = inlined(pushed, *now, *tangents, *self.of_captured)
        results = len(self.body.outputs)
        left = iter(found[results:])
        return found[:results], [next(left) if has else None for has in pushed.moved]


def _some(tangents: Tangents, moved: Sequence[bool], types: Sequence[Any]) -> list[Tensor]:
    """The tangents of those that are `moved`, zeros where there are none."""
    return [
        zeros(type_) if tangent is None else tangent
        for tangent, is_moved, type_ in zip(tangents, moved, types, strict=True)
        if is_moved
    ]


def _spread(found: Sequence[Tensor], moved: Sequence[bool]) -> list[Tensor | None]:
    left = iter(found)
    return [next(left) if is_moved else None for is_moved in moved]


def _note(record: Any, first: int, outputs: Sequence[Tensor], again: Again) -> None:
    again.update(((id(record), first + at), each) for at, each in enumerate(outputs))


def _push_body(record: Any, tangents: Tangents, needed: Sequence[bool], again: Again) -> Tangents:
    operands, body = record.given(), record.attrs["body"]
    made = _Pushed(body, operands, tangents)
    found, pushed = made.run(operands[: len(body.parameters)], made.tangents)
    _note(record, 0, found, again)
    return pushed  # type: ignore[no-any-return]


def _push_branch(record: Any, tangents: Tangents, needed: Sequence[bool], again: Again) -> Tangents:
    index, *operands = record.given()
    bodies = record.attrs["bodies"]
    count = len(bodies[0].parameters)
    sides = [_Pushed(each, operands, tangents[1:]) for each in bodies]
    moved = [any(each) for each in zip(*(side.pushed.moved for side in sides), strict=True)]

    def traced(side: _Pushed) -> Body:
        def run(*given: Tensor) -> list[Tensor]:
            made, pushed = side.run(given[:count], given[count:])
            return [*made, *_some(pushed, moved, side.body.types)]

        types = [each._type for each in (*side.body.parameters, *side.tangents)]
        return trace_body(side.body.trace, run, types, requires_grad=state.grad_enabled)

    given = [*operands[:count], *sides[0].tangents]
    found = branch(index, [traced(each) for each in sides], given)
    _note(record, 0, found[: len(moved)], again)
    return _spread(found[len(moved) :], moved)


def _push_loop(record: Any, tangents: Tangents, needed: Sequence[bool], again: Again) -> Tangents:
    operands, attrs = record.given(), record.attrs
    body, condition = attrs["body"], attrs["condition"]
    count, trace = len(body.parameters), attrs["body"].trace
    made = _Pushed(body, operands, tangents)
    made.settle(count)

    def goes_on(*values: Tensor) -> list[Tensor]:
        return inlined(condition, *values[:count])

    def advance(*values: Tensor) -> list[Tensor]:
        after, pushed = made.run(values[:count], values[count:])
        return [*after, *_some(pushed, made.moved, body.types)]

    begin, gradients = [*operands[:count], *made.tangents], state.grad_enabled
    types = [each._type for each in begin]
    decides = trace_body(trace, goes_on, types, requires_grad=gradients)
    turn = trace_body(trace, advance, types, requires_grad=gradients)
    first = len(needed) - 2 * count  # numbers of turns
    keeps = any(needed[: first + count])
    found = loop_results(decides, turn, begin, attrs["bound"], attrs["checkpoints"], keeps)
    last = found[-len(begin) :]
    _note(record, first + count, last[:count], again)
    of_last = _spread(last[count:], made.moved)
    if len(found) == len(begin):
        return [*[None] * (first + count), *of_last]
    rows = found[first : first + len(begin)]
    _note(record, 0, found[: first + count], again)
    return [*[None] * first, *_spread(rows[count:], made.moved), *of_last]


def _push_scan(record: Any, tangents: Tangents, needed: Sequence[bool], again: Again) -> Tangents:
    operands, attrs = record.given(), record.attrs
    step, count = attrs["step"], attrs["carried"]
    given = len(step.parameters)
    made = _Pushed(step, operands, tangents)
    made.settle(count)
    of_state = [each for each in made.given[:count] if each is not None]
    of_rows = [each for each in made.given[count:] if each is not None]
    moved = made.pushed.moved
    state_moved, results_moved = made.moved[:count], moved[count:]
    begin, over = [*operands[:count], *of_state], [*operands[count:given], *of_rows]
    types = step.types

    def turn(*values: Tensor) -> list[Tensor]:
        state_, rows = values[: len(begin)], values[len(begin) :]
        now = [*state_[:count], *rows[: given - count]]
        after, pushed = made.run(now, [*state_[count:], *rows[given - count :]])
        return [
            *after[:count], *_some(pushed[:count], state_moved, types[:count]),
            *after[count:], *_some(pushed[count:], results_moved, types[count:]),
        ]  # fmt: skip

    each_row = [each._type.with_shape(each._type.shape[1:]) for each in over]
    all_types = [*(each._type for each in begin), *each_row]
    body = trace_body(step.trace, turn, all_types, requires_grad=state.grad_enabled)
    kept = len(needed) - len(types)  # states that the turns began with
    keeps = any(needed[:kept])
    found = scan_results(body, begin, over, attrs["length"], attrs["reverse"], keeps)
    starts = found[: len(begin)] if len(found) > len(body.types) else []
    last, ys = found[len(starts) : len(starts) + len(begin)], found[len(starts) + len(begin) :]
    results = len(types) - count
    _note(record, kept, [*last[:count], *ys[:results]], again)
    pushed = [*_spread(last[count:], state_moved), *_spread(ys[results:], results_moved)]
    if not starts:
        return [*[None] * kept, *pushed]
    return [*_spread(starts[count:], state_moved)[:kept], *pushed]
