"""Reads and writes at positions that are data. A position outside its axis is an IndexError."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, as_array, compute_dtype, quietly
from .out_of_bounds_error import OutOfBoundsError


def _check(positions: Array, axis: int, size: int) -> None:
    """IndexError unless all positions are in [0, size); one unsigned maximum tells both ends."""
    if positions.size == 0:
        return
    unsigned = positions.view(np.uint64 if positions.itemsize == 8 else np.uint32)
    on_host = isinstance(positions, np.ndarray)
    if (np.maximum.reduce(unsigned, axis=None) if on_host else unsigned.max()) < size:
        return
    flat = positions.reshape(-1)
    worst = int(flat[((flat < 0) | (flat >= size)).argmax()])
    raise OutOfBoundsError(f"index {worst} is out of bounds for dimension {axis} with size {size}")


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

    Half types accumulate in float32.
    """
    dtype = base.dtype
    wide = compute_dtype(dtype)
    result = xp.array(base, dtype=wide, copy=True, order="C")
    flat, rest = _flat(positions, base.shape), math.prod(base.shape[len(positions) :])
    if values.size and xp is np:
        # Only one-dimensional `add.at` has a fast loop.
        if len(positions) < base.ndim:
            flat = np.add.outer(flat * rest, np.arange(rest))
        added = values.astype(wide, copy=False).reshape(-1)
        quietly(np.add.at, result.reshape(-1), flat.reshape(-1), added)
    elif values.size:
        rows = values.astype(wide, copy=False).reshape(-1, rest)
        at, sums = _sums_of_equals(xp, flat.reshape(-1), rows)
        result.reshape(-1, rest)[at] += sums
    return result if wide is dtype else quietly(result.astype, dtype)


def _flat(positions: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Positions along several axes as one number each."""
    flat: Array = 0
    for position, size in zip(positions, sizes):
        flat = flat * size + position.astype(np.int64, copy=False)
    return flat


def _sums_of_equals(xp: Any, at: Array, rows: Array) -> tuple[Array, Array]:
    """The numbers in `at`, each once, and the sums of the rows that belong to them.

    On a device, where atomic additions would come in any order: rows with the same number are
    brought side by side and added in pairs, then pairs of pairs, always in the same order.
    """
    order = xp.argsort(at)  # stable
    at, rows = at[order], rows[order]
    count = _counted(xp, at)
    remaining = int(count.max()) + 1
    while remaining > 1:
        (first,) = (count & 1 == 0).nonzero()
        second = xp.minimum(first + 1, len(at) - 1)
        is_pair = (second > first) & (at[second] == at[first])
        left = rows[first]
        rows = xp.where(is_pair[:, None], left + rows[second], left)
        at, count = at[first], count[first] >> 1
        remaining = (remaining + 1) // 2
    return at, rows


def _counted(xp: Any, ordered: Array) -> Array:
    """For every number of an ordered vector how many equal ones come before it."""
    is_new = xp.concatenate([xp.ones(1, np.bool_), ordered[1:] != ordered[:-1]])
    (starts,) = is_new.nonzero()
    return xp.arange(len(ordered)) - starts[xp.cumsum(is_new, dtype=np.int64) - 1]


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
        _write(xp, result, indices, values, axis)
        return result
    return _added(xp, x, _leading(xp, x.shape[:axis], indices, values.shape), values)


def write_at(xp: Any, target: Array, indices: Sequence[Array], values: Array, axis: int) -> None:
    """Overwrite the elements at positions along the axes from `axis` on, in place.

    IndexError, before anything is written, for positions outside. `values` has the shape of what
    the positions select; where one is repeated, the last value counts.
    """
    for offset, index in enumerate(indices):
        _check(index, axis + offset, target.shape[axis + offset])
    _write(xp, target, indices, values, axis)


def _write(xp: Any, target: Array, indices: Sequence[Array], values: Array, axis: int) -> None:
    if xp is not np:
        if not values.size:
            return
        indices, values = _last_of_equals(xp, target.shape, indices, values, axis)
    target[(slice(None),) * axis + tuple(indices)] = values


def _last_of_equals(
    xp: Any, shape: Sequence[int], indices: Sequence[Array], values: Array, axis: int
) -> tuple[Sequence[Array], Array]:
    """The positions, each once, and the last value of each, in memory of their own.

    On a device, where any of several values may come last, and one may be read after it was
    overwritten.
    """
    if indices[0].size == 1:
        return indices, values.copy()
    at = _flat(indices, shape[axis:]).reshape(-1)
    order = xp.argsort(at)  # stable
    ordered = at[order]
    is_last = xp.concatenate([ordered[1:] != ordered[:-1], xp.ones(1, np.bool_)])
    kept = order[is_last.nonzero()[0]]
    behind = values.shape[axis + indices[0].ndim :]
    lines = values.reshape(*values.shape[:axis], len(at), *behind)
    return [each.reshape(-1)[kept] for each in indices], lines.take(kept, axis=axis)


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
    "scatter_add": _scatter_add,
    "index": _index,
    "index_put": _index_put,
}
