"""Scans in CUDA C: tiles of rows by groups of threads, columns by single threads, pieces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import interpret_program, run_program
from kernel_cases import Make
from sampling import rotating
from tgraph.compiler.passes import split_scans
from tgraph.compiler.targets.cuda.program import cuda_program
from tgraph.compiler.targets.cuda.schedule import Layout
from tgraph.runtime.dtypes import dtype_named

import tgraph as tg
import tgraph.nn.functional as F

needs_shim = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "linear_scan")
# Groups of one thread, of parts of a warp, of a warp and of blocks; whole vectors and ragged rows;
# one tile and several; columns.
SHAPES = [
    ((5, 1), 1), ((3, 7), 1), ((9, 33), 1), ((2, 128), 1), ((3, 1000), 1), ((2, 1003), 1),
    ((2, 9001), 1), ((1, 12_288), 1), ((700, 37), 0), ((2, 90, 5), 1), ((2, 3, 40), 0),
]  # fmt: skip
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}


def scanned(name, shape, axis, dtype, reverse=False):
    """What goes in front of a scan, and what follows it, in one kernel."""
    make = Make()
    values = [make.input(*shape, dtype=dtype_named(dtype)) for _ in range(1 + (name == SCANS[-1]))]
    first = make.add(values[0], values[0])
    if name == SCANS[-1]:
        found = make.linear_scan(first, values[1], axis=axis, reverse=reverse)
    else:
        found = getattr(make, name)(first, axis=axis, reverse=reverse)
    return make.graph(make.sub(found, first))


def inputs_of(graph, seed=0):
    generator = np.random.default_rng(seed)
    found = []
    for node in graph.inputs:
        if node.type.dtype.is_floating_point:
            found.append(generator.uniform(0.4, 0.6, node.shape).astype(node.type.dtype.numpy))
        else:
            found.append(generator.integers(-100, 100, node.shape).astype(node.type.dtype.numpy))
    return found


def check(rows):
    """The programs of labelled graphs, whose kernels do what the interpreter does."""
    programs = {label: cuda_program(graph) for label, graph in rows.items()}
    shim.compile_together(program.source for program in programs.values())
    for label, program in programs.items():
        inputs = inputs_of(rows[label])
        expected = interpret_program(program, inputs)
        for order in ("forward", "shuffled"):
            found = run_program(program, inputs, order, seed=2)
            for have, want in zip(found, expected, strict=True):
                tolerance = TOLERANCE.get(want.dtype.name, 0)
                wide = (have.astype(np.float64), want.astype(np.float64))
                np.testing.assert_allclose(
                    *wide, rtol=tolerance, atol=tolerance, err_msg=f"{label}, {order}"
                )
    return programs


@needs_shim
@pytest.mark.parametrize("reverse", [False, True])
def test_kernels_do_what_their_loop_programs_mean(reverse):
    rows = {
        (name, shape, axis): scanned(name, shape, axis, "float32", reverse)
        for name, (shape, axis) in rotating(itertools.product(SCANS, SHAPES), 3)
    }
    for label, program in check(rows).items():
        assert len(program.launches) <= 1 + reverse, label  # backwards, others read it flipped


@needs_shim
def test_other_types():
    check({
        (name, dtype): scanned(name, (3, 520), 1, dtype)
        for dtype in ("float16", "bfloat16", "float64", "int64", "int8")
        for name in (SCANS if dtype.startswith(("float", "b")) else SCANS[:-1])
    })  # fmt: skip


def test_groups_of_all_sizes_are_there():
    schedules = [
        info.schedule
        for shape, axis in SHAPES
        for info in cuda_program(scanned("cumsum", shape, axis, "float32")).kernels
    ]
    assert {each.group for each in schedules if each.layout is Layout.ROW} == {1, 8, 16, 128, 256}
    assert {each.group for each in schedules if each.layout is Layout.COLUMN} == {1}
    assert {each.vector for each in schedules if each.layout is Layout.ROW} == {4}


# -- functions ---------------------------------------------------------------------------


def together(x):
    """Scans of scans, beside reductions, of kept rows, with a start, read twice."""
    running = x.sigmoid().cumsum(-1)
    yield running * x.exp() - x
    yield running.sqrt().cumsum(-1).amax(-1), (running * x).sum(-1)
    yield tg.softmax(x, -1).cumsum(-1) < 0.5
    yield (x - x.mean(-1, keepdim=True)).cumsum(-1)
    yield F.pad(x.exp(), (3, 5)).cumsum(-1), x.flip(-1).cumsum(-1).flip(-1)
    yield x.cummax(-1).indices, x.cummin(-1).values, x.logcumsumexp(-1), (1 + x / 99).cumprod(-1)
    yield x.cumsum(0), tg.cat([x, x.exp()], -1).cumsum(-1)
    yield x.gather(-1, (x.abs() * 3).long().clamp(0, x.shape[-1] - 1)).cumsum(-1)
    yield tg.zeros_like(x).scatter_add(-1, (x > 0).long(), x).cumsum(-1)


def listed(x):
    return [
        each.double()
        for found in together(x)
        for each in (found if type(found) is tuple else [found])
    ]


@needs_shim
@pytest.mark.parametrize("shape", [(5, 12), (3, 1001), (2, 1200)], ids=str)
def test_functions_around_scans(shape):
    x = tg.tensor(np.random.default_rng(0).standard_normal(shape))
    program = tg.cuda.program(listed, x)
    for order in ("forward", "shuffled"):
        for have, want in zip(run_program(program, [x.numpy()], order, 1), listed(x), strict=True):
            np.testing.assert_allclose(have, want.numpy(), rtol=1e-9, atol=1e-9)


@needs_shim
@pytest.mark.parametrize("length", [6, 2000])
def test_gradients(length):
    x = tg.tensor(np.random.default_rng(1).standard_normal((2, length)) / 100 + 1)
    loss = lambda x: (x.cumprod(-1).sin() + x.cummax(-1).values + x.logcumsumexp(-1)).sum()  # noqa: E731
    gradient = tg.grad(loss)
    (found,) = run_program(tg.cuda.program(gradient, x), [x.numpy()], "shuffled", 1)
    np.testing.assert_allclose(found, gradient(x).numpy(), rtol=1e-9)


@pytest.fixture
def short_pieces(monkeypatch):
    for name, value in [("GPU_MIN_ELEMENTS", 6), ("GPU_ROW_PIECE", 100), ("GPU_COLUMN_PIECE", 10)]:
        monkeypatch.setattr(split_scans, name, value)


FOLDS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
LONG = [((2, 1000), 1), ((1009,), 0), ((403, 3), 0)]


@needs_shim
def test_pieces(short_pieces):
    """Their values are those of whole rows, which eager code has."""
    rows = {
        (name, reverse, shape, axis): scanned(name, shape, axis, "float64", reverse)
        for name, reverse, (shape, axis) in rotating(
            itertools.product(FOLDS, (False, True), LONG), 5
        )
    }
    for label, program in check(rows).items():
        name, reverse, _, axis = label
        assert len(program.launches) >= 3, label
        (x,) = inputs_of(rows[label])
        flipped = np.flip(2 * x, axis) if reverse else 2 * x
        running = FOLDS[name].accumulate(flipped, axis)
        (found,) = run_program(program, [x])
        expected = (np.flip(running, axis) if reverse else running) - 2 * x
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(label))


def test_long_rows_are_work_for_all_blocks():
    x = tg.zeros(1 << 22)
    program = tg.cuda.program(lambda x: x.cumsum(0), x)
    assert len(program.launches) == 3
    assert program.launches[0].grid == program.launches[-1].grid == 1024
    many = tg.cuda.program(lambda x: x.cumsum(1), tg.zeros(2000, 4096))
    assert [each.grid for each in many.launches] == [2000]


@needs_shim
def test_nan_and_infinities_stay_where_they_belong():
    x = np.ones((2, 5000), np.float32)
    x[0, 2], x[0, 2500], x[0, -2] = -0.0, np.inf, -np.inf
    x[1, 4097] = np.nan
    for function in (tg.cumsum, lambda x, d: tg.cummax(x, d).values, tg.cumprod):
        program = tg.cuda.program(lambda x, f=function: f(x, 1), tg.tensor(x))
        for order in ("forward", "shuffled"):
            (found,) = run_program(program, [x], order)
            np.testing.assert_array_equal(found, function(tg.tensor(x), 1).numpy())


@needs_shim
def test_a_sum_begins_with_positive_zero():
    x = np.array([[-0.0], [-0.0]], np.float32)
    for axis in (0, 1):
        program = tg.cuda.program(lambda x, axis=axis: x.cumsum(axis), tg.tensor(x))
        assert not np.signbit(run_program(program, [x])[0]).any()


@needs_shim
def test_sums_are_added_in_float64():
    x = np.full((1, 70_000), 1.0, np.float32)
    x[0, 0] = 2.0**24  # to which adding 1 in float32 changes nothing
    (found,) = run_program(tg.cuda.program(lambda x: x.cumsum(1), tg.tensor(x)), [x])
    np.testing.assert_array_equal(found, np.cumsum(x, 1, np.float64).astype(np.float32))


@needs_shim
def test_zero_stays_zero_whatever_the_product_of_the_factors():
    make = Make()
    factor, added = make.input(1, 3000), make.input(1, 3000)
    graph = make.graph(make.linear_scan(factor, added, axis=1, reverse=False))
    factors, numbers = np.full((1, 3000), 2.0**100, np.float32), np.zeros((1, 3000), np.float32)
    numbers[0, -2] = 3
    factors[0, 1500] = np.nan
    program = cuda_program(graph)
    (found,) = run_program(program, [factors, numbers], "shuffled")
    assert not found[0, :1500].any()
    assert np.isnan(found[0, 1500:]).all()
    factors[0, 1500] = 1
    (found,) = run_program(program, [factors, numbers], "shuffled")
    np.testing.assert_array_equal(found[0, -3:], np.float32([0, 3, 3 * 2.0**100]))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_no_kernel_spills(arch):
    if reason := nvrtc.available():
        pytest.skip(reason)
    graphs = [
        scanned(name, (300, 9000), 1, dtype) for name in SCANS for dtype in ("float32", "float16")
    ]
    graphs += [
        scanned("cumsum", (9000, 300), 0, "float64"),
        scanned("linear_scan", (3, 40), 1, "float64"),
    ]
    for graph in graphs:
        usage = nvrtc.compile_cubin(cuda_program(graph, arch=arch).source, arch).kernels
        assert all(each.spill_bytes == 0 for each in usage.values())
