"""Rows of every length around whole vectors: masked lanes must not count, nor be written."""

from __future__ import annotations

import numpy as np
import pytest
from random_graphs.engines import as_if_large

import tgraph as tg

LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 127, 240, 255, 257, 1000, 1037)
ROWS = 5
TOLERANCE = {tg.float32: 2e-5, tg.float64: 1e-12, tg.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def large_kernels():
    """Kernels of little work are not vectorised otherwise."""
    with as_if_large():
        yield


def rows(length: int, dtype: tg.dtype) -> tg.Tensor:
    values = np.random.default_rng(length).normal(size=(ROWS, length)) * 3
    return tg.tensor(values.astype(np.float32)).to(dtype)


def along_rows(x):
    return tg.softmax(x, -1), tg.exp(x).sum(-1), x.max(-1).values, x.argmin(-1), (x > 0).all(-1)


def along_columns(x):
    transposed = x.t() * 2
    return (
        transposed.sum(0),
        tg.softmax(transposed, 0),
        (x * x).sum(0),
        x.max(0).values,
        tg.tanh(transposed),
    )


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", [along_rows, along_columns], ids=lambda f: f.__name__)
def test_rows_of_every_length(function, length, dtype):
    x = rows(length, dtype)
    tolerance = TOLERANCE[dtype]
    for compiled, eager in zip(tg.compile(function)(x), function(x), strict=True):
        np.testing.assert_allclose(
            compiled.double().numpy(), eager.double().numpy(), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
def test_rows_of_open_length(dtype):
    """One plan for all lengths, whose rows are written between others that stay."""

    def fill(whole, x):
        whole[1:-1] = tg.softmax(x, -1)
        return (x.mean(-1),)

    compiled = tg.compile(fill, dynamic={"whole": {1: "n"}, "x": {1: "n"}})
    for length in (*range(1, 21), 33, 48, *range(63, 70), 72, 76, 96, 257, 1000, 1037):
        x = rows(length, dtype)
        x[1, length // 2], x[2] = float("nan"), float("-inf")
        expected, found = (tg.full((ROWS + 2, length), 7.0, dtype=dtype) for _ in range(2))
        for have, want in zip(
            (*compiled(found, x), found), (*fill(expected, x), expected), strict=True
        ):
            np.testing.assert_allclose(
                have.double().numpy(),
                want.double().numpy(),
                rtol=TOLERANCE[dtype],
                atol=TOLERANCE[dtype],
            )
    assert len(compiled.compiles) == 1


@pytest.mark.parametrize("length", LENGTHS)
def test_nothing_is_written_behind_a_row(length):
    """Donated rows between others that stay: a masked store must keep to its own."""
    whole = tg.zeros(3, length)

    @tg.compile
    def fill(values):
        whole[1] = tg.exp(values)

    values = tg.linspace(-1, 1, length)
    fill(values)
    np.testing.assert_allclose(whole[1].numpy(), np.exp(values.numpy()), rtol=1e-6)
    assert not whole[0].any() and not whole[2].any()


@pytest.mark.parametrize("extreme", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.float16])
def test_extremes_of_rows_with_nan_anywhere(extreme, dtype):
    compiled = tg.compile(lambda x: getattr(x, extreme)(-1))
    for length in (3, 8, 10, 16, 37, 130):
        rows = np.random.default_rng(length).standard_normal((2 * length + 2, length))
        rows[:length][np.eye(length, dtype=bool)] = np.nan
        rows[length : length + 2] = [[np.inf], [-np.inf]]
        x = tg.tensor(rows).to(dtype)
        want = getattr(np, extreme)(x.numpy(), axis=-1)
        np.testing.assert_array_equal(compiled(x).numpy(), want)
