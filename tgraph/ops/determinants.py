"""Determinants of matrices, their logarithms, and derivatives that hold for singular matrices, too.

A determinant is a polynomial of the elements: its derivative, the matrix of cofactors, is finite
everywhere. Up to 3 by 3 it is written as that polynomial. Above, it is the determinant times the
transposed inverse, and where a pivot of the LU factors is zero one of the size of rounding errors
takes its place, which changes the cofactors by no more than rounding does. The second derivative
divides by the determinant, where that could not hold: it comes from singular values, with products
of all but two of them. The third and those above divide: they hold for regular matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply_several, detached
from ..core.operands import cast
from ..core.return_types import linalg_slogdet as Slogdet
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from . import comparison as c
from . import complex_factorizations as of_complex
from . import creation
from . import elementwise as e
from . import factorizations as f
from . import movement as m
from . import reductions as r
from .concatenation import cat, flip, stack
from .linalg import matmul
from .products import cross_along
from .scans import cumprod

Array = np.ndarray[Any, Any]


def det(A: Tensor) -> Tensor:
    """The determinant of each matrix.

    Its gradient is right for singular matrices, too (PyTorch's is 0 there), and so is the gradient
    of that.

    >>> import tgraph as tg
    >>> tg.linalg.det(tg.tensor([[2.0, 1.0], [1.0, 4.0]]))
    tensor(7.)
    >>> tg.grad(tg.linalg.det)(tg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor([[ 4., -2.],
            [-2.,  1.]])
    """
    f.check_matrices("linalg.det", A, square=True, complex_too=True)
    if A._type.dtype.is_complex:
        shape = tuple(A._type.shape[:-2])
        return _complex(A, *of_complex.on_host("linalg.det", _det_on_host, (A,), shape))
    factors, rows, sign, _ = apply_several(p.lu, detached(A), check="")
    return _real(A, factors, rows, sign)


def slogdet(A: Tensor) -> Slogdet:
    """The sign of each determinant, and the logarithm of its absolute value.

    The sign of a complex one is a number of absolute value 1. Gradients of the logarithm for a
    singular matrix are infinite or NaN.

    >>> import tgraph as tg
    >>> tg.linalg.slogdet(tg.tensor([[2.0, 0.0], [0.0, -0.5]]))
    tgraph.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.))
    """
    f.check_matrices("linalg.slogdet", A, square=True, complex_too=True)
    if A._type.dtype.is_complex:
        shape = (*A._type.shape[:-2], 2)
        both = _complex_log(A, *of_complex.on_host("linalg.slogdet", _log_on_host, (A,), shape))
        return Slogdet(m.select(both, -1, 0), of_complex.real_part(m.select(both, -1, 1)))
    factors, rows, sign, _ = apply_several(p.lu, detached(A), check="")
    return Slogdet(_sign(A, factors, sign), _log(A, factors, rows))


# --- determinants -------------------------------------------------------------------------------


@composite("det")
def _real(a: Tensor, factors: Tensor, rows: Tensor, sign: Tensor) -> Tensor:
    return e.mul(sign, r.prod(_diagonal(factors), -1))


@input_vjp(_real, saves=(0, 1, 2, 3))
def _real_vjp(
    g: Tensor, out: TensorType, a: Tensor, factors: Tensor, rows: Tensor, sign: Tensor
) -> Tensor:
    """Jacobi's formula."""
    is_small = a._type.shape[-1] <= 3
    found = _small_cofactors(a) if is_small else _cofactors(a, factors, rows, sign)
    return e.mul(_as_matrix(g), found)


def _det_on_host(a: Array) -> tuple[Array]:
    with np.errstate(all="ignore"):
        return (np.asarray(np.linalg.det(a), a.dtype),)


