"""Branches and loops: the steps of the graphs inside them, in the plan and arena around them.

A branch is a step that goes on with those of the graph that is chosen, all of which write the same
places. A loop is::

    copy   the state to where the results belong
    bind   two slots for each value of the state, which is read from one and written to the other
    ...    the condition
    branch behind the jump, or on
    ...    the body
    jump   to the condition; the two slots of each value are exchanged
    copy   the results, which lie in the other memory after an odd number of turns

Where a target counts turns, a loop whose number of turns is known has no condition and no branch,
but a step that counts. So nothing is copied from turn to turn. A value that the body reads only at
the element that it writes, and not afterwards, is written where it lies: it needs neither the other
memory nor the exchange. Rows that are all written, and never read before, are given no values to
begin with. What the graphs read besides the state lies where it was computed, and is not given to
others before the loop ends, since the loop is one step of the graph around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import TYPE_CHECKING

from ...runtime.plan_steps import (
    BindStep,
    BranchStep,
    BufferRef,
    CopyStep,
    JumpStep,
    TurnsStep,
)
from ...runtime.records import record
from ..ir import Node
from ..ir.turns import known_turns
from .arena import PlanMemory
from .step_info import StepInfo

if TYPE_CHECKING:
    from .plan_builder import PlanBuilder


@record()
class Surroundings:
    """What a graph inside a node is given: where inputs lie, and where outputs belong.

    `name` begins the names of its kernels.
    """

    name: str
    memory: PlanMemory
    inputs: tuple[BufferRef, ...]
    outputs: tuple[BufferRef, ...]


def write_branch(builder: PlanBuilder, node: Node) -> list[StepInfo]:
    """Append the steps of a branch; what is told of those of its graphs."""
    index, *inputs = _operands(builder, node)
    results = builder.results(node)
    outputs = tuple(builder.place[each] for each in results)
    inner: list[PlanBuilder] = []
    for number, graph in enumerate(node.attrs["branches"]):
        name = f"{_name(builder, node)}_{number}_"
        within = Surroundings(name, builder.memory, tuple(inputs), outputs)
        read = graph.with_outputs([graph.outputs[each.attrs["index"]] for each in results])
        inner.append(builder.inner(node, read, {}, within))
        inner[-1].place_outputs()
        inner[-1].write()
    *begins, end = accumulate((len(each.steps) + 1 for each in inner), initial=1)
    dtype = node.inputs[0].type.dtype.name
    builder.steps.append(BranchStep("branch", index, dtype, tuple(begins)))
    for begin, each in zip(begins, inner, strict=True):
        builder.add_steps(each)
        builder.steps.append(JumpStep("branch", end - begin - len(each.steps)))
    return [info for each in inner for info in each.infos]


def write_loop(builder: PlanBuilder, node: Node) -> list[StepInfo]:
    """Append the steps of a loop; what is told of those of its graphs."""
    results = builder.results(node)
    place_of = {each.attrs["index"]: builder.place[each] for each in results}
    with ExitStack() as borrowed:

        def take(nbytes: int) -> BufferRef:
            return borrowed.enter_context(builder.arena.borrowed(nbytes))

        state = [
            _Carried(
                at, each.type.nbytes, place_of.get(at) or take(each.type.nbytes),
                builder.memory.pointer(), builder.memory.pointer(),
            )
            for at, each in enumerate(node.inputs[: node.attrs["carried"]])
            if each.type.numel
        ]  # fmt: skip
        unread = builder.fused.rules.unread_operands(node)
        begins = {each.number: each.first for each in state if each.number in unread}
        operands = _operands(builder, node, begins)
        turns = known_turns(node) if builder.counts_turns else None
        decision = take(1)
        decide, step = _inner_builders(builder, node, operands, state, decision)
        targets = zip(state, step.targets, strict=True)
        moved = [each for each, target in targets if target != each.reads]
        others = [take(each.nbytes) for each in moved]
        step.reserve(step.graph.inputs[node.attrs["carried"] :], take)
        if turns is None:
            decide.write()
        step.write()
        builder.steps += step.early_steps
        _write_begin(builder, operands, state, moved, others)
        if turns is None:
            _write_turns(builder, decide, step, decision, moved)
        else:
            _write_known_turns(builder, turns, step, moved)
        for each in moved:
            if each.number in place_of and (turns is None or turns % 2):
                _copy(builder, each.first, each.reads, each.nbytes)
    return [*step.early_infos, *decide.infos, *step.infos]


@record()
class _Carried:
    """A value that a loop carries: `first` is the memory of the result, where it begins.

    The graphs read it at the slot `reads`; the body writes the next one there or at `writes`.
    """

    number: int
    nbytes: int
    first: BufferRef
    reads: BufferRef
    writes: BufferRef


def _inner_builders(
    builder: PlanBuilder,
    node: Node,
    operands: Sequence[BufferRef],
    state: Sequence[_Carried],
    decision: BufferRef,
) -> tuple[PlanBuilder, PlanBuilder]:
    """Of the condition and of the body, which know where outputs are computed."""
    inputs, outputs = list(operands), list(operands[: node.attrs["carried"]])
    for each in state:
        inputs[each.number], outputs[each.number] = each.reads, each.writes
    name = _name(builder, node)
    condition = Surroundings(f"{name}_condition_", builder.memory, tuple(inputs), (decision,))
    body = Surroundings(f"{name}_body_", builder.memory, tuple(inputs), tuple(outputs))
    in_place = {each.number: each.number for each in state}
    decide = builder.inner(node, node.attrs["condition"], {}, condition)
    step = builder.inner(node, node.attrs["body"], in_place, body)
    decide.place_outputs()
    step.place_outputs()
    return decide, step


def _write_begin(
    builder: PlanBuilder,
    operands: Sequence[BufferRef],
    state: Sequence[_Carried],
    moved: Sequence[_Carried],
    others: Sequence[BufferRef],
) -> None:
    """The state begins in the memory of the results; those that move have `others`, too."""
    for each in state:
        _copy(builder, each.first, operands[each.number], each.nbytes)
    slots = [*(each.reads.slot for each in state), *(each.writes.slot for each in moved)]
    places = [*(each.first for each in state), *others]
    builder.steps.append(BindStep("loop", tuple(slots), tuple(places)))


def _write_turns(
    builder: PlanBuilder,
    decide: PlanBuilder,
    step: PlanBuilder,
    decision: BufferRef,
    moved: Sequence[_Carried],
) -> None:
    begin = len(builder.steps)
    builder.add_steps(decide)
    builder.steps.append(BranchStep("loop", decision, "bool", (len(step.steps) + 2, 1)))
    builder.add_steps(step)
    _write_jump_back(builder, begin, moved)


def _write_known_turns(
    builder: PlanBuilder, turns: int, step: PlanBuilder, moved: Sequence[_Carried]
) -> None:
    """All turns as one loop; or as many of some of them as there are, and what remains."""
    at_once = builder.turns_at_once(turns, step.steps)
    times, rest = divmod(turns, at_once) if turns else (0, 0)
    begin = len(builder.steps)
    if times > 1:
        builder.steps.append(TurnsStep("loops", times, len(step.steps) + 4))
    for count in (at_once, rest):
        if count:
            first = len(builder.steps)
            builder.steps.append(TurnsStep("loop", count, len(step.steps) + 2))
            builder.add_steps(step)
            _write_jump_back(builder, first, moved)
        if times > 1 and count == at_once:
            _write_jump_back(builder, begin, ())


def _write_jump_back(builder: PlanBuilder, begin: int, moved: Sequence[_Carried]) -> None:
    exchanged = tuple((each.reads.slot, each.writes.slot) for each in moved)
    builder.steps.append(JumpStep("loop", begin - len(builder.steps), exchanged))


def _name(builder: PlanBuilder, node: Node) -> str:
    """What the kernels inside a node are called: by its place among the steps around it."""
    prefix = "" if builder.within is None else builder.within.name
    return f"{prefix}{node.primitive.name}{builder.position[builder.fused.group_of[node]]}"


def _operands(
    builder: PlanBuilder, node: Node, unread: Mapping[int, BufferRef] | None = None
) -> Sequence[BufferRef]:
    """Where operands lie, which are dense: see `planning`. Those that none reads are given."""
    given = unread or {}
    return [
        given[at] if at in given else builder.operands.array(node, each).ref
        for at, each in enumerate(node.inputs)
    ]


def _copy(builder: PlanBuilder, target: BufferRef, source: BufferRef, nbytes: int) -> None:
    if target != source:
        builder.steps.append(CopyStep("state", target, source, nbytes))
