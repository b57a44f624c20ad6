"""Golden texts: the kernels of typical programs, their schedules, and what LLVM makes of them.

`pytest tests/kernel --update-golden` writes the texts anew; read the difference before keeping it.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from kernel_cases import CASES, Make
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.ir import Graph
from tgraph.compiler.kernel.kernel import Kernel, long_sums
from tgraph.compiler.kernel.kernel_interpreter import interpret_kernel
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.executable import cpu_executable
from tgraph.compiler.targets.cpu.inner_loops import SMALL_WORK
from tgraph.compiler.targets.cpu.kernel_writer import kernel_text
from tgraph.compiler.targets.cpu.module_text import kernels_module
from tgraph.compiler.targets.cpu.rules import CpuRules
from tgraph.compiler.targets.cpu.schedule import Schedule, schedule_cpu
from tgraph.runtime import jit
from tgraph.runtime.dtypes import bool_

import tgraph as tg

FOLDER = Path(__file__).parent / "golden"


def scheduled(graph: Graph) -> list[Schedule]:
    """The kernels that a graph becomes, as the plan runs them."""
    found = [info.schedule for info in cpu_executable(optimize(graph)).kernels]
    return [schedule for schedule in found if schedule is not None]


def schedule_text(schedule: Schedule) -> str:
    """What threads share, and which loop is vectorised."""
    tasks = ", ".join(
        f"{task.axis.name} by {task.tile} ({task.count} of them)" for task in schedule.tasks
    )
    lane = schedule.lane.name if schedule.lane is not None else "the last axis of each stage"
    direct = ", one vector loop over any range of tasks" if schedule.direct else ""
    return f"tasks {tasks or 'one'}\nlanes {lane}{direct}\ngrain {schedule.grain}"


def text_of(graph: Graph) -> str:
    parts = []
    for number, schedule in enumerate(scheduled(graph)):
        kernel = schedule.kernel.renamed(f"k{number}")
        parts.append(f"{kernel}\n{schedule_text(schedule)}")
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{name}.txt"
    found = text_of(CASES[name]())
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


def test_no_golden_text_is_left_over() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(CASES)


# -- what the texts stand for ----------------------------------------------------------------


def kernels(graph: Graph) -> list[Kernel]:
    return [schedule.kernel for schedule in scheduled(graph)]


@pytest.mark.parametrize(
    "name",
    ["gelu", "softmax", "layer_norm", "column_sum", "pairwise_forces", "several_outputs"],
)
def test_one_kernel_is_enough(name: str) -> None:
    assert len(kernels(CASES[name]())) == 1


def test_a_long_sum_is_shared() -> None:
    first, *_ = scheduled(CASES["long_sum"]())
    assert first.extent > 8


def optimised_text(schedule: Schedule) -> str:
    """The kernel after LLVM's passes."""
    text = kernels_module({"kernel": kernel_text(schedule)})
    with jit._compiler().optimised(jit.Source(text)) as module:
        return str(module)


# Loops whose addresses or order depend on data, or that do too little, are left alone.
NOT_VECTORISED = {
    "scatter_add", "pad", "overlapping_windows", "overwritten_rows",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_VECTORISED))
def test_generated_code_is_vectorised(name: str) -> None:
    for schedule in scheduled(CASES[name]()):
        sums = any(map(long_sums, schedule.kernel.stages))
        if schedule.work > (SMALL_WORK if sums else 1000):  # small sums go in blocks of few steps
            text = optimised_text(schedule)
            widths = [int(width) for width in re.findall(r"<(\d+) x float>", text)]
            assert widths and max(widths) >= 4, f"{name}: no vectors of floats"


def test_truth_of_columns_is_folded_by_vectors() -> None:
    make = Make()
    x = make.input(300, 256, dtype=bool_)
    (schedule,) = scheduled(make.graph(make.any(x, axes=(0,), keepdims=False)))
    text = optimised_text(schedule)
    assert re.search(r"store <\d+ x i8>", text) and not re.search(r"store (<\d+ x )?i1", text)


