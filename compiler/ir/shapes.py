"""All arithmetic on shapes, in one place, so that symbolic sizes have one door to come in by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]


def are_plain(sizes: Iterable[object]) -> bool:
    """Whether all are ints, and nothing that is equal to one."""
    return _PLAIN.issuperset(map(type, sizes))


_PLAIN = frozenset({int})


def numel(shape: Sequence[int]) -> int:
    """The number of elements of `shape`; 1 for a scalar."""
    return math.prod(shape)


def broadcast(*shapes: Shape) -> Shape:
    """The common shape under NumPy's rules, sizes aligned on the right.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for position, size in enumerate(shape, ndim - len(shape)):
            if size == 1 or size == result[position]:
                continue
            if result[position] != 1:
                raise ValueError(
                    f"The size of tensor a ({result[position]}) must match the size of tensor b "
                    f"({size}) at non-singleton dimension {position}"
                )
            result[position] = size
    return tuple(result)


def broadcastable_to(shape: Shape, target: Shape) -> bool:
    """Whether `shape` broadcasts to exactly `target`."""
    lead = len(target) - len(shape)
    return lead >= 0 and all(
        size in (1, wanted) for size, wanted in zip(shape, target[lead:], strict=True)
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
    sizes = list(wanted)
    total = numel(shape)
    invalid = f"shape '{list(wanted)}' is invalid for input of size {total}"
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
            raise RuntimeError(invalid)
        sizes[sizes.index(-1)] = total // known
    if math.prod(sizes) != total:
        raise RuntimeError(invalid)
    return tuple(sizes)


def contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def slice_size(start: int, stop: int, step: int) -> int:
    """How many indices `range(start, stop, step)` has, for a positive step."""
    return max(0, -(-(stop - start) // step))


def window_count(size: int, window: int, stride: int, dilation: int) -> int:
    """How many windows of `window` taps, `dilation` apart, fit into `size` at `stride`."""
    return max(0, (size - dilation * (window - 1) - 1) // stride + 1)
