"""Complex numbers over an array module: made of their parts, and seen as these."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, quietly
from .dtypes import DType, from_numpy_dtype


def _complex(xp: Any, re: Array, im: Array) -> Array:
    shape = np.broadcast_shapes(re.shape, im.shape)
    result = xp.empty(shape, from_numpy_dtype(re.dtype).to_complex().numpy)
    result.real[...], result.imag[...] = re, im
    return result


def _conj(xp: Any, x: Array) -> Array:
    return quietly(xp.conjugate, x)


def view_as_real(xp: Any, x: Array) -> Array:
    """The parts of complex numbers, in the same memory, along a new last axis."""
    return x[..., None].view(from_numpy_dtype(x.dtype).to_real().numpy)


def view_as_complex(xp: Any, x: Array) -> Array:
    """Pairs along the last axis, which lie side by side, as complex numbers in the same memory."""
    return x.view(from_numpy_dtype(x.dtype).to_complex().numpy)[..., 0]


def _repack(xp: Any, x: Array, source: DType, dtype: DType) -> Array:
    """The bytes along the last axis as integers of another size, in the same memory if possible."""
    return (x if _lies_together(x) else xp.ascontiguousarray(x)).view(dtype.numpy)


def _lies_together(x: Array) -> bool:
    return bool(x.strides[-1] == x.itemsize or x.flags.c_contiguous)


FUNCTIONS: dict[str, Function] = {
    "complex": _complex,
    "conj": _conj,
    "view_as_real": view_as_real,
    "view_as_complex": view_as_complex,
    "repack": _repack,
}
