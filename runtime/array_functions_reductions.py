"""Reductions over an array module: `axes` is a tuple, `keepdims` a bool.

Sums and products of half types accumulate in float32; integers keep their type and wrap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, as_array
from .dtypes import from_numpy_dtype

_quiet = np.errstate(all="ignore")
Axes = tuple[int, ...]


def _accumulation(name: str) -> Function:
    @_quiet
    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        dtype = x.dtype
        wide = np.float32 if from_numpy_dtype(dtype).is_half else dtype
        total = getattr(xp, name).reduce(x, axis=axes, dtype=wide, keepdims=keepdims)
        return np.asarray(total, dtype) if wide is not dtype else as_array(total)

    return function


def _choice(name: str) -> Function:
    @_quiet
    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        return as_array(getattr(xp, name).reduce(x, axis=axes, keepdims=keepdims))

    return function


def _position(name: str) -> Function:
    """The first position of the extreme; NaN counts as the extreme."""

    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        if x.dtype.kind == "V":  # bfloat16, whose own comparison ignores NaN
            x = x.astype(np.float32)
        found = getattr(xp, name)(x, axis=axes[0], keepdims=keepdims)
        return xp.asarray(found, np.int64)

    return function


FUNCTIONS: dict[str, Function] = {
    "sum": _accumulation("add"),
    "prod": _accumulation("multiply"),
    "max": _choice("maximum"),
    "min": _choice("minimum"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "any": _choice("logical_or"),
    "all": _choice("logical_and"),
}
