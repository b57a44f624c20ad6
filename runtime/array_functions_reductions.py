"""Reductions over an array module: `axes` is a tuple, `keepdims` a bool.

Sums and products of half types accumulate in float32; integers keep their type and wrap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, quietly
from .dtypes import from_numpy_dtype

Axes = tuple[int, ...]


def _accumulation(name: str) -> Function:
    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        dtype, reduce = x.dtype, getattr(xp, name).reduce
        if not from_numpy_dtype(dtype).is_half:
            return quietly(reduce, x, axis=axes, dtype=dtype, keepdims=keepdims)
        total = quietly(reduce, x, axis=axes, dtype=np.float32, keepdims=keepdims)
        return quietly(total.astype, dtype)

    return function


def _choice(ufunc: str, name: str) -> Function:
    """The reduction of NumPy's `ufunc`, of which CuPy has the function `name` only."""

    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        if xp is np:
            return quietly(getattr(np, ufunc).reduce, x, axis=axes, keepdims=keepdims)
        return getattr(xp, name)(x, axis=axes, keepdims=keepdims)

    return function


def _position(name: str) -> Function:
    """The first position of the extreme; NaN counts as the extreme."""

    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        if x.dtype.kind == "V":  # bfloat16, whose own comparison ignores NaN
            x = x.astype(np.float32)
        if xp is not np:
            return _position_on_device(xp, name, x, axes[0], keepdims)
        found = getattr(xp, name)(x, axis=axes[0], keepdims=keepdims)
        return xp.asarray(found, np.int64)

    return function


def _position_on_device(xp: Any, name: str, x: Array, axis: int, keepdims: bool) -> Array:
    """Of several NaN, CuPy gives any; with an axis that is not empty, it refuses empty arrays."""
    options = {"axis": axis, "keepdims": keepdims}
    if x.size == 0 and x.shape[axis]:
        return xp.any(x, **options).astype(np.int64)
    found = getattr(xp, name)(x, **options)
    if x.dtype.kind != "f":
        return found
    unknown = xp.isnan(x)
    return xp.where(xp.any(unknown, **options), xp.argmax(unknown, **options), found)


FUNCTIONS: dict[str, Function] = {
    "sum": _accumulation("add"),
    "prod": _accumulation("multiply"),
    "max": _choice("maximum", "max"),
    "min": _choice("minimum", "min"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "any": _choice("logical_or", "any"),
    "all": _choice("logical_and", "all"),
}
