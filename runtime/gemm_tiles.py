"""Tiles of C = A B in registers: the innermost loops of generated matrix products.

They are given up to `rows` rows of A, as many columns of B as VECTORS hold, and their part of C.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from .gemm_text import VECTORS, GemmText, Tiles

UNROLL = 4

_MICRO = "ptr %b, i64 %brs, ptr %c, i64 %crs, i64 %k, i64 %w, i1 %adds"


def bulk(of: Tiles) -> str:
    """A whole tile from packed panels."""
    write = GemmText(of, "internal void @bulk(ptr %a, ptr %b, ptr %c, i64 %crs, i64 %k, i1 %adds)")
    whole = write.op(f"and i64 %k, {-UNROLL}")
    sums = ["zeroinitializer"] * (of.rows * VECTORS)
    for low, high, unroll in (("0", whole, UNROLL), (whole, "%k", 1)):
        with write.folding(sums, low, high, unroll) as (at, now, sums):
            for offset in range(unroll):
                a = write.at("%a", write.mul(at, of.rows), offset * of.rows)
                b = write.at("%b", write.mul(at, of.columns), offset * of.columns)
                rows = [write.at(a, row) for row in range(of.rows)]
                now = _products(write, rows, b, VECTORS, now)
            sums += now
    _write_whole_tile(write, sums, VECTORS)
    return write.finish()


def micro(of: Tiles, rows: int, vectors: int, whole: bool = False) -> str:
    """A tile of fewer rows or columns, from operands with any strides.

    A `whole` one has all columns, and so no masks, for which there are few registers to spare.
    """
    name = f"@whole_{rows}_{vectors}" if whole else f"@micro_{rows}_{vectors}"
    write = GemmText(of, f"internal void {name}(ptr %a, i64 %ars, i64 %acs, {_MICRO})")
    # Rows in groups of three: two of them are addressed from the first by a scaled register.
    twice = write.mul("%ars", 2)
    bases = [write.at("%a", write.mul("%ars", row)) for row in range(0, rows, 3)]

    masks = None
    if of.masked and not whole:
        masks = [write.mask(write.sub("%w", i * of.lanes)) for i in range(vectors)]

    zeros = ["zeroinitializer"] * (rows * vectors)
    with write.folding(zeros, "0", "%k", 1) as (at, now, sums):
        along = write.mul(at, "%acs")
        firsts = [write.at(base, along) for base in bases]
        moves: tuple[str | int, ...] = (0, "%ars", twice)
        places = [write.at(firsts[row // 3], moves[row % 3]) for row in range(rows)]
        b = write.at("%b", write.mul(at, "%brs"))
        sums += _products(write, places, b, vectors, now, masks)
    (_write_whole_tile if whole else _write_tile)(write, sums, vectors)
    return write.finish()


def narrow(of: Tiles, along_k: bool) -> str:
    """A tile of one vector of columns, from rows of A that were gathered.

    Its strides are known, so that nothing is computed to find an element: with one multiply-add for
    each, that would be what takes the time.
    """
    ars, acs = _gathered_strides(of, along_k)
    write = GemmText(of, f"internal void {_narrow_name(along_k)}(ptr %a, {_MICRO})")
    masks = [write.mask("%w")] if of.masked else None
    whole = write.op(f"and i64 %k, {-UNROLL}")
    sums = ["zeroinitializer"] * of.rows
    for low, high, unroll in (("0", whole, UNROLL), (whole, "%k", 1)):
        with write.folding(sums, low, high, unroll) as (at, now, sums):
            first, b = write.at("%a", write.mul(at, acs)), write.at("%b", write.mul(at, "%brs"))
            for offset in range(unroll):
                rows = [write.at(first, row * ars + offset * acs) for row in range(of.rows)]
                now = _products(write, rows, b, 1, now, masks)
                b = write.at(b, "%brs")
            sums += now
    _write_tile(write, sums, 1)
    return write.finish()


def _narrow_name(along_k: bool) -> str:
    return "@narrow_along" if along_k else "@narrow_across"


def _gathered_strides(of: Tiles, along_k: bool) -> tuple[int, int]:
    """From row to row and from column to column of A where it is gathered."""
    return (of.depth, 1) if along_k else (1, of.gathered_rows)


def _products(
    write: GemmText,
    rows: Sequence[str],
    b: str,
    vectors: int,
    sums: list[str],
    masks: list[str] | None = None,
) -> list[str]:
    """The tile after one more column of A and row of B."""
    of = write.of
    places = [write.at(b, i * of.lanes) for i in range(vectors)]
    if masks is None:
        rights = [write.load(place, of.vector) for place in places]
    else:
        rights = [write.load_some(place, mask) for place, mask in zip(places, masks)]
    new = []
    for row, place in enumerate(rows):
        left = write.splat(write.load(place))
        for i, right in enumerate(rights):
            v, before = of.vector, sums[row * vectors + i]
            call = f"call {v} @llvm.fmuladd.{of.suffix}({v} {left}, {v} {right}, {v} {before})"
            new.append(write.op(call))
    return new


def _write_tile(write: GemmText, sums: list[str], vectors: int) -> None:
    """Store %w columns of the sums, added to what is there if %adds, otherwise to -0."""
    of, rows = write.of, len(sums) // vectors
    places = [write.at("%c", write.mul("%crs", row)) for row in range(rows)]
    masks = [write.mask(write.sub("%w", i * of.lanes)) for i in range(vectors)]
    adds = write.splat("%adds", "i1")
    reads = [write.op(f"and <{of.lanes} x i1> {mask}, {adds}") for mask in masks]
    none = write.splat("-0.0")  # which changes no sum, as 0 would -0
    for number, value in enumerate(sums):
        row, i = divmod(number, vectors)
        at = write.at(places[row], i * of.lanes)
        value = write.op(f"fadd {of.vector} {write.load_some(at, reads[i], none)}, {value}")
        write.line(
            f"call void @llvm.masked.store.{of.suffix}.p0({of.vector} {value}, ptr {at}, "
            f"i32 {of.item}, <{of.lanes} x i1> {masks[i]})"
        )


def _write_whole_tile(write: GemmText, sums: list[str], vectors: int) -> None:
    """The same for all columns, without masks."""
    of, rows = write.of, len(sums) // vectors
    places = [write.at("%c", write.mul("%crs", row)) for row in range(rows)]
    for adds in (True, False):
        with write.choice("%adds") if adds else nullcontext():
            for number, value in enumerate(sums):
                row, i = divmod(number, vectors)
                at = write.at(places[row], i * of.lanes)
                if adds:
                    value = write.op(f"fadd {of.vector} {write.load(at, of.vector)}, {value}")
                write.store(value, at, of.vector)


def tile(of: Tiles) -> str:
    """Up to `rows` x `columns` of C: the kernels that fit."""
    write = GemmText(of, f"void @tile(i64 %h, ptr %a, i64 %ars, i64 %acs, {_MICRO})")
    wide = write.op(f"icmp sgt i64 %w, {of.lanes}")
    whole = write.op(f"icmp eq i64 %w, {of.columns}")
    full = write.op(f"icmp eq i64 %h, {of.rows}")
    packed = [
        write.op(f"icmp eq i64 {value}, {wanted}")
        for value, wanted in (("%ars", 1), ("%acs", of.rows), ("%brs", of.columns))
    ]
    bulk = whole
    for each in (full, *packed):
        bulk = write.op(f"and i1 {bulk}, {each}")
    with write.choice(bulk):
        write.line("call void @bulk(ptr %a, ptr %b, ptr %c, i64 %crs, i64 %k, i1 %adds)")
    operands = "ptr %b, i64 %brs"
    with write.choice(write.op(f"and i1 {whole}, {full}")):
        write.line(
            f"call void @whole_{of.rows}_{VECTORS}(ptr %a, i64 %ars, i64 %acs, {operands}, "
            "ptr %c, i64 %crs, i64 %k, i64 %w, i1 %adds)"
        )
    for vectors, suits in ((2, wide), (1, "true")):
        with write.choice(suits):
            for along_k in (True, False) if vectors == 1 else ():
                ars, acs = _gathered_strides(of, along_k)
                known = write.op(f"icmp eq i64 %ars, {ars}")
                known = write.op(f"and i1 {known}, {write.op(f'icmp eq i64 %acs, {acs}')}")
                with write.choice(write.op(f"and i1 {full}, {known}")):
                    write.line(
                        f"call void {_narrow_name(along_k)}(ptr %a, {operands}, ptr %c, i64 %crs, "
                        "i64 %k, i64 %w, i1 %adds)"
                    )
            with write.choice(full):
                write.line(
                    f"call void @micro_{of.rows}_{vectors}(ptr %a, i64 %ars, i64 %acs, {operands}, "
                    "ptr %c, i64 %crs, i64 %k, i64 %w, i1 %adds)"
                )
            done: str | int = 0
            for part in of.parts:
                rows = write.sub("%h", done)
                a = write.at("%a", write.mul("%ars", done))
                c = write.at("%c", write.mul("%crs", done))
                fits = write.op(f"icmp sge i64 {rows}, {part}")
                with write.when(fits):
                    write.line(
                        f"call void @micro_{part}_{vectors}(ptr {a}, i64 %ars, i64 %acs, "
                        f"{operands}, ptr {c}, i64 %crs, i64 %k, i64 %w, i1 %adds)"
                    )
                done = write.add(done, write.choose(fits, part, 0))
    return write.finish()
