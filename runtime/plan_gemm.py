"""How a matrix product becomes a native step: batch dimensions merged, work cut into pieces.

Products of matrices run in generated code (`gemm_native`), those with a vector in BLAS.
"""

from __future__ import annotations

import math
import struct

from . import blas, gemm_epilogue, gemm_native, gemm_text, jit, plan_native
from .parallel import shared_out
from .plan_steps import (
    RANGES_PER_THREAD,
    Axes,
    BufferRef,
    EpilogueStep,
    GemmStep,
    Spread,
    merged_batch,
)
from .records import NamedTuple, replace

MIN_FLOPS = 500_000
"""The least work that is worth a thread: some microseconds."""

MOST_COLUMN_PIECES = 16
"""For products with a vector, where memory soon limits how fast they are."""

COLUMN_UNIT = 16
"""Pieces of a column have multiples of so many elements, but for the last."""


class NativeProduct(NamedTuple):
    """A step of the native table; extent and grain are in pieces.

    No thread is given more than `split` ranges of them by itself.
    """

    body: int
    args: tuple[BufferRef, ...]
    extent: int
    grain: int
    split: int
    parameters: list[int]


def calls_blas(step: GemmStep) -> bool:
    """Whether BLAS is asked for the product."""
    return step.k > 0 and 1 in (step.m, step.n) and not (step.spread_a or step.spread_b)


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
    step = replace(step, batch=merged_batch(step.batch))
    if step.then is None:
        step = _merge_into_rows(step)
    items = _items(step)
    if not (step.m and step.n and items):
        return None
    if calls_blas(step):
        # A row times a matrix is the transposed matrix times a column.
        return _vector_product(step if step.n == 1 else _transposed(step), items)
    return _matrix_product(step, items)


def product_summary(step: GemmStep) -> str:
    """A line for people on how the CPU makes a product: by which code, of what sizes, how cut.

    >>> a, b, c = map(BufferRef, (1, 2, 3))
    >>> step = GemmStep("x", "float32", 4, 8, 4, a, b, c, False, False, 4, 8, 8)
    >>> product_summary(step)
    'generated product: float32 4 x 8 x 4 (m x n x k); 1 piece on one thread'
    """
    product = native_product(step)
    code = "BLAS, matrix times vector" if calls_blas(step) else "generated product"
    pieces = "" if product is None else f"; {shared_out(product.extent, product.grain, 'piece')}"
    return f"{code}: {sizes(step)}{pieces}"


def sizes(step: GemmStep) -> str:
    """Such as "float32 8 x 16 x 4 (m x n x k)"."""
    numbers = [*(size for size, *_ in step.batch), step.m, step.n, step.k]
    names = "batch x m x n x k" if step.batch else "m x n x k"
    return f"{step.dtype} {' x '.join(f'{number:,}' for number in numbers)} ({names})"


