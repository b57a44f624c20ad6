"""Reads and writes at positions that are data. A position outside its axis is an IndexError."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, as_array, quiet
from .dtypes import from_numpy_dtype


def _check(positions: Array, axis: int, size: int) -> None:
    """IndexError unless all positions are in [0, size); one unsigned maximum tells both ends."""
    if positions.size == 0:
        return
    unsigned = positions.view(np.uint64 if positions.itemsize == 8 else np.uint32)
    if np.maximum.reduce(unsigned, axis=None) < size:
        return
    flat = positions.reshape(-1)
    worst = int(flat[((flat < 0) | (flat >= size)).argmax()])
    raise IndexError(f"index {worst} is out of bounds for dimension {axis} with size {size}")


def _grid(xp: Any, index: Array, axis: int) -> tuple[Array, ...]:
    """The full positions of every element of `index`, as open (broadcasting) arrays."""
    ndim = index.ndim
    return tuple(
        index
        if at == axis
        else xp.arange(size).reshape((1,) * at + (size,) + (1,) * (ndim - at - 1))
        for at, size in enumerate(index.shape)
    )


def _gather(xp: Any, x: Array, index: Array, axis: int) -> Array:
    _check(index, axis, x.shape[axis])
    return x[_grid(xp, index, axis)]


def _scatter_add(xp: Any, x: Array, index: Array, source: Array, axis: int) -> Array:
    _check(index, axis, x.shape[axis])
    return _added(xp, x, _grid(xp, index, axis), source)


def _added(xp: Any, base: Array, positions: tuple[Array, ...], values: Array) -> Array:
    """`base` with `values` added at `positions` of its leading axes, repeated ones included.

    The positions are made flat, since only one-dimensional `add.at` has a fast loop. Half types
    accumulate in float32.
    """
    dtype = base.dtype
    wide = np.float32 if from_numpy_dtype(dtype).is_half else dtype
    result = xp.array(base, dtype=wide, copy=True, order="C")
    flat: Array = 0
    for position, size in zip(positions, base.shape):
        flat = flat * size + position
    rest = result.size // max(int(np.prod(base.shape[: len(positions)])), 1)
    if len(positions) < base.ndim:
        flat = xp.add.outer(flat * rest, xp.arange(rest))
    values = values.astype(wide, copy=False).reshape(-1)
    xp.add.at(result.reshape(-1), xp.broadcast_to(flat, flat.shape).reshape(-1), values)
    return result if wide is dtype else result.astype(dtype)


def _index(xp: Any, x: Array, *indices: Array, axis: int) -> Array:
    for offset, index in enumerate(indices):
        _check(index, axis + offset, x.shape[axis + offset])
    if len(indices) == 1:
        return as_array(x.take(indices[0], axis=axis))
    chosen = x[(slice(None),) * axis + indices]
    # Zero-dimensional positions select a view; the result owns its memory.
    return xp.array(chosen) if indices[0].ndim == 0 else chosen


def _index_put(xp: Any, x: Array, *rest: Array, axis: int, accumulate: bool) -> Array:
    *indices, values = rest
    for offset, index in enumerate(indices):
        _check(index, axis + offset, x.shape[axis + offset])
    if not accumulate:
        result = xp.array(x, copy=True, order="C")
        result[(slice(None),) * axis + tuple(indices)] = values
        return result
    return _added(xp, x, _leading(xp, x.shape[:axis], indices, values.shape), values)


def _leading(xp: Any, lead: Any, indices: Any, shape: Any) -> tuple[Array, ...]:
    """Positions along the axes before the indexed ones and along these, broadcast together."""
    axis, inner = len(lead), indices[0].ndim
    before = [
        xp.arange(size).reshape((1,) * at + (size,) + (1,) * (axis - at - 1 + inner))
        for at, size in enumerate(lead)
    ]
    return tuple(xp.broadcast_to(each, shape[: axis + inner]) for each in (*before, *indices))


FUNCTIONS: dict[str, Function] = {
    "gather": _gather,
    "scatter_add": quiet(_scatter_add),
    "index": _index,
    "index_put": quiet(_index_put),
}
