"""Loops with positions that are data are vectorised; a position outside is still reported."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tgraph as tg
import tgraph.nn.functional as F

ROWS, COLUMNS = 70, 333


def given(seed=0):
    generator = np.random.default_rng(seed)
    x = tg.tensor(generator.standard_normal((ROWS, COLUMNS)).astype(np.float32))
    return x, generator.integers(0, ROWS, (ROWS, COLUMNS))


FUNCTIONS = {
    "elements": lambda x, at: x.gather(0, at),
    "along rows": lambda x, at: x.gather(1, at) * 2,
    "sums": lambda x, at: x.gather(0, at).sum(1),
    "extremes": lambda x, at: x.gather(0, at).amax(1),
    "sums of columns": lambda x, at: x.gather(0, at).exp().sum(0),
    "flat": lambda x, at: x.reshape(-1)[at.reshape(-1)],
    "beside an edge": lambda x, at: F.pad(x.gather(0, at), (3, 40, 2, 2)),
    "strided": lambda x, at: x.gather(0, at)[:, ::3] + 1,
    "a chain": lambda x, at: x[at[:, 0]].gather(0, at.gather(0, at)),
    "a running sum": lambda x, at: x.gather(0, at).sigmoid().cumsum(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_errors(name):
    function = FUNCTIONS[name]
    x, positions = given()
    compiled = tg.compile(function)
    expected = function(x, tg.tensor(positions))
    np.testing.assert_allclose(
        compiled(x, tg.tensor(positions)).numpy(), expected.numpy(), rtol=2e-5, atol=2e-5
    )
    generator = np.random.default_rng(1)
    for wrong in (1 << 40, -(1 << 33), ROWS * COLUMNS + 1):
        row, column = generator.integers(ROWS), generator.integers(COLUMNS) // 3 * 3
        broken = positions.copy()
        broken[row, column] = wrong
        at = tg.tensor(broken)
        try:
            function(x, at)
        except IndexError:  # not in all of them does the result depend on this position
            with pytest.raises(IndexError, match=f"index {re.escape(str(wrong))} is out of bounds"):
                compiled(x, at)
    # What failed leaves nothing behind.
    again = compiled(x, tg.tensor(positions))
    np.testing.assert_allclose(again.numpy(), expected.numpy(), rtol=2e-5, atol=2e-5)


def test_such_loops_have_vectors():
    x, positions = given()
    at = tg.tensor(positions)
    for name in ("elements", "extremes", "flat"):
        text = str(tg.compile(FUNCTIONS[name]).explain(x, at))
        assert "not vectorised" not in text, f"{name}: {text}"


def test_the_least_and_the_greatest_position_are_inside():
    x = tg.arange(50_000.0)
    at = tg.tensor(np.where(np.arange(50_000) % 2, 0, 49_999))
    found = tg.compile(lambda x, at: x[at])(x, at)
    assert np.array_equal(found.numpy(), x.numpy()[at.numpy()])
    for outside in (50_000, -50_001):
        broken = at.clone()
        broken[31] = outside
        with pytest.raises(IndexError, match=f"index {outside} is out of bounds"):
            tg.compile(lambda x, at: x[at])(x, broken)
