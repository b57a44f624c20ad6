"""Factorizations of complex matrices, and what is solved with them.

LAPACK runs on the host, of CUDA tensors on a copy. What it gives is wrapped by a composite, all
results in one tensor: derivatives of any order are with respect to the matrix, by rules that hold
for real numbers, too, and in PyTorch's convention (the conjugate gradient). Phases of vectors that
may be chosen are LAPACK's: gradients are those of functions that do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply_several, detached
from ..core.operands import cast
from ..core.tensor import Tensor, intern_type
from ..core.vjp_rules import OUTPUT, Attrs, Cotangents, Wanted, input_vjp, vjp
from ..runtime.dtypes import int32, int64
from ..runtime.linalg_error import failure
from . import comparison as c
from . import creation, diagonals
from . import elementwise as e
from . import movement as m
from .concatenation import cat
from .linalg import matmul

Array = np.ndarray[Any, Any]


# --- parts ---------------------------------------------------------------------------------------


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of each matrix; of real ones the transpose."""
    return conjugate(m.transpose(x, -2, -1))


def real_part(x: Tensor) -> Tensor:
    return m.clone(part(x, 0)) if x._type.dtype.is_complex else x


def as_complex(x: Tensor, like: Tensor) -> Tensor:
    return cast(x, like._type.dtype)


def _on_diagonal(x: Tensor) -> Tensor:
    size = x._type.shape[-1]
    return e.mul(m.unsqueeze(x, -1), creation.eye(size, dtype=x._type.dtype, device=x.device))


def _diagonal(x: Tensor) -> Tensor:
    return m.diagonal(x, 0, -2, -1)


def _is_own(size: int, x: Tensor) -> Tensor:
    """Whether an element lies on the diagonal."""
    return c.eq(creation.eye(size, dtype=x._type.dtype.to_real(), device=x.device), 1.0)


def on_host(
    name: str, function: Callable[..., Any], tensors: tuple[Tensor, ...], *shapes: Any
) -> list[Tensor]:
    """What a function of NumPy's arrays gives: results of these shapes, some with a type."""
    first = tensors[0]._type
    types = []
    for each in shapes:
        shape, dtype = each if each and isinstance(each[0], tuple) else (each, first.dtype)
        types.append(intern_type(tuple(shape), dtype, first.device))
    plain = tuple(map(detached, tensors))
    attrs = {"function": function, "results": tuple(types), "name": name, "effect": "pure"}
    return list(apply_several(p.host_call, *plain, **attrs))


def _raised(primitive: str, check: str, info: Array, a: Array) -> None:
    """LinAlgError for the first matrix that failed."""
    failed = np.flatnonzero(info)
    if failed.size:
        at = int(failed[0])
        is_finite = bool(np.isfinite(a.reshape(-1, *a.shape[-2:])[at]).all())
        element = at if a.ndim > 2 else None
        raise failure(primitive, check, element, int(info.reshape(-1)[at]), is_finite)


# --- Cholesky's factor ---------------------------------------------------------------------------


def cholesky(A: Tensor, upper: bool, check: str) -> tuple[Tensor, Tensor]:
    """The factor, and LAPACK's `info`; with `check` a failure raises the error of that name."""
    read = adjoint(A) if upper else A
    batch = tuple(A._type.shape[:-2])
    name = check or "linalg.cholesky_ex"
    shapes = tuple(A._type.shape), (batch, int32)
    found, info = on_host(name, _CHOLESKY[check], (read,), *shapes)
    factor = _cholesky(A, found)  # as PyTorch has it for upper factors, too
    return adjoint(factor) if upper else factor, info


def _cholesky_on_host(a: Array) -> tuple[Array, Array]:
    from scipy.linalg import lapack  # a tenth of a second to import

    found, info = np.zeros_like(a), np.zeros(a.shape[:-2], np.int32)
    (function,) = lapack.get_lapack_funcs(("potrf",), (a,))
    for at in np.ndindex(a.shape[:-2]):
        if a.shape[-1]:
            found[at], info[at] = function(a[at], lower=True, clean=True)
            lost = ~(found[at].diagonal().real > 0)  # of what is not a number nothing is said
            info[at] = info[at] or (lost.argmax() + 1 if lost.any() else 0)
    return found, info


