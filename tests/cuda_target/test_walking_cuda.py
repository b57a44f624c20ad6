"""Sums of columns that kernels of rows keep: blocks walk over rows, and then store the sums."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import interpret_program, run_program
from tgraph.compiler.passes import split_reductions

import tgraph as tg
from tgraph.nn import functional as F

pytest_plugins = ["cuda_tools.device"]
pytestmark = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch):
    """Two blocks keep a GPU busy, and its caches hold nothing."""
    monkeypatch.setattr(split_reductions, "GPU_WALKING_BLOCKS", 2)
    monkeypatch.setattr(split_reductions, "GPU_WALKED_BYTES", 0)


def layer_norm(x, upstream, weight, bias):
    def normalized(*given):
        return F.layer_norm(given[0], x.shape[-1:], *given[1:])

    value, pullback = tg.vjp(normalized, x, weight, bias)
    return value, *pullback(upstream)


def behind_a_bias(x, upstream, weight, bias):
    """A bias that is added before the norm gets the sum of what the kernel of rows computes."""
    return tg.vjp(lambda bias: F.rms_norm(x + bias, x.shape[-1:], weight), bias)[1](upstream)


def softmax(x, upstream, weight, bias):
    return tg.vjp(lambda bias: tg.softmax(x * weight + bias, -1), bias)[1](upstream)


def plain(x, upstream, weight, bias):
    return x.sum(-1), x.amax(-1), x.sum(tuple(range(x.ndim - 1)))


def check(function, shape, dtype=tg.float32):
    """The program, whose results are those of the function in float64."""
    random = np.random.default_rng(len(shape))
    given = [
        tg.tensor(random.standard_normal(each).astype(np.float32)).to(dtype)
        for each in (shape, shape, shape[-1:], shape[-1:])
    ]
    program = tg.cuda.program(function, *given)
    expected = [each.numpy() for each in function(*(each.double() for each in given))]
    arrays = [each.numpy() for each in given]
    runs = [run_program(program, arrays, order, seed=1) for order in ("forward", "shuffled")]
    for found in (*runs, interpret_program(program, arrays)):
        for have, want in zip(found, expected, strict=True):
            tolerance = 2e-5 if dtype is tg.float32 else 2e-2
            np.testing.assert_allclose(
                have.astype(np.float64), want, rtol=tolerance, atol=tolerance * abs(want).max()
            )
    np.testing.assert_equal(*runs)
    return program


def walked(program):
    return max(getattr(info.schedule, "walked", 1) for info in program.kernels)


@pytest.mark.parametrize("function", [layer_norm, behind_a_bias, softmax, plain])
def test_one_kernel_of_rows_keeps_sums_of_columns(function):
    assert walked(check(function, (64, 512))) == 32


@pytest.mark.parametrize(
    ("shape", "rows"), [((4, 16, 512), 32), ((3, 22, 600), 22), ((40, 1028), 20)]
)
def test_batches_and_odd_sizes(shape, rows):
    assert walked(check(layer_norm, shape)) == rows


@pytest.mark.parametrize("columns", [1024, 1000])
def test_half_types(columns):
    assert walked(check(layer_norm, (64, columns), tg.bfloat16)) == 32


def test_as_many_sums_as_threads_keep():
    def function(x, *others):
        return x.sum(-1), *[(x * number).exp().sum(0) for number in (0.1, 0.2, 0.3)]

    program = check(function, (64, 4000))
    assert walked(program) == 32
    assert sorted(len(info.schedule.kernel.sums_of_rows) for info in program.kernels)[-1] == 2


@pytest.mark.parametrize("shape", [(37, 512), (64, 480), (64, 4100), (14, 512)])
def test_those_that_no_block_walks_over(shape):
    """A prime number of rows, columns too short or too long, too few rows."""
    assert walked(check(layer_norm, shape)) == 1


def test_gradients_in_eager_mode(cuda):
    """Whose kernels are compiled for other numbers of rows, too."""
    random = np.random.default_rng(0)
    for rows in (64, 96, 60, 64):
        x, upstream = (random.standard_normal((rows, 512)).astype(np.float32) for _ in range(2))
        found = []
        for device in ("cpu", "cuda"):
            given = [tg.tensor(x), tg.ones(512), tg.zeros(512)]
            given = [each.to(device).requires_grad_() for each in given]
            value = F.layer_norm(given[0], (512,), *given[1:])
            value.backward(tg.tensor(upstream).to(device))
            found.append([each.grad.cpu().numpy() for each in given])
        for have, want in zip(*found, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-4)


def test_sums_without_reductions_of_rows_stay_as_they_are():
    assert walked(check(lambda x, *others: [x.sum(0), x.exp()], (64, 512))) == 1
