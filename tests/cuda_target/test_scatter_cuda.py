"""Additions at positions, sorted: values in every order of threads, checks, texts, machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.programs import program_of
from cuda_tools.run_program import run_program
from cuda_tools.shim import run_sanitized
from random_graphs.engines import run_eagerly
from scatter_cases import Case, Scatters, all_rows_added, random_case, rows_added
from template_tools import golden_text, launches_of
from tgraph.compiler.targets.cuda import scatter_form
from tgraph.compiler.targets.cuda import scatter_schedule as schedule_scatter
from tgraph.compiler.targets.cuda.program import CudaProgram, cuda_program
from tgraph.compiler.targets.cuda.scatter_schedule import ScatterSchedule, SumSchedule
from tgraph.runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint8,
)

import tgraph as tg
from tgraph.nn import functional as F

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
GOLDEN = Path(__file__).parent / "golden" / "templates"
# Of the largest result; eager evaluation rounds 16-bit floats after every addition.
TOLERANCE = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-2, "bfloat16": 2e-1}
DTYPES = (float32, float32, float64, float16, bfloat16, int32, int64, uint8, bool_)


@pytest.fixture
def sorts_everything(monkeypatch):
    """However small."""
    monkeypatch.setattr(scatter_form, "SERIAL_STEPS", 0)
    monkeypatch.setattr(scatter_form, "MANY_THREADS", 1 << 40)


@pytest.fixture
def in_many_blocks(sorts_everything, monkeypatch):
    """As if there were very many positions: several blocks, short pieces, several passes."""
    monkeypatch.setattr(schedule_scatter, "ONE_BLOCK", 1)
    monkeypatch.setattr(schedule_scatter, "SORT_BLOCK", 64)
    monkeypatch.setattr(schedule_scatter, "FEW_SORT_BLOCKS", 3)
    monkeypatch.setattr(schedule_scatter, "PIECES", ((1 << 40, 4),))
    monkeypatch.setattr(schedule_scatter, "MAX_DIGIT_BITS", 3)


def steps_of(program: CudaProgram) -> list[str]:
    """What the launches of scatters do."""
    schedules = (info.schedule for info in program.kernels)
    return [
        each.kernel.name.removeprefix("scatter_")
        for each in schedules
        if isinstance(each, ScatterSchedule)
    ]


def agrees(case: Case, seed: int = 0) -> CudaProgram:
    """A case run in two orders gives what eager evaluation does, and the same bits twice."""
    graph, arrays = case
    program = cuda_program(graph)
    values = run_eagerly(graph, arrays)
    first = run_program(program, arrays, "backward")
    second = run_program(program, arrays, "shuffled", seed)
    for node, found, again in zip(graph.outputs, first, second, strict=True):
        np.testing.assert_array_equal(found, again)
        same(found, values[node], node.type.dtype)
    return program


def same(found: np.ndarray, wanted: np.ndarray, dtype: DType) -> None:
    if dtype.kind != "float":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = wanted.astype(np.float64)
    limit = TOLERANCE[dtype.name] * (1 + np.abs(wide).max(initial=0))
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=limit)


# -- values --------------------------------------------------------------------------------

rng = np.random.default_rng(0)
SPREADS: dict[str, Any] = {
    "distinct": rng.permutation(300),
    "all equal": np.full(300, 7),
    "the last row": np.full(300, 299),
    "ascending": np.sort(rng.integers(0, 300, 300)),
    "two rows in turn": np.arange(300) % 2 * 255,
    "most in one row": np.where(rng.random(300) < 0.9, 3, rng.integers(0, 300, 300)),
    "whole pieces": np.repeat(np.arange(100), 32)[:300],
}


@needs_shim
def test_spreads():
    program = agrees(all_rows_added(SPREADS.values(), 300, 6))
    assert steps_of(program) == ["start", "place", "sum", "join"] * len(SPREADS)


@needs_shim
@pytest.mark.slow
def test_spreads_in_many_blocks(in_many_blocks):
    program = agrees(all_rows_added(SPREADS.values(), 300, 6, from_number=False))
    steps = ["start", *["count", "place"] * 3, "sum", "join"]
    assert steps_of(program) == steps * len(SPREADS)


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_random(seed, sorts_everything):
    assert steps_of(agrees(random_case(seed, DTYPES, 6), seed)).count("sum") == 6


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_random_in_many_blocks(seed, in_many_blocks):
    assert steps_of(agrees(random_case(seed, DTYPES, 6), seed)).count("sum") == 6


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize(
    "rows, count, width", [(70_000, 3000, 8), (300_000, 2500, 1), (5, 9000, 3)]
)
def test_many_positions(rows, count, width):
    """Several blocks, and for many rows several passes of the sort."""
    program = agrees(rows_added(np.random.default_rng(1).integers(0, rows, count), rows, width))
    passes = {70_000: 2, 300_000: 3, 5: 1}[rows]
    assert steps_of(program) == ["start", *["count", "place"] * passes, "sum", "join"]


@needs_shim
def test_one_addition(sorts_everything):
    assert steps_of(agrees(rows_added([3], 5, 1))) == ["start", "place", "sum"]


@needs_shim
def test_not_a_number_stays_in_its_row():
    graph, (at, values) = rows_added(SPREADS["distinct"], 300, 4)
    values[17, 2], values[40, 0] = np.nan, np.inf
    (found,) = run_program(cuda_program(graph), [at, values])
    wanted = run_eagerly(graph, [at, values])[graph.outputs[0]]
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


@needs_shim
def test_sums_are_rounded_once():
    """In 16 bits, a thousand small numbers would else be lost beside a large one."""
    graph, (at, values) = rows_added(np.zeros(1000), 100, 2, float16)
    values[:] = 1.0
    values[0] = 2048.0
    (found,) = run_program(cuda_program(graph), [at, values])
    np.testing.assert_array_equal(found[0], 2048 + 999 + 1)


@needs_shim
@pytest.mark.parametrize("seed", range(3))
def test_in_any_order(seed, sorts_everything, monkeypatch):
    """Only where it is allowed, and for types that can be added to in memory."""
    monkeypatch.setattr(schedule_scatter, "ATOMICS", True)
    case = random_case(seed, (float32, float64, int32))
    assert steps_of(cuda_program(case[0])) == ["start", "atomic"]
    for order in ("forward", "shuffled"):
        (found,) = run_program(cuda_program(case[0]), case[1], order)
        (output,) = case[0].outputs
        same(found, run_eagerly(*case)[output], output.type.dtype)
    assert "atomic" not in steps_of(cuda_program(random_case(seed, (float16, int64))[0]))
    graph, (at, values) = rows_added([3, 7], 5, 3)
    with pytest.raises(IndexError, match=r"index 7 is out of bounds .* size 5"):
        run_program(cuda_program(graph), [at, values])


@needs_shim
def test_gradient_of_an_embedding():
    def gradient(table, at, y):
        loss = (F.embedding(at, table) * y).sum()
        return tg.autograd.grad(loss, [table], create_graph=True)[0]

    generator = np.random.default_rng(2)
    inputs = [
        tg.from_numpy(generator.standard_normal((50, 12))).requires_grad_(),
        tg.from_numpy(generator.integers(0, 50, (8, 20))),
        tg.from_numpy(generator.standard_normal((8, 20, 12))),
    ]
    program, arrays, wanted = program_of(gradient, inputs)
    assert steps_of(program) == ["start", "place", "sum", "join"]
    (found,) = run_program(program, arrays)
    np.testing.assert_allclose(found, wanted[0], rtol=1e-13, atol=1e-13)


# -- positions outside of their axis -------------------------------------------------------


@needs_shim
@pytest.mark.parametrize("bad", [-1, 300, 1 << 40])
@pytest.mark.parametrize("where", [0, 299])
def test_positions_outside_are_reported(bad, where):
    graph, (at, values) = rows_added(SPREADS["all equal"], 300, 4)
    at[where] = bad
    for order in ("forward", "shuffled"):
        with pytest.raises(IndexError, match=rf"index {bad} is out of bounds .* size 300"):
            run_program(cuda_program(graph), [at, values], order)


@needs_shim
def test_positions_outside_are_reported_by_several_blocks(in_many_blocks):
    graph, (at, values) = rows_added(SPREADS["ascending"], 300, 4)
    at[200] = 301
    with pytest.raises(IndexError, match=r"index 301 is out of bounds .* size 300"):
        run_program(cuda_program(graph), [at, values], "backward")


@needs_shim
def test_checks_are_told_apart():
    def function(x, i, k, y):
        x = x.index_put((i,), y, accumulate=True)
        return x.index_put((k,), y, accumulate=True)

    arrays = [np.ones((200, 3)), np.arange(90), np.arange(90) * 2, np.ones((90, 3))]
    program = tg.cuda.program(function, *map(tg.from_numpy, arrays))
    assert len(program.checks) >= 2
    line = function.__code__.co_firstlineno
    for number, expected in ((1, line + 1), (2, line + 2)):
        wrong = [each.copy() for each in arrays]
        wrong[number][5] = 777
        with pytest.raises(IndexError, match=rf"index 777 .*:{expected}"):
            run_program(program, wrong)


# -- plans ---------------------------------------------------------------------------------


def test_little_work_stays_with_a_thread_per_row():
    few = cuda_program(rows_added([1, 2, 3], 20, 64)[0])
    assert steps_of(few) == []
    make = Scatters()
    rows = make.scatter_add(
        make.start(True, 1 << 16, 50), make.positions(50, 1 << 16, 20), make.values(1 << 16, 20),
        axis=1,
    )  # fmt: skip
    assert steps_of(cuda_program(make.graph(rows))) == []


def test_writes_that_do_not_add_keep_their_order():
    make = Scatters()
    base, at = make.values(100, 64), make.positions(100, 500)
    put = make.index_put(base, at, make.values(500, 64), axis=0, accumulate=False)
    assert steps_of(cuda_program(make.graph(put))) == []


def test_a_number_to_start_from_lies_nowhere():
    number, memory = (
        cuda_program(rows_added(SPREADS["distinct"], 300, 4, from_number=each)[0])
        for each in (True, False)
    )
    assert [info.name for info in number.kernels] == [
        f"k0_index_put_{each}" for each in ("start", "place", "sum", "join")
    ]
    assert number.kernels[0].bytes == 300 * 4 * 4
    assert memory.kernels[0].bytes == 2 * 300 * 4 * 4
    assert "base" not in number.source.split('extern "C"', 1)[1]


def test_expanded_positions_are_those_of_rows():
    make = Scatters()
    at = make.reshape(make.positions(100, 500), shape=(500, 1))
    wide = make.broadcast(at, shape=(500, 64))
    added = make.scatter_add(make.start(True, 100, 64), wide, make.values(500, 64), axis=0)
    program = cuda_program(make.graph(added))
    (sums,) = (i.schedule for i in program.kernels if isinstance(i.schedule, SumSchedule))
    assert (sums.problem.count, sums.problem.width, sums.problem.vector) == (500, 64, 4)
    assert program.launches[1].args[0].slot == 1  # the positions as they came


def test_the_plan_tells_what_moves():
    program = cuda_program(rows_added(SPREADS["distinct"], 300, 64)[0])
    (info,) = (i for i in program.kernels if isinstance(i.schedule, SumSchedule))
    assert info.flops == 300 * 64
    assert info.bytes == 2 * 300 * 64 * 4 + 2 * 300 * 4
    assert [len(i.outputs) for i in program.kernels] == [0, 0, 0, 1]


def test_large_tensors_have_64_bit_positions():
    make = Scatters()
    base = make.input(1 << 20, 1 << 12)
    at, values = make.input(1 << 12, dtype=int64), make.input(1 << 12, 1 << 12)
    large = cuda_program(
        make.graph(make.index_put(base, at, values, axis=0, accumulate=True))
    ).source
    small = cuda_program(rows_added(SPREADS["distinct"], 300, 64)[0]).source
    assert "(long long)row" in large and "(long long)row" not in small


def many_rows(dtype: DType = float32) -> CudaProgram:
    """The gradient of a table of words."""
    make = Scatters()
    at, values = make.input(8192, dtype=int64), make.input(8192, 768, dtype=dtype)
    base = make.start(True, 50257, 768, dtype=dtype)
    return cuda_program(make.graph(make.index_put(base, at, values, axis=0, accumulate=True)))


def many_elements(dtype: DType = float32) -> CudaProgram:
    make = Scatters()
    at, values = make.input(64, 5000, dtype=int64), make.input(64, 5000, dtype=dtype)
    base = make.input(64, 1000, dtype=dtype)
    return cuda_program(make.graph(make.scatter_add(base, at, values, axis=1)))


GOLDENS = {"scatter_of_rows": many_rows, "scatter_of_elements": many_elements}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name, request):
    file = GOLDEN / f"{name}.cu"
    found = golden_text(GOLDENS[name]())
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


# -- machine code --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "arch"),
    list(zip([float32, float64, bfloat16, int64, bool_], ["sm_75", "sm_80", "sm_90"] * 2)),
)
def test_compiling(dtype, arch):
    if reason := nvrtc.available():
        pytest.skip(reason)
    for make in GOLDENS.values():
        for kernel, usage in nvrtc.compile_cubin(make(dtype).source, arch).kernels.items():
            assert usage.registers <= 128, f"{kernel} has {usage.registers} registers"
            assert usage.spill_bytes == 0, f"{kernel} spills {usage.spill_bytes}"
            assert usage.stack_bytes == 0, f"{kernel} keeps arrays in memory"
            assert usage.shared_bytes <= 40 << 10


@pytest.mark.slow
def test_rows_move_as_vectors():
    if reason := nvrtc.available() or nvrtc.disassembler_available():
        pytest.skip(reason)
    code = nvrtc.sass(nvrtc.compile_cubin(many_rows().source, "sm_90"))
    # Eight additions are loaded before any is added.
    assert code.count("LDG.E.128") >= 8 and "STG.E.128" in code


# -- sanitizers ----------------------------------------------------------------------------


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_are_clean(kind, in_many_blocks):
    cases = [rows_added(SPREADS["distinct"], 300, width)[0] for width in (3, 8)]
    cases += [random_case(seed, DTYPES)[0] for seed in range(12)]
    source, launches = launches_of([cuda_program(each) for each in cases])
    assert run_sanitized(source, launches, kind) == ""


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["address", "thread"])
def test_kernels_of_one_block_are_clean(kind):
    cases = [rows_added(SPREADS["distinct"], 300, width)[0] for width in (3, 8)]
    source, launches = launches_of([cuda_program(each) for each in cases])
    assert run_sanitized(source, launches, kind) == ""


SCAN = "    start[d] = before;\n  }\n"
FAULTS = {
    "no barrier before the scan": ("thread", f"{SCAN}  __syncthreads();\n", SCAN, "data race"),
    "digits too short": ("address", "int next[10][512]", "int next[10][500]", "out of bounds"),
    "a piece too long": ("address", "min(first + 32, 300)", "first + 32", "overflow"),
}


@needs_shim
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    kind, old, new, message = FAULTS[fault]
    source, launches = launches_of([cuda_program(rows_added(SPREADS["distinct"], 300, 8)[0])])
    assert old in source
    assert message in run_sanitized(source.replace(old, new), launches, kind)
