"""Positions of extremes as two reductions: which, into what, and that ties and NaN keep theirs."""

import numpy as np
import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.passes.decompose_positions import decompose_positions
from tgraph.runtime.dtypes import float16, float32, float64, int32

import tgraph as tg


def position(name, shape, axis, dtype=float64, keepdims=False):
    make = Maker()
    x = make.input(*shape, dtype=dtype)
    return make.graph(getattr(make, name)(x, axes=(axis,), keepdims=keepdims))


def test_the_text():
    after = assert_pass_keeps_values(decompose_positions, position("argmax", (3, 100), 1))
    assert body(after) == (
        "%0 = max(%x; axes=(1,), keepdims=True) | %1 = eq(%x, %0) | %2 = isnan(%x) | "
        "%3 = logical_or(%1, %2) | %4 = iota(dtype=int32, size=100) | "
        "%5 = full(dtype=int32, shape=(), value=99) | %6 = where(%3, %4, %5) | "
        "%7 = min(%6; axes=(1,), keepdims=False) | %8 = cast(%7; dtype=int64) | return %8"
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [float16, float32, float64, int32])
@pytest.mark.parametrize("shape, axis", [((70,), 0), ((4, 5), 1), ((2, 130, 3), 1), ((3, 1), 1)])
def test_numbers(name, shape, axis, dtype):
    for keepdims in (False, True):
        before = position(name, shape, axis, dtype, keepdims)
        after = assert_pass_keeps_values(decompose_positions, before)
        assert name not in str(after)


@pytest.mark.parametrize("shape, axis", [((100, 8), 0), ((0, 100), 1)])
def test_columns_and_nothing_stay(shape, axis):
    before = position("argmax", shape, axis)
    assert decompose_positions(before) is before


@pytest.mark.parametrize("length", [15, 64, 100, 1024, 40_000])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equals_and_of_nan(name, length):
    generator = np.random.default_rng(length)
    rows = generator.integers(-2, 3, (6, length)).astype(np.float32)
    rows[1, ::7] = -0.0
    rows[2] = np.inf
    rows[3] = -np.inf
    rows[4, length // 2 :: 5] = np.nan
    rows[5] = np.nan
    found = tg.compile(getattr(tg, name))(tg.tensor(rows), 1)
    assert np.array_equal(found.numpy(), getattr(np, name)(rows, axis=1))


def test_interpreted_and_eager_agree_on_a_computed_operand():
    x = tg.randn(5, 300, dtype=tg.float16)
    f = lambda x: tg.argmax(tg.exp(x) * 3, 1)  # noqa: E731
    assert np.array_equal(tg.compile(f)(x).numpy(), f(x).numpy())
    graph = position("argmin", (2, 99), 1)
    values = np.arange(198.0).reshape(2, 99)[:, ::-1]
    assert np.array_equal(interpret(decompose_positions(graph), [values])[0], [98, 98])
