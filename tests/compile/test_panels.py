"""A matrix that several products multiply is packed once; their values stay to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.compiler.targets.cpu import packed_panels as plan_panels

import tgraph as tg


def recurrent(x, w):
    for _ in range(6):
        x = tg.tanh(x @ w.T) + x
    return x


def straight(x, w):
    for _ in range(6):
        x = tg.tanh(x @ w) + x
    return x


def kinds(function, *tensors):
    return [each.kind for each in tg.compile(function).explain(*tensors).kernels]


def same(function, *tensors, monkeypatch):
    found = tg.compile(function)(*[each.clone() for each in tensors])
    with monkeypatch.context() as patch:
        patch.setattr(plan_panels, "FEWEST_PRODUCTS", 1000)
        expected = tg.compile(function)(*[each.clone() for each in tensors])
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    return found


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64], ids=str)
@pytest.mark.parametrize(("rows", "size"), [(2, 64), (7, 128), (32, 96), (96, 512), (32, 1056)])
def test_values(rows, size, dtype, monkeypatch):
    tg.manual_seed(0)
    x, w = tg.randn(rows, size, dtype=dtype), tg.randn(size, size, dtype=dtype) / size**0.5
    assert kinds(recurrent, x, w).count("pack") == 1
    found = same(recurrent, x, w, monkeypatch=monkeypatch)
    np.testing.assert_allclose(found.numpy(), recurrent(x, w).numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "inner", "count"), [(32, 256, 1), (4, 256, 0)])
def test_a_matrix_with_contiguous_rows(rows, inner, count, monkeypatch):
    """Is packed for enough rows, as one product would pack it."""
    x, w = tg.randn(rows, inner), tg.randn(inner, inner) / inner**0.5
    assert kinds(straight, x, w).count("pack") == count
    same(straight, x, w, monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("rows", "size"),
    [(32, 50), (200, 64), (1, 64), (4, 16)],  # half panels, many rows, one row, few elements
)
def test_where_nothing_is_shared(rows, size):
    x, w = tg.randn(rows, size), tg.randn(size, size)
    assert "pack" not in kinds(recurrent, x, w)
    x, w = tg.randn(32, 128), tg.randn(128, 128)
    assert "pack" not in kinds(lambda x, w: (x @ w.T) @ w.T, x, w)
    assert "pack" not in kinds(lambda x, w: ((x @ w) @ w) @ w, x, w)  # read where it lies


def test_beside_other_products_of_the_matrix(monkeypatch):
    def f(x, w):
        one, many = x[:1] @ w.T, tg.cat([x] * 4) @ w.T
        y = recurrent(x, w)
        return tg.cat([y, one + x[:1] @ w, many, recurrent(x[:8], w), y[:1] @ w.T])

    x, w = tg.randn(32, 128), tg.randn(128, 128) / 12
    found = same(f, x, w, monkeypatch=monkeypatch)
    np.testing.assert_allclose(found.numpy(), f(x, w).numpy(), rtol=1e-3, atol=1e-3)


def test_a_matrix_that_is_overwritten_later(monkeypatch):
    def f(x, w):
        first = recurrent(x, w)
        w.mul_(0.5)
        return first + recurrent(x, w) + recurrent(first, w * 2)

    x, w = tg.randn(16, 64), tg.randn(64, 64) / 8
    assert kinds(f, x, w.clone()).count("pack") == 3
    found = same(f, x, w, monkeypatch=monkeypatch)
    np.testing.assert_allclose(found.numpy(), f(x, w.clone()).numpy(), rtol=1e-4, atol=1e-4)


def test_memory_is_used_again_behind_the_last_product(monkeypatch):
    """What follows may lie where the panels were."""

    def f(x, *weights):
        for w in weights:
            x = recurrent(x, w)
        return tg.cat([x @ w for w in weights])

    x, weights = tg.randn(24, 128), [tg.randn(128, 128) / 12 for _ in range(5)]
    assert kinds(f, x, *weights).count("pack") == 5
    same(f, x, *weights, monkeypatch=monkeypatch)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(threads, monkeypatch):
    before, (x, w) = tg.get_num_threads(), (tg.ones(48, 256), tg.eye(256) * 0.1 + 0.01)
    expected = tg.compile(recurrent)(x, w).numpy()
    tg.set_num_threads(threads)
    try:
        np.testing.assert_array_equal(tg.compile(recurrent)(x, w).numpy(), expected)
    finally:
        tg.set_num_threads(before)


def test_gradients(monkeypatch):
    x, w = tg.randn(8, 64), (tg.randn(64, 64) / 8).requires_grad_()
    recurrent(x, w).sum().backward()
    expected, w.grad = w.grad, None
    tg.compile(recurrent)(x, w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)
