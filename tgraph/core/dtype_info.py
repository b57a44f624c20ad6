"""The ranges of number types, as `finfo` and `iinfo`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..compiler.ir import promotion
from ..runtime.dtypes import DType
from ..runtime.records import record

_DECIMALS = {"bfloat16": 2, "float16": 3, "float32": 6, "float64": 15}
"""Decimal digits that each number of as many has of its own."""


@record()
class FloatInfo:
    """`eps` is the gap above 1, `tiny` the smallest normal number; `bits`, `min`, `max`."""

    dtype: str
    bits: int
    min: float
    max: float
    eps: float
    tiny: float
    resolution: float

    @property
    def smallest_normal(self) -> float:
        return self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


@record()
class IntegerInfo:
    """`bits`, `min` and `max` of an integer type."""

    dtype: str
    bits: int
    min: int
    max: int

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def finfo(dtype: DType | None = None) -> FloatInfo:
    """The range and resolution of a float type (by default the default one), or of its pairs."""
    of = (dtype or promotion.default_dtype).to_real()
    if not of.is_differentiable:
        raise TypeError(f"finfo() requires a floating point input type, got {of}. Use iinfo()")
    find: Any = ml_dtypes.finfo if of.name == "bfloat16" else np.finfo
    info = find(of.numpy)
    return FloatInfo(
        of.name,
        8 * of.itemsize,
        float(info.min),
        float(info.max),
        float(info.eps),
        float(info.tiny),
        10.0 ** -_DECIMALS[of.name],
    )


def iinfo(dtype: DType) -> IntegerInfo:
    """The range of an integer type."""
    if not dtype.is_integral:
        raise TypeError(f"iinfo() requires an integer input type, got {dtype}. Use finfo()")
    info = np.iinfo(dtype.numpy)
    return IntegerInfo(dtype.name, 8 * dtype.itemsize, int(info.min), int(info.max))
