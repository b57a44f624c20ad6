"""The fake's cuBLAS and cuSOLVER, as CuPy's bindings have them: NumPy's and SciPy's, by columns.

They are parts of the current stream, refuse to be captured, and leave what a caller must not rely
on: NaN behind a pivot that is zero, in the triangle that a factorization does not write, and in
what it destroys.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from .arrays import computed
from .machine import Work, bytes_at, context, machine

HANDLE = 0x5017E5
PARAMS = 0x9A7A
UPPER, LOWER = 1, 0
LARGEST_JACOBI = 32
WORK = 7
_TYPES = {"s": np.dtype(np.float32), "d": np.dtype(np.float64)}


def handle() -> int:
    return HANDLE


def _check(given: int) -> None:
    assert given == HANDLE, "no handle of cuBLAS or cuSOLVER"
    if machine.stream(context.stream_pointer()).capture is not None:
        raise NotImplementedError("calling cuBLAS or cuSOLVER API during stream capture")


def _by_columns(at: int, rows: int, columns: int, dtype: np.dtype[Any]) -> Any:
    """A matrix in device memory."""
    return bytes_at(at, rows * columns * dtype.itemsize).view(dtype).reshape(columns, rows).T


def _integers(at: int, count: int) -> Any:
    return bytes_at(at, 4 * count).view(np.int32)


def _enqueue(name: str, run: Callable[[], None], *touches: tuple[int, int]) -> None:
    def quiet() -> None:
        with np.errstate(all="ignore"):
            run()

    kept = tuple(each for each in touches if each[1])
    machine.enqueue(context.stream_pointer(), Work(quiet, kept, name))


# -- one matrix ------------------------------------------------------------------------------


def _routine(letter: str, name: str) -> Any:
    return getattr(lapack, f"{letter}{name}")


def _factor_symmetric(letter: str, uplo: int, n: int, at: int, info: int) -> None:
    a = _by_columns(at, n, n, _TYPES[letter])
    found, said = _routine(letter, "potrf")(a, lower=uplo == LOWER, clean=False)
    a[...] = found
    triangle = np.tri(n, k=-1, dtype=bool)
    a[triangle if uplo == UPPER else triangle.T] = np.nan
    _integers(info, 1)[0] = said


def _factor_lu(letter: str, n: int, at: int, exchanges: int, info: int) -> None:
    a = _by_columns(at, n, n, _TYPES[letter])
    found, order, said = _routine(letter, "getrf")(a)
    if said:
        found[said - 1 :, said:] = found[said:, said - 1 :] = np.nan
        found[said - 1, said - 1] = 0
    a[...] = found
    _integers(exchanges, n)[:] = order + 1
    _integers(info, 1)[0] = said


def _eigen(letter: str, uplo: int, n: int, at: int, values: int, info: int) -> None:
    dtype = _TYPES[letter]
    a = _by_columns(at, n, n, dtype)
    if np.isfinite(a).all():
        w, v, said = _routine(letter, "syevd")(a, lower=uplo == LOWER)
    else:  # Jacobi's method may say nothing of these
        w, v, said = np.full(n, np.nan), np.nan, 0
    a[...] = -v
    bytes_at(values, n * dtype.itemsize).view(dtype)[:] = w
    _integers(info, 1)[0] = said


def _singular(a: Any, full: bool) -> tuple[Any, Any, Any]:
    m, n = a.shape
    if np.isfinite(a).all():
        return np.linalg.svd(a, full_matrices=full)  # type: ignore[return-value]
    k = min(m, n)
    sizes = (m, m if full else k), (k,), (n if full else k, n)
    return tuple(np.full(size, np.nan) for size in sizes)  # type: ignore[return-value]


# -- cuSOLVER --------------------------------------------------------------------------------


def _potrf(
    letter: str, handle: int, uplo: int, n: int, A: int, lda: int, work: int, lwork: int,
    devInfo: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n > 0 and lwork == n + WORK
    size = _TYPES[letter].itemsize
    _enqueue("potrf", partial(_factor_symmetric, letter, uplo, n, A, devInfo),
             (A, n * n * size), (work, lwork * size), (devInfo, 4))  # fmt: skip


def _potrf_buffer(letter: str, handle: int, uplo: int, n: int, A: int, lda: int) -> int:
    _check(handle)
    return n + WORK


def _places(at: int, count: int) -> list[int]:
    return [int(each) for each in bytes_at(at, 8 * count).view(np.uint64)]


def _potrf_batched(
    letter: str, handle: int, uplo: int, n: int, Aarray: int, lda: int, infoArray: int,
    batchSize: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n > 0 < batchSize

    def run() -> None:
        for number, at in enumerate(_places(Aarray, batchSize)):
            _factor_symmetric(letter, uplo, n, at, infoArray + 4 * number)

    _enqueue("potrfBatched", run, (Aarray, 8 * batchSize), (infoArray, 4 * batchSize))


def _getrf(
    letter: str, handle: int, m: int, n: int, A: int, lda: int, work: int, devIpiv: int,
    devInfo: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n == m > 0
    size = _TYPES[letter].itemsize
    _enqueue("getrf", partial(_factor_lu, letter, n, A, devIpiv, devInfo), (A, n * n * size),
             (work, (n + WORK) * size), (devIpiv, 4 * n), (devInfo, 4))  # fmt: skip


def _getrf_buffer(letter: str, handle: int, m: int, n: int, A: int, lda: int) -> int:
    _check(handle)
    return n + WORK


def _syevd(
    letter: str, handle: int, jobz: int, uplo: int, n: int, A: int, lda: int, W: int, work: int,
    lwork: int, info: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n > 0 and jobz == 1 and lwork == n + WORK
    size = _TYPES[letter].itemsize
    _enqueue("syevd", partial(_eigen, letter, uplo, n, A, W, info), (A, n * n * size),
             (W, n * size), (work, lwork * size), (info, 4))  # fmt: skip


def _syevd_buffer(
    letter: str, handle: int, jobz: int, uplo: int, n: int, A: int, lda: int, W: int
) -> int:
    _check(handle)
    return n + WORK


def _syevj_batched(
    letter: str, handle: int, jobz: int, uplo: int, n: int, A: int, lda: int, W: int, work: int,
    lwork: int, info: int, params: int, batchSize: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n > 0 < batchSize and jobz == 1 and params == PARAMS and n <= LARGEST_JACOBI
    size = _TYPES[letter].itemsize

    def run() -> None:
        for each in range(batchSize):
            _eigen(letter, uplo, n, A + each * n * n * size, W + each * n * size, info + 4 * each)

    _enqueue("syevjBatched", run, (A, batchSize * n * n * size), (W, batchSize * n * size),
             (work, lwork * size), (info, 4 * batchSize))  # fmt: skip


def _syevj_batched_buffer(
    letter: str, handle: int, jobz: int, uplo: int, n: int, A: int, lda: int, W: int, params: int,
    batchSize: int,
) -> int:  # fmt: skip
    _check(handle)
    return n + WORK


def _gesvd(
    letter: str, handle: int, jobu: int, jobvt: int, m: int, n: int, A: int, lda: int, S: int,
    U: int, ldu: int, VT: int, ldvt: int, Work: int, lwork: int, rwork: int, devInfo: int,
) -> None:  # fmt: skip
    _check(handle)
    assert m >= n > 0 and (lda, ldu, ldvt, rwork) == (m, m, n, 0) and lwork == m + WORK
    assert jobu == jobvt and chr(jobu) in "AS"
    dtype, full = _TYPES[letter], chr(jobu) == "A"
    wide = m if full else n

    def run() -> None:
        a = _by_columns(A, m, n, dtype)
        u, s, vt = _singular(a, full)
        a[...] = np.nan
        _by_columns(U, m, wide, dtype)[...] = -u
        _by_columns(VT, n, n, dtype)[...] = -vt
        bytes_at(S, n * dtype.itemsize).view(dtype)[:] = s
        _integers(devInfo, 1)[0] = 0

    _enqueue("gesvd", run, *((at, count * dtype.itemsize) for at, count in (
        (A, m * n), (S, n), (U, m * wide), (VT, n * n), (Work, lwork))), (devInfo, 4))  # fmt: skip


def _gesvd_buffer(letter: str, handle: int, m: int, n: int) -> int:
    _check(handle)
    return m + WORK


def _gesvdj_batched(
    letter: str, handle: int, jobz: int, m: int, n: int, A: int, lda: int, S: int, U: int, ldu: int,
    V: int, ldv: int, work: int, lwork: int, info: int, params: int, batchSize: int,
) -> None:  # fmt: skip
    _check(handle)
    assert (lda, ldu, ldv) == (m, m, n) and jobz == 1 and params == PARAMS and min(m, n) > 0
    assert max(m, n) <= LARGEST_JACOBI and batchSize > 0
    dtype, k = _TYPES[letter], min(m, n)
    size = dtype.itemsize

    def run() -> None:
        for each in range(batchSize):
            a = _by_columns(A + each * m * n * size, m, n, dtype)
            u, s, vt = _singular(a, True)
            a[...] = np.nan
            _by_columns(U + each * m * m * size, m, m, dtype)[...] = u
            _by_columns(V + each * n * n * size, n, n, dtype)[...] = vt.T
            bytes_at(S + each * k * size, k * size).view(dtype)[:] = s
            _integers(info, batchSize)[each] = 0

    counts = ((A, m * n), (S, k), (U, m * m), (V, n * n))
    _enqueue("gesvdjBatched", run, *((at, batchSize * count * size) for at, count in counts),
             (work, lwork * size), (info, 4 * batchSize))  # fmt: skip


def _gesvdj_batched_buffer(
    letter: str, handle: int, jobz: int, m: int, n: int, A: int, lda: int, S: int, U: int, ldu: int,
    V: int, ldv: int, params: int, batchSize: int,
) -> int:  # fmt: skip
    _check(handle)
    return m + n + WORK


# -- cuBLAS ----------------------------------------------------------------------------------


def _getrf_batched(
    letter: str, handle: int, n: int, Aarray: int, lda: int, PivotArray: int, infoArray: int,
    batchSize: int,
) -> None:  # fmt: skip
    _check(handle)
    assert lda == n > 0 < batchSize

    def run() -> None:
        for number, at in enumerate(_places(Aarray, batchSize)):
            _factor_lu(letter, n, at, PivotArray + 4 * n * number, infoArray + 4 * number)

    _enqueue("getrfBatched", run, (Aarray, 8 * batchSize), (PivotArray, 4 * n * batchSize),
             (infoArray, 4 * batchSize))  # fmt: skip


def _solve(
    letter: str, uplo: int, trans: int, diag: int, m: int, n: int, alpha: float, A: int, B: int
) -> None:
    """B = alpha * B @ op(A)^-1."""
    a, b = _by_columns(A, n, n, _TYPES[letter]), _by_columns(B, m, n, _TYPES[letter])
    trsm = getattr(blas, f"{letter}trsm")
    b[...] = trsm(alpha, a, b, side=1, lower=uplo == LOWER, trans_a=trans, diag=diag)


def _alpha(letter: str, at: int) -> float:
    return float(bytes_at(at, _TYPES[letter].itemsize).view(_TYPES[letter])[0])  # of the host


def _trsm(
    letter: str, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
    alpha: int, Aarray: int, lda: int, Barray: int, ldb: int,
) -> None:  # fmt: skip
    _check(handle)
    assert side == 1 and lda == n > 0 and ldb == m > 0
    size, by = _TYPES[letter].itemsize, _alpha(letter, alpha)
    run = partial(_solve, letter, uplo, trans, diag, m, n, by, Aarray, Barray)
    _enqueue("trsm", run, (Aarray, n * n * size), (Barray, m * n * size))


def _trsm_batched(
    letter: str, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int,
    alpha: int, Aarray: int, lda: int, Barray: int, ldb: int, batchCount: int,
) -> None:  # fmt: skip
    _check(handle)
    assert side == 1 and lda == n > 0 and ldb == m > 0 and batchCount > 0
    by = _alpha(letter, alpha)

    def run() -> None:
        for a, b in zip(_places(Aarray, batchCount), _places(Barray, batchCount), strict=True):
            _solve(letter, uplo, trans, diag, m, n, by, a, b)

    _enqueue("trsmBatched", run, (Aarray, 8 * batchCount), (Barray, 8 * batchCount))


# -- what modules have -----------------------------------------------------------------------


def _both(functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    return {
        letter + name: partial(function, letter)
        for name, function in functions.items()
        for letter in _TYPES
    }


CUBLAS: dict[str, Any] = {
    "CUBLAS_SIDE_RIGHT": 1,
    "CUBLAS_FILL_MODE_LOWER": LOWER,
    "CUBLAS_FILL_MODE_UPPER": UPPER,
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_DIAG_NON_UNIT": 0,
    "CUBLAS_DIAG_UNIT": 1,
    **_both(
        {"getrfBatched": _getrf_batched, "trsm": _trsm, "trsmBatched": _trsm_batched},
    ),
}
CUSOLVER: dict[str, Any] = {
    "CUSOLVER_EIG_MODE_VECTOR": 1,
    "createSyevjInfo": lambda: PARAMS,
    "destroySyevjInfo": lambda info: None,
    "createGesvdjInfo": lambda: PARAMS,
    "destroyGesvdjInfo": lambda info: None,
    **_both(
        {
            "potrf": _potrf,
            "potrf_bufferSize": _potrf_buffer,
            "potrfBatched": _potrf_batched,
            "getrf": _getrf,
            "getrf_bufferSize": _getrf_buffer,
            "syevd": _syevd,
            "syevd_bufferSize": _syevd_buffer,
            "syevjBatched": _syevj_batched,
            "syevjBatched_bufferSize": _syevj_batched_buffer,
            "gesvd": _gesvd,
            "gesvd_bufferSize": _gesvd_buffer,
            "gesvdjBatched": _gesvdj_batched,
            "gesvdjBatched_bufferSize": _gesvdj_batched_buffer,
        }
    ),
}


def qr(a: Any, mode: str = "reduced") -> Any:
    """cupy.linalg.qr."""
    assert mode in ("reduced", "complete")
    host = a._np
    *_, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    empty = not prod(a.shape)

    def factor(index: int) -> Any:
        if empty:
            sizes = ((*a.shape[:-2], m, k), (*a.shape[:-2], k, n))
            return np.broadcast_to(np.eye(*sizes[index][-2:], dtype=host.dtype), sizes[index])
        return np.linalg.qr(host, mode)[index]  # type: ignore[call-overload]

    _check(HANDLE)
    return tuple(computed(partial(factor, index), a) for index in (0, 1))
