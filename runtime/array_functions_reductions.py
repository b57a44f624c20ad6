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


def _choice(name: str) -> Function:
    return lambda xp, x, axes, keepdims: quietly(
        getattr(xp, name).reduce, x, axis=axes, keepdims=keepdims
    )


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
