"""Functions that move elements, over an array module; views where the array module can."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, compute_dtype, quiet, quietly

Ints = tuple[int, ...]


def _reshape(xp: Any, x: Array, shape: Ints) -> Array:
    return x.reshape(shape)


def _permute(xp: Any, x: Array, axes: Ints) -> Array:
    return x.transpose(axes)


def _broadcast(xp: Any, x: Array, shape: Ints) -> Array:
    if x.size == math.prod(shape):
        return x.reshape(shape)  # only axes of size one are new: this view may be written to
    if xp is not np:
        return xp.broadcast_to(x, shape)
    repeated = [0 if size == 1 else step for size, step in zip(x.shape, x.strides)]
    shown = strided(x, shape, (0,) * (len(shape) - x.ndim) + tuple(repeated))
    shown.flags.writeable = False
    return shown


def strided(x: Array, shape: Ints, strides: Ints) -> Array:
    """The memory of an array of NumPy, seen with other sizes and strides (in bytes).

    `as_strided` looks up attributes of Python objects for that, and takes six times as long.
    """
    if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype.kind in "biufc":
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def slices_of(starts: Ints, stops: Ints, steps: Ints) -> Any:
    """What to index an array with; of a 0-d array it takes the array, not a scalar."""
    return tuple(map(slice, starts, stops, steps)) or ...


def _slice(xp: Any, x: Array, starts: Ints, stops: Ints, steps: Ints) -> Array:
    return x[slices_of(starts, stops, steps)]


def _diagonal(xp: Any, x: Array, offset: int) -> Array:
    row, column = (0, offset) if offset >= 0 else (-offset, 0)
    count = max(0, min(x.shape[-2] - row, x.shape[-1] - column))
    if x.shape[-2:] != (count, count):
        x = x[..., row : row + count, column : column + count]
    if xp is np:
        return np.einsum("...ii->...i", x)  # a view that may be written, other than np.diagonal's
    *around, down, across = x.strides
    return xp.lib.stride_tricks.as_strided(x, x.shape[:-1], (*around, down + across))


def _barrier(xp: Any, x: Any, after: Any) -> Any:
    return x


def _slice_update(
    xp: Any, base: Array, update: Array, starts: Ints, stops: Ints, steps: Ints
) -> Array:
    result = xp.array(base, copy=True, order="C")
    result[slices_of(starts, stops, steps)] = update
    return result


def _flip(xp: Any, x: Array, axes: Ints) -> Array:
    reverse = (slice(None, None, -1 if axis in axes else None) for axis in range(x.ndim))
    return x[tuple(reverse) or ...]


def _pad(xp: Any, x: Array, low: Ints, high: Ints, interior: Ints, value: Any) -> Array:
    steps = [between + 1 for between in interior]
    spread = [max((size - 1) * step + 1, 0) if size else 0 for size, step in zip(x.shape, steps)]
    shape = tuple(before + size + after for before, size, after in zip(low, spread, high))
    result = filled(xp, shape, value, x.dtype)
    inner = map(slice, low, (before + size for before, size in zip(low, spread)), steps)
    result[tuple(inner) or ...] = x
    return result


def filled(xp: Any, shape: Ints, value: Any, dtype: Any) -> Array:
    """An array of one value; integers out of range wrap, as in PyTorch's arithmetic."""
    try:
        number = quietly(np.array, value, dtype)
    except OverflowError:
        number = np.array(_wrapped(value, dtype), dtype)
    if not shape and xp is np:
        return number
    if number.tobytes().count(0) == number.itemsize:
        return xp.zeros(shape, dtype)  # memory that the system hands out clean
    return xp.full(shape, number[()], dtype)  # as a scalar, of which CuPy keeps the sign of zero


def _wrapped(value: int, dtype: Any) -> int:
    bits: int = 8 * dtype.itemsize
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def _concatenate(xp: Any, *arrays: Array, axis: int) -> Array:
    return xp.concatenate(arrays, axis=axis)


def unfold(xp: Any, x: Array, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Array:
    """A view of the windows along `axes`; the windows' own axes are appended."""
    shape, steps = list(x.shape), list(x.strides)
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations):
        shape[axis] = max(0, (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1)
        steps[axis] = x.strides[axis] * stride
    inner = [x.strides[axis] * dilation for axis, dilation in zip(axes, dilations)]
    return xp.lib.stride_tricks.as_strided(x, (*shape, *sizes), (*steps, *inner))


def _fold(
    xp: Any, windows: Array, axes: Ints, strides: Ints, dilations: Ints, shape: Ints
) -> Array:
    dtype = windows.dtype
    wide = compute_dtype(dtype)
    result = xp.zeros(shape, wide)
    counts, sizes = windows.shape[: len(shape)], windows.shape[len(shape) :]
    for taps in product(*map(range, sizes)):
        target = [slice(None)] * len(shape)
        for axis, stride, dilation, tap in zip(axes, strides, dilations, taps):
            start = tap * dilation
            target[axis] = slice(start, start + (counts[axis] - 1) * stride + 1, stride)
        if all(counts):
            result[tuple(target) or ...] += windows[(..., *taps)]
    return result if wide is dtype else result.astype(dtype)


FUNCTIONS: dict[str, Function] = {
    "reshape": _reshape,
    "permute": _permute,
    "broadcast": _broadcast,
    "slice": _slice,
    "diagonal": _diagonal,
    "barrier": _barrier,
    "slice_update": _slice_update,
    "flip": _flip,
    "pad": _pad,
    "concatenate": _concatenate,
    "assemble": _concatenate,
    "unfold": unfold,
    "fold": quiet(_fold),
}
