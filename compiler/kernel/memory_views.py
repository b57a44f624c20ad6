"""Values that need no memory of their own: which strides lead to their elements in another's."""

from __future__ import annotations

from typing import Any

from ...runtime.memo import Memo
from ...runtime.plan_steps import Axes, Spread
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.reshape_groups import reshape_groups
from ..ir.shapes import are_plain_ints, contiguous_strides
from .index import Axis, Index, flatten, of_axis
from .kernel_io import BufferLayout
from .views import operand_needs

SHORTEST_RUN = 4
"""Elements side by side from which on gathering them is not dearer than a matrix in memory."""

_MOVES = (p.reshape, p.permute, p.slice_, p.broadcast, p.barrier)

View = tuple[tuple[int, ...], int]
"""Strides and an offset, in elements."""


def alias_base(node: Node) -> Node:
    """The node whose memory a materialised reshape, or a barrier, shares."""
    while node.primitive in (p.reshape, p.barrier):
        node = node.inputs[0]
    return node


def view_base(node: Node) -> Node:
    """The node below a chain of views that only re-address its elements."""
    while node.primitive in _MOVES:
        node = node.inputs[0]
    return node


def strided_view(node: Node, base: Node, memory: BufferLayout) -> View | None:
    """Element strides and offset of `node` in the memory of `base`, if views alone lead there.

    Found once for each chain of views: a model has many that are alike.
    """
    chain: list[Any] = [memory, base.shape]
    each = node
    while each is not base:
        if len(each.inputs) != 1 or not are_plain_ints(each.shape):
            return _strided_view(node, base, memory)
        chain += each.what, each.shape
        each = each.inputs[0]
    key = tuple(chain)
    found = _views.get(key)
    if found is None:
        found = _views.keep(key, (_strided_view(node, base, memory),))
    return found[0]


# By the layout of memory, and by what views do, and the shapes that they have; a view or None.
_views: Memo[Any, tuple[View | None]] = Memo(20_000)


def _strided_view(node: Node, base: Node, memory: BufferLayout) -> View | None:
    if alias_base(node) is base and memory == BufferLayout.contiguous(base.shape):
        return contiguous_strides(node.shape), 0
    axes = [Axis(f"v{number}", size) for number, size in enumerate(node.shape)]
    coords: tuple[Index, ...] = tuple(map(of_axis, axes))
    while node is not base:
        needs = operand_needs(node, coords, ())
        if node.primitive.family is not Family.VIEW or len(needs) != 1 or needs[0][2]:
            return None
        node, coords, _ = needs[0]
    offset = flatten(list(coords), memory.strides) + memory.offset
    if any(atom not in axes for atom in offset.terms):
        return None
    return tuple(offset.terms.get(axis, 0) for axis in axes), offset.const


def is_matrix(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether BLAS can read the last two axes as they lie, transposed or not."""
    rows, columns = shape[-2:]
    row, column = strides[-2:]
    plain = (column == 1 or columns == 1) and (row >= columns or rows == 1)
    transposed = (row == 1 or rows == 1) and (column >= rows or columns == 1)
    return plain or transposed


def reads_strided(step: Node) -> bool:
    """Whether a step reads operands that are views of others as they lie."""
    if step.primitive.family in (Family.SEVERAL, Family.LIBRARY):
        return True
    return step.primitive in (p.matmul, p.attention, p.argsort, p.select_nth, p.sort)


_RIGHT_OPERANDS = {
    "attention": (2,), "attention_rows": (2,), "attention_gradient": (0, 1, 3, 5),
}  # fmt: skip
"""Those whose rows are read as vectors, where they lie."""


def can_read(step: Node, operand: Node, strides: tuple[int, ...]) -> bool:
    """Whether such a step reads an operand that lies in memory with these strides."""
    if step.primitive is p.matmul:
        return is_matrix(operand.shape, strides)
    rows = _RIGHT_OPERANDS.get(step.primitive.name, ())
    if step.primitive is p.attention_gradient and operand is step.inputs[4]:
        return strides[-2:] == (operand.shape[-1], 1)
    is_right = any(operand is step.inputs[at] for at in rows)
    return not is_right or strides[-1] == 1 or operand.shape[-1] == 1


def unfolded(node: Node) -> Node | None:
    """The windows that a matrix is made of by views alone, if it is."""
    while node.primitive in (p.reshape, p.permute, p.slice_):
        node = node.inputs[0]
    return node if node.primitive is p.unfold else None


def spread_view(node: Node, base: Node, memory: BufferLayout) -> tuple[Spread, View] | None:
    """How matrices made of windows lie in the memory of `base`; strides of leading axes.

    None where they would have to be gathered element by element.
    """
    found = _spread(node, base, memory)
    return found if found and _run(found[0]) >= SHORTEST_RUN else None


def longest_run(node: Node, base: Node, memory: BufferLayout) -> int:
    """How many elements lie side by side along rows or columns of what `spread_view` gives."""
    found = spread_view(node, base, memory)
    return _run(found[0]) if found else 0


def _spread(node: Node, base: Node, memory: BufferLayout) -> tuple[Spread, View] | None:
    """How they lie, even if numbers are far apart."""
    (split, *_) = node.inputs
    groups = reshape_groups(split.shape, node.shape) if node.primitive is p.reshape else []
    view = strided_view(split, base, memory) if groups else None
    if view is None:
        return None
    strides, offset = view
    axes: list[Axes] = [()] * node.type.ndim
    for inner, outer in groups:
        wide = [axis for axis in outer if node.shape[axis] != 1]
        if len(wide) > 1:
            return None
        if wide:
            axes[wide[0]] = merged_axes([(split.shape[at], strides[at]) for at in inner])
    *lead, rows, columns = (each or ((1, 1),) for each in axes)
    if any(len(each) > 1 for each in lead):
        return None
    return Spread(rows, columns), (tuple(each[0][1] for each in lead), offset)


def _run(spread: Spread) -> int:
    """How many elements lie side by side along the rows or the columns."""
    sides = (spread.rows[-1], spread.columns[-1])
    return max((size for size, stride in sides if stride == 1), default=0)


def merged_axes(axes: list[tuple[int, int]]) -> Axes:
    """Without axes of one element; neighbours through which memory runs evenly are one."""
    merged: list[tuple[int, int]] = []
    for size, stride in axes:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = merged[-1][0] * size, stride
        else:
            merged.append((size, stride))
    return tuple(merged)
