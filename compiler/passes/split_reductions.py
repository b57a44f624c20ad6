"""Split long reductions with few results, so that threads and vectors find work.

A sum of a million numbers into one result is one serial loop. Reducing pieces first, and then the
pieces' results, gives rows to share among threads. The pieces depend on shapes alone, not on the
number of threads or multiprocessors, so neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from ...runtime.dtypes import DType, float64
from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p

MIN_ELEMENTS = 1 << 15
MAX_ROWS = 64
MIN_PIECE = 512
PIECES = (256, 128, 64, 32)
# Results that lie side by side are lanes of one vector loop, which one thread runs: so many numbers
# are worth more of them. Each piece then has a row of results.
MIN_COLUMN_ELEMENTS = 1 << 17
FEWEST_PIECES = 8
# On a GPU: blocks that keep it busy (two on each of 132 multiprocessors; one of columns, which has
# more threads), columns that one block has, and how long a piece of a row or of a column must be to
# be worth a second kernel.
GPU_BLOCKS = 264
GPU_COLUMNS = 32
GPU_MIN_ELEMENTS = 1 << 16
GPU_ROW_PIECE = 4096
GPU_COLUMN_PIECE = 64
_SPLIT = frozenset((p.sum_, p.prod, p.max_, p.min_, p.any_, p.all_))

Pieces = Callable[[Node], tuple[int, int]]
"""The axis to cut, and into how many pieces at least; 0 if that is not worth it."""


def split_reductions(graph: Graph) -> Graph:
    """Reduce in two steps where one reduction would be too long for its few results."""
    return _with_pieces(graph, _pieces_for_threads)


def split_reductions_for_gpu(graph: Graph) -> Graph:
    """Reduce in two steps where one reduction would leave most of a GPU without work."""
    return _with_pieces(graph, _pieces_for_gpu)


def _with_pieces(graph: Graph, pieces_of: Pieces) -> Graph:
    reductions = [node for node in graph.nodes if node.primitive in _SPLIT]
    if not any(_leads(pieces_of, node) or pieces_of(node)[1] for node in reductions):
        return graph
    return transform(graph, partial(_split, pieces_of))


def _leads(pieces_of: Pieces, node: Node) -> tuple[int, ...]:
    return _leading_axes(node) if pieces_of is _pieces_for_threads else ()


def _split(pieces_of: Pieces, build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    same = build.rebuild(node, inputs)
    if node.primitive not in _SPLIT:
        return same
    lead = _leads(pieces_of, node)
    if lead:
        return _by_axes(build, node, inputs[0], lead)
    axis, pieces = pieces_of(node)
    return _in_pieces(build, node, inputs[0], axis, pieces) if pieces else same


def _longest(node: Node) -> int:
    """The longest axis that is reduced."""
    shape = node.inputs[0].shape
    axis: int = max(node.attrs["axes"], key=lambda each: shape[each])
    return axis


def _outermost(node: Node) -> int:
    """The first reduced axis that is long enough: what is read for a piece lies side by side."""
    shape = node.inputs[0].shape
    long = [axis for axis in node.attrs["axes"] if shape[axis] >= MAX_ROWS]
    return min(long) if long else _longest(node)


def _length(node: Node) -> int:
    return prod(node.inputs[0].shape[axis] for axis in node.attrs["axes"])


def _pieces_for_threads(node: Node) -> tuple[int, int]:
    length = _length(node)
    columns = node.type.numel if _is_of_few_columns(node) else 1
    if length * columns < MIN_ELEMENTS or node.type.numel > MAX_ROWS:
        return 0, 0
    axis = _outermost(node)
    size = node.inputs[0].shape[axis]
    return axis, next((n for n in PIECES if size >= n and length * columns // n >= MIN_PIECE), 0)


def _is_of_few_columns(node: Node) -> bool:
    """Whether a thread alone would add up much for results that lie side by side."""
    shape, axes = node.inputs[0].shape, node.attrs["axes"]
    if not axes:
        return False
    side_by_side = prod(shape[max(axes) + 1 :])
    few = 1 < side_by_side == node.type.numel <= MAX_ROWS
    return few and _length(node) * side_by_side >= MIN_COLUMN_ELEMENTS


def _leading_axes(node: Node) -> tuple[int, ...]:
    """Outermost axes of few columns whose indices are the pieces, if there are such."""
    if not _is_of_few_columns(node):
        return ()
    shape, pieces = node.inputs[0].shape, 1
    lead: list[int] = []
    for axis in node.attrs["axes"][:-1]:
        lead, pieces = [*lead, axis], pieces * shape[axis]
        if pieces >= FEWEST_PIECES:
            return tuple(lead) if pieces <= PIECES[0] else ()
    return ()


def _by_axes(build: Builder, node: Node, operand: Node, lead: tuple[int, ...]) -> Node:
    """Reduce the other axes first, then these."""
    wide, joint = _wider(node)
    rest = tuple(axis for axis in node.attrs["axes"] if axis not in lead)
    attrs = {"axes": rest, "keepdims": True}
    rows = build.apply(node.primitive, [_cast(build, operand, wide)], attrs, node.where)
    attrs = {"axes": lead, "keepdims": True}
    rows = _cast(build, rows, joint)
    total = _cast(build, build.apply(node.primitive, [rows], attrs, node.where), node.type.dtype)
    return build.apply(p.reshape, [total], {"shape": node.shape}, node.where)


def _pieces_for_gpu(node: Node) -> tuple[int, int]:
    shape, results, length = node.inputs[0].shape, node.type.numel, _length(node)
    if results == 0 or length * results < GPU_MIN_ELEMENTS:
        return 0, 0
    # Where enough kept elements lie side by side, blocks stand on columns, else on results.
    in_columns = prod(shape[max(node.attrs["axes"]) + 1 :]) >= GPU_COLUMNS
    blocks = -(-results // GPU_COLUMNS) if in_columns else results
    shortest = GPU_COLUMN_PIECE if in_columns else GPU_ROW_PIECE
    if blocks >= (GPU_BLOCKS // 2 if in_columns else GPU_BLOCKS):
        return 0, 0
    axis, pieces = _longest(node), PIECES[0]
    while pieces > 1 and (pieces * blocks >= 2 * GPU_BLOCKS or length // pieces < shortest):
        pieces //= 2
    return axis, pieces if 1 < pieces <= shape[axis] else 0


def _in_pieces(build: Builder, node: Node, operand: Node, axis: int, pieces: int) -> Node:
    """Reduce equal pieces along `axis`, then their results and a rest shorter than a piece."""
    size = operand.shape[axis]
    length = size // pieces
    pieces = size // length
    even = pieces * length
    main = operand if even == size else _cut(build, operand, axis, 0, even)
    shape = (*operand.shape[:axis], pieces, length, *operand.shape[axis + 1 :])
    cut = build.apply(p.reshape, [main], {"shape": shape}, node.where)
    inner = tuple(
        each + 1 if each >= axis else each for each in node.attrs["axes"]
    )  # the pieces stay
    wide, joint = _wider(node)
    cut = _cast(build, cut, wide)
    partial = build.apply(node.primitive, [cut], {"axes": inner, "keepdims": True}, node.where)
    kept = tuple(1 if each in node.attrs["axes"] else n for each, n in enumerate(operand.shape))
    lined = (*kept[:axis], pieces, *kept[axis + 1 :])
    rows = build.apply(p.reshape, [partial], {"shape": lined}, node.where)
    if even != size:
        rest = _cast(build, _cut(build, operand, axis, even, size), wide)
        attrs = {"axes": node.attrs["axes"], "keepdims": True}
        tail = build.apply(node.primitive, [rest], attrs, node.where)
        rows = build.apply(p.concatenate, [rows, tail], {"axis": axis}, node.where)
    rows = _cast(build, rows, joint)
    total = build.apply(node.primitive, [rows], {"axes": (axis,), "keepdims": True}, node.where)
    total = _cast(build, total, node.type.dtype)
    return build.apply(p.reshape, [total], {"shape": node.shape}, node.where)


def _wider(node: Node) -> tuple[DType, DType]:
    """The types of the pieces and of what joins them."""
    dtype = node.type.dtype
    if node.primitive not in (p.sum_, p.prod) or dtype.kind != "float":
        return dtype, dtype
    return dtype.compute, float64


def _cast(build: Builder, node: Node, dtype: DType) -> Node:
    if node.type.dtype is dtype:
        return node
    return build.apply(p.cast, [node], {"dtype": dtype}, node.where)


def _cut(build: Builder, operand: Node, axis: int, start: int, stop: int) -> Node:
    starts, stops = [0] * operand.type.ndim, list(operand.shape)
    starts[axis], stops[axis] = start, stop
    attrs = {
        "starts": tuple(starts),
        "stops": tuple(stops),
        "steps": (1,) * operand.type.ndim,
    }
    return build.apply(p.slice_, [operand], attrs, operand.where)
