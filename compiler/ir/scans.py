"""Scans: every element of the result is made of all elements before it along an axis.

- `cumsum`, `cumprod`, `cummax` and `cummin` `(x[, start]; axis, reverse)`: what the elements up to
  each one, or from each one on (`reverse`), and `start` fold to. That has the size 1 along the axis
  and the dtype of `running_dtype`. The result has the dtype of `x`. A sum begins with a positive
  zero.
- `linear_scan(a, b; axis, reverse)`: each element is `a` times the one before it, plus `b`. The
  first one is made of zero. Gradients of scans are such scans, and so are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import DType, bool_, complex128, float64
from .monoids import LINEAR, MAX, MIN, MONOID_OF, PROD, SUM, Monoid
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType


def running_dtype(monoid: Monoid, dtype: DType) -> DType:
    """The type in which running values are kept: of 64 bits for sums and products of any floats.

    So it is in PyTorch.
    """
    if not dtype.is_differentiable:
        return dtype
    if monoid.is_extreme:
        return dtype.compute
    return complex128 if dtype.is_complex else float64


def _fits(x: TensorType, attrs: Attrs) -> bool:
    return x.dtype is not bool_ and 0 <= attrs["axis"] < x.ndim


def _scan(name: str, monoid: Monoid, exact: bool = False) -> Primitive:
    def infer(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
        x, axis = types[0], attrs["axis"]
        ordered = not (x.dtype.is_complex and monoid.is_extreme)
        if not _fits(x, attrs) or not ordered or len(types) > 2:
            raise IRTypeError(f"{name} along axis {axis} of {x}")
        for start in types[1:]:
            shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
            if start.shape != shape or start.dtype is not running_dtype(monoid, x.dtype):
                raise IRTypeError(f"{name} of {x} along axis {axis} cannot start with {start}")
        return x

    primitive = register(Primitive(name, Family.SCAN, infer, cost=2, exact=exact))
    MONOID_OF[primitive] = monoid
    return primitive


def _infer_linear(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    a, b = types
    if a != b or not _fits(a, attrs) or not a.dtype.is_differentiable:
        raise IRTypeError(f"linear_scan along axis {attrs['axis']} of {a} and {b}")
    return b


cumsum = _scan("cumsum", SUM)
cumprod = _scan("cumprod", PROD)
cummax = _scan("cummax", MAX, exact=True)
cummin = _scan("cummin", MIN, exact=True)
linear_scan = register(Primitive("linear_scan", Family.SCAN, _infer_linear, arity=2, cost=3))
MONOID_OF[linear_scan] = LINEAR
