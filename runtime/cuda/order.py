"""Order along the last axis of arrays on a device: what `runtime/order.py` gives, by CuPy's sort.

CuPy sorts stably, but has neither a descending order nor 16-bit brain floats, and orders NaN by
comparisons. So elements become unsigned integers in the same order (Knuth, TAOCP 3, 5.2.5), NaN as
the largest and zeros of both signs equal.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

Array = Any  # of CuPy

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# By the size of a float: the bits of infinity.
_INFINITY = {4: 0xFF << 23, 8: 0x7FF << 52}
_INFINITY_OF_HALF = {"float16": 0x1F << 10, "bfloat16": 0xFF << 7}


def first_in_order(xp: Any, values: Array, count: int, descending: bool) -> Array:
    """The positions of the first `count` elements of each row; equal ones keep their order."""
    if not values.size or not count:
        return xp.empty((*values.shape[:-1], count), np.int64)
    keys = sort_keys(xp, values)
    order = (~keys if descending else keys).argsort(axis=-1)
    found = order if count == values.shape[-1] else order[..., :count]
    return xp.ascontiguousarray(found.astype(np.int64, copy=False))


def in_order(xp: Any, values: Array, descending: bool) -> Array:
    """Rows in order."""
    length, rows = values.shape[-1], prod(values.shape[:-1])
    at = first_in_order(xp, values, length, descending).reshape(rows, length)
    flat = at + xp.arange(rows).reshape(rows, 1) * length
    return xp.ascontiguousarray(values).reshape(-1)[flat].reshape(values.shape)


def sort_keys(xp: Any, values: Array) -> Array:
    """Unsigned integers in the order of the elements."""
    values = xp.ascontiguousarray(values)
    kind, size = values.dtype.kind, values.dtype.itemsize
    unsigned: Any = _UNSIGNED[size]
    bits, top = values.view(unsigned), unsigned(1 << (8 * size - 1))
    if kind in "bu":
        return bits
    if kind == "i":
        return bits ^ top
    infinity = unsigned(_INFINITY.get(size) or _INFINITY_OF_HALF[values.dtype.name])
    is_negative = (bits & top) != 0
    ordered = xp.where(is_negative, ~bits, bits | top)
    size_bits = bits & ~top
    ordered = xp.where(size_bits > infinity, ~unsigned(0), ordered)
    return xp.where(size_bits == 0, top, ordered)
