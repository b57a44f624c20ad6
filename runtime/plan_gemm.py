"""How a matrix product becomes a native step: batch dimensions merged, work cut into pieces."""

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

MOST_PIECES = 64
MOST_COLUMN_PIECES = 16
"""For products with a vector, where memory soon limits how fast they are."""

ROWS, COLUMNS = 8, 16
"""Pieces have multiples of so many rows and columns, but for the last: kernels like that."""

PACKING_FLOPS = 50
"""What it costs BLAS to bring an element of an operand into the order that its kernels read."""


class NativeProduct(NamedTuple):
    """A step of the native table; extent and grain are in pieces."""

    body: int
    args: tuple[BufferRef, ...]
    extent: int
    grain: int
    parameters: list[int]


class _Call(NamedTuple):
    """One BLAS call per piece, with the numbers that `plan_native` names.

    The first two of `sizes` are what pieces cut. `along` has for each of them how many elements
    a, b and c go on from one index to the next.
    """

    letters: str
    sizes: tuple[int, int, int]
    leading: tuple[int, int, int]
    along: tuple[tuple[int, int, int], tuple[int, int, int]]
    flops: int  # of the whole product
    piece: tuple[int, int]  # the sizes of one piece


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
        call, body = _gemv(step, items), plan_native.load().gemv
        function = blas.load().gemv(step.dtype)
    else:
        call, body = _gemm(step, items), plan_native.load().gemm
        function = blas.load().gemm(step.dtype)
    counts = [-(-size // piece) for size, piece in zip(call.sizes, call.piece)]
    pieces = math.prod(counts)
    extent = items * pieces
    grain = max(1, MIN_FLOPS * pieces // call.flops) if _can_split() else extent
    return NativeProduct(
        body,
        (step.a, step.b, step.c),
        extent,
        grain,
        [function, *_parameters(step, call, counts)],
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


def _gemm(step: GemmStep, items: int) -> _Call:
    m, n, k = step.m, step.n, step.k
    # BLAS wants leading dimensions of at least a row, also where there is one row or none.
    lda = max(step.lda, m if step.transpose_a else k, 1)
    ldb = max(step.ldb, k if step.transpose_b else n, 1)
    ldc = max(step.ldc, n)
    flops = 2 * m * n * max(k, 1)
    return _Call(
        letters=("T" if step.transpose_a else "N") + ("T" if step.transpose_b else "N"),
        sizes=(m, n, k),
        leading=(lda, ldb, ldc),
        along=((1 if step.transpose_a else lda, 0, ldc), (0, ldb if step.transpose_b else 1, 1)),
        flops=flops,
        piece=_piece(m, n, items, flops) if _can_split() else (m, n),
    )


def _piece(m: int, n: int, items: int, flops: int) -> tuple[int, int]:
    """Rows and columns of the pieces into which each of `items` products is cut.

    They depend on the shape alone, never on the number of threads: BLAS adds in another order for
    pieces of other sizes, on some processors. Every piece brings its parts of both operands into
    order once more, which is what the pieces cost; so there are as many as are worth that.
    """
    down = across = 1
    while True:
        # Cuts through the rows of C cost about twice as much as cuts between them.
        wide = 2 * m * across <= n * down
        halved = (down, 2 * across) if wide else (2 * down, across)
        pieces = items * halved[0] * halved[1]
        again = (halved[0] - 1) * n + 2 * (halved[1] - 1) * m
        packed = again / (2 * m * n / PACKING_FLOPS + m + n)
        small = items * flops < MIN_FLOPS * pieces
        if pieces > MOST_PIECES or small or packed > _most_packing(pieces):
            return _part(m, down, ROWS), _part(n, across, COLUMNS)
        down, across = halved


def _most_packing(pieces: int) -> float:
    """How much more work so many pieces may be: the first of them serve most machines."""
    if pieces <= 2:
        return 1 / 4
    return 1 / 6 if pieces <= 8 else 1 / 8


def _part(length: int, parts: int, unit: int) -> int:
    """A multiple of `unit`, of which `parts` have `length`."""
    return length if parts == 1 else -(-length // (parts * unit)) * unit


def _gemv(step: GemmStep, items: int) -> _Call:
    """C has one column. BLAS sees A transposed, as it wants columns first."""
    m, k = step.m, step.k
    transposed = step.transpose_a
    lda = max(step.lda, m if transposed else k)
    flops = 8 * m * k  # loading the matrix takes longer than the arithmetic
    part = _column_part(m, items, flops, 512 if transposed else 16) if _can_split() else m
    along, whole = (1 if transposed else lda, 0, step.ldc), (0, 0, 0)
    return _Call(
        letters="NN" if transposed else "TN",
        sizes=(m, k, 0) if transposed else (k, m, 0),
        leading=(lda, 1 if step.transpose_b or k == 1 else step.ldb, step.ldc if m > 1 else 1),
        along=(along, whole) if transposed else (whole, along),
        flops=flops,
        piece=(part, k) if transposed else (k, part),
    )


def _column_part(m: int, items: int, flops: int, least: int) -> int:
    """The length of the pieces of a column. Where they are read across, short runs cost time."""
    parts = min(flops // MIN_FLOPS, m // least, MOST_COLUMN_PIECES // items)
    return _part(m, max(parts, 1), COLUMNS)


def _can_split() -> bool:
    """Whether the BLAS can be held to one thread; another one does its own threading."""
    return blas.load().set_threads != 0


def _parameters(step: GemmStep, call: _Call, counts: list[int]) -> list[int]:
    item = {"float32": 4, "float64": 8}[step.dtype]
    batch = [(count, a * item, b * item, c * item) for count, a, b, c in step.batch]
    moves = [
        size * elements * item for size, along in zip(call.piece, call.along) for elements in along
    ]
    return [
        *map(ord, call.letters),
        *call.sizes,
        *call.leading,
        _bits(step.alpha, step.dtype),
        _bits(step.beta, step.dtype),
        *call.piece,
        *counts,
        *moves,
        len(batch),
        *(word for words in batch for word in words),
    ]


def _bits(value: float, dtype: str) -> int:
    """The number as the low bytes of a word."""
    word = struct.pack("<f4x" if dtype == "float32" else "<d", value)
    return int(struct.unpack("<q", word)[0])
