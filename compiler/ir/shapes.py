"""All arithmetic on shapes, in one place. Sizes may be open ones (`dim.SymInt`)."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from .dim import SymInt, is_open, size_text
from .size_number import is_expression

Shape = tuple[int, ...]

SIZE_TYPES = frozenset({int, SymInt})
"""What a size is, and nothing that is equal to one, such as True."""


def are_plain(sizes: Iterable[object]) -> bool:
    """Whether all are of the types of sizes."""
    return SIZE_TYPES.issuperset(map(type, sizes))


def are_plain_ints(sizes: Iterable[object]) -> bool:
    """Whether none is open."""
    return SymInt not in map(type, sizes)


def is_same(a: int, b: int) -> bool:
    """Whether two sizes are equal whatever open ones are; asking takes nothing for granted."""
    if is_open(a):
        return a.scope.is_same(a, b)
    return b.scope.is_same(b, a) if is_open(b) else a == b


def is_one(size: int) -> bool:
    """Whether a size is 1 whatever open ones are."""
    return size.scope.is_same(size, 1) if is_open(size) else size == 1


def agree(a: int, b: int) -> bool:
    """Whether two sizes that have to be equal are, or are taken to be from now on."""
    if is_same(a, b):
        return True
    return (is_open(a) and a.scope.agree(a, b)) or (is_open(b) and b.scope.agree(b, a))


def are_same(one: Shape, other: Shape) -> bool:
    """`is_same` for all sizes of two shapes."""
    return one is other or (len(one) == len(other) and all(map(is_same, one, other)))


def numel(shape: Sequence[int]) -> int:
    """The number of elements of `shape`; 1 for a scalar."""
    return math.prod(shape)


def broadcast(*shapes: Shape) -> Shape:
    """The common shape under NumPy's rules, sizes aligned on the right.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    first = shapes[0]
    if all(are_same(shape, first) for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for position, size in enumerate(shape, ndim - len(shape)):
            if is_one(size) or is_same(size, result[position]):
                continue
            if not is_one(result[position]):
                if agree(size, result[position]):
                    continue
                raise ValueError(
                    f"The size of tensor a ({size_text(result[position])}) must match the size of "
                    f"tensor b ({size_text(size)}) at non-singleton dimension {position}"
                )
            result[position] = size
    return tuple(result)


def broadcastable_to(shape: Shape, target: Shape) -> bool:
    """Whether `shape` broadcasts to exactly `target`."""
    lead = len(target) - len(shape)
    return lead >= 0 and all(
        is_one(size) or agree(size, wanted)
        for size, wanted in zip(shape, target[lead:], strict=True)
    )


def normalize_axis(axis: int, ndim: int) -> int:
    """`axis` counted from the front; IndexError with PyTorch's text when out of range."""
    bound = max(ndim, 1)
    if not -bound <= axis < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {axis})"
        )
    return axis % bound


def normalize_axes(axes: Iterable[int] | int | None, ndim: int) -> tuple[int, ...]:
    """Sorted distinct axes counted from the front; None means all of them."""
    if axes is None:
        return tuple(range(ndim))
    given = [axes] if isinstance(axes, int) else list(axes)
    result = [normalize_axis(axis, ndim) for axis in given]
    if len(set(result)) != len(result):
        raise RuntimeError(f"dim appears multiple times in the list of dims: {tuple(given)}")
    return tuple(sorted(axis for axis in result if ndim > 0))


def reduce(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """`shape` with `axes` removed, or of size 1 when `keepdims`."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def infer_reshape(shape: Shape, wanted: Sequence[int]) -> Shape:
    """`wanted` with its one -1 filled in; RuntimeError with PyTorch's text if it cannot be."""
    sizes = tuple(wanted)
    total = numel(shape)
    if are_plain_ints(sizes) and min(sizes, default=0) >= 0:
        if math.prod(sizes) != total:
            raise _invalid(wanted, total)
        return sizes
    return _inferred(list(sizes), total)


def _inferred(sizes: list[int], total: int) -> Shape:
    wanted = tuple(sizes)
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(size < -1 for size in sizes):
        raise RuntimeError(f"invalid shape dimension {min(sizes)}")
    if -1 in sizes:
        known = math.prod(size for size in sizes if size != -1)
        if known == 0 and total == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(wanted)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        if known == 0 or total % known:
            raise _invalid(wanted, total)
        sizes[sizes.index(-1)] = total // known
    if math.prod(sizes) != total:
        raise _invalid(wanted, total)
    return tuple(sizes)


def _invalid(wanted: Sequence[int], total: int) -> RuntimeError:
    sizes = ", ".join(map(size_text, wanted))
    return RuntimeError(f"shape '[{sizes}]' is invalid for input of size {size_text(total)}")


def at_least_one(size: int) -> int:
    """The larger of a size and 1."""
    if is_expression(size):
        larger: int = size.scope.at_least_one(size)  # type: ignore[attr-defined]
        return larger
    return max(size, 1)


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * at_least_one(shape[axis + 1])
    return tuple(strides)


def slice_indices(item: slice, size: int) -> tuple[int, int, int]:
    """`item.indices(size)`, for steps above 0 also of an open size and bounds."""
    given = (size, item.start, item.stop)
    if not any(map(is_open, given)):
        return item.indices(size)
    step = 1 if item.step is None else operator.index(item.step)
    start = 0 if item.start is None else _bound(item.start, size)
    stop = size if item.stop is None else _bound(item.stop, size)
    return start, stop, step


def _bound(at: Any, size: int) -> Any:
    """The bound of a slice counted from the front, and inside the axis."""
    if not is_open(at):
        at = operator.index(at)
    if at < 0:
        at += size
        return at if at >= 0 else 0
    return at if at <= size else size


def slice_size(start: int, stop: int, step: int) -> int:
    """How many indices `range(start, stop, step)` has, for a positive step."""
    return -(-(stop - start) // step) if stop >= start else 0


def diagonal_place(shape: Shape, offset: int) -> tuple[int, int, int]:
    """Row and column where a diagonal of the last two axes begins, and how many elements it has."""
    rows, columns = shape[-2:]
    row, column = (0, offset) if offset >= 0 else (-offset, 0)
    count = max(0, min(rows - row, columns - column))
    return (row, column, count) if count else (0, 0, 0)


def diagonal_slice(shape: Shape, offset: int) -> tuple[Shape, dict[str, Shape]]:
    """A diagonal as a slice where the last two axes are one: that shape, and attributes."""
    *outer, rows, columns = shape
    row, column, count = diagonal_place(shape, offset)
    start = row * columns + column
    stop = start + (count - 1) * (columns + 1) + 1 if count else start
    lead = len(outer)
    return (*outer, rows * columns), {
        "starts": (*(0,) * lead, start),
        "stops": (*outer, stop),
        "steps": (*(1,) * lead, columns + 1),
    }


def window_count(size: int, window: int, stride: int, dilation: int) -> int:
    """How many windows of `window` taps, `dilation` apart, fit into `size` at `stride`."""
    return max(0, (size - dilation * (window - 1) - 1) // stride + 1)
