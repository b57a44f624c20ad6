"""Reductions: dimensions, special values, empty tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tgraph as tg

NAN, INF = float("nan"), float("inf")
ARRAY = np.random.RandomState(0).randn(3, 4, 2)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), [1], ()])
def test_dimensions(dim: object, keepdim: bool) -> None:
    x = tg.tensor(ARRAY)
    axis = None if dim in (None, ()) else tuple(dim) if isinstance(dim, (list, tuple)) else dim
    options = {"axis": axis, "keepdims": keepdim}
    for name, expected in {
        "sum": ARRAY.sum(**options),
        "mean": ARRAY.mean(**options),
        "amax": ARRAY.max(**options),
        "amin": ARRAY.min(**options),
        "var": ARRAY.var(**options, ddof=1),
        "std": ARRAY.std(**options, ddof=1),
        "logsumexp": np.log(np.exp(ARRAY).sum(**options)),
        "norm": np.sqrt((ARRAY**2).sum(**options)),
    }.items():
        arguments = {"dim": dim, "keepdim": keepdim}
        if name in ("var", "std") and dim == ():
            continue
        found = getattr(tg, name)(x, **arguments)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, err_msg=name)


def test_variance_corrections() -> None:
    x = tg.tensor(ARRAY)
    assert x.var(unbiased=False).item() == pytest.approx(ARRAY.var())
    assert x.var(False).item() == pytest.approx(ARRAY.var())
    assert x.var(correction=2).item() == pytest.approx(ARRAY.var(ddof=2))
    both = tg.var_mean(x, 1, keepdim=True)
    assert both[0].shape == both[1].shape == (3, 1, 2)
    assert tg.ones(1).var().isnan()


def test_a_variance_that_overflows_is_infinite() -> None:
    """And what rounding took from the mean, squared, does not make it NaN."""
    x = tg.tensor([0.82e38, -1.38e38, -2.75e38, -2.9e38, 1.88e38])
    assert x.var().isinf() and tg.compile(tg.var)(x).isinf()


def test_extremes_with_positions() -> None:
    x = tg.tensor([[1, 5, 5], [7, 2, 7]])
    found = x.max(1)
    assert found.values.tolist() == [5, 7] and found.indices.tolist() == [1, 0]
    values, indices = x.min(dim=0, keepdim=True)
    assert values.tolist() == [[1, 2, 5]] and indices.tolist() == [[0, 1, 0]]
    assert x.max().item() == 7 and x.argmax().item() == 3 and x.argmax(1).tolist() == [1, 0]
    assert tg.max(x, tg.tensor([[6]])).tolist() == [[6, 6, 6], [7, 6, 7]]
    assert tg.tensor(3.0).max(0).indices.item() == 0
    assert tg.tensor([True, False]).max(0).values.item() is True


def test_nan_wins() -> None:
    x = tg.tensor([1.0, NAN, 3.0])
    assert x.max().isnan() and x.amin().isnan()
    assert x.max(0).indices.item() == 1 and x.argmin().item() == 1
    assert tg.maximum(x, tg.zeros(3)).isnan().tolist() == [False, True, False]


def test_infinite_sums() -> None:
    assert tg.logsumexp(tg.tensor([-INF, -INF]), 0).item() == -INF
    assert tg.logsumexp(tg.tensor([INF, 1.0]), 0).item() == INF
    assert tg.logsumexp(tg.tensor([1000.0, 1000.0]), 0).item() == pytest.approx(1000.6931)


def test_empty() -> None:
    x = tg.zeros(0, 3)
    assert x.sum().item() == 0 and x.prod().item() == 1
    assert x.sum(0).tolist() == [0.0] * 3 and x.prod(0).tolist() == [1.0] * 3
    assert x.mean().isnan() and x.any().item() is False and x.all().item() is True
    assert x.sum(1).shape == (0,) and x.max(1).values.shape == (0,)
    assert tg.logsumexp(x, 0).tolist() == [-INF] * 3
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim to be specified"):
        x.max()
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 0 to have non-zero"):
        x.max(0)
    with pytest.raises(IndexError, match=r"argmin\(\): Expected reduction dim to be specified"):
        x.argmin()
    with pytest.raises(IndexError, match=r"amax\(\): Expected reduction dim 0"):
        x.amax(0)


def test_logic() -> None:
    x = tg.tensor([[0.0, 2.0], [1.0, 3.0]])
    assert x.any(0).tolist() == [True, True] and x.all(1).tolist() == [False, True]
    assert x.count_nonzero().item() == 3
    assert tg.equal(x, x.clone()) and not tg.equal(x, x[0])
    assert tg.allclose(x, x + 1e-9) and not tg.allclose(x, x + 1)
    nan = tg.tensor([NAN])
    assert not tg.allclose(nan, nan) and tg.allclose(nan, nan, equal_nan=True)
    assert tg.isclose(tg.tensor([INF, INF]), tg.tensor([INF, -INF])).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="did not match"):
        tg.isclose(x, x.double())


def test_norms() -> None:
    x = tg.tensor([3.0, -4.0, 0.0])
    assert x.norm().item() == 5 and x.norm(1).item() == 7 and x.norm(0).item() == 2
    assert x.norm(INF).item() == 4 and x.norm(-INF).item() == 0
    assert x.norm(3).item() == pytest.approx(91 ** (1 / 3))
    with pytest.raises(RuntimeError, match="Expected a floating point"):
        tg.ones(2, dtype=tg.int64).norm()


def test_half_types_accumulate_in_float32() -> None:
    x = tg.ones(5000, dtype=tg.float16)
    assert x.sum().item() == 5000.0
    assert tg.full((300,), 1.0, dtype=tg.bfloat16).sum().item() == 300.0


def test_orders() -> None:
    x = tg.tensor([[3.0, 1.0, 2.0], [0.0, NAN, 5.0]])
    values, indices = x.sort(1)
    assert values[0].tolist() == [1, 2, 3] and indices[0].tolist() == [1, 2, 0]
    assert indices[1].tolist() == [0, 2, 1]
    assert x.sort(1, descending=True).indices.tolist() == [[0, 2, 1], [1, 2, 0]]
    assert x.argsort(0)[:, 0].tolist() == [1, 0]
    top = x[0].topk(2)
    assert top.values.tolist() == [3, 2] and top.indices.tolist() == [0, 2]
    assert x[0].topk(1, largest=False).values.tolist() == [1]
    assert x[0].kthvalue(2).values.item() == 2 and x[0].median().item() == 2
    ties = tg.tensor([1, 0, 1, 0])
    assert ties.argsort().tolist() == [1, 3, 0, 2]
    assert ties.argsort(descending=True).tolist() == [0, 2, 1, 3]
    with pytest.raises(RuntimeError, match="k out of range"):
        x.topk(4)


def test_counting_and_searching() -> None:
    x = tg.tensor([3, 1, 3, 0])
    assert tg.bincount(x).tolist() == [1, 1, 0, 2]
    assert tg.bincount(x, tg.tensor([0.5, 1, 1, 2]), minlength=5).tolist() == [2, 1, 0, 1.5, 0]
    values, inverse, counts = tg.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        [0, 1, 3],
        [2, 1, 2, 0],
        [1, 1, 2],
    )
    edges = tg.tensor([1.0, 2.0, 2.0])
    assert tg.searchsorted(edges, tg.tensor([2.0, 3.0])).tolist() == [1, 3]
    assert tg.searchsorted(edges, tg.tensor([2.0]), right=True).tolist() == [3]


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("shape", [(40,), (30, 2), (6, 5, 2), (0,), (0, 3)])
def test_what_is_distinct_as_torch(name: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    nan = float("nan")
    numbers = np.random.RandomState(5).choice([1.0, -0.0, 0.0, 2.0, -np.inf], shape)
    arrays = [numbers.astype(np.float32), np.nan_to_num(numbers, neginf=-7).astype(np.int64)]
    if shape == (40,):
        arrays.append(np.where(numbers == 2, nan, numbers))
    for array in arrays:
        for dim in (None, *range(array.ndim)):
            if 0 in shape and (dim is None or shape[dim]):
                continue
            if name == "unique" and dim is not None and np.isnan(array).any():
                continue  # which PyTorch leaves in no order
            attrs = {"return_inverse": True, "return_counts": True, "dim": dim}
            expected = getattr(torch, name)(torch.tensor(array), **attrs)
            found = getattr(tg, name)(tg.tensor(array), **attrs)
            if name == "unique" and np.isnan(array).any():  # which PyTorch numbers as it likes
                inverse, others = found[1].numpy(), expected[1].numpy()
                assert (np.diff(inverse[np.isnan(array)]) == 1).all()
                others[np.isnan(array)] = inverse[np.isnan(array)]
            for mine, theirs in zip(found, expected, strict=True):
                assert np.array_equal(
                    mine.numpy(), theirs.numpy(), equal_nan=array.dtype.kind == "f"
                )


def test_slices_without_elements_are_refused() -> None:
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        tg.unique(tg.zeros(3, 0), dim=0)


def test_cumsum() -> None:
    for size in (0, 1, 2, 7, 8):
        array = np.random.RandomState(size).randn(3, size)
        found = tg.cumsum(tg.tensor(array), 1)
        np.testing.assert_allclose(found.numpy(), array.cumsum(1))
    assert tg.cumsum(tg.tensor([True, True]), 0).tolist() == [1, 2]


def test_nanmedian_as_torch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    nan, inf = math.nan, math.inf
    for seed, shape in enumerate([(7,), (6, 9), (4, 3, 6), (1,), (0, 3)] * 3):
        choices = [1.0, 2.0, 3.0, 0.5, -0.0, -inf, inf, nan, nan][seed % 3 :]
        array = np.random.RandomState(seed).choice(choices, shape).astype(np.float32)
        for dim in (None, *range(array.ndim)):
            if dim is not None and not shape[dim]:
                continue
            args = () if dim is None else (dim, seed % 2 == 1)
            expected = torch.nanmedian(torch.tensor(array), *args)
            for function in (tg.nanmedian, tg.compile(tg.nanmedian))[: 2 if seed < 5 else 1]:
                found = function(tg.tensor(array), *args)
                if dim is None:
                    np.testing.assert_array_equal(found.numpy(), expected.numpy())
                    continue
                # Of equal elements any may be told.
                np.testing.assert_array_equal(found.values.numpy(), expected.values.numpy())
                at = found.indices if seed % 2 else found.indices.unsqueeze(dim)
                there = np.take_along_axis(array, at.numpy(), dim)
                np.testing.assert_array_equal(there.reshape(found.values.shape), found.values)
    assert tg.nanmedian(tg.tensor([3, 1, 2, 5])).item() == 2
    assert math.isnan(tg.nanmedian(tg.tensor(nan)).item())


def test_median_of_nan_and_of_nothing() -> None:
    x = tg.tensor([[math.nan, 1.0, 2.0], [3.0, 1.0, 2.0]])
    assert math.isnan(x.median().item()) and x[1].median().item() == 2
    values, indices = x.median(1)
    assert math.isnan(values[0].item()) and values[1] == 2 and indices.tolist() == [0, 2]
    assert x.median(1, keepdim=True).values.shape == (2, 1)
    assert math.isnan(tg.zeros(0).median().item())
    assert tg.zeros(0, dtype=tg.int64).median() == -(2**63)


def test_logic_of_uint8_stays_uint8() -> None:
    x = tg.tensor([[0, 2], [3, 4]], dtype=tg.uint8)
    assert x.any().dtype is tg.uint8 and x.all(1).tolist() == [0, 1]


def test_extremes_of_nothing_ask_for_a_dimension() -> None:
    for name in ("amax", "amin", "max", "min"):
        with pytest.raises(RuntimeError, match="Specify the reduction dim"):
            getattr(tg.zeros(0, 3), name)()


def test_gradient_looks_at_neighbours_alone() -> None:
    """An infinite element tells nothing about its own slope."""
    x = tg.tensor([1.0, 4.0, 9.0, math.inf, 2.0, 3.0, 5.0])
    for edge_order, first, last in ((1, 3.0, 2.0), (2, 2.0, 2.5)):
        for function in (tg.gradient, tg.compile(tg.gradient)):
            (found,) = function(x, edge_order=edge_order)
            assert found.tolist() == [first, 4.0, math.inf, -3.5, -math.inf, 1.5, last]


def test_sum_to_size_of_whole_numbers() -> None:
    assert tg.tensor(True).sum_to_size(()).dtype is tg.int64
    assert tg.tensor([True]).sum_to_size(1).dtype is tg.bool


@pytest.mark.parametrize("size", [255, 256, 257, 511, 513, 1025])
def test_sums_along_an_axis_in_front_have_all_elements(size: int) -> None:
    """Long ones are added up block by block."""
    for dtype in (tg.float32, tg.float64):
        x = tg.ones(size, 3, dtype=dtype)
        assert x.sum(0).tolist() == [size] * 3 and x.t().sum(1).tolist() == [size] * 3


def test_running_sums_are_rounded_once() -> None:
    x = np.full(100_000, 0.1, np.float32)
    exact = np.cumsum(x.astype(np.float64))
    for run in (tg.cumsum, tg.compile(lambda x, dim: tg.cumsum(x, dim))):
        found = run(tg.tensor(x), 0).numpy()
        assert np.abs(found / exact - 1).max() <= 2.0**-24


def test_cov_takes_both_kinds_of_weights() -> None:
    x = tg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 4.0]], dtype=tg.float64)
    often, much = tg.tensor([1, 2, 3]), tg.tensor([0.5, 1.0, 0.25], dtype=tg.float64)
    found = tg.cov(x, fweights=often, aweights=much).tolist()
    assert found[0] == pytest.approx([0.4923076923076923, 0.6153846153846154])
    assert found[1] == pytest.approx([0.6153846153846154, 1.9692307692307693])


def test_nanquantile_of_a_row_of_nothing_but_nan_is_nan() -> None:
    x = tg.tensor([[NAN, NAN], [1.0, 2.0]])
    gone, known = tg.nanquantile(x, 0.5, dim=1).tolist()
    assert math.isnan(gone) and known == 1.5


@pytest.mark.parametrize("function", [tg.median, tg.nanmedian])
def test_equal_elements_share_the_gradient_of_a_median(function: Any) -> None:
    x = tg.tensor([1.0, 2.0, 2.0, 3.0, 2.0], requires_grad=True)
    for each in (function, tg.compile(function)):
        (grad,) = tg.autograd.grad(each(x), x)
        np.testing.assert_allclose(grad.numpy(), np.array([0, 1, 1, 0, 1]) / 3, rtol=1e-6)
    nan = tg.tensor([float("nan"), 1.0, float("nan")], requires_grad=True)
    (grad,) = tg.autograd.grad(function(nan), nan)
    assert grad.tolist() == ([0.5, 0.0, 0.5] if function is tg.median else [0.0, 1.0, 0.0])
