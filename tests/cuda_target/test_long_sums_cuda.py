"""Long sums in CUDA C: a thread's additions go in short blocks, whose rounding is kept."""

import math

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program
from tgraph.compiler.passes import split_reductions
from tgraph.compiler.targets.cuda import reuse_tile_schedule
from tgraph.compiler.targets.cuda.schedule import Layout

import tgraph as tg

pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
LARGE = 2.0**24  # to which adding 1 changes nothing


@pytest.fixture
def whole(monkeypatch):
    """Sums are not cut into pieces: a thread has much to add."""
    monkeypatch.setattr(split_reductions, "GPU_MIN_ELEMENTS", 1 << 60)


def layouts(program):
    return {info.schedule.layout for info in program.kernels}


def check(function, *arrays, like=1.0):
    """The program, whose result lies near that of the same function in float64."""
    given = [tg.tensor(each) for each in arrays]
    exact = function(*(each.double() for each in given)).numpy()
    program = tg.cuda.program(function, *given)
    for order in ("forward", "shuffled"):
        (found,) = run_program(program, arrays, order, seed=1)
        np.testing.assert_allclose(found, exact, rtol=40 * 2.0**-24 * like)
    return program


def with_large_start(count, length):
    """Every thread meets a large number first, and then only ones."""
    x = np.ones((count, length), np.float32)
    x[:, : length // 100] = LARGE
    return x


def test_rows(whole):
    program = check(lambda x: x.sum(1), with_large_start(2, 409_600))
    assert layouts(program) == {Layout.ROW}


def test_ragged_rows(whole):
    check(lambda x: x.sum(1), with_large_start(2, 409_701))


def test_columns(whole):
    program = check(lambda x: x.sum(0), np.ascontiguousarray(with_large_start(40, 6_400).T))
    assert layouts(program) == {Layout.COLUMN}


@pytest.fixture
def tiles(whole, monkeypatch):
    """Tiles wherever they can be made, however small."""
    monkeypatch.setattr(reuse_tile_schedule, "MIN_STEPS", 0)
    monkeypatch.setattr(reuse_tile_schedule, "MIN_REUSE", 0)


def test_pairs(tiles):
    x, y = with_large_start(20, 3_333), np.ones((20, 3_333), np.float32)
    program = check(lambda x, y: (x[:, None] * y[None]).sum(-1), x, y)
    assert layouts(program) == {Layout.REUSE_TILE}


@pytest.mark.parametrize("length", [6_400, 7_001])
def test_pairs_along_one_axis(tiles, length):
    """A piece of the loop is longer than a block of a sum."""
    (y,) = with_large_start(1, length)
    program = check(lambda x, y: (x[:, None] * y[None]).sum(-1), np.ones(50, np.float32), y)
    assert layouts(program) == {Layout.REUSE_TILE}


def test_a_layer_norm_of_rows_that_are_kept(whole):
    x = np.random.default_rng(0).standard_normal((3, 20_000)).astype(np.float32) + 1000
    program = tg.cuda.program(lambda x: tg.nn.functional.layer_norm(x, (20_000,)), tg.tensor(x))
    (found,) = run_program(program, [x])
    exact = (x - x.mean(1, keepdims=True, dtype=np.float64)) / x.std(1, dtype=np.float64)[:, None]
    np.testing.assert_allclose(found, exact, atol=3e-4)


def test_a_variance_around_a_large_mean():
    x = np.random.default_rng(0).standard_normal((70_000, 2)).astype(np.float32) + 1000
    check(lambda x: x.var(0), x)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_infinities_and_nan(whole, special):
    x = np.ones((2, 100_000), np.float32)
    x[0, 77_777] = special
    (found,) = run_program(tg.cuda.program(lambda x: x.sum(1), tg.tensor(x)), [x])
    np.testing.assert_array_equal(found, [special, 100_000])


def test_pieces_of_half_types_stay_float32():
    x = np.where(np.arange(1 << 17) < 1 << 16, 100.0, -100.0).astype(np.float16)
    x[::7] += np.float16(0.0625)
    program = tg.cuda.program(lambda x: x.sum(), tg.tensor(x))
    (found,) = run_program(program, [x])
    assert found == np.float16(x.sum(dtype=np.float64))
