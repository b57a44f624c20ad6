"""Sorting in compiled functions: a native step, however rows lie and threads share them."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.compiler.targets.cpu import sorting_step as plan_sorting
from tgraph.runtime import order, sort_native

import tgraph as tg

nan = float("nan")


def same(function, *tensors):
    """Compiled and eager results are the same bits."""
    expected, found = function(*tensors), tg.compile(function)(*tensors)
    for one, other in zip(_tuple(expected), _tuple(found), strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        assert one.numpy().tobytes() == other.numpy().tobytes()


def _tuple(value):
    return (value,) if isinstance(value, tg.Tensor) else tuple(value)


def numbers(*shape):
    x = tg.randn(*shape)
    flat = x.reshape(-1)
    flat[::7], flat[1::11], flat[2::13] = nan, 0.0, -0.0
    return x


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_along_any_axis(axis, descending):
    x = numbers(6, 90, 7)
    same(lambda x: tg.sort(x, axis, descending), x)
    same(lambda x: tg.sort(x, axis, descending).values, x)
    same(lambda x: tg.argsort(x[:, ::3, 1:], axis, descending), x)
    same(lambda x: tg.topk(x, 3, axis, largest=descending), x)
    same(lambda x: tg.sort(x.permute(2, 0, 1) * 2, axis, descending).values, x)


DTYPES = (tg.float16, tg.bfloat16, tg.float64, tg.int64, tg.int32, tg.int8, tg.uint8, tg.bool)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types(dtype, descending):
    x = (tg.randn(5, 300) * 50).to(dtype)
    same(lambda x: tg.sort(x, 1, descending), x)
    same(lambda x: tg.sort(x, 1, descending).values, x)
    same(lambda x: tg.topk(x, 9, 1, largest=descending), x)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 300_000), (2, 150_000), (300, 1000)])
def test_threads(shape, threads):
    before = tg.get_num_threads()
    x = tg.randn(*shape)
    array = x.numpy()
    tg.set_num_threads(threads)
    try:
        found = tg.compile(lambda x: tg.sort(x))(x)
        values = tg.compile(lambda x: tg.sort(x, descending=True).values)(x)
        few = tg.compile(lambda x: tg.topk(x, 5))(x)
    finally:
        tg.set_num_threads(before)
    positions = np.argsort(array, -1, kind="stable")
    assert np.array_equal(found.indices.numpy(), positions)
    assert np.array_equal(found.values.numpy(), np.sort(array))
    assert np.array_equal(values.numpy(), np.sort(array)[:, ::-1])
    assert np.array_equal(few.values.numpy(), np.sort(array)[:, :-6:-1])


def steps(function, *tensors):
    return [(each.name, each.kind) for each in tg.compile(function).explain(*tensors).kernels]


def test_a_native_step_for_positions_and_one_for_values_alone():
    x = tg.randn(8, 500)
    (first, kind), *_ = steps(lambda x: tg.sort(x), x)
    assert (first, kind) == ("argsort", "sort")
    assert steps(lambda x: tg.sort(x).values, x) == [("sort", "sort")]
    assert ("sort", "sort") in steps(lambda x: tg.sort(x.T, 0).values, x)
    assert steps(lambda x: tg.sort(x).values, x.half()) == [("sort", "python")]
    assert steps(lambda x: tg.sort(x).values, tg.zeros(2, 1 << 17)) == [("sort", "python")]
    assert ("argsort", "sort") in steps(lambda x: (tg.sort(x).values, tg.argsort(x)), x)
    # Another axis, or other elements: no sort.
    assert ("argsort", "sort") in steps(lambda x: x[:8, :8].gather(0, x[:8, :8].argsort(1)), x)
    assert ("argsort", "sort") in steps(lambda x: (x + 1).gather(1, x.argsort(1)), x)


def test_gradients_follow_positions():
    x = numbers(4, 60).requires_grad_()
    weight = tg.randn(4, 60)

    def f(x):
        return (tg.sort(x, descending=True).values * weight).sum()

    f(x).backward()
    expected, x.grad = x.grad, None
    tg.compile(f)(x).backward()
    assert x.grad.numpy().tobytes() == expected.numpy().tobytes()
    (found,) = tg.compile(lambda x: tg.autograd.grad(f(x), [x]))(x)
    assert found.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize("length", [1, 39, 40, 41, 300, 5000])
@pytest.mark.parametrize("dtype", [tg.float32, *DTYPES], ids=str)
def test_one_element_by_its_rank(dtype, length):
    x = numbers(3, length).to(tg.float32) * 40
    x = (x if dtype.is_floating_point else tg.nan_to_num(x)).to(dtype)
    expected = np.argsort(x.to(tg.float64).numpy(), -1, kind="stable")
    if dtype is tg.int64:
        x[0, 0], x[1, -1] = -(1 << 63), (1 << 63) - 1
        expected = np.argsort(x.numpy(), -1, kind="stable")
    for k in {1, (length + 1) // 2, length}:
        for view in (x, x.mT.clone().mT, tg.stack([x, x], -1)[..., 1]):
            values, at = tg.compile(lambda x, k=k: tg.kthvalue(x, k))(view)
            assert np.array_equal(at.numpy(), expected[:, k - 1])
            assert np.array_equal(values.numpy(), tg.gather(x, 1, at[:, None])[:, 0].numpy(),
                                  equal_nan=dtype.is_floating_point)  # fmt: skip


def test_ranks_and_medians_are_native_steps():
    x = tg.randn(6, 70)
    assert ("select_nth", "sort") in steps(lambda x: tg.kthvalue(x, 5), x)
    for function in (lambda x: tg.median(x), lambda x: tg.median(x, 0), lambda x: tg.median(x, 1)):
        found = steps(function, x)
        assert ("select_nth", "sort") in found and "python" not in {kind for _, kind in found}
    few, many = tg.full((2, 10), 7), tg.zeros(2, 3000, dtype=tg.float64)
    many[:, 1] = -0.0
    for k in (1, 7):  # all equal: the position is the rank
        assert tg.compile(lambda x, k=k: tg.kthvalue(x, k).indices)(few).tolist() == [k - 1] * 2
        assert tg.compile(lambda x, k=k: tg.kthvalue(x, k).indices)(many).tolist() == [k - 1] * 2


def test_few_bytes_for_lists(monkeypatch):
    """Long rows share lists between fewer units, and get the same positions."""
    x = tg.randn(9, 700)
    expected = tg.argsort(x).numpy()
    monkeypatch.setattr(plan_sorting, "MOST_LIST_BYTES", 30_000)
    assert np.array_equal(tg.compile(lambda x: tg.argsort(x))(x).numpy(), expected)


def test_a_row_that_is_too_long_for_entries_goes_to_numpy(monkeypatch):
    monkeypatch.setattr(plan_sorting, "MOST_ELEMENTS", 100)
    x = tg.randn(3, 100)
    assert steps(lambda x: tg.argsort(x), x) == [("argsort", "python")]
    same(lambda x: tg.argsort(x), x)


def test_without_functions_of_numpy(monkeypatch):
    monkeypatch.setattr(sort_native, "sort_function", lambda dtype: 0)
    x = numbers(5, 100)
    assert steps(lambda x: tg.sort(x).values, x) == [("sort", "python")]
    same(lambda x: tg.sort(x, descending=True).values, x)


def test_values_in_order_with_zeros_of_both_signs():
    values = np.array([[0.0, -0.0, 1.0, -0.0, 0.0]], np.float32)
    for descending in (False, True):
        expected = np.take_along_axis(values, order.stable_order(values, descending), -1)
        assert order.in_order(values, descending).tobytes() == expected.tobytes()
        same(lambda x: tg.sort(x, descending=descending).values, tg.from_numpy(values))  # noqa: B023


def test_a_sort_that_fails_leaves_everything_as_it_was(monkeypatch):
    """NumPy's sort may want memory and threads: nothing is overwritten before it."""

    def refuse(*arrays, **options):
        raise MemoryError

    def f(x, y):
        x.mul_(2)
        return tg.sort(x * y).values

    monkeypatch.setattr("tgraph.compiler.targets.cpu.native_steps.put_in_order", refuse)
    x, y = tg.ones(1, 1 << 17), tg.randn(1, 1 << 17)  # one long row, for all threads
    with pytest.raises(MemoryError):
        tg.compile(f)(x, y)
    assert (x.numpy() == 1).all()