@composite("complex_det")
def _complex(a: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


@input_vjp(_complex, saves=(0,))
def _complex_vjp(g: Tensor, out: TensorType, a: Tensor, found: TensorType) -> Tensor:
    is_small = a._type.shape[-1] <= 3
    found = _small_cofactors(a) if is_small else _complex_cofactors(a, *_singular_parts(a))
    return e.mul(_as_matrix(g), conjugate(found))


# --- their derivatives --------------------------------------------------------------------------


def _small_cofactors(a: Tensor) -> Tensor:
    size = a._type.shape[-1]
    if size < 2:
        return creation.ones_like(a)
    if size == 2:
        signs = e.sub(e.mul(f.unit_matrix(a._type), 2.0), 1.0)
        return e.mul(flip(a, -2, -1), signs)
    rows = [m.select(a, -2, at) for at in range(size)]
    return stack([cross_along(rows[at - 2], rows[at - 1]) for at in range(size)], -2)


@composite("cofactors")
def _cofactors(a: Tensor, factors: Tensor, rows: Tensor, sign: Tensor) -> Tensor:
    """Of matrices whose `a[rows]` have the LU `factors`."""
    limits = np.finfo(a._type.dtype.numpy)
    pivots = _diagonal(factors)
    largest = r.amax(e.abs(factors), (-2, -1))
    nothing = c.eq(largest, 0.0)
    least = e.mul(e.where(nothing, 1.0, largest), float(limits.eps))
    is_zero = c.lt(e.abs(pivots), float(limits.tiny))
    added = e.where(is_zero, m.unsqueeze(least, -1), 0.0)
    factors = e.add(factors, e.mul(m.unsqueeze(added, -1), f.unit_matrix(a._type)))
    found = e.where(nothing, 0.0, e.mul(sign, r.prod(_diagonal(factors), -1)))
    scaled = e.mul(_as_matrix(found), f.unit_matrix(a._type))
    return f.solve_by_factors(a, scaled, factors, rows, transpose=True)


@composite("complex_cofactors")
def _complex_cofactors(a: Tensor, u: Tensor, s: Tensor, vh: Tensor, unit: Tensor) -> Tensor:
    """By singular values, see `_change`."""
    inner = e.mul(
        conjugate(u), m.unsqueeze(e.mul(m.unsqueeze(unit, -1), _product_of_others(s)), -2)
    )
    return matmul(inner, conjugate(vh))


@input_vjp(_cofactors, saves=(0,))
@input_vjp(_complex_cofactors, saves=(0,))
def _cofactors_vjp(g: Tensor, out: TensorType, a: Tensor, *others: TensorType) -> Tensor:
    return conjugate(_change(a, conjugate(g), *_singular_parts(a)))


@composite("change_of_cofactors")
def _change(a: Tensor, by: Tensor, u: Tensor, s: Tensor, vh: Tensor, unit: Tensor) -> Tensor:
    """The derivative of cofactors in a direction, which is symmetric: twice as a function of `by`.

    The cofactors of a product are the product of cofactors, and those of a unitary matrix are its
    conjugate times its determinant. What is left are diagonal matrices (see N. Higham, "What Is the
    Adjugate of a Matrix?", 2020): their cofactors are products of all but one singular value, and
    a change takes one more away.
    """
    turned = matmul(matmul(of_complex.adjoint(u), by), of_complex.adjoint(vh))
    eye = c.eq(f.unit_matrix(by._type), 1.0)
    without_two = _product_of_others(e.where(eye, 1.0, m.unsqueeze(s, -2)))
    without_two = e.where(eye, 0.0, without_two)
    own = m.squeeze(matmul(without_two, m.unsqueeze(_diagonal(turned), -1)), -1)
    inner = e.where(
        eye, m.unsqueeze(own, -1), e.neg(e.mul(without_two, m.transpose(turned, -2, -1)))
    )
    return e.mul(matmul(matmul(conjugate(u), inner), conjugate(vh)), _as_matrix(unit))


@input_vjp(_change, position=1, saves=(0, 2, 3, 4, 5))
def _change_vjp(g: Tensor, out: TensorType, a: Tensor, by: TensorType, *parts: Tensor) -> Tensor:
    return conjugate(_change(a, conjugate(g), *parts))


@input_vjp(_change, saves=(0, 1))
def _change_vjp_of_matrix(
    g: Tensor, out: TensorType, a: Tensor, by: Tensor, *parts: TensorType
) -> Tensor:
    """The third derivative of the determinant, by the inverse."""
    inverse = f.solve_checked("linalg.det", a, f.unit_matrix(a._type), True, "")[0]
    x, y = matmul(inverse, by), matmul(inverse, conjugate(g))
    of_x, of_y, of_both = (_as_matrix(r.sum(_diagonal(each), -1)) for each in (x, y, matmul(x, y)))
    products = e.add(matmul(x, y), matmul(y, x))
    inner = e.sub(products, e.add(e.mul(of_x, y), e.mul(of_y, x)))
    scale = e.sub(e.mul(of_x, of_y), of_both)
    found = e.add(matmul(inner, inverse), e.mul(scale, inverse))
    return conjugate(e.mul(m.transpose(found, -2, -1), _as_matrix(det(a))))


def _singular_parts(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`u`, `s` and `vh` of the singular value decomposition, and the determinant of `u @ vh`, which
    is NaN for a matrix that is not finite."""
    a = detached(a)
    if a._type.dtype.is_complex:
        shape = tuple(a._type.shape)
        u, s, vh = of_complex.on_host("linalg.svd", _svd_on_host, (a,), shape, shape[:-1], shape)
    else:
        u, s, vh, _ = apply_several(p.svd, a, full=True, check="")
    return u, s, vh, e.add(det(matmul(u, vh)), r.sum(e.mul(a, 0.0), (-2, -1)))


def _svd_on_host(a: Array) -> tuple[Array, ...]:
    is_finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(is_finite, a, 0))
    return u, s.astype(a.dtype), vh


def _product_of_others(x: Tensor) -> Tensor:
    """For each element of the last axis the product of all others."""
    ones = creation.ones_like(m.narrow(x, -1, 0, 1))
    count = x._type.shape[-1] - 1
    before = cat([ones, cumprod(m.narrow(x, -1, 0, count), -1)], -1)
    behind = cat([ones, cumprod(flip(m.narrow(x, -1, 1, count), -1), -1)], -1)
    return e.mul(before, flip(behind, -1))


# --- their logarithms ---------------------------------------------------------------------------


@composite("slogdet_sign")
def _sign(a: Tensor, factors: Tensor, sign: Tensor) -> Tensor:
    return e.mul(sign, r.prod(e.sign(_diagonal(factors)), -1))


@input_vjp(_sign)
def _sign_vjp(g: Tensor, out: TensorType, a: TensorType, factors: Any, sign: Any) -> Tensor:
    return creation.zeros(a.shape, dtype=a.dtype, device=a.device)


@composite("slogdet")
def _log(a: Tensor, factors: Tensor, rows: Tensor) -> Tensor:
    return r.sum(e.log(e.abs(_diagonal(factors))), -1)


@input_vjp(_log, saves=(0, 1, 2))
def _log_vjp(g: Tensor, out: TensorType, a: Tensor, factors: Tensor, rows: Tensor) -> Tensor:
    scaled = e.mul(_as_matrix(g), f.unit_matrix(a._type))
    return f.solve_by_factors(a, scaled, factors, rows, transpose=True)


def _log_on_host(a: Array) -> tuple[Array]:
    with np.errstate(all="ignore"):
        sign, size = np.linalg.slogdet(a)
    return (np.stack([sign, size], -1).astype(a.dtype),)


@composite("complex_slogdet")
def _complex_log(a: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


@input_vjp(_complex_log, saves=(0, OUTPUT))
def _complex_log_vjp(g: Tensor, out: Tensor, a: Tensor, found: TensorType) -> Tensor:
    """The trace of inv(a) times a change of a is what the logarithm of the determinant changes by:
    its real part that of the size, its imaginary one an angle of the direction."""
    of_sign, of_size = m.select(g, -1, 0), m.select(g, -1, 1)
    turn = part(e.mul(of_sign, conjugate(m.select(out, -1, 0))), 1)
    number = e.add(cast(part(of_size, 0), g._type.dtype), e.mul(turn, 1j))
    right = e.mul(_as_matrix(number), f.unit_matrix(a._type))
    return of_complex.solve(of_complex.adjoint(a), right, "")[0]


# --- parts --------------------------------------------------------------------------------------


def _diagonal(x: Tensor) -> Tensor:
    return m.diagonal(x, 0, -2, -1)


def _as_matrix(x: Tensor) -> Tensor:
    """A number for each of a batch, as a matrix of one element."""
    return m.unsqueeze(m.unsqueeze(x, -1), -1)
