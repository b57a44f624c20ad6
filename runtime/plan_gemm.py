"""How a matrix product becomes a native step: batch dimensions merged, work cut for threads."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import NamedTuple

from . import blas, plan_native
from .plan_steps import BufferRef, GemmStep, merged_batch

MAX_BATCH_DIMS = 4
MIN_FLOPS = 500_000
"""The least work that is worth a thread: some microseconds."""

ROWS, COLUMNS = 16, 32
"""Rows or columns in the granules into which one product is cut."""


class NativeProduct(NamedTuple):
    """A step of the native table; extent and grain are in granules."""

    body: int
    args: tuple[BufferRef, ...]
    extent: int
    grain: int
    parameters: list[int]


class _Call(NamedTuple):
    """One BLAS call per granule, with the numbers that `plan_native` names."""

    letters: str
    sizes: tuple[int, int, int]
    leading: tuple[int, int, int]
    by_rows: bool
    length: int  # rows or columns to cut
    along: tuple[int, int, int]  # elements from one of them to the next
    unit: int  # granules have a multiple of so many
    flops: int  # of one row or column


def native_product(step: GemmStep) -> NativeProduct | None:
    """The native form of `step`, None where C is empty."""
    _check(step)
    step = _merge_into_rows(replace(step, batch=merged_batch(step.batch)))
    items = math.prod(size for size, *_ in step.batch)
    if not (step.m and step.n and items):
        return None
    if step.k and 1 in (step.m, step.n):
        # A row times a matrix is the transposed matrix times a column.
        step = step if step.n == 1 else _transposed(step)
        call, body, function = _gemv(step), plan_native.load().gemv, blas.load().gemv(step.dtype)
    else:
        call, body, function = _gemm(step), plan_native.load().gemm, blas.load().gemm(step.dtype)
    size = call.unit * max(1, MIN_FLOPS // 8 // (call.unit * call.flops))
    granules = -(-call.length // size)
    extent = items * granules
    grain = max(1, MIN_FLOPS // (min(size, call.length) * call.flops))
    return NativeProduct(
        body,
        (step.a, step.b, step.c),
        extent,
        grain if _can_split() else extent,
        [function, *_parameters(step, call, size, granules)],
    )


def _check(step: GemmStep) -> None:
    if step.dtype not in ("float32", "float64"):
        raise ValueError(f"gemm {step.name}: expected float32 or float64, got {step.dtype}")
    if step.epilogue:
        raise ValueError(f"gemm {step.name}: expected no epilogue, got {step.epilogue}")
    if len(step.batch) > MAX_BATCH_DIMS:
        raise ValueError(
            f"gemm {step.name}: expected at most {MAX_BATCH_DIMS} batch dimensions, "
            f"got {len(step.batch)}"
        )
    a = (step.k, step.m) if step.transpose_a else (step.m, step.k)
    b = (step.n, step.k) if step.transpose_b else (step.k, step.n)
    stored = [("a", step.lda, a), ("b", step.ldb, b), ("c", step.ldc, (step.m, step.n))]
    for name, leading, (rows, width) in stored:
        if rows > 1 and leading < width:
            raise ValueError(
                f"gemm {step.name}: expected ld{name} of at least {width}, the elements in a row "
                f"of {name}, got {leading}"
            )


def _merge_into_rows(step: GemmStep) -> GemmStep:
    """A batch of A with one B and rows that follow each other is one taller product."""
    if step.transpose_a or not step.batch:
        return step
    size, a, b, c = step.batch[-1]
    if b or a != step.m * step.lda or c != step.m * step.ldc:
        return step
    return replace(step, m=step.m * size, batch=step.batch[:-1])


def _transposed(step: GemmStep) -> GemmStep:
    """The step for the transposed product, whose C is one column instead of one row."""
    return replace(
        step,
        m=step.n,
        n=1,
        a=step.b,
        b=step.a,
        lda=step.ldb,
        ldb=step.lda,
        transpose_a=not step.transpose_b,
        transpose_b=not step.transpose_a,
        ldc=1,
        batch=tuple((size, b, a, c) for size, a, b, c in step.batch),
    )


def _gemm(step: GemmStep) -> _Call:
    m, n, k = step.m, step.n, step.k
    # BLAS wants leading dimensions of at least a row, also where there is one row or none.
    lda = max(step.lda, m if step.transpose_a else k, 1)
    ldb = max(step.ldb, k if step.transpose_b else n, 1)
    ldc = max(step.ldc, n)
    by_rows = m >= n
    along_a = 1 if step.transpose_a else lda
    along_b = ldb if step.transpose_b else 1
    return _Call(
        letters=("T" if step.transpose_a else "N") + ("T" if step.transpose_b else "N"),
        sizes=(m, n, k),
        leading=(lda, ldb, ldc),
        by_rows=by_rows,
        length=m if by_rows else n,
        along=(along_a, 0, ldc) if by_rows else (0, along_b, 1),
        unit=ROWS if by_rows else COLUMNS,
        flops=2 * (n if by_rows else m) * max(k, 1),
    )


def _gemv(step: GemmStep) -> _Call:
    """C has one column. BLAS sees A transposed, as it wants columns first."""
    m, k = step.m, step.k
    transposed = step.transpose_a
    lda = max(step.lda, m if transposed else k)
    return _Call(
        letters="NN" if transposed else "TN",
        sizes=(m, k, 0) if transposed else (k, m, 0),
        leading=(lda, 1 if step.transpose_b or k == 1 else step.ldb, step.ldc if m > 1 else 1),
        by_rows=transposed,
        length=m,
        along=(1 if transposed else lda, 0, step.ldc),
        unit=ROWS,
        flops=8 * k,  # loading the matrix takes longer than the arithmetic
    )


def _can_split() -> bool:
    """Whether the BLAS can be held to one thread; another one does its own threading."""
    return blas.load().set_threads != 0


def _parameters(step: GemmStep, call: _Call, size: int, granules: int) -> list[int]:
    item = {"float32": 4, "float64": 8}[step.dtype]
    batch = [(count, a * item, b * item, c * item) for count, a, b, c in step.batch]
    return [
        *map(ord, call.letters),
        *call.sizes,
        *call.leading,
        _bits(step.alpha, step.dtype),
        _bits(step.beta, step.dtype),
        *(size, granules, int(call.by_rows)),
        *(size * along * item for along in call.along),
        len(batch),
        *(word for words in batch for word in words),
    ]


def _bits(value: float, dtype: str) -> int:
    """The number as the low bytes of a word."""
    word = struct.pack("<f4x" if dtype == "float32" else "<d", value)
    return int(struct.unpack("<q", word)[0])
