"""Split long reductions with few results, so that threads and vectors find work.

A sum of a million numbers into one result is one serial loop. Reducing pieces first, and then the
pieces' results, gives rows to share among threads. The pieces depend on shapes alone, not on the
number of threads or multiprocessors, so neither does the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod

from ...runtime.dtypes import DType, float64
from ..ir import Builder, Family, Graph, Node, transform
from ..ir import primitives as p
from ..ir.size_number import decided

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
# Pieces of columns that are at least so long may be four times as many: blocks that come one after
# another end at different times, and threads that add no more need nothing for what rounding takes.
GPU_LONG_COLUMN_PIECE = 512
# Sums of columns beside reductions of rows: one kernel may have both, a block of which walks over a
# few rows and keeps what they add to each column. So many blocks keep a GPU busy, and a thread adds
# no more than needs nothing for what rounding takes; rows that blocks of threads share are so long.
# What the second-level cache holds may as well be read again.
GPU_WALKING_BLOCKS = 512
GPU_WALKED_BYTES = 1 << 25
GPU_WALK = range(8, 33)
GPU_WALKED = range(512, 4097)
MOST_VISITED = 32
"""Nodes that are looked at for what a sum and a reduction of rows have in common."""
_SPLIT = frozenset((p.sum_, p.prod, p.max_, p.min_, p.any_, p.all_))

Pieces = Callable[[Node], tuple[int, int]]
"""The axis to cut, and how long a piece is; 0 if that is not worth it."""


def split_reductions(graph: Graph) -> Graph:
    """Reduce in two steps where one reduction would be too long for its few results."""
    return _with_pieces(graph, _pieces_for_threads)


def split_reductions_for_gpu(graph: Graph) -> Graph:
    """Reduce in two steps where one reduction would leave most of a GPU without work, or where the
    kernel of rows can do the first one."""
    walks = _walks(graph)
    if not walks:
        return _with_pieces(graph, _pieces_for_gpu)
    return transform(graph, partial(_over_rows, walks))


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
    axis, length = pieces_of(node)
    return _in_pieces(build, node, inputs[0], axis, length) if length else same


def _longest(sizes: Sequence[int]) -> int:
    return max(range(len(sizes)), key=lambda each: sizes[each])


def _outermost(sizes: Sequence[int]) -> int:
    """The first one that is long enough: what is read for a piece lies side by side."""
    long = (number for number, size in enumerate(sizes) if size >= MAX_ROWS)
    return next(long, _longest(sizes))


def _sizes(node: Node) -> list[int]:
    """The sizes of the axes that are reduced."""
    shape = node.inputs[0].shape
    return [shape[axis] for axis in node.attrs["axes"]]


def _pieces_for_threads(node: Node) -> tuple[int, int]:
    if not node.attrs["axes"]:
        return 0, 0
    which, length = decided(_cut_for_threads, node.type.numel, _side_by_side(node), *_sizes(node))
    return node.attrs["axes"][which], length


def _cut_for_threads(results: int, side_by_side: int, *sizes: int) -> tuple[int, int]:
    """Which of `sizes` to cut, and how long a piece of it is; 0 if that is not worth it."""
    elements = prod(sizes)
    if _are_few_columns(results, side_by_side, elements):
        elements *= results
    if elements < MIN_ELEMENTS or results > MAX_ROWS:
        return 0, 0
    which = _outermost(sizes)
    size = sizes[which]
    pieces = next((n for n in PIECES if size >= n and elements // n >= MIN_PIECE), 0)
    return which, size // pieces if pieces else 0


def _side_by_side(node: Node) -> int:
    """The elements behind all axes that are reduced."""
    return prod(node.inputs[0].shape[max(node.attrs["axes"]) + 1 :])


def _are_few_columns(results: int, side_by_side: int, elements: int) -> bool:
    """Whether a thread alone would add up much for results that lie side by side."""
    few = 1 < side_by_side == results <= MAX_ROWS
    return few and elements * side_by_side >= MIN_COLUMN_ELEMENTS


def _leading_axes(node: Node) -> tuple[int, ...]:
    """Outermost axes of few columns whose indices are the pieces, if there are such."""
    axes: tuple[int, ...] = node.attrs["axes"]
    if not axes:
        return ()
    return axes[: decided(_leading, node.type.numel, _side_by_side(node), *_sizes(node))]


def _leading(results: int, side_by_side: int, *sizes: int) -> int:
    """How many of `sizes` have as many indices as there are to be pieces."""
    if _are_few_columns(results, side_by_side, prod(sizes)):
        for count in range(1, len(sizes)):
            pieces = prod(sizes[:count])
            if pieces >= FEWEST_PIECES:
                return count if pieces <= PIECES[0] else 0
    return 0


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
    shape, results, sizes = node.inputs[0].shape, node.type.numel, _sizes(node)
    length = prod(sizes)
    if results == 0 or length * results < GPU_MIN_ELEMENTS:
        return 0, 0
    # Where enough kept elements lie side by side, blocks stand on columns, else on results.
    in_columns = prod(shape[max(node.attrs["axes"]) + 1 :]) >= GPU_COLUMNS
    blocks = -(-results // GPU_COLUMNS) if in_columns else results
    shortest = GPU_COLUMN_PIECE if in_columns else GPU_ROW_PIECE
    if blocks >= (GPU_BLOCKS // 2 if in_columns else GPU_BLOCKS):
        return 0, 0
    which, pieces = _longest(sizes), PIECES[0]
    while pieces > 1:
        are_long = in_columns and length // pieces >= GPU_LONG_COLUMN_PIECE
        most = (8 if are_long else 2) * GPU_BLOCKS
        if pieces * blocks < most and length // pieces >= shortest:
            break
        pieces //= 2
    axis, is_cut = node.attrs["axes"][which], 1 < pieces <= sizes[which]
    return axis, sizes[which] // pieces if is_cut else 0


def _walks(graph: Graph) -> dict[Node, int]:
    """Sums of columns beside reductions of rows, with the number of rows that a block adds up."""
    sums = {node: length for node in graph.nodes if (length := _walk(node))}
    near: dict[tuple[int, ...], set[Node]] = {}  # what rows are reduced of, by the axes of rows
    for node in graph.nodes if sums else ():
        if node.primitive in _SPLIT:
            near.setdefault(_kept(node), set()).update(_made_of(node.inputs[0]))
    return {
        node: length
        for node, length in sums.items()
        if not near.get(node.attrs["axes"], set()).isdisjoint(_made_of(node.inputs[0]))
    }


def _walk(node: Node) -> int:
    """How many rows a block adds up for a sum of columns; 0 where none does."""
    if node.primitive is not p.sum_ or node.type.dtype.kind != "float":
        return 0
    axes, columns = node.attrs["axes"], node.type.numel
    if axes != tuple(range(len(axes))) or columns not in GPU_WALKED:
        return 0
    if node.inputs[0].type.nbytes < GPU_WALKED_BYTES:
        return 0
    rows = prod(node.inputs[0].shape[: len(axes)])
    lengths = (each for each in reversed(GPU_WALK) if rows % each == 0)
    return next((each for each in lengths if rows // each >= GPU_WALKING_BLOCKS), 0)


def _kept(node: Node) -> tuple[int, ...]:
    """The axes that are not reduced."""
    ndim = node.inputs[0].type.ndim
    return tuple(axis for axis in range(ndim) if axis not in node.attrs["axes"])


def _made_of(node: Node) -> set[Node]:
    """A node, and those of its shape that it is computed from element by element."""
    found, pending = {node}, [node]
    while pending and len(found) <= MOST_VISITED:
        each = pending.pop()
        if each.primitive.family is Family.ELEMENTWISE:
            new = {same for same in each.inputs if same.shape == node.shape} - found
            found |= new
            pending += new
    return found


def _over_rows(
    walks: Mapping[Node, int], build: Builder, node: Node, inputs: tuple[Node, ...]
) -> Node:
    """A sum of columns in two steps: over a few rows each, and of these sums."""
    if node not in walks:
        return _split(_pieces_for_gpu, build, node, inputs)
    (operand,), columns = inputs, node.type.numel
    wide, joint = _wider(node)
    shape = (operand.type.numel // (walks[node] * columns), walks[node], columns)
    rows = build.apply(p.reshape, [operand], {"shape": shape}, node.where)
    attrs = {"axes": (1,), "keepdims": False}
    pieces = build.apply(node.primitive, [_cast(build, rows, wide)], attrs, node.where)
    attrs = {"axes": (0,), "keepdims": False}
    total = build.apply(node.primitive, [_cast(build, pieces, joint)], attrs, node.where)
    total = _cast(build, total, node.type.dtype)
    return build.apply(p.reshape, [total], {"shape": node.shape}, node.where)


def _in_pieces(build: Builder, node: Node, operand: Node, axis: int, length: int) -> Node:
    """Reduce pieces of `length` along `axis`, then their results and a rest that is shorter."""
    size = operand.shape[axis]
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
