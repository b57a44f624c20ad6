"""Sums of many floats: the error is that of a few roundings, however many there are.

The bound is that of NumPy's pairwise sum: 128 elements in 8 accumulators, then by halves.
"""

import math

import numpy as np
import pytest

import tgraph as tg

RUNS = {"eager": lambda f: f, "compiled": tg.compile}
EPS = 2.0**-24


def uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def bound(count):
    return (19 + max(0.0, math.log2(max(count, 1) / 128))) * EPS


@pytest.fixture(params=RUNS)
def run(request):
    return RUNS[request.param]


def check(run, x, axes, make=lambda x: x):
    """The sum of positive numbers `make(x)` over `axes`."""
    exact = make(x.astype(np.float64)).sum(axes)
    found = run(lambda x: make(x).sum(axes))(tg.tensor(x)).double().numpy()
    count = math.prod(make(x).shape[axis] for axis in axes)
    assert np.max(np.abs(found - exact) / exact) <= bound(count)


@pytest.mark.parametrize("length", [1_000, 30_000, 32_771, 20_000_000])
def test_ones(run, length):
    """From 2**24 on, adding 1 to a float32 changes nothing."""
    assert run(lambda x: x.sum())(tg.ones(length)).item() == length
    assert run(lambda x: x.mean())(tg.ones(length)).item() == 1


@pytest.mark.parametrize("shape, axes", [
    ((3_000_000,), (0,)), ((7, 100_000), (1,)), ((100_000, 7), (0,)), ((30_000, 100), (0,)),
    ((200, 3, 500), (0, 2)), ((9_000, 5, 7), (0, 2)), ((40_000, 33), (0,)), ((70_000, 1), (0,)),
    ((2, 9_000, 40), (1,)), ((5_000, 3), (0, 1)),
])  # fmt: skip
def test_shapes(run, shape, axes):
    check(run, uniform(*shape), axes)


def test_a_strided_operand(run):
    whole = tg.tensor(uniform(300, 9_000))
    for x, axis in ((whole.t(), 0), (whole[:, ::7], 1), (whole[::2], 0)):
        exact = x.double().numpy().sum(axis)
        found = run(lambda x, axis=axis: x.sum(axis))(x).double().numpy()
        assert np.max(np.abs(found - exact) / exact) <= bound(x.shape[axis])


def test_a_product_of_all_pairs():
    """Ten thousand million terms, which no memory holds."""
    found = tg.compile(lambda x: (x[:, None] * x[None]).sum())(tg.ones(30_000))
    assert found.item() == 9e8


def test_several_sums_of_a_row():
    """Sums beside each other, of which one is masked and cannot be vectorised."""

    def function(x):
        return x.sum(1), (x * x).sum(1), tg.where(x > 0.5, x, 0.0).sum(1)

    x = uniform(6, 70_001)
    wide = tg.tensor(x).double()
    for found, exact in zip(tg.compile(function)(tg.tensor(x)), function(wide)):
        error = (found.double() - exact).abs() / exact
        assert error.max().item() <= bound(70_001)


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 5_000, 29_999])
def test_infinities_and_nan(run, special, place):
    x = uniform(30_000)
    x[place] = special
    for shape in ((30_000,), (30_000, 1), (1, 30_000)):
        found = run(lambda x: x.sum())(tg.tensor(x.reshape(shape))).item()
        assert found == special or (math.isnan(found) and math.isnan(special))


def test_what_overflows_is_infinite(run):
    assert run(lambda x: x.sum())(tg.full((30_000,), 3e38)).item() == math.inf


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("shape, axis", [((4, 100_000), 1), ((100_000, 4), 0), ((60, 1_500), 1),
                                         ((1_500, 60), 0), ((40, 100), 1)])  # fmt: skip
def test_variance_around_a_large_mean(run, mean, shape, axis):
    x = (np.random.default_rng(1).standard_normal(shape) + mean).astype(np.float32)
    exact = x.var(axis, dtype=np.float64, ddof=1)
    given = tg.tensor(x)
    variance = run(lambda x: x.var(axis))(given).double().numpy()
    deviation = run(lambda x: x.std(axis))(given).double().numpy()
    np.testing.assert_allclose(variance, exact, rtol=2e-6)
    np.testing.assert_allclose(deviation, np.sqrt(exact), rtol=1e-6)


def test_the_variance_of_equal_numbers_is_not_negative(run):
    x = tg.full((3, 1_001), 0.1)
    assert run(lambda x: x.std(1))(x).abs().max().item() <= 1e-8


def test_the_gradient_of_a_variance(run):
    x = (np.random.default_rng(1).standard_normal((3, 50)) + 100).astype(np.float64)
    given = tg.tensor(x).requires_grad_()
    run(lambda x: x.var(1).sum())(given).backward()
    exact = 2 / 49 * (x - x.mean(1, keepdims=True))
    np.testing.assert_allclose(given.grad.numpy(), exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape, axis", [((8, 20_000), 1), ((20_000, 8), 0)])
def test_normalised_rows_and_columns_with_a_large_mean(run, shape, axis):
    x = (np.random.default_rng(1).standard_normal(shape) + 3e3).astype(np.float32)
    rows = tg.tensor(x).t() if axis == 0 else tg.tensor(x)

    def function(x):
        return tg.nn.functional.layer_norm(x, x.shape[1:])

    exact = function(rows.double()).numpy()
    found = run(function)(rows).double().numpy()
    # The mean itself is rounded: floats near 3e3 are 2.4e-4 apart.
    np.testing.assert_allclose(found, exact, atol=1e-3)


def test_what_large_numbers_hide_for_a_while_is_kept():
    """Blocks of a sum are added without error: what large ones round away comes back."""
    parts = [0.1, 2.0**20, -(2.0**20)]
    x = np.concatenate([np.full(1 << 13, part, np.float32) for part in parts])
    found = tg.compile(lambda x: x.sum())(tg.tensor(x)).item()
    assert found == pytest.approx(float(np.float32(0.1)) * 2**13, rel=1e-5)
