"""Loops that are cut where conditions change: all values once, and no conditions inside."""

from __future__ import annotations

import itertools
from itertools import pairwise

import pytest
from kernel_cases import Make
from tgraph.compiler.ir import Graph
from tgraph.compiler.kernel import regions
from tgraph.compiler.kernel.index import Axis, Divides, Index, InRange, in_range, of_axis
from tgraph.compiler.kernel.kernel import Instr, Stage
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.executable import cpu_executable
from tgraph.runtime.dtypes import bool_

A, B, C = Axis("a", 100), Axis("b", 70), Axis("c", 3)


def stage_of(*conditions: InRange | Divides) -> Stage:
    """A stage that stores under conditions."""
    load = Instr("load", param=0, index=of_axis(A), mask=conditions)
    return Stage((), (load, Instr("store", (0,), param=1, index=of_axis(A))))


def holds(condition: InRange | Divides, value: int) -> bool:
    """With a at a value and all others anywhere it may hold; raises where that is not certain."""
    index = Index({}, condition.index.const + condition.index.terms.get(A, 0) * value)
    if isinstance(condition, Divides):
        return index.const % condition.divisor == 0
    return condition.low <= index.const < condition.high


CONDITIONS = {
    "pad": [InRange(of_axis(A) - 3, 0, 90)],
    "reversed": [InRange(-of_axis(A) + 99, 20, 1000)],
    "steps": [InRange(of_axis(A) * 3 - 7, 0, 200)],
    "two": [InRange(of_axis(A), 17, 100), InRange(of_axis(A) - 1, 0, 60)],
    "phases": [Divides(of_axis(A) - 1, 2), InRange(of_axis(A) - 1, 0, 81)],
    "common factor": [Divides(of_axis(A) * 2, 6)],
    "negative": [Divides(-of_axis(A) + 1, 4), Divides(of_axis(A), 2)],
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_parts_are_the_whole_and_know_their_conditions(name):
    conditions = CONDITIONS[name]
    stage = stage_of(*conditions)
    found = regions.parts(stage, A)
    assert [found[0].low, *(part.high for part in found)] == [
        *(part.low for part in found),
        A.size,
    ]
    assert sum(part.size for part in found if part.counter != A) > 50
    for part in found:
        if part.counter == A:
            continue
        for phase, inner in enumerate(part.stages):
            load = inner.body[0]
            assert not load.mask
            for count in range(part.counter.size):
                value = part.offset + part.step * count + phase
                assert all(holds(each, value) for each in conditions) == (load.op == "load")


def test_conditions_on_several_axes_hold_inside_whatever_the_others_are():
    stage = stage_of(InRange(of_axis(A) + of_axis(C) - 1, 0, 100))
    low, middle, high = regions.parts(stage, A)
    assert (low.high, middle.low, middle.high, high.low) == (1, 1, 99, 99)
    assert not middle.stages[0].body[0].mask
    assert low.stages[0].body[0].mask


def test_boxes_of_outer_axes_do_not_overlap():
    stage = stage_of(InRange(of_axis(A) - 1, 0, 98), Divides(of_axis(B), 2))
    found = regions.boxes(stage, [A, B, C])
    assert len(found) == 2
    assert [box.stage.body[0].op for box in found] == ["load", "const"]
    assert not regions.fill(found)
    halves = regions.boxes(stage_of(InRange(of_axis(A), 0, 50)), [A])
    assert regions.fill(halves)


def test_a_choice_that_is_known_leaves_nothing_of_the_other():
    condition = InRange(of_axis(A), 0, 50)
    body = (
        Instr("load", param=0, index=of_axis(A), mask=(condition,)),
        Instr("load", param=1, index=of_axis(A)),
        Instr("condition", (), bool_, mask=(condition,)),
        Instr("where", (2, 0, 1)),
        Instr("store", (3,), param=2, index=of_axis(A)),
    )
    first, second = regions.parts(Stage((), body), A)
    ops = [[instr.op for instr in part.stages[0].body] for part in (first, second)]
    assert ops == [
        ["load", "const", "const", "const", "store"],
        ["const", "load", "const", "const", "store"],
    ]


def stencil() -> Graph:
    make = Make()
    x = make.input(100, 130)
    padded = make.pad(x, low=(1, 1), high=(1, 1), interior=(0, 0), value=0.0)
    steps = {"steps": (1, 1)}
    left = make.slice(padded, starts=(1, 0), stops=(101, 130), **steps)
    above = make.slice(padded, starts=(0, 1), stops=(100, 131), **steps)
    return make.graph(make.add(make.add(left, above), x))


def test_the_interior_of_a_stencil_asks_nothing():
    (info,) = cpu_executable(optimize(stencil())).kernels
    schedule = info.schedule
    assert schedule is not None and schedule.lane is not None
    rows = [axis for axis in schedule.kernel.rows if axis != schedule.lane]
    (box,) = regions.boxes(schedule.kernel.stages[0], rows)
    parts = regions.parts(box.stage, schedule.lane)
    interior = max(parts, key=lambda part: part.size)
    assert interior.size >= 128
    assert not any(instr.mask for instr in interior.stages[0].body)
    assert all(one.high == two.low for one, two in pairwise(parts))


@pytest.mark.parametrize("factor", [1, 2, 3, 6])
def test_conditions_without_their_common_factor(factor: int) -> None:
    i, j = Axis("i", 5), Axis("j", 3)
    for const, low, size in itertools.product(range(-7, 8), (-6, 0, 1, 4), (0, 1, 2, 5, 12)):
        index = of_axis(i) * factor + of_axis(j) * (2 * factor) + const
        found = in_range(index, low, low + size)
        assert found.index.terms == {i: 1, j: 2}
        for at, other in itertools.product(range(5), range(3)):
            value = sum(each * {i: at, j: other}[axis] for axis, each in found.index.terms.items())
            holds = found.low <= value + found.index.const < found.high
            assert holds == (low <= factor * (at + 2 * other) + const < low + size)