def _matrix_product(step: GemmStep, items: int) -> NativeProduct:
    m, n, k = step.m, step.n, step.k
    flops = 2 * m * n * max(k, 1)
    height, width = (_piece_of_blocks if step.then else _piece)(m, n, items, step.dtype)
    down, across = -(-m // height), -(-n // width)
    left, right = step.spread_a, step.spread_b
    a_axes = _words_of_axes(left.rows, left.columns) if left else []
    b_axes = _words_of_axes(right.columns, right.rows) if right else []
    then, args = _epilogue(step) if step.then else ([], ())
    batch_end = gemm_native.PARAMETERS + len(then) + 4 * len(step.batch)
    a_end = batch_end + len(a_axes)
    parameters = step.then.kernel.parameters if step.then else ()
    if then:
        then[2] = a_end + len(b_axes)
    return NativeProduct(
        gemm_native.load(step.dtype, step.then is not None),
        (step.a, step.b, step.c, *args),
        items * down * across,
        max(1, MIN_FLOPS * down * across // (flops + _flops_behind(step))),
        1,  # range of neighbouring pieces: an operand is packed for each
        [
            *(m, n, k, *_strides(step.spread_a, step.transpose_a, step.lda)),
            *_strides_of_b(step),
            *(step.ldc, _bits(step.alpha, step.dtype), _bits(step.beta, step.dtype)),
            *(height, width, down, across, len(step.batch)),
            *(batch_end if step.spread_a else 0, a_end if step.spread_b else 0),
            *then,
            *(word for words in step.batch for word in words),
            *(*a_axes, *b_axes, *parameters),
        ],
    )


def _items(step: GemmStep) -> int:
    return math.prod(size for size, *_ in step.batch)


def _epilogue(step: GemmStep) -> tuple[list[int], tuple[BufferRef, ...]]:
    """What `gemm_epilogue` says, but for where the kernel's parameters begin; its arguments."""
    assert step.then is not None
    of, kernel = gemm_text.tiles(step.dtype, jit.vector_bytes()), step.then.kernel
    rows, columns = of.epilogue_block(step.m, step.n, _items(step))
    count, across = len(kernel.args), -(-step.n // columns)
    padding = (step.a,) * (gemm_epilogue.MOST_ARGUMENTS - count)
    words = [kernel.address, count, 0, step.m, across, rows, columns]
    return words, (*kernel.args, *padding)


def _flops_behind(step: GemmStep) -> int:
    """What the kernel behind one product takes, as if that multiplied."""
    if step.then is None:
        return 0
    kernel = step.then.kernel
    return MIN_FLOPS * kernel.extent // (kernel.grain * _items(step))


def _strides(spread: Spread | None, transpose: bool, leading: int) -> tuple[int, int]:
    """Elements from row to row and from column to column."""
    if spread is not None:
        return 0, 0
    return (1, leading) if transpose else (leading, 1)


def _strides_of_b(step: GemmStep) -> tuple[int, int]:
    if step.packed_b:
        return gemm_text.tiles(step.dtype, jit.vector_bytes()).columns, step.k
    return _strides(step.spread_b, step.transpose_b, step.ldb)


def _words_of_axes(across: Axes, along_k: Axes) -> list[int]:
    """What `gemm_gather.Operand` reads."""
    words = [word for axis in (*across, *along_k) for word in axis]
    return [int(along_k[-1][1] == 1), len(across), len(along_k), *words]


def _vector_product(step: GemmStep, items: int) -> NativeProduct:
    call = _gemv(step, items)
    counts = [-(-size // piece) for size, piece in zip(call.sizes, call.piece)]
    pieces = math.prod(counts)
    extent = items * pieces
    grain = max(1, MIN_FLOPS * pieces // call.flops) if _can_split() else extent
    return NativeProduct(
        plan_native.load().gemv,
        (step.a, step.b, step.c),
        extent,
        grain,
        RANGES_PER_THREAD,
        [blas.load().gemv(step.dtype), *_parameters(step, call, counts)],
    )


def _check(step: GemmStep) -> None:
    if step.dtype not in ("float32", "float64"):
        raise ValueError(f"gemm {step.name}: expected float32 or float64, got {step.dtype}")
    if step.epilogue:
        raise ValueError(f"gemm {step.name}: expected no epilogue, got {step.epilogue}")
    a = (step.k, step.m) if step.transpose_a else (step.m, step.k)
    b = (step.n, step.k) if step.transpose_b else (step.k, step.n)
    stored = [("c", step.ldc, (step.m, step.n))]
    stored += [] if step.spread_a else [("a", step.lda, a)]
    stored += [] if step.spread_b or step.packed_b else [("b", step.ldb, b)]
    if step.packed_b:
        _check_panels(step)
    if step.then is not None:
        _check_epilogue(step, step.then)
    for spread, size in ((step.spread_a, (step.m, step.k)), (step.spread_b, (step.k, step.n))):
        if spread is not None:
            _check_spread(step, spread, size)
    for name, leading, (rows, width) in stored:
        if rows > 1 and leading < width:
            raise ValueError(
                f"gemm {step.name}: expected ld{name} of at least {width}, the elements in a row "
                f"of {name}, got {leading}"
            )


def _check_panels(step: GemmStep) -> None:
    columns = gemm_text.tiles(step.dtype, jit.vector_bytes()).columns
    if step.batch or step.spread_b or step.alpha != 1 or step.m == 1 or step.n % columns:
        raise ValueError(
            f"gemm {step.name}: expected one product of several rows and whole panels of {columns} "
            f"columns, without a factor, got {step}"
        )


def _check_epilogue(step: GemmStep, then: EpilogueStep) -> None:
    of, count = gemm_text.tiles(step.dtype, jit.vector_bytes()), len(then.kernel.args)
    if not 1 <= step.k <= of.depth or min(step.m, step.n) < 2 or (step.alpha, step.beta) != (1, 0):
        raise ValueError(
            f"gemm {step.name}: expected matrices, k from 1 to {of.depth} and no factors before an "
            f"epilogue, got {step}"
        )
    if count > gemm_epilogue.MOST_ARGUMENTS:
        raise ValueError(
            f"gemm {step.name}: expected at most {gemm_epilogue.MOST_ARGUMENTS} arguments of the "
            f"epilogue, got {count}"
        )
    items = _items(step)
    _, columns = of.epilogue_block(step.m, step.n, max(1, items))
    tasks = items * step.m * -(-step.n // columns)
    if then.kernel.extent != tasks:
        raise ValueError(
            f"gemm {step.name}: expected an epilogue of {tasks} tasks, got {then.kernel.extent}"
        )


def _check_spread(step: GemmStep, spread: Spread, size: tuple[int, int]) -> None:
    found = tuple(math.prod(n for n, _ in axes) for axes in (spread.rows, spread.columns))
    if found != size:
        raise ValueError(f"gemm {step.name}: expected axes of {size} elements, got {found}")
    if 1 not in (spread.rows[-1][1], spread.columns[-1][1]) or step.alpha != 1:
        raise ValueError(
            f"gemm {step.name}: expected an axis with stride 1 and no factor, got {spread} and "
            f"{step.alpha}"
        )


def _merge_into_rows(step: GemmStep) -> GemmStep:
    """A batch of A with one B and rows that follow each other is one taller product."""
    if step.transpose_a or step.spread_a or not step.batch:
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


def _piece(m: int, n: int, items: int, dtype: str) -> tuple[int, int]:
    """Rows and columns of the pieces of each of `items` products that threads share.

    One of the two is cut. Whoever does neighbouring pieces does them as one, so small ones cost
    nothing. What is packed for each is the other operand, and rows are dearer to pack.
    """
    tiles = gemm_text.tiles(dtype, jit.vector_bytes())
    most = max(1, gemm_text.MOST_PIECES // items)
    if 2 * m >= n:
        return _part(m, min(most, -(-m // tiles.rows)), tiles.rows), n
    return m, _part(n, min(most, -(-n // tiles.columns)), tiles.columns)


def _piece_of_blocks(m: int, n: int, items: int, dtype: str) -> tuple[int, int]:
    """The same before an epilogue: whole blocks."""
    tiles = gemm_text.tiles(dtype, jit.vector_bytes())
    rows, columns = tiles.epilogue_block(m, n, items)
    most = max(1, gemm_text.MOST_PIECES // items)
    if tiles.cuts_rows(m, n):
        return _part(m, min(most, -(-m // rows)), rows), n
    return m, _part(n, min(most, -(-n // columns)), columns)


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
    return _part(m, max(parts, 1), COLUMN_UNIT)


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
