"""Factorizations by LAPACK, through NumPy for whole batches and SciPy where it has more to tell.

Arrays of a GPU are brought to the host and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function
from .cuda import arrays as cuda_arrays


class LinAlgError(RuntimeError):
    """A matrix cannot be factorized, or a system not be solved."""


def _on_host(function: Callable[..., Any]) -> Function:
    def run(xp: Any, *arrays: Array, **attrs: Any) -> Any:
        if xp is np:
            return function(*arrays, **attrs)
        found = function(*map(cuda_arrays.download, arrays), **attrs)
        if isinstance(found, tuple):
            return tuple(map(xp.asarray, found))
        return xp.asarray(found)

    return run


def _cholesky(a: Array, check: str) -> tuple[Array, Array]:
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return np.linalg.cholesky(a), info
    except np.linalg.LinAlgError:
        potrf = _routine("potrf", a)
        factors = np.empty_like(a)
        for at in np.ndindex(info.shape):
            factors[at], info[at] = potrf(a[at], lower=True)
    of, order = _first_failure(info)
    if check:
        raise LinAlgError(
            f"{check}: {of}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {order} is not positive-definite)."
        )
    return factors, info


def _lu(a: Array, check: str) -> tuple[Array, ...]:
    n = a.shape[-1]
    factors, rows = np.empty_like(a), np.empty(a.shape[:-1], np.int64)
    sign, info = np.ones(a.shape[:-2], a.dtype), np.zeros(a.shape[:-2], np.int32)
    getrf = _routine("getrf", a)
    for at in np.ndindex(info.shape) if n else ():
        factors[at], swaps, info[at] = getrf(a[at])
        permuted = list(range(n))
        for one, other in enumerate(swaps.tolist()):
            permuted[one], permuted[other] = permuted[other], permuted[one]
        rows[at] = permuted
        sign[at] = -1 if np.count_nonzero(swaps != np.arange(n)) % 2 else 1
    if check and info.any():
        of, order = _first_failure(info)
        what = f"diagonal element {order} is zero, the inversion could not be completed"
        what = what if check == "linalg.inv" else "solver failed"
        raise LinAlgError(f"{check}: {of}The {what} because the input matrix is singular.")
    return factors, rows, sign, info


def _triangular_solve(a: Array, b: Array, lower: bool, transpose: bool, unit: bool) -> Array:
    """By columns, as LAPACK counts: the transposed equation, with the matrix on the right."""
    solved = np.empty_like(b)
    if not b.size:
        return solved
    trsm = _routine("trsm", a, "blas")
    for at in np.ndindex(a.shape[:-2]):
        solved[at] = trsm(
            1.0, a[at].T, b[at].T, side=1, lower=not lower, trans_a=transpose, diag=unit
        ).T
    return solved


def _qr(a: Array, complete: bool) -> tuple[Array, ...]:
    found = np.linalg.qr(a, "complete" if complete else "reduced")
    return tuple(each.astype(a.dtype, copy=False) for each in found)


def _eigh(a: Array, check: str) -> tuple[Array, ...]:
    shapes = [(a.shape[:-1], a.dtype), (a.shape, a.dtype)]
    return _converged(np.linalg.eigh, a, check, shapes)


def _svd(a: Array, full: bool, check: str) -> tuple[Array, ...]:
    *batch, m, n = a.shape
    k = min(m, n)
    rows, columns = (m, n) if full else (k, k)
    shapes = [((*batch, *each), a.dtype) for each in ((m, rows), (k,), (columns, n))]
    if not a.size:  # which NumPy refuses
        u, s, vh = (np.zeros(*each) for each in shapes)
        u[...], vh[...] = np.eye(m, rows), np.eye(columns, n)
        return u, s, vh, np.zeros(batch, np.int32)
    return _converged(lambda x: np.linalg.svd(x, full_matrices=full), a, check, shapes)


def _converged(
    factorize: Callable[[Array], Any], a: Array, check: str, shapes: list[Any]
) -> tuple[Array, ...]:
    """The results, and 1 for each matrix for which the iteration did not converge."""
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return (*factorize(a), info)
    except np.linalg.LinAlgError:
        found = [np.full(shape, np.nan, dtype) for shape, dtype in shapes]
        for at in np.ndindex(info.shape):
            try:
                for result, each in zip(found, factorize(a[at]), strict=True):
                    result[at] = each
            except np.linalg.LinAlgError:
                info[at] = 1
    if check:
        of, _ = _first_failure(info)
        finite = np.isfinite(a.reshape(-1, *a.shape[-2:])[np.flatnonzero(info)[0]]).all()
        why = "is ill-conditioned" if finite else "contained non-finite values"
        raise LinAlgError(
            f"{check}: {of}The algorithm failed to converge because the input matrix {why}."
        )
    return (*found, info)


def _first_failure(info: Array) -> tuple[str, int]:
    """Which element of a batch failed first, for the message, and what LAPACK said of it."""
    number = int(np.flatnonzero(info)[0])
    return (f"(Batch element {number}): " if info.ndim else ""), int(info.reshape(-1)[number])


def _routine(name: str, a: Array, library: str = "lapack") -> Any:
    """A function of LAPACK or BLAS for the dtype; SciPy takes a fifth of a second to import."""
    from scipy import linalg

    return getattr(getattr(linalg, library), ("s" if a.dtype == np.float32 else "d") + name)


_ROUTINES: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
    "qr": _qr,
    "eigh": _eigh,
    "svd": _svd,
}
FUNCTIONS: dict[str, Function] = {name: _on_host(each) for name, each in _ROUTINES.items()}
