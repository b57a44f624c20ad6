"""Reuse tiles in shared memory, and when they are made."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program
from random_graphs import check
from random_graphs.check import case_of, program_of_seed
from sampling import rotating
from tgraph.compiler.targets.cuda import reuse_tile_schedule
from tgraph.compiler.targets.cuda.program import cuda_program
from tgraph.compiler.targets.cuda.schedule import Layout
from tgraph.runtime.memo import Memo

import tgraph as tg

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))


def points(*shape, dtype=tg.float32):
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return tg.tensor((4 * values).astype(np.float32)).to(dtype)


def compared(function, *inputs, rtol=2e-5, atol=2e-5):
    """The schedules of a function's program, whose results are those of eager code."""
    program = tg.cuda.program(function, *inputs)
    want = function(*inputs).double().numpy()
    for order in ("forward", "backward", "shuffled"):
        (found,) = run_program(program, [each.numpy() for each in inputs], order, seed=2)
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=rtol, atol=atol)
    return [info.schedule for info in program.kernels]


def squares(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


@pytest.fixture
def always(monkeypatch):
    """Tiles wherever they can be made, however small."""
    monkeypatch.setattr(reuse_tile_schedule, "MIN_STEPS", 0)
    monkeypatch.setattr(reuse_tile_schedule, "MIN_REUSE", 0)
    Memo.forget_all()  # schedules that were chosen by the real limits
    yield
    Memo.forget_all()


SIZES = [
    (6, 9, 33),
    (20, 5, 40),
    (16, 16, 32),
    (17, 33, 31),
    (64, 64, 64),
    (65, 130, 33),
    (3, 200, 70),
]


@pytest.mark.parametrize(
    ("sizes", "busy"), rotating(itertools.product(SIZES, (0, 1 << 9, 1 << 16)), 4), ids=str
)
def test_sizes(always, monkeypatch, sizes, busy):
    """Full and ragged tiles, with one and several results for each thread, and teams."""
    monkeypatch.setattr(reuse_tile_schedule, "BUSY", busy)
    rows, columns, length = sizes
    (schedule,) = compared(squares, points(rows, length), points(columns, length))
    assert schedule.layout is Layout.REUSE_TILE


CASES = {
    "largest": lambda a, b: (a[:, None] - b[None]).abs().amax(-1),
    "loop_outside": lambda a, b: (a.t()[:, :, None] * b.t()[:, None]).cos().sum(0),
    "several": lambda a, b: (a[:, None] - b[None]).abs().sum(-1) + (a[:, None] * b[None]).amax(-1),
    "then_more": lambda a, b: tg.exp(-squares(a, b) / 70) * 2 + 1,
    "weighted": lambda a, b: ((a[:, None] - b[None]) ** 2 * tg.arange(a.shape[1])).sum(-1),
    "nearest": lambda a, b: squares(a, b[:, :3] if a.shape[1] == 3 else b).argmin(-1),
    "batch": lambda a, b: (a.reshape(2, -1, 1, 40) * b.reshape(2, 1, -1, 40)).tanh().sum(-1),
    "two_loops": lambda a, b: (a.reshape(-1, 1, 5, 8) - b.reshape(1, -1, 5, 8)).abs().sum((-1, -2)),
    "padded": lambda a, b: squares(
        tg.nn.functional.pad(a, (1, 2)), tg.nn.functional.pad(b, (2, 1))
    ),
    "every_other": lambda a, b: squares(a[:, ::2], b[:, 1::2].flip(0)),
}


@pytest.mark.parametrize("name", CASES)
def test_kinds(always, name):
    schedules = compared(CASES[name], points(46, 40), points(70, 40), atol=1e-3)
    assert any(schedule.layout is Layout.REUSE_TILE for schedule in schedules)


@pytest.mark.parametrize("dtype", [tg.float64, tg.float16, tg.bfloat16, tg.int64, tg.bool], ids=str)
def test_types(always, dtype):
    def function(a, b):
        if dtype == tg.bool:
            return (a[:, None] ^ b[None]).sum(-1)
        return (a[:, None] - b[None]).abs().amax(-1)

    a, b = points(33, 50, dtype=dtype), points(20, 50, dtype=dtype)
    (schedule,) = compared(function, a, b, rtol=1e-2 if dtype.is_floating_point else 0)
    assert schedule.layout is Layout.REUSE_TILE


def potential(x, y):
    return tg.exp(-((x[:, None] - y[None]) ** 2)).sum(-1)


@pytest.mark.parametrize("sizes", [(1000, 700), (31, 2000), (2048, 256)], ids=str)
def test_sums_over_all_others(always, sizes):
    """One axis of results, all of which want all elements: teams share the loop."""
    x, y = points(sizes[0]), points(sizes[1])
    (schedule,) = compared(potential, x, y)
    assert schedule.layout is Layout.REUSE_TILE and schedule.reuse_tile.down is None
    assert schedule.group > 1


def test_several_results_of_a_thread_and_row():
    """Forces: three sums at once, over elements that all rows want."""

    def forces(x):
        apart = x[:, None] - x[None]
        near = tg.rsqrt((apart**2).sum(-1, keepdim=True) + 0.01)
        return (apart * near**3).sum(1)

    (schedule,) = compared(forces, points(600, 3))
    assert schedule.layout is Layout.REUSE_TILE
    assert sum(instr.op == "reduce" for instr in schedule.kernel.instructions()) == 3


def layouts(function, *inputs):
    return [info.schedule.layout for info in tg.cuda.program(function, *inputs).kernels]


def test_what_tiles_are_of_no_use_for():
    def masked(a, b, mask):
        return ((a[:, None] - b[None]).abs() * mask).sum(-1)

    assert layouts(squares, tg.ones(500, 64), tg.ones(300, 64)) == [Layout.REUSE_TILE]
    assert layouts(squares, tg.ones(5, 64), tg.ones(30, 64)) == [Layout.ROW]  # small
    assert layouts(lambda x, w: (x * w).sum(-1), tg.ones(5000, 640), tg.ones(640)) == [Layout.ROW]
    assert layouts(masked, tg.ones(99, 64), tg.ones(99, 64), tg.ones(99, 99, 64)) == [Layout.ROW]


def test_many_operands_make_tiles_smaller():
    def function(*inputs):
        half = len(inputs) // 2
        return sum((a[:, None] - b[None]).abs() for a, b in zip(inputs, inputs[half:])).sum(-1)

    inputs = [tg.zeros(2000, 64, dtype=tg.float64) for _ in range(10)]
    (info,) = tg.cuda.program(function, *inputs).kernels
    assert info.schedule.layout is Layout.REUSE_TILE and info.schedule.reuse_tile.tile == (32, 32)


def test_few_results_of_long_loops_have_rows():
    """Tiles that are small, so that all of a GPU has work, would not be worth it."""
    x = tg.ones(90, 640, dtype=tg.float64)
    assert layouts(squares, x, x) == [Layout.ROW]


def test_long_loops_end():
    """The last step of a loop in pieces lies behind its end."""
    program = tg.cuda.program(
        lambda s, a, b: (s[:, None, None] * a[:, None] * b).amax((1, 2)),
        *(tg.ones(70_000), tg.ones(40_009), tg.ones(53_675)),
    )
    assert "for (long long start = 0; start < 2147483075;" in program.source


def test_tiles_are_large_where_there_is_much_to_do():
    program = tg.cuda.program(squares, tg.ones(4096, 64), tg.ones(4096, 64))
    (info,) = program.kernels
    tile = info.schedule.reuse_tile
    assert (tile.tile, tile.held, tile.members) == ((64, 64), (4, 4), 1)
    assert info.schedule.grid == 64 * 64
    assert "reuse tile: 64 x 64 results per block" in info.schedule.summary()


def test_every_lane_and_team_fits_a_block():
    """Over many shapes: at most 1024 threads, shared memory for every GPU, all results covered."""
    random = np.random.default_rng(0)
    for _ in range(300):
        rows, columns, length = (int(2**each) + 1 for each in random.uniform(0, 13, 3))
        program = cuda_program(_squares_graph(rows, columns, length))
        for info in program.kernels:
            tile = info.schedule.reuse_tile
            if tile is None:
                continue
            assert tile.threads == np.prod(info.schedule.block) <= 1024
            covered = [tile * count for tile, count in zip(tile.tile, tile.tiles)]
            assert np.prod(covered) >= tile.results
            nbytes = tile.element_bytes(info.schedule.kernel) * tile.depth
            assert nbytes + info.schedule.joined <= 48 << 10


def _squares_graph(rows, columns, length):
    from kernel_cases import Make

    make = Make()
    a, b = make.input(rows, 1, length), make.input(1, columns, length)
    apart = make.sub(a, b)
    return make.graph(make.sum(make.mul(apart, apart), axes=(2,), keepdims=False))


# -- random reductions over products of axes -----------------------------------------------------

COMBINE = (tg.add, tg.mul, tg.sub, tg.maximum, lambda x, y: (x - y).abs(), lambda x, y: x * y.cos())
REDUCE = (tg.sum, tg.amax, tg.amin, tg.mean, lambda x, dim: tg.exp(x / 9).sum(dim))


def random_reduction(random):
    """A function of operands that lie along some of a few axes, folded along some of them."""
    sizes = random.integers(2, 40, random.integers(2, 5)).tolist()
    while np.prod(sizes) > 60_000:
        sizes[int(np.argmax(sizes))] //= 2
    shapes = [
        [n if random.random() < 0.6 else 1 for n in sizes] for _ in range(random.integers(2, 4))
    ]
    combine = [COMBINE[random.integers(len(COMBINE))] for _ in shapes]
    fold = REDUCE[random.integers(len(REDUCE))]
    dims = tuple(np.flatnonzero(random.random(len(sizes)) < 0.5).tolist()) or (0,)

    def function(*inputs):
        total = tg.ones(*sizes)
        for f, each in zip(combine, inputs):
            total = f(total, each)
        return fold(total, dims)

    return function, [points(*shape) for shape in shapes]


@pytest.mark.slow
def test_random_reductions(always, monkeypatch):
    random = np.random.default_rng(5)
    tiled = 0
    for number in range(120):
        monkeypatch.setattr(reuse_tile_schedule, "BUSY", 1 << int(random.integers(8, 17)))
        function, inputs = random_reduction(random)
        program = tg.cuda.program(function, *inputs)
        if all(info.schedule.layout is not Layout.REUSE_TILE for info in program.kernels):
            continue
        tiled += 1
        arrays = [each.numpy() for each in inputs]
        (found,) = run_program(program, arrays, "shuffled", seed=number)
        want = function(*inputs).numpy()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3 * np.abs(want).max())
    assert tiled > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", [59, 86, 192, 253, 479, 574])
def test_random_graphs_that_have_pairs(always, monkeypatch, seed):
    def engine(case):
        program = cuda_program(case.graph)
        kernels = [info for info in program.kernels if info.kernel]
        assert any(info.schedule.layout is Layout.REUSE_TILE for info in kernels)
        return run_program(program, case.arrays, "shuffled", seed=seed)

    monkeypatch.setitem(check.RUN, "cuda", engine)
    check.check(case_of(program_of_seed(seed)), ["cuda"])
