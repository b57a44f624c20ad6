"""Split long scans of few rows into pieces that threads, or a GPU's blocks, share.

First what each piece folds to, then what each starts with, then all pieces at once. The pieces
depend on the shape alone, not on the number of threads, so neither does the result.
"""

from __future__ import annotations

from typing import Any

from ..ir import Graph, Node
from ..ir import primitives as p
from ..ir.monoids import MONOID_OF
from ..ir.scans import running_dtype
from ..ir.shapes import numel
from ..ir.size_number import is_expression
from .matching import call, cast, part, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite

MIN_ELEMENTS = 1 << 16
# So many rows are work for all threads; of rows that lie side by side, so many are one task.
ENOUGH_ROWS = 16
ROWS_TOGETHER = 32
PIECES = range(64, 31, -1)
# On a GPU: rows that keep it busy, each of which a block scans, or columns, each with a thread, and
# how long a piece of them must be to be worth two more kernels.
GPU_ROWS = 1056
GPU_COLUMNS = 1 << 15
GPU_MIN_ELEMENTS = 1 << 16
GPU_ROW_PIECE = 1 << 12
GPU_COLUMN_PIECE = 64

_REDUCTIONS = {p.cumsum: p.sum_, p.cumprod: p.prod, p.cummax: p.max_, p.cummin: p.min_}


@rewrite(*_REDUCTIONS)
def pieces_for_threads(build: RewriteBuilder, node: Node) -> Node | None:
    before, size, after = _around(node)
    tasks = before * max(1, after // ROWS_TOGETHER)
    if node.type.numel < MIN_ELEMENTS or tasks >= ENOUGH_ROWS or size < PIECES[0] ** 2:
        return None
    return _in_pieces(build, node, _dividing(size, PIECES))


@rewrite(*_REDUCTIONS)
def pieces_for_gpu(build: RewriteBuilder, node: Node) -> Node | None:
    before, size, after = _around(node)
    in_columns = after > 1
    rows, enough = before * after, GPU_COLUMNS if in_columns else GPU_ROWS
    shortest = GPU_COLUMN_PIECE if in_columns else GPU_ROW_PIECE
    pieces = min(-(-enough // max(rows, 1)), size // shortest)
    if node.type.numel < GPU_MIN_ELEMENTS or pieces < 2:
        return None
    return _in_pieces(build, node, _dividing(size, range(pieces, pieces // 2, -1)))


def _around(node: Node) -> tuple[int, int, int]:
    """The elements along the axis of a scan, and of all axes in front of it and behind it."""
    shape, axis = node.shape, node.attrs["axis"]
    return numel(shape[:axis]), shape[axis], numel(shape[axis + 1 :])


def _dividing(size: int, counts: range) -> int:
    """The first of these numbers of pieces that leaves no rest; else the first.

    That is also the one of all sizes at once.
    """
    if is_expression(size):
        return counts[0]
    return next((count for count in counts if size % count == 0), counts[0])


def _in_pieces(build: RewriteBuilder, node: Node, pieces: int) -> Node | None:
    if len(node.inputs) > 1:  # a piece
        return None
    x, axis = node.inputs[0], node.attrs["axis"]
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    length = -(-size // pieces)
    monoid = MONOID_OF[node.primitive]
    nothing = monoid.identity(x.type.dtype)
    whole = _padded(build, x, axis, 0, pieces * length - size, nothing)
    cut = reshape(build, whole, (*before, pieces, length, *after))
    wide = cast(build, cut, running_dtype(monoid, x.type.dtype))
    reduction = _REDUCTIONS[node.primitive]
    folded = call(build, reduction, wide, axes=(axis + 1,), keepdims=True)
    start = _before_each(build, node, folded, axis)
    reverse = node.attrs["reverse"]
    found = call(build, node.primitive, cut, start, axis=axis + 1, reverse=reverse)
    joined = reshape(build, found, whole.shape)
    return joined if whole is x else part(build, joined, axis, 0, size)


def _before_each(build: RewriteBuilder, node: Node, folded: Node, axis: int) -> Node:
    """What all pieces in front of each fold to, or behind each."""
    reverse = node.attrs["reverse"]
    running = call(build, node.primitive, folded, axis=axis, reverse=reverse)
    last = folded.shape[axis] - 1
    nothing = MONOID_OF[node.primitive].identity(folded.type.dtype)
    if reverse:
        return _padded(build, part(build, running, axis, 1, last + 1), axis, 0, 1, nothing)
    return _padded(build, part(build, running, axis, 0, last), axis, 1, 0, nothing)


def _padded(build: RewriteBuilder, node: Node, axis: int, low: int, high: int, value: Any) -> Node:
    if not low and not high:
        return node
    zero = (0,) * node.type.ndim
    edges = {"low": (*zero[:axis], low, *zero[axis + 1 :]),
             "high": (*zero[:axis], high, *zero[axis + 1 :])}  # fmt: skip
    return call(build, p.pad, node, **edges, interior=zero, value=value)


def split_scans(graph: Graph) -> Graph:
    return apply_rules(graph, (pieces_for_threads,))


def split_scans_for_gpu(graph: Graph) -> Graph:
    return apply_rules(graph, (pieces_for_gpu,))