def _checking_cholesky(check: str) -> Callable[[Array], tuple[Array, Array]]:
    def function(a: Array) -> tuple[Array, Array]:
        found, info = _cholesky_on_host(a)
        _raised("cholesky", check, info, a)
        return found, info

    return function


_CHOLESKY = {
    "": _cholesky_on_host,
    **{name: _checking_cholesky(name) for name in ("linalg.cholesky", "linalg.cholesky_ex")},
}


@composite("complex_cholesky")
def _cholesky(a: Tensor, factor: Tensor) -> Tensor:
    return m.clone(factor)


@input_vjp(_cholesky, saves=(OUTPUT,))
def _cholesky_vjp(g: Tensor, out: Tensor, a: TensorType, factor: TensorType) -> Tensor:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10."""
    turned = adjoint(out)
    inner = diagonals.tril(matmul(turned, g))
    halved = e.mul(e.add(inner, adjoint(diagonals.tril(inner, -1))), 0.5)
    return solve(turned, adjoint(solve(turned, adjoint(halved), "")[0]), "")[0]


# --- systems -------------------------------------------------------------------------------------


def solve(A: Tensor, B: Tensor, check: str) -> tuple[Tensor, Tensor]:
    """The `X` with `A @ X = B` of one batch, and LAPACK's `info`."""
    batch = tuple(A._type.shape[:-2])
    found, info = on_host(
        check or "linalg.solve_ex", _solving(check), (A, B), tuple(B._type.shape), (batch, int32)
    )
    return _solved(A, B, found), info


def _solve_on_host(a: Array, b: Array) -> tuple[Array, Array]:
    from scipy.linalg import lapack

    found, info = np.zeros(b.shape, a.dtype), np.zeros(a.shape[:-2], np.int32)
    factor, substitute = lapack.get_lapack_funcs(("getrf", "getrs"), (a,))
    for at in np.ndindex(a.shape[:-2]):
        if prod(b.shape[-2:]):
            factors, pivots, info[at] = factor(a[at])
            with np.errstate(all="ignore"):
                found[at] = substitute(factors, pivots, b[at])[0]
    return found, info


_SOLVE: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {"": _solve_on_host}


def _solving(check: str) -> Callable[[Array, Array], tuple[Array, Array]]:
    found = _SOLVE.get(check)
    if found is None:

        def function(a: Array, b: Array) -> tuple[Array, Array]:
            x, info = _solve_on_host(a, b)
            _raised("lu", check, info, a)
            return x, info

        found = _SOLVE[check] = function
    return found


@composite("complex_solve")
def _solved(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return m.clone(x)


@vjp(_solved, saves=(0,), saves_outputs=lambda wanted: (0,))
def _solved_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), (x,), (a, *_) = cotangents, outputs, inputs
    back = solve(adjoint(a), g, "")[0]
    return [e.neg(matmul(back, adjoint(x))), back, None]


# --- LU factors ----------------------------------------------------------------------------------


def lu(A: Tensor, check: str) -> tuple[Tensor, Tensor, Tensor]:
    """`L` and `U` of a square matrix in one, without history, the order of rows, and `info`."""
    shape = tuple(A._type.shape)
    factors, order, info = on_host(
        check or "linalg.lu",
        _factoring(check),
        (A,),
        shape,
        (shape[:-1], int64),
        (shape[:-2], int32),
    )
    return factors, order, info


def _lu_on_host(a: Array) -> tuple[Array, Array, Array]:
    from scipy.linalg import lapack

    found, info = np.zeros_like(a), np.zeros(a.shape[:-2], np.int32)
    order = np.zeros(a.shape[:-1], np.int64)
    order[...] = np.arange(a.shape[-1])
    (function,) = lapack.get_lapack_funcs(("getrf",), (a,))
    for at in np.ndindex(a.shape[:-2]):
        if a.shape[-1]:
            found[at], pivots, info[at] = function(a[at])
            rows = order[at]
            for one, other in enumerate(pivots):
                rows[[one, other]] = rows[[other, one]]
    return found, order, info


_LU: dict[str, Callable[[Array], tuple[Array, Array, Array]]] = {"": _lu_on_host}


