"""Factorizations on a device: cuSOLVER's routines, and cuBLAS's for triangular systems.

They give what `compiler/ir/factorizations.py` tells, but that signs of vectors are cuSOLVER's own.
Matrices lie by rows, so that the libraries, which count by columns, see their transposes. Small
matrices of a batch are done by one call (of 32 rows at most where only Jacobi's method is batched).
Nothing is waited for; workspace comes from the pool of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..linalg_error import failure
from ..plan_steps import RoutineStep
from . import backend, nvrtc
from .arrays import cupy_array, download, uploaded
from .devices import architecture, cuda_device
from .factorization_text import BLOCK, KERNELS, factorization_text
from .launches import Launch, launch

Array = Any  # of CuPy
Attrs = Mapping[str, Any]
Shapes = Sequence[tuple[int, ...]]

_LETTER = {"float32": "s", "float64": "d"}
MOST_JACOBI = 32
"""The largest matrices whose batches cuSOLVER factorizes by Jacobi's method."""


def result_types(
    primitive: str, shapes: Shapes, dtype: np.dtype[Any], attrs: Attrs
) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shapes and dtypes of all results."""
    *batch, m, n = shapes[0]
    k = min(m, n)
    wide = m if attrs.get("complete") or attrs.get("full") else k
    found: dict[str, tuple[tuple[int, ...], ...]] = {
        "cholesky": ((n, n),),
        "lu": ((n, n), (n,), ()),
        "triangular_solve": (shapes[-1][-2:],),
        "qr": ((m, wide), (wide, n)),
        "eigh": ((n,), (n, n)),
        "svd": ((m, wide), (k,), (n if attrs.get("full") else k, n)),
    }
    types = [((*batch, *each), dtype) for each in found[primitive]]
    if primitive == "lu":
        types[1] = types[1][0], np.dtype(np.int64)
    if primitive not in ("triangular_solve", "qr"):
        types.append(((*batch,), np.dtype(np.int32)))
    return types


def factorize(primitive: str, operands: Sequence[Array], attrs: Attrs) -> list[Array]:
    """All results; a failure that the call checks for is waited for, and raises LinAlgError."""
    xp = backend.cupy()
    shapes = [each.shape for each in operands]
    types = result_types(primitive, shapes, operands[0].dtype, attrs)
    results = [xp.empty(shape, dtype) for shape, dtype in types]
    run(primitive, operands, results, attrs)
    if attrs.get("check"):
        said = download(results[-1]).reshape(-1)
        if said.any():
            first = int(np.flatnonzero(said)[0])
            shape = shapes[0]
            matrix = download(operands[0].reshape(-1, *shape[-2:])[first])
            element = first if len(shape) > 2 else None
            is_finite = bool(np.isfinite(matrix).all())
            raise failure(primitive, attrs["check"], element, int(said[first]), is_finite)
    return results


def run(primitive: str, operands: Sequence[Array], results: Sequence[Array], attrs: Attrs) -> None:
    """Write all results, which are contiguous, on the current device and stream."""
    _ROUTINES[primitive](*operands, attrs, *results)


def run_step(
    step: RoutineStep, operands: Sequence[Array], results: Sequence[Array | None], status: int
) -> None:
    """Write the results that somebody reads; a failure goes to the status at an address."""
    xp, attrs = backend.cupy(), dict(step.attrs)
    shapes = [each.shape for each in operands]
    types = result_types(step.primitive, shapes, operands[0].dtype, attrs)
    whole = [
        xp.empty(*type_) if each is None else each
        for type_, each in zip(types, results, strict=True)
    ]
    run(step.primitive, operands, whole, attrs)
    if step.site and operands[0].size:
        matrices = xp.ascontiguousarray(operands[0])
        members, elements = prod(shapes[0][:-2]), prod(shapes[0][-2:])
        _launch(
            matrices.dtype, "tg_failed", 1, whole[-1], matrices, members, elements, step.site,
            status,
        )  # fmt: skip


# -- routines --------------------------------------------------------------------------------


def _cholesky(a: Array, attrs: Attrs, factors: Array, info: Array) -> None:
    n, members = a.shape[-1], prod(a.shape[:-2])
    if not a.size:
        info.fill(0)
        return
    factors[...] = a
    cublas, solver = backend.libraries()
    letter, upper = _LETTER[a.dtype.name], cublas.CUBLAS_FILL_MODE_UPPER
    handle = _solver_handle()
    if members > 1:
        batched = getattr(solver, f"{letter}potrfBatched")
        places = _places(factors)
        batched(handle, upper, n, places.data.ptr, n, info.data.ptr, members)
    else:
        at = factors.data.ptr
        size = getattr(solver, f"{letter}potrf_bufferSize")(handle, upper, n, at, n)
        work = _workspace(size, a.dtype)
        getattr(solver, f"{letter}potrf")(
            handle, upper, n, at, n, work.data.ptr, size, info.data.ptr
        )
    _launch(a.dtype, "tg_cholesky", members, factors, info, n)


def _lu(a: Array, attrs: Attrs, factors: Array, rows: Array, signs: Array, info: Array) -> None:
    n, members = a.shape[-1], prod(a.shape[:-2])
    if not a.size:
        info.fill(0)
        signs.fill(1)
        return
    xp = backend.cupy()
    a = xp.ascontiguousarray(a)
    by_columns = a.swapaxes(-1, -2).copy(order="C")
    exchanges = xp.empty((members, n), np.int32)
    cublas, solver = backend.libraries()
    letter = _LETTER[a.dtype.name]
    if members * 65536 >= n * n:  # CuPy's own choice
        batched = getattr(cublas, f"{letter}getrfBatched")
        places = _places(by_columns)
        batched(_blas_handle(), n, places.data.ptr, n, exchanges.data.ptr, info.data.ptr, members)
    else:
        handle, at = _solver_handle(), by_columns.data.ptr
        size = getattr(solver, f"{letter}getrf_bufferSize")(handle, n, n, at, n)
        work = _workspace(size, a.dtype)
        getrf = getattr(solver, f"{letter}getrf")
        for member in range(members):
            getrf(
                handle, n, n, at + member * n * n * a.itemsize, n, work.data.ptr,
                exchanges.data.ptr + 4 * n * member, info.data.ptr + 4 * member,
            )  # fmt: skip
    factors[...] = by_columns.swapaxes(-1, -2)
    _launch(a.dtype, "tg_lu", members, a, exchanges, info, factors, rows, signs, n)


def _triangular_solve(a: Array, b: Array, attrs: Attrs, x: Array) -> None:
    """x.T @ op(a).T = b.T, of what lies by rows read by columns."""
    (n, columns), members = b.shape[-2:], prod(a.shape[:-2])
    x[...] = b
    if not b.size:
        return
    cublas, _ = backend.libraries()
    a = backend.cupy().ascontiguousarray(a)
    one = np.array(1, a.dtype)
    lower, transpose, unit = attrs["lower"], attrs["transpose"], attrs["unit"]
    how = (
        cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_FILL_MODE_UPPER if lower else cublas.CUBLAS_FILL_MODE_LOWER,
        cublas.CUBLAS_OP_T if transpose else cublas.CUBLAS_OP_N,
        cublas.CUBLAS_DIAG_UNIT if unit else cublas.CUBLAS_DIAG_NON_UNIT,
        columns, n, one.ctypes.data,
    )  # fmt: skip
    letter = _LETTER[a.dtype.name]
    if members > 1:
        batched, left, right = getattr(cublas, f"{letter}trsmBatched"), _places(a), _places(x)
        batched(_blas_handle(), *how, left.data.ptr, n, right.data.ptr, columns, members)
    else:
        trsm = getattr(cublas, f"{letter}trsm")
        trsm(_blas_handle(), *how, a.data.ptr, n, x.data.ptr, columns)


def _qr(a: Array, attrs: Attrs, q: Array, r: Array) -> None:
    found = backend.cupy().linalg.qr(a, "complete" if attrs["complete"] else "reduced")
    for out, each in zip((q, r), found, strict=True):
        out[...] = each


def _eigh(a: Array, attrs: Attrs, values: Array, vectors: Array, info: Array) -> None:
    n, members = a.shape[-1], prod(a.shape[:-2])
    if not a.size:
        info.fill(0)
        return
    cublas, solver = backend.libraries()
    by_columns = a.swapaxes(-1, -2).copy(order="C")
    letter, handle, at = _LETTER[a.dtype.name], _solver_handle(), by_columns.data.ptr
    how = solver.CUSOLVER_EIG_MODE_VECTOR, cublas.CUBLAS_FILL_MODE_LOWER, n
    if members > 1 and n <= MOST_JACOBI:
        params = solver.createSyevjInfo()
        try:
            size = getattr(solver, f"{letter}syevjBatched_bufferSize")(
                handle, *how, at, n, values.data.ptr, params, members
            )
            work = _workspace(size, a.dtype)
            getattr(solver, f"{letter}syevjBatched")(
                handle, *how, at, n, values.data.ptr, work.data.ptr, size, info.data.ptr, params,
                members,
            )  # fmt: skip
        finally:
            solver.destroySyevjInfo(params)
    else:
        size = getattr(solver, f"{letter}syevd_bufferSize")(handle, *how, at, n, values.data.ptr)
        work = _workspace(size, a.dtype)
        syevd = getattr(solver, f"{letter}syevd")
        for member in range(members):
            first = member * n * a.itemsize
            syevd(
                handle, *how, at + first * n, n, values.data.ptr + first, work.data.ptr, size,
                info.data.ptr + 4 * member,
            )  # fmt: skip
    vectors[...] = by_columns.swapaxes(-1, -2)
    _launch(a.dtype, "tg_converged", members, values, info, n)


def _svd(a: Array, attrs: Attrs, u: Array, s: Array, vh: Array, info: Array) -> None:
    (m, n), members = a.shape[-2:], prod(a.shape[:-2])
    if not a.size:
        info.fill(0)
        for out in (u, vh):
            out[...] = uploaded(np.eye(*out.shape[-2:], dtype=out.dtype))
        return
    if members > 1 and max(m, n) <= MOST_JACOBI:
        _svd_by_jacobi(a, u, s, vh, info)
    elif n >= m:
        # The transpose by columns is u' s v'.T: its factors by rows are those of a, exchanged.
        _svd_of_columns(a.copy(order="C"), n, m, attrs["full"], vh, s, u, info)
    else:
        xp = backend.cupy()
        left = xp.empty((*a.shape[:-2], u.shape[-1], m), a.dtype)
        right = xp.empty((*a.shape[:-2], n, n), a.dtype)
        by_columns = a.swapaxes(-1, -2).copy(order="C")
        _svd_of_columns(by_columns, m, n, attrs["full"], left, s, right, info)
        u[...], vh[...] = left.swapaxes(-1, -2), right.swapaxes(-1, -2)
    _launch(a.dtype, "tg_converged", members, s, info, min(m, n))


def _svd_of_columns(
    a: Array, m: int, n: int, full: bool, u: Array, s: Array, vt: Array, info: Array
) -> None:
    """Of m x n matrices by columns, m >= n, to matrices by columns; `a` is destroyed."""
    _, solver = backend.libraries()
    letter, handle = _LETTER[a.dtype.name], _solver_handle()
    size = getattr(solver, f"{letter}gesvd_bufferSize")(handle, m, n)
    work = _workspace(size, a.dtype)
    job, gesvd = ord("A" if full else "S"), getattr(solver, f"{letter}gesvd")
    for member in range(prod(a.shape[:-2])):
        places = [
            each.data.ptr + member * count * a.itemsize
            for each, count in ((a, m * n), (s, n), (u, m * (m if full else n)), (vt, n * n))
        ]
        of_a, of_s, of_u, of_vt = places
        gesvd(
            handle, job, job, m, n, of_a, m, of_s, of_u, m, of_vt, n, work.data.ptr, size, 0,
            info.data.ptr + 4 * member,
        )  # fmt: skip


def _svd_by_jacobi(a: Array, u: Array, s: Array, vh: Array, info: Array) -> None:
    """One call for a batch of small matrices, which gives complete bases."""
    xp, (_, solver) = backend.cupy(), backend.libraries()
    (m, n), members = a.shape[-2:], prod(a.shape[:-2])
    by_columns = a.swapaxes(-1, -2).copy(order="C")
    left = xp.empty((*a.shape[:-2], m, m), a.dtype)
    right = xp.empty((*a.shape[:-2], n, n), a.dtype)
    letter, handle = _LETTER[a.dtype.name], _solver_handle()
    how = (
        handle, solver.CUSOLVER_EIG_MODE_VECTOR, m, n, by_columns.data.ptr, m, s.data.ptr,
        left.data.ptr, m, right.data.ptr, n,
    )  # fmt: skip
    params = solver.createGesvdjInfo()
    try:
        size = getattr(solver, f"{letter}gesvdjBatched_bufferSize")(*how, params, members)
        work = _workspace(size, a.dtype)
        batched = getattr(solver, f"{letter}gesvdjBatched")
        batched(*how, work.data.ptr, size, info.data.ptr, params, members)
    finally:
        solver.destroyGesvdjInfo(params)
    u[...] = left.swapaxes(-1, -2)[..., : u.shape[-1]]
    vh[...] = right[..., : vh.shape[-2], :]


_ROUTINES: dict[str, Callable[..., None]] = {
    "cholesky": _cholesky,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
    "qr": _qr,
    "eigh": _eigh,
    "svd": _svd,
}


# -- what they share -------------------------------------------------------------------------


def _solver_handle() -> int:
    return int(backend.cupy().cuda.device.get_cusolver_handle())


def _blas_handle() -> int:
    return int(backend.cupy().cuda.device.get_cublas_handle())


def _workspace(elements: int, dtype: np.dtype[Any]) -> Array:
    return backend.cupy().empty(max(elements, 1), dtype)


def _places(matrices: Array) -> Array:
    """The addresses of contiguous matrices, on the device."""
    members, step = prod(matrices.shape[:-2]), prod(matrices.shape[-2:]) * matrices.itemsize
    start = matrices.data.ptr
    return backend.cupy().arange(start, start + step * members, step, dtype=np.uint64)


def _launch(dtype: np.dtype[Any], name: str, blocks: int, *values: Any) -> None:
    """A kernel of our own, of arrays and numbers, each of which takes eight bytes."""
    is_array = cupy_array()
    words = np.array(
        [each.data.ptr if isinstance(each, is_array) else each for each in values], np.int64
    )
    table = words.ctypes.data + 8 * np.arange(len(words), dtype=np.int64)
    function = _functions(dtype.name)[name]
    asked = Launch(name, function, blocks, (BLOCK, 1), 0, table.ctypes.data)
    launch(asked, backend.cupy().cuda.get_current_stream().ptr)


def _functions(dtype: str) -> dict[str, int]:
    """The driver's handles of our kernels on the current device."""
    device, kept = cuda_device(None), backend.kept()
    found: dict[str, int] | None = kept.get((_functions, dtype, device))
    if found is None:
        module = backend.cupy().cuda.function.Module()
        module.load(nvrtc.compile_cubin(factorization_text(dtype), architecture(device)))
        functions = {name: module.get_function(name) for name in KERNELS}
        kept[_functions, dtype, device, "held"] = module, functions
        found = {name: int(function.ptr) for name, function in functions.items()}
        kept[_functions, dtype, device] = found
    return found
