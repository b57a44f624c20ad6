"""Split long scans of few rows into pieces that threads share.

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
from .matching import call, cast, part, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite

MIN_ELEMENTS = 1 << 16
# So many rows are work for all threads; of rows that lie side by side, so many are one task.
ENOUGH_ROWS = 16
ROWS_TOGETHER = 32
PIECES = range(64, 31, -1)

_REDUCTIONS = {p.cumsum: p.sum_, p.cumprod: p.prod, p.cummax: p.max_, p.cummin: p.min_}


@rewrite(*_REDUCTIONS)
def scan_in_pieces(build: RewriteBuilder, node: Node) -> Node | None:
    x, axis = node.inputs[0], node.attrs["axis"]
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    tasks = numel(before) * max(1, numel(after) // ROWS_TOGETHER)
    if len(node.inputs) > 1 or x.type.numel < MIN_ELEMENTS or tasks >= ENOUGH_ROWS:
        return None
    if size < PIECES[0] ** 2:
        return None
    pieces = next((count for count in PIECES if size % count == 0), PIECES[0])
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
    return apply_rules(graph, (scan_in_pieces,))
