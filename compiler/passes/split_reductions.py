"""Split long reductions with few results, so that threads and vectors find work.

A sum of a million numbers into one result is one serial loop. Reducing pieces first, and then the
pieces' results, gives rows to share among threads. The pieces do not depend on the number of
threads, so neither does the result.
"""

from __future__ import annotations

from math import prod

from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p

MIN_ELEMENTS = 1 << 15
MAX_ROWS = 64
MIN_PIECE = 512
PIECES = (256, 128, 64, 32)
_SPLIT = frozenset((p.sum_, p.prod, p.max_, p.min_, p.any_, p.all_))


def split_reductions(graph: Graph) -> Graph:
    """Reduce in two steps where one reduction would be too long for its few results."""
    return transform(graph, _split)


def _split(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    same = build.rebuild(node, inputs)
    if node.primitive not in _SPLIT:
        return same
    (operand,) = inputs
    axes = node.attrs["axes"]
    length = prod(operand.shape[axis] for axis in axes)
    if length < MIN_ELEMENTS or node.type.numel > MAX_ROWS:
        return same
    axis = max(axes, key=lambda each: operand.shape[each])
    pieces = _pieces(operand.shape[axis], length)
    return same if pieces == 0 else _in_pieces(build, node, operand, axis, pieces)


def _pieces(size: int, length: int) -> int:
    """How many pieces to cut the axis into; 0 if it is not worth it."""
    for count in PIECES:
        if size >= count and length // count >= MIN_PIECE:
            return count
    return 0


def _in_pieces(build: Builder, node: Node, operand: Node, axis: int, pieces: int) -> Node:
    """Reduce equal pieces along `axis`, then their results and what is left over."""
    size = operand.shape[axis]
    even = size - size % pieces
    main = operand if even == size else _cut(build, operand, axis, 0, even)
    shape = (*operand.shape[:axis], pieces, even // pieces, *operand.shape[axis + 1 :])
    cut = build.apply(p.reshape, [main], {"shape": shape}, node.where)
    inner = tuple(
        each + 1 if each >= axis else each for each in node.attrs["axes"]
    )  # the pieces stay
    partial = build.apply(node.primitive, [cut], {"axes": inner, "keepdims": True}, node.where)
    kept = tuple(1 if each in node.attrs["axes"] else n for each, n in enumerate(operand.shape))
    lined = (*kept[:axis], pieces, *kept[axis + 1 :])
    rows = build.apply(p.reshape, [partial], {"shape": lined}, node.where)
    if even != size:
        rest = _cut(build, operand, axis, even, size)
        attrs = {"axes": node.attrs["axes"], "keepdims": True}
        tail = build.apply(node.primitive, [rest], attrs, node.where)
        rows = build.apply(p.concatenate, [rows, tail], {"axis": axis}, node.where)
    total = build.apply(node.primitive, [rows], {"axes": (axis,), "keepdims": True}, node.where)
    return build.apply(p.reshape, [total], {"shape": node.shape}, node.where)


def _cut(build: Builder, operand: Node, axis: int, start: int, stop: int) -> Node:
    starts, stops = [0] * operand.type.ndim, list(operand.shape)
    starts[axis], stops[axis] = start, stop
    attrs = {
        "starts": tuple(starts),
        "stops": tuple(stops),
        "steps": (1,) * operand.type.ndim,
    }
    return build.apply(p.slice_, [operand], attrs, operand.where)
