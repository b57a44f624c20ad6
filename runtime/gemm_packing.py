"""Panels of A and B in the order in which tiles read them: packing of generated products."""

from __future__ import annotations

from .gemm_text import VECTORS, GemmText, Tiles
from .llvm_text import transposed


def turn(of: Tiles) -> str:
    """Bring contiguous lines of %k elements side by side, scaled, as many as a vector has lanes.

    They lie %stride apart, and those behind %last are that one again. Each vector of their
    elements goes %width behind the one before; its own end may be overwritten by that.
    """
    head = "internal void @turn(ptr %base, i64 %stride, i64 %last, i64 %k, ptr %out, i64 %width, "
    write = GemmText(of, head + f"{of.type} %scale)")
    lines = [
        write.at("%base", write.mul(write.least(line, "%last"), "%stride"))
        for line in range(of.lanes)
    ]
    whole = write.op(f"and i64 %k, {-of.lanes}")
    factor = write.splat("%scale")
    with write.each("0", whole, of.lanes) as p:
        vectors = [write.load(write.at(line, p), of.vector) for line in lines]
        place = write.at("%out", write.mul(p, "%width"))
        for vector in transposed(write, vectors, of.lanes, of.type):
            scaled = write.op(f"fmul {of.vector} {vector}, {factor}")
            write.store(scaled, place, of.vector)
            place = write.at(place, "%width")
    with write.each(whole, "%k") as p:
        place = write.at("%out", write.mul(p, "%width"))
        for number, line in enumerate(lines):
            scaled = write.op(f"fmul {of.type} {write.load(write.at(line, p))}, %scale")
            write.store(scaled, write.at(place, number))
    return write.finish()


def _call_turn(write: GemmText, base: str, stride: str, count: str, out: str, scale: str) -> None:
    """Turn the lines of a panel, the last group first: its end is overwritten by the others."""
    of = write.of
    width = of.columns if scale == "%alpha" else of.rows
    for first in reversed(range(0, width, of.lanes)):
        # A group without lines of its own begins with the last one.
        start = write.least(first, write.sub(count, 1))
        last = write.sub(write.sub(count, 1), start)
        line = write.at(base, write.mul(start, stride))
        target = write.at(out, first)
        write.line(
            f"call void @turn(ptr {line}, i64 {stride}, i64 {last}, i64 %k, ptr {target}, "
            f"i64 {width}, {of.type} {scale})"
        )


def pack_a(of: Tiles) -> str:
    """Rows of A as panels of `rows`, the elements of a column side by side."""
    head = "internal void @pack_a(ptr %a, i64 %ars, i64 %acs, ptr %out, i64 %m, i64 %k)"
    write = GemmText(of, head)
    vector = f"<{of.rows} x {of.type}>"
    dense = write.op("icmp eq i64 %ars, 1")
    lined = write.op("icmp eq i64 %acs, 1")
    with write.each("0", "%m", of.rows) as i:
        rows = write.least(write.sub("%m", i), of.rows)
        out = write.at("%out", write.mul(i, "%k"))
        first = write.at("%a", write.mul(i, "%ars"))
        full = write.op(f"icmp eq i64 {rows}, {of.rows}")
        copied = write.op(f"and i1 {full}, {dense}")
        with write.when(copied), write.each("0", "%k") as p:
            value = write.load(write.at(first, write.mul(p, "%acs")), vector)
            write.store(value, write.at(out, write.mul(p, of.rows)), vector)
        left = write.op(f"xor i1 {copied}, true")
        with write.when(write.op(f"and i1 {left}, {lined}")):
            _call_turn(write, first, "%ars", rows, out, "1.0")
        spread = write.op(f"xor i1 {lined}, true")
        others = write.op(f"and i1 {left}, {spread}")
        with write.when(others), write.each("0", "%k") as p, write.each("0", rows) as r:
            value = write.load(write.at(first, write.mul(p, "%acs"), write.mul(r, "%ars")))
            write.store(value, write.at(out, write.mul(p, of.rows), r))
    return write.finish()


def pack_b(of: Tiles) -> str:
    """Up to `columns` columns of B as a panel, the elements of a row side by side, scaled."""
    head = f"void @pack_b(ptr %b, i64 %brs, i64 %bcs, ptr %out, i64 %k, i64 %w, {of.type} %alpha)"
    write = GemmText(of, head)
    dense = write.op("icmp eq i64 %bcs, 1")
    full = write.op(f"icmp eq i64 %w, {of.columns}")
    factor = write.splat("%alpha")
    with write.choice(write.op(f"and i1 {dense}, {full}")), write.each("0", "%k") as p:
        source = write.at("%b", write.mul(p, "%brs"))
        target = write.at("%out", write.mul(p, of.columns))
        for i in range(VECTORS):
            value = write.load(write.at(source, i * of.lanes), of.vector)
            value = write.op(f"fmul {of.vector} {value}, {factor}")
            write.store(value, write.at(target, i * of.lanes), of.vector)
    spread = write.op(f"xor i1 {dense}, true")
    lined = write.op("icmp eq i64 %brs, 1")
    with write.choice(write.op(f"and i1 {lined}, {spread}")):
        _call_turn(write, "%b", "%bcs", "%w", "%out", "%alpha")
    with write.each("0", "%k") as p:
        source = write.at("%b", write.mul(p, "%brs"))
        target = write.at("%out", write.mul(p, of.columns))
        with write.each("0", "%w") as j:
            value = write.load(write.at(source, write.mul(j, "%bcs")))
            write.store(write.op(f"fmul {of.type} {value}, %alpha"), write.at(target, j))
    return write.finish()
