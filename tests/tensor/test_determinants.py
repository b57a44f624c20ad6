"""Derivatives of determinants, of singular matrices, too: beside minors, which are exact."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tgraph as tg

Matrix = np.ndarray[Any, Any]


def _minor(a: Matrix, row: int, column: int) -> Matrix:
    return np.delete(np.delete(a, row, 0), column, 1)


def _exact(a: Matrix) -> Any:
    """The determinant of a matrix of integers, by its first row."""
    if not len(a):
        return 1
    return sum((-1) ** at * a[0, at] * _exact(_minor(a, 0, at)) for at in range(len(a)))


def cofactors(a: Matrix) -> Matrix:
    found = np.zeros_like(a)
    for row, column in np.ndindex(a.shape):
        found[row, column] = (-1) ** (row + column) * _exact(_minor(a, row, column))
    return found


def change(a: Matrix, by: Matrix) -> Matrix:
    """The derivative of the cofactors: a polynomial, whose higher powers vanish in the sum."""
    found = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        unit = np.zeros_like(a)
        unit[place] = 1
        found = found + by[place] * ((cofactors(a + unit) - cofactors(a - unit)) / 2)
    return found


def matrices() -> dict[str, Matrix]:
    """Matrices of each rank, as one batch of each size and type."""
    generator = np.random.default_rng(5)
    found = {}
    for size, dtype in product(range(1, 6), (float, complex)):
        batch = [np.zeros((size, size), dtype), np.diag(np.ones(size - 1, dtype), 1)]
        for rank in range(max(size - 2, 1), size + 1):
            parts = generator.integers(-2, 3, (2, size, rank)).astype(dtype)
            if dtype is complex:
                parts = parts + 1j * generator.integers(-2, 3, (2, size, rank))
            batch.append(parts[0] @ parts[1].T)
            batch.append(np.where(np.arange(size) == 1, 0, batch[-1]))
        found[f"{dtype.__name__} {size}"] = np.stack(batch)
    found["tiny"] = np.diag([1e-30, 0, 1e-30, 2e-30])[None]
    return found


MATRICES = matrices()
FORMS: dict[str, Callable[[Any], Any]] = {"eager": lambda f: f, "compiled": tg.compile}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("form", FORMS)
def test_derivatives(form: str, name: str) -> None:
    def derivatives(a: Any, by: Any) -> tuple[Any, ...]:
        ones = tg.ones(len(a), dtype=a.dtype)
        (first,) = tg.autograd.grad(tg.linalg.det(a.requires_grad_()), a, ones, create_graph=True)
        second = tg.autograd.grad(first, a, by) if first.requires_grad else ()
        tangent = tg.func.jvp(tg.linalg.det, (a.detach(),), (by,))[1]
        return first.detach(), tangent, *second

    a = MATRICES[name]
    by = np.random.default_rng(1).integers(-2, 3, a.shape).astype(a.dtype)
    first, tangent, *second = FORMS[form](derivatives)(tg.tensor(a), tg.tensor(by))
    size = a.shape[-1]
    scale = 1e-12 * np.abs(a).max() ** max(size - 2, 0)
    one = np.stack([cofactors(each) for each in a])
    np.testing.assert_allclose(first, one.conj(), rtol=1e-11, atol=scale * np.abs(a).max())
    np.testing.assert_allclose(
        tangent, (one * by).sum((-2, -1)), rtol=1e-11, atol=100 * scale * np.abs(a).max()
    )
    two = np.stack([change(*each) for each in zip(a, by, strict=True)]).conj()
    for found in second:
        np.testing.assert_allclose(found, two, rtol=1e-11, atol=100 * scale)


def test_a_singular_matrix_of_a_batch_leaves_the_others_alone() -> None:
    a = np.random.default_rng(0).normal(size=(3, 4, 4)).astype(np.float32)
    a[1, :, 2] = 0
    for dtype in (np.float32, np.complex64):
        found = tg.func.jacrev(tg.func.grad(lambda x: tg.linalg.det(x).real.sum()))(
            tg.tensor(a.astype(dtype))
        )
        assert found.isfinite().all()
        each = tg.func.jacrev(tg.func.grad(lambda x: tg.linalg.det(x).real))
        alone = each(tg.tensor(a[0].astype(dtype)))
        np.testing.assert_allclose(found[0, :, :, 0], alone, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [tg.float64, tg.complex128], ids=str)
def test_the_third_derivative_of_regular_matrices(dtype: tg.dtype) -> None:
    generator = np.random.default_rng(3)
    a = tg.tensor(generator.normal(size=(4, 4)), dtype=dtype) + 2 * tg.eye(4)
    by = [tg.tensor(generator.normal(size=(4, 4)), dtype=dtype) for _ in range(3)]

    def along(t: tg.Tensor) -> tg.Tensor:
        return tg.linalg.det(a + t[0] * by[0] + t[1] * by[1] + t[2] * by[2]).real

    def derivative(f: Callable[[tg.Tensor], tg.Tensor], at: int) -> Callable[[Any], tg.Tensor]:
        return lambda t: tg.func.grad(f)(t)[at]

    mixed = derivative(derivative(derivative(along, 0), 1), 2)
    found = mixed(tg.zeros(3, dtype=tg.float64)).item()
    signs = np.array(list(product((1, -1), repeat=3)))
    values = np.array([along(tg.tensor(each, dtype=tg.float64)).item() for each in signs])
    # Of a polynomial of degree 4 in t, only t[0] * t[1] * t[2] is odd in each of them.
    assert found == pytest.approx((values * signs.prod(1)).sum() / 8, rel=1e-9)


def test_what_is_not_a_number_stays_so() -> None:
    for a in (tg.full((4, 4), float("nan")), tg.full((4, 4), float("nan"), dtype=tg.complex64)):
        hessian = tg.func.jacrev(tg.func.grad(lambda x: tg.linalg.det(x).real))(a)
        assert hessian.isnan().all()