def test_tiles_of_whole_vectors_leave_nothing_to_scalar_loops() -> None:
    """LLVM sees how many columns a tile has: what it made for others was half of the code."""
    make = Make()
    (schedule,) = scheduled(make.graph(make.sum(make.input(300, 256), axes=(0,), keepdims=False)))
    text = optimised_text(schedule)
    assert re.search(r"load <\d+ x float>", text) and "load float" not in text


@pytest.mark.parametrize("name", CASES)
def test_lowering_is_deterministic(name: str) -> None:
    """Equal graphs give equal texts, which the cache of compiled objects relies on."""
    first, second = (
        [kernel_text(schedule).text for schedule in scheduled(CASES[name]())] for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("name", ["softmax", "pad", "pairwise_forces"])
def test_scheduled_loops_compute_the_same(name: str) -> None:
    """Splitting, merging and reordering loops leaves every element as it was."""
    graph = CASES[name]()
    fused = fuse(CpuRules(graph))
    (group,) = fused.groups
    lowering = fused.lowering(group)
    kernel = lowering.run()
    rng = np.random.default_rng(0)
    results = []
    for each in (kernel, schedule_cpu(kernel).kernel):
        rng = np.random.default_rng(0)
        buffers = [
            np.zeros(param.elements, param.dtype.numpy)
            if param.written
            else rng.standard_normal(param.elements).astype(param.dtype.numpy)
            for param in each.params
        ]
        interpret_kernel(each, buffers)
        results.append([b for b, param in zip(buffers, each.params, strict=True) if param.written])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


# -- vector loops ----------------------------------------------------------------------------


def innermost_loops(text: str) -> tuple[int, int]:
    """How many loops of a kernel's text have no loop inside, and how many of them say a width."""
    lines = text.splitlines()
    starts = {line[:-1]: at for at, line in enumerate(lines) if re.match(r"loop\d+:$", line)}
    innermost = hinted = 0
    for at, line in enumerate(lines):
        back = re.match(r"  br i1 %\w+, label %(loop\d+), label %done\d+(, !llvm.loop)?", line)
        if back is None or starts[back[1]] > at:  # the way into a loop
            continue
        inside = any(start > starts[back[1]] and start < at for start in starts.values())
        innermost += not inside
        hinted += back[2] is not None
        assert not (inside and back[2]), "an outer loop has the width of a vector"
    return innermost, hinted


@pytest.mark.parametrize("name", CASES)
def test_every_innermost_loop_has_its_width(name: str) -> None:
    """LLVM is not to weigh widths: that takes long, and may end the process (see `jit`)."""
    for schedule in scheduled(CASES[name]()):
        innermost, hinted = innermost_loops(kernel_text(schedule).text)
        assert innermost == hinted > 0


def test_vectors_are_as_wide_as_the_machine_and_the_type_say() -> None:
    (schedule,) = scheduled(CASES["gelu"]())
    for size in (64, 32, 16):
        assert {loop.width for loop in kernel_text(schedule, size).loops} == {size // 4}


def test_only_scans_themselves_go_step_by_step() -> None:
    (schedule,) = scheduled(CASES["scan"]())
    assert [loop.width for loop in kernel_text(schedule, 64).loops] == [
        16, 1, 16,  # of a whole chunk: exponentials, sums, logarithms
        16, 16, 1, 16, 16,  # of the rest of a row, whose last vectors are masked
    ]  # fmt: skip


def test_long_functions_are_copied_into_vector_loops_alone() -> None:
    """Each copy of a power takes LLVM milliseconds."""
    graph = tg.trace(lambda x, y: x**x * 0.9**y, tg.ones(64, 64), tg.ones(()))
    (schedule,) = scheduled(graph)
    text = kernels_module({"kernel": kernel_text(schedule)})
    calls = [line for line in text.splitlines() if "call float @tg_pow_f32" in line]
    assert sorted(line.endswith("noinline") for line in calls) == [False, True]
    (small,) = scheduled(tg.trace(lambda y: 0.9**y, tg.ones(())))
    (call,) = [line for line in kernel_text(small).text.splitlines() if "@tg_pow_f32" in line]
    assert call.endswith("noinline")
