"""Scans: every element of the result is made of all elements before it along an axis.

- `cumsum(x[, start]; axis, reverse)`: the sums of the elements up to each one, or from each one on
  (`reverse`), and `start`, which has the size 1 along the axis and the dtype of `running_dtype`. A
  sum keeps its dtype; it begins with a positive zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import DType, bool_, float64
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType


def running_dtype(dtype: DType) -> DType:
    """The type in which running sums are kept: float64 for every float, as in PyTorch."""
    return float64 if dtype.is_floating_point else dtype


def _infer_cumsum(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    x, axis = types[0], attrs["axis"]
    if x.dtype is bool_ or not 0 <= axis < x.ndim or len(types) > 2:
        raise IRTypeError(f"cumsum along axis {axis} of {x}")
    for start in types[1:]:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        if start.shape != shape or start.dtype is not running_dtype(x.dtype):
            raise IRTypeError(f"cumsum of {x} along axis {axis} cannot start with {start}")
    return x


cumsum = register(Primitive("cumsum", Family.SCAN, _infer_cumsum, cost=2))
