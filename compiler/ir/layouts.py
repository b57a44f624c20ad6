"""Where the elements of a value lie in memory in eager mode, told by its node alone.

Whether `reshape` gives a view or a copy, whether `view` is allowed, and what `is_contiguous` says
follow from strides. They are those of PyTorch's basic operations: elementwise results take the
memory order of their operands, views show memory as it is, all other results are row-major. Eager
mode lays out its results by `result_strides`, a trace asks `node_strides`. Compiled code has
layouts of its own; nothing of this reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .node import Node
from .primitive import Attrs, Family, Primitive
from .shapes import (
    Shape,
    are_plain_ints,
    are_same,
    contiguous_strides,
    diagonal_place,
    is_one,
    is_same,
    slice_size,
)
from .types import TensorType

Strides = tuple[int, ...]
ALIASING = frozenset({
    "reshape", "permute", "broadcast", "slice", "diagonal", "unfold", "view_as_real",
    "view_as_complex", "bitcast", "repack",
})  # fmt: skip
"""The primitives whose results show the memory of their input, as in PyTorch (flip copies)."""
_ORDERED_ALIKE = frozenset({"flip", "conj", "complex"})

_row_major = lru_cache(maxsize=1 << 12)(contiguous_strides)


def row_major(shape: Shape) -> Strides:
    """The strides of rows, one object for each shape; those of open sizes belong to a trace."""
    return _row_major(shape) if are_plain_ints(shape) else contiguous_strides(shape)


def node_strides(node: Node) -> Strides:
    """Strides in elements of what eager code would have made; derived once for each node."""
    if node.strides is None:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            missing = [each for each in last.inputs if each.strides is None]
            if missing:
                waiting += missing
            else:
                last.strides = _derived(last)
                waiting.pop()
    assert node.strides is not None
    return node.strides


def _derived(node: Node) -> Strides:
    if type(node.type) is not TensorType:
        return ()  # of several results, which `get` selects
    shape = node.type.shape
    if node.primitive.family is Family.SOURCE:
        given: Strides | None = node.attrs.get("strides")
        return given or row_major(shape)
    if node.primitive.family is Family.ELEMENTWISE and "strides" not in node.attrs:
        for each in node.inputs:
            if each.strides is not row_major(each.type.shape):
                break
        else:  # as nearly always
            return row_major(shape)
    inputs = [(each.type.shape, each.strides or ()) for each in node.inputs if _is_one(each)]
    return result_strides(node.primitive, node.attrs, shape, inputs)


def _is_one(node: Node) -> bool:
    return type(node.type) is TensorType


def result_strides(
    primitive: Primitive,
    attrs: Attrs,
    shape: Shape,
    operands: Sequence[tuple[Shape, Strides]],
) -> Strides:
    """Strides of the result of `primitive`, of which `operands` have shapes and strides."""
    name = primitive.name
    if name in ALIASING:
        return step_strides(primitive, attrs, *operands[0])[1]
    if primitive.family is not Family.ELEMENTWISE and name not in _ORDERED_ALIKE:
        return row_major(shape)
    if "strides" in attrs:  # a copy that says where its elements lie
        given: Strides = attrs["strides"]
        return given
    if all(are_same(strides, row_major(own)) for own, strides in operands):
        return row_major(shape)
    if all(are_plain_ints((*own, *strides)) for own, strides in operands) and are_plain_ints(shape):
        return _known_strides(shape, tuple(operands))
    return _elementwise_strides(shape, tuple(operands))


def _elementwise_strides(shape: Shape, operands: tuple[tuple[Shape, Strides], ...]) -> Strides:
    """PyTorch's order (TensorIterator): axes are sorted by the first operand that tells them apart.

    An operand does not where it has a stride of 0; axes that none tells apart stay row-major.
    """
    if all(_is_dense(shape, *each) for each in operands) or 0 in shape:
        return row_major(shape)
    first = operands[0][1]
    if all(each == (shape, first) for each in operands) and _fills_memory(shape, first):
        return first
    spread = [_spread(shape, *each) for each in operands]
    order = list(range(len(shape) - 1, -1, -1))  # from the innermost axis on
    for start in range(1, len(order)):
        inner = start
        for outer in range(start - 1, -1, -1):
            sign = _compared(shape, spread, order[outer], order[inner])
            if sign < 0:
                break
            if sign > 0:
                order[outer], order[inner] = order[inner], order[outer]
                inner = outer
    result, step = [0] * len(shape), 1
    for axis in order:
        result[axis] = step
        step *= shape[axis]
    return tuple(result)


def _is_dense(shape: Shape, own: Shape, strides: Strides) -> bool:
    wanted = row_major(shape)
    return are_same(own, shape) and all(
        is_same(stride, step) or size == 1 for size, stride, step in zip(shape, strides, wanted)
    )


def _fills_memory(shape: Shape, strides: Strides) -> bool:
    """Whether the elements lie in one block of memory, each at a place of its own."""
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, shape) if size > 1):
        if stride != step:
            return False
        step *= size
    return True


_known_strides = lru_cache(maxsize=1 << 12)(_elementwise_strides)


def memory_order(shape: Shape, strides: Strides) -> tuple[int, ...] | None:
    """The axes of what fills its memory, from the one that jumps farthest; None where they are in
    the order of rows, or there are gaps.

    Nothing is assumed of open sizes for it.
    """
    if are_same(strides, row_major(shape)):
        return None
    step, left = 1, [axis for axis, size in enumerate(shape) if not is_one(size)]
    order: list[int] = []
    while left:
        axis = next((each for each in reversed(left) if is_same(strides[each], step)), None)
        if axis is None:
            return None
        order.append(axis)
        left.remove(axis)
        step *= shape[axis]
    if order == sorted(order, reverse=True):
        return None  # but for axes of one element
    return (*(axis for axis, size in enumerate(shape) if is_one(size)), *reversed(order))


def _spread(shape: Shape, own: Shape, strides: Strides) -> Strides:
    """The strides of an operand along the axes of the result; 0 along those it repeats."""
    lead = len(shape) - len(own)
    kept = zip(shape[lead:], own, strides)
    return (0,) * lead + tuple(stride if is_same(size, mine) else 0 for size, mine, stride in kept)


def _compared(shape: Shape, spread: Sequence[Strides], inner: int, outer: int) -> int:
    """1 where axis `inner` has to lie outside of `outer`, -1 where not, 0 where nobody knows."""
    for strides in spread:
        a, b = strides[inner], strides[outer]
        if a == 0 or b == 0:
            continue
        if a != b:
            return -1 if a < b else 1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def step_strides(
    primitive: Primitive, attrs: Attrs, shape: Shape, strides: Strides
) -> tuple[Shape, Strides]:
    """Shape and strides after one view primitive; row-major where a reshape has to copy."""
    name = primitive.name
    if name == "permute":
        axes = attrs["axes"]
        return tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes)
    if name == "reshape":
        found = view_strides(shape, strides, attrs["shape"])
        return attrs["shape"], found or row_major(attrs["shape"])
    if name == "broadcast":
        wanted = attrs["shape"]
        lead = len(wanted) - len(shape)
        kept = zip(shape, strides, wanted[lead:], strict=True)
        return wanted, (0,) * lead + tuple(
            stride if is_same(size, target) else 0 for size, stride, target in kept
        )
    if name == "slice":
        steps = attrs["steps"]
        sizes = tuple(
            slice_size(start, stop, by)
            for start, stop, by in zip(attrs["starts"], attrs["stops"], steps, strict=True)
        )
        return sizes, tuple(stride * by for stride, by in zip(strides, steps, strict=True))
    if name == "diagonal":
        *_, count = diagonal_place(shape, attrs["offset"])
        *around, down, across = strides
        return (*shape[:-2], count), (*around, down + across)
    if name == "bitcast":
        return shape, strides
    if name == "repack":
        old, new = attrs["source"].itemsize, attrs["dtype"].itemsize
        steps = (stride * old // new for stride in strides[:-1])
        return (*shape[:-1], shape[-1] * old // new), (*steps, 1)
    if name == "view_as_real":
        return (*shape, 2), (*(2 * stride for stride in strides), 1)
    if name == "view_as_complex":
        return shape[:-1], tuple(stride // 2 for stride in strides[:-1])
    if name == "unfold":
        counts, outer, inner = list(shape), list(strides), []
        for axis, size, stride, dilation in zip(
            attrs["axes"], attrs["sizes"], attrs["strides"], attrs["dilations"], strict=True
        ):
            counts[axis] = max(0, (shape[axis] - dilation * (size - 1) - 1) // stride + 1)
            inner.append(strides[axis] * dilation)
            outer[axis] = strides[axis] * stride
        return (*counts, *attrs["sizes"]), (*outer, *inner)
    raise NotImplementedError(f"{name} is no view primitive")


def step_start(
    primitive: Primitive, attrs: Attrs, start: int, shape: Shape, strides: Strides
) -> int:
    """Where a view of a tensor that begins at `start` begins in memory, in its own elements."""
    name = primitive.name
    if name == "slice":
        starts: Shape = attrs["starts"]
        return start + sum(at * stride for at, stride in zip(starts, strides))
    if name == "diagonal":
        row, column, _ = diagonal_place(shape, attrs["offset"])
        return start + row * strides[-2] + column * strides[-1]
    if name == "view_as_real":
        return start * 2
    if name == "view_as_complex":
        return start // 2
    if name == "repack":
        found: int = start * attrs["source"].itemsize // attrs["dtype"].itemsize
        return found
    return start


def _carried_strides(shape: Shape, strides: Strides, wanted: Shape) -> Strides | None:
    """Strides where only axes of size 1 come or go beside open sizes; None where others do."""
    kept = [pair for pair in zip(shape, strides, strict=True) if not is_one(pair[0])]
    sizes = tuple(size for size in wanted if not is_one(size))
    if are_plain_ints(shape) or not are_same(tuple(size for size, _ in kept), sizes):
        return None
    result: list[int] = []
    step = kept[-1][1] if kept else 1
    for size in reversed(wanted):
        if not is_one(size):
            step = kept.pop()[1]
        result.append(step)
        step *= size
    return tuple(reversed(result))


def view_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that show memory of `shape` and `strides` as `wanted`; None where none do.

    Runs of axes that lie behind one another in memory are merged, and split again to `wanted`.
    """
    if are_same(shape, wanted):
        return strides
    if are_same(strides, row_major(shape)):
        return row_major(wanted)
    carried = _carried_strides(shape, strides, wanted)
    if carried is not None:
        return carried
    if 0 in shape:
        return row_major(wanted)
    runs: list[list[int]] = []  # [elements, innermost stride] from the right
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        else:
            runs.append([size, stride])
    result: list[int] = []
    total, step, done = 1, runs[0][1] if runs else 1, 1
    for size in reversed(wanted):
        if size == 1:
            result.append(step)
            continue
        if done == total:
            (total, step), done = runs.pop(0), 1
        result.append(step)
        step *= size
        done *= size
        if done > total:
            return None
    return tuple(reversed(result))