def _factoring(check: str) -> Callable[[Array], tuple[Array, Array, Array]]:
    found = _LU.get(check)
    if found is None:

        def function(a: Array) -> tuple[Array, Array, Array]:
            factors, order, info = _lu_on_host(a)
            _raised("lu", check, info, a)
            return factors, order, info

        found = _LU[check] = function
    return found


# --- QR ------------------------------------------------------------------------------------------


def qr(A: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """`Q` and `R`."""
    *batch, rows, columns = A._type.shape
    count = rows if complete else min(rows, columns)
    q, upper = on_host(
        "linalg.qr", _qr_complete if complete else _qr_reduced, (A,),
        (*batch, rows, count), (*batch, count, columns),
    )  # fmt: skip
    both = _qr(A, cat([q, m.transpose(upper, -2, -1)], -2), complete=complete)
    q = m.narrow(both, -2, 0, rows)
    return q, m.transpose(m.narrow(both, -2, rows, columns), -2, -1)


def _qr_reduced(a: Array) -> tuple[Array, Array]:
    q, upper = np.linalg.qr(a)
    return q, upper


def _qr_complete(a: Array) -> tuple[Array, Array]:
    q, upper = np.linalg.qr(a, "complete")
    return q, upper


@composite("complex_qr")
def _qr(a: Tensor, found: Tensor, complete: bool) -> Tensor:
    return m.clone(found)


@input_vjp(_qr, saves=(0, OUTPUT))
def _qr_vjp(g: Tensor, out: Tensor, a: Tensor, found: TensorType, complete: bool) -> Tensor:
    """Roberts and Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms" (2020)."""
    rows, columns = a._type.shape[-2:]
    if complete and rows > columns:
        raise NotImplementedError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    (q, upper), (g_q, g_r) = (
        (m.narrow(x, -2, 0, rows), m.transpose(m.narrow(x, -2, rows, columns), -2, -1))
        for x in (out, g)
    )
    if rows >= columns:
        return _qr_tall(g_q, g_r, q, upper)
    # The last columns are Q times those of R: they give to Q and come of it.
    left, right = (m.narrow(g_r, -1, at, size) for at, size in ((0, rows), (rows, columns - rows)))
    g_q = e.add(g_q, matmul(m.narrow(a, -1, rows, columns - rows), adjoint(right)))
    first = _qr_tall(g_q, left, q, m.narrow(upper, -1, 0, rows))
    return cat([first, matmul(q, right)], -1)


def _qr_tall(g_q: Tensor, g_r: Tensor, q: Tensor, upper: Tensor) -> Tensor:
    both = diagonals.triu(e.sub(matmul(g_r, adjoint(upper)), matmul(adjoint(q), g_q)))
    mirrored = e.add(both, adjoint(both))
    mirrored = e.sub(mirrored, e.mul(_on_diagonal(_diagonal(mirrored)), 0.5))
    inner = e.add(g_q, matmul(q, mirrored))
    return adjoint(solve(upper, adjoint(inner), "")[0])


# --- eigenvalues and singular values -------------------------------------------------------------


def eigh(A: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors; the lower triangle is read."""
    *batch, size, _ = A._type.shape
    (found,) = on_host("linalg.eigh", _eigh_on_host, (A,), (*batch, size + 1, size))
    both = _eigh(A, found)
    return real_part(m.select(both, -2, size)), m.narrow(both, -2, 0, size)


def _converging(function: Callable[[Array], Any], primitive: str, a: Array) -> Any:
    """What an iteration gives; LinAlgError where it does not end, and of what is not finite."""
    bad = np.flatnonzero(~np.isfinite(a).all((-2, -1)))
    element = int(bad[0]) if bad.size and a.ndim > 2 else None
    if bad.size:
        raise failure(primitive, f"linalg.{primitive}", element, 1, False)
    try:
        return function(a)
    except np.linalg.LinAlgError:
        raise failure(primitive, f"linalg.{primitive}", None, 1, True) from None


def _eigh_on_host(a: Array) -> tuple[Array]:
    values, vectors = _converging(np.linalg.eigh, "eigh", a)
    return (np.concatenate([vectors, values[..., None, :]], -2).astype(a.dtype),)


@composite("complex_eigh")
def _eigh(a: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


@input_vjp(_eigh, saves=(OUTPUT,))
def _eigh_vjp(g: Tensor, out: Tensor, a: TensorType, found: TensorType) -> Tensor:
    """Giles, "Collected Matrix Derivative Results" (2008), section 3.1."""
    size = a.shape[-1]
    vectors, values = m.narrow(out, -2, 0, size), part(m.select(out, -2, size), 0)
    rotation = matmul(adjoint(vectors), m.narrow(g, -2, 0, size))
    rotation = e.mul(e.sub(rotation, adjoint(rotation)), 0.5)
    apart = e.sub(m.unsqueeze(values, -2), m.unsqueeze(values, -1))
    own = _is_own(size, out)
    inner = e.div(rotation, e.where(own, 1.0, apart))
    along = as_complex(part(m.select(g, -2, size), 0), g)
    inner = e.where(own, m.unsqueeze(along, -1), inner)
    return matmul(matmul(vectors, inner), adjoint(vectors))


def svd(A: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """`U`, `S` and `Vh`; what stands behind as many vectors as values has no gradient."""
    *batch, rows, columns = A._type.shape
    count = min(rows, columns)
    left, right = (rows, columns) if full else (count, count)
    u, s, vh = on_host(
        "linalg.svd", _svd_full if full else _svd_reduced, (A,),
        (*batch, rows, left), ((*batch, count), A._type.dtype.to_real()), (*batch, right, columns),
    )  # fmt: skip
    parts = [
        m.narrow(u, -1, 0, count),
        m.transpose(m.narrow(vh, -2, 0, count), -2, -1),
        m.unsqueeze(as_complex(s, A), -2),
    ]
    found = _svd(A, cat(parts, -2))
    own_u = m.narrow(found, -2, 0, rows)
    own_vh = m.transpose(m.narrow(found, -2, rows, columns), -2, -1)
    if left > count:
        own_u = cat([own_u, m.narrow(u, -1, count, left - count)], -1)
    if right > count:
        own_vh = cat([own_vh, m.narrow(vh, -2, count, right - count)], -2)
    return own_u, real_part(m.select(found, -2, rows + columns)), own_vh


def _svd_reduced(a: Array) -> tuple[Array, Array, Array]:
    u, s, vh = _converging(lambda a: np.linalg.svd(a, full_matrices=False), "svd", a)
    return u, s, vh


def _svd_full(a: Array) -> tuple[Array, Array, Array]:
    u, s, vh = _converging(np.linalg.svd, "svd", a)
    return u, s, vh


@composite("complex_svd")
def _svd(a: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


@input_vjp(_svd, saves=(OUTPUT,))
def _svd_vjp(g: Tensor, out: Tensor, a: TensorType, found: TensorType) -> Tensor:
    """Townsend, "Differentiating the Singular Value Decomposition" (2016); of complex matrices the
    vectors turn together, which the diagonals tell."""
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    (u, vh, s), (g_u, g_vh, g_s) = (
        (
            m.narrow(x, -2, 0, rows),
            m.transpose(m.narrow(x, -2, rows, columns), -2, -1),
            part(m.select(x, -2, rows + columns), 0),
        )
        for x in (out, g)
    )
    across, along = m.unsqueeze(s, -2), m.unsqueeze(s, -1)
    own = _is_own(count, out)
    apart = e.where(own, 1.0, e.mul(e.sub(across, along), e.add(across, along)))
    of_u, of_v = matmul(adjoint(u), g_u), matmul(vh, adjoint(g_vh))
    turned_u, turned_v = (e.sub(each, adjoint(each)) for each in (of_u, of_v))
    inner = e.add(e.mul(e.div(turned_u, apart), across), e.mul(e.div(turned_v, apart), along))
    phases = e.div(_diagonal(turned_u), e.mul(s, 2.0))
    inner = e.where(own, m.unsqueeze(e.add(phases, as_complex(g_s, g)), -1), inner)
    found_ = matmul(matmul(u, inner), vh)
    if rows > count:
        found_ = e.add(found_, matmul(e.div(e.sub(g_u, matmul(u, of_u)), across), vh))
    if columns > count:
        rest = e.div(e.sub(g_vh, matmul(adjoint(of_v), vh)), along)
        found_ = e.add(found_, matmul(u, rest))
    return found_
