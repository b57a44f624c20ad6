"""Running sums: values, errors and gradients, and which kernels compute them."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.runtime import parallel

import tgraph as tg
import tgraph.nn.functional as F

DTYPES = (tg.float16, tg.bfloat16, tg.float32, tg.float64, tg.int32, tg.int64)
# Rows, columns, few rows of which each is cut, with a rest too, and sizes of which nothing is left.
SHAPES = [
    ((7, 33), 1), ((33, 300), 0), ((3, 50, 5), 1), ((5, 1), 1), ((0, 4), 1), ((4, 0), 1), ((1,), 0),
    ((3, 70_000), 1), ((70_003,), 0), ((65_536,), 0), ((40_000, 3), 0), ((2, 33_333, 2), 1),
    ((2, 9, 300), 1),
]  # fmt: skip


def numbers(shape, dtype, seed=0):
    generator = np.random.default_rng(seed)
    if not dtype.is_floating_point:
        return tg.tensor(generator.integers(-1000, 1000, shape)).to(dtype)
    return tg.tensor(generator.standard_normal(shape)).to(dtype)


def exactly(x, axis):
    """The sums without any rounding worth mentioning, and what an element may be off by."""
    array = x.to(tg.float64).numpy().astype(np.longdouble)
    sums = np.cumsum(array, axis)
    eps = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}.get(x.dtype.name, 0)
    # float64 is added up in float64: rounding takes a share of every partial sum.
    lost = np.cumsum(np.cumsum(np.abs(array), axis), axis) if x.dtype is tg.float64 else 0
    return sums, 1.01 * eps * np.abs(sums) + 2.0**-52 * lost + 2.0**-24 * (eps > 2**-12)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: each.name)
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_values(shape, axis, dtype):
    x = numbers(shape, dtype)
    eager, compiled = tg.cumsum(x, axis), tg.compile(lambda x: tg.cumsum(x, axis))(x)
    assert eager.dtype is compiled.dtype is (dtype if dtype.is_floating_point else tg.int64)
    if not dtype.is_floating_point:
        assert np.array_equal(eager.numpy(), compiled.numpy())
        assert np.array_equal(eager.numpy(), np.cumsum(x.numpy(), axis, np.int64))
        return
    sums, error = exactly(x, axis)
    for found in (eager, compiled):
        assert np.all(np.abs(found.to(tg.float64).numpy() - sums) <= error)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.int64], ids=lambda each: each.name)
def test_uncut_rows_have_the_bits_of_eager_code(dtype):
    x = numbers((40, 999), dtype)
    for axis in (0, 1):
        found = tg.compile(lambda x, axis=axis: tg.cumsum(x, axis))(x)
        assert found.numpy().tobytes() == tg.cumsum(x, axis).numpy().tobytes()


@pytest.mark.parametrize("length", [9, 70_000])
def test_nan_and_infinities_stay_where_they_belong(length):
    array = np.ones(length, np.float32)
    array[2], array[length // 2], array[-2] = -0.0, np.inf, -np.inf
    for reverse in (False, True):
        x = tg.tensor(array[::-1].copy() if reverse else array)
        f = lambda x: tg.cumsum(x, 0)  # noqa: E731
        with np.errstate(invalid="ignore"):
            expected = np.cumsum(x.numpy(), dtype=np.float64).astype(np.float32)
        for found in (f(x), tg.compile(f)(x)):
            np.testing.assert_array_equal(found.numpy(), expected)


def test_a_sum_begins_with_positive_zero():
    x = tg.tensor([-0.0, -0.0, 1.0])
    for found in (tg.cumsum(x, 0), tg.compile(lambda x: tg.cumsum(x, 0))(x)):
        assert not np.signbit(found.numpy()).any()


@pytest.mark.parametrize(("shape", "axis"), [((6, 40), 1), ((40, 12), 0), ((2, 40_000), 1)])
def test_gradients(shape, axis):
    x, weights = numbers(shape, tg.float64), numbers(shape, tg.float64, 1)
    gradient = tg.grad(lambda x: (tg.cumsum(x, axis) * weights).sum())
    backwards = np.flip(np.cumsum(np.flip(weights.numpy(), axis), axis), axis)
    for found in (gradient(x), tg.compile(gradient)(x)):
        np.testing.assert_allclose(found.numpy(), backwards, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(130_000,), (2, 70_001), (600, 40)])
def test_the_number_of_threads_changes_nothing(shape):
    x = numbers(shape, tg.float32)
    before, results = parallel.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 7):
            tg.set_num_threads(threads)
            results.append(tg.compile(lambda x: tg.cumsum(x, 0))(x).numpy().tobytes())
    finally:
        tg.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tg.cumsum(x * 2 + 1, 1) * x - 3,
        lambda x: tg.cumsum(tg.softmax(x, 1), 1) < 0.9,
        lambda x: tg.cumsum(tg.cumsum(x, 1), 1),
        lambda x: (tg.cumsum(x, 1) * x).sum(1),
    ],
)
def test_one_kernel_computes_what_goes_with_a_scan(function):
    x = numbers((50, 300), tg.float32)
    compiled = tg.compile(function)
    np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-4, atol=1e-4)
    assert len(compiled.explain(x).kernels) == 1


def among_costly_functions(x, y):
    """Scans in loops of their own, and what passes from one loop to the next."""
    running = y.sigmoid().cumsum(-1)
    chosen = x.exp() > y.exp()
    yield running.sigmoid(), x.exp() * running, x.exp()
    yield (x.sigmoid().cumsum(-1) * y.exp()).sum(-1)
    yield x.cumsum(-1).amax(-1), (x * y).cumsum(-1).amin(-1)
    yield tg.where(chosen, chosen.to(tg.float32).cumsum(-1).sigmoid(), y.exp())
    yield (x.exp().cumsum(-1) + running).tanh()
    yield x.exp().cumsum(-1).sigmoid().cumsum(-1)
    yield F.pad(x.exp(), (3, 5)).cumsum(-1).sigmoid()
    yield tg.cat([x.exp(), y.sigmoid()], -1).cumsum(-1).sqrt()
    yield x.exp().flip(-1).cumsum(-1).flip(-1).sqrt()
    places = (x.abs() * 3).to(tg.int64) % x.shape[-1]
    yield tg.softmax(y, -1).gather(-1, places).cumsum(-1).exp()


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64, tg.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(2000, 16), (300, 17), (40, 512), (33, 513), (3, 5, 1600)])
def test_costly_functions_around_a_scan(shape, dtype):
    x, y = numbers(shape, dtype, 1), numbers(shape, dtype, 2)
    tolerance = {"float64": 1e-6, "float32": 2e-5, "bfloat16": 4e-2}[dtype.name]
    compiled = tg.compile(lambda x, y: list(among_costly_functions(x, y)))(x, y)
    for found, expected in zip(compiled, among_costly_functions(x, y), strict=True):
        pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
        for have, want in pairs:
            have, want = have.to(tg.float64).numpy(), want.to(tg.float64).numpy()
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tg.cumsum(x, 1).flip(1),
        lambda x: tg.cumsum(x.T * 2, 0),
        lambda x: tg.softmax(tg.cumsum(x, 1), 1),
        lambda x: tg.cumsum(tg.cumsum(x, 1), 0),
        lambda x: tg.cumsum(x, 1) + tg.cumsum(x, 0),
        lambda x: tg.cumsum(x, 1)[:, :-1] - tg.cumsum(x, 1)[:, 1:],
    ],
)
def test_what_is_read_elsewhere(function):
    x = numbers((60, 60), tg.float64)
    np.testing.assert_allclose(tg.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-9)


@pytest.mark.parametrize("rows", [8, 9, 11, 301])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.cumsum(-1),
        lambda x: x.flip(-1).cumsum(-1).flip(-1) * 2,
        lambda x: (x * 9).to(tg.int32).cumsum(-1),
        lambda x: (x.cumsum(-1), (x * x).cumsum(-1)),
        lambda x: x.to(tg.float16).cumsum(-1),
    ],
)
def test_rows_side_by_side(function, rows):
    """Each row is the same sum whatever rows are walked beside it, and on every thread."""
    x = numbers((rows, 3001), tg.float32)
    before = tg.get_num_threads()
    expected = function(x)
    for threads in (1, 3):
        tg.set_num_threads(threads)
        try:
            found = tg.compile(function)(x)
        finally:
            tg.set_num_threads(before)
        pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
        for have, want in pairs:
            assert have.numpy().tobytes() == want.numpy().tobytes()


def test_rows_side_by_side_are_told():
    x = numbers((300, 500), tg.float32)
    (kernel,) = tg.compile(lambda x: x.cumsum(1)).explain(x).kernels
    assert "4 rows side by side" in kernel.schedule
    (kernel,) = tg.compile(lambda x: x.cumsum(1)).explain(x[:7].clone()).kernels
    assert "side by side" not in kernel.schedule


# --- other scans ---

SCANS = {
    "cumprod": (lambda x, axis: tg.cumprod(x, axis), np.cumprod),
    "cummax": (lambda x, axis: tg.cummax(x, axis).values, np.maximum.accumulate),
    "cummin": (lambda x, axis: tg.cummin(x, axis).values, np.minimum.accumulate),
    "logcumsumexp": (lambda x, axis: tg.logcumsumexp(x, axis), np.logaddexp.accumulate),
}


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_other_scans(name, shape, axis):
    """Eager and compiled, in one piece and in several, beside NumPy in float64."""
    function, reference = SCANS[name]
    x = numbers(shape, tg.float64)
    if name == "cumprod":
        x = 1 + x / 1000
    expected = reference(x.numpy(), axis)
    for found in (function(x, axis), tg.compile(function)(x, axis)):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("length", [40, 70_000])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp"])
def test_gradients_of_other_scans(name, length):
    """One sum of each: what each element changes in all behind it, told by differences."""
    function, _ = SCANS[name]
    x = numbers((length,), tg.float64)
    x = 1 + x / 1000 if name == "cumprod" else x
    weights, step = numbers((length,), tg.float64, 1), numbers((length,), tg.float64, 2)
    loss = lambda x: (function(x, 0) * weights).sum()  # noqa: E731
    tiny = 1e-6
    expected = float(loss(x + tiny * step) - loss(x - tiny * step)) / (2 * tiny)
    gradient = tg.grad(loss)
    for found in (gradient(x), tg.compile(gradient)(x)):
        assert float((found * step).sum()) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_extremes_so_far_and_their_places():
    nan, inf = np.nan, np.inf
    x = tg.tensor([[2.0, 2.0, 1.0, nan, 7.0, nan], [-inf, -0.0, 0.0, inf, inf, 1.0]])
    for function in (lambda x: tg.cummax(x, 1), tg.compile(lambda x: tg.cummax(x, 1))):
        values, indices = function(x)
        np.testing.assert_array_equal(values.numpy()[0], [2, 2, 2, nan, nan, nan])
        np.testing.assert_array_equal(values.numpy()[1], [-inf, 0, 0, inf, inf, inf])
        assert indices.tolist() == [[0, 1, 1, 3, 3, 5], [0, 1, 2, 3, 4, 4]]
    assert tg.cummax(tg.tensor([False, True, False]), 0).values.tolist() == [False, True, True]


def test_gradients_of_products_with_zeros():
    """Without a division; PyTorch has the same numbers (and where it divides, NaN)."""
    x, weights = tg.tensor([2.0, 0.0, 3.0, 0.0, 5.0]), tg.tensor([1.0, 10.0, 100.0, 1e3, 1e4])
    gradient = tg.grad(lambda x: (tg.cumprod(x, 0) * weights).sum())
    for found in (gradient(x), tg.compile(gradient)(x)):
        assert found.tolist() == [1.0, 620.0, 0.0, 0.0, 0.0]
    second = tg.grad(lambda x: gradient(x)[1])(x)
    # d/dx of 2 * (10 + 100 * 3 + 1000 * 3 * x3 + ...) by x0, x2 and x3
    assert second.tolist() == [310.0, 0.0, 200.0, 2 * 3 * (1000 + 10_000 * 5.0), 0.0]


def test_logarithms_of_sums_keep_infinities():
    inf = np.inf
    x = tg.tensor([-inf, -inf, 0.0, 800.0, -900.0, inf, 3.0])
    for function in (lambda x: tg.logcumsumexp(x, 0), tg.compile(lambda x: tg.logcumsumexp(x, 0))):
        assert function(x).tolist() == [-inf, -inf, 0.0, 800.0, 800.0, inf, inf]
