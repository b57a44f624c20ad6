"""Reductions: attrs `axes` (sorted tuple, non-negative) and `keepdims`.

`argmax` and `argmin` take exactly one axis and give the first position as int64. A sum keeps its
dtype; half types accumulate in float32. `max`, `min`, `argmax`, `argmin` of an axis of size zero
have no value and are refused by the type rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.dtypes import bool_, int64
from .monoids import ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, MONOID_OF, PROD, SUM, Monoid
from .primitive import Attrs, Family, Primitive, register
from .shapes import reduce
from .types import IRTypeError, TensorType


def _reduced(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (operand,) = types
    axes = attrs["axes"]
    if any(not 0 <= axis < operand.ndim for axis in axes) or list(axes) != sorted(set(axes)):
        raise IRTypeError(f"axes {axes} do not fit {operand}")
    return operand.with_shape(reduce(operand.shape, axes, attrs["keepdims"]))


def _arithmetic(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if types[0].dtype is bool_:
        raise IRTypeError(f"expected a number, got {types[0]}")
    return _reduced(types, attrs)


def _logical(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if types[0].dtype is not bool_:
        raise IRTypeError(f"expected bool, got {types[0]}")
    return _reduced(types, attrs)


def _refuse_empty(types: Sequence[TensorType], attrs: Attrs) -> None:
    if any(types[0].shape[axis] == 0 for axis in attrs["axes"]):
        raise IRTypeError(f"an axis of size 0 has no extreme value, got {types[0]}")


def _extreme(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if types[0].dtype.is_complex:
        raise IRTypeError(f"complex numbers have no order, got {types[0]}")
    result = _reduced(types, attrs)
    _refuse_empty(types, attrs)
    return result


def _position(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    if len(attrs["axes"]) != 1:
        raise IRTypeError(f"expected one axis, got {attrs['axes']}")
    return _extreme(types, attrs).with_dtype(int64)


def _reduction(name: str, infer: Any, monoid: Monoid, **facts: Any) -> Primitive:
    primitive = register(Primitive(name, Family.REDUCE, infer, arity=1, **facts))
    MONOID_OF[primitive] = monoid
    return primitive


sum_ = _reduction("sum", _arithmetic, SUM)
prod = _reduction("prod", _arithmetic, PROD)
max_ = _reduction("max", _extreme, MAX, exact=True)
min_ = _reduction("min", _extreme, MIN, exact=True)
argmax = _reduction("argmax", _position, ARGMAX, exact=True, discontinuous=True)
argmin = _reduction("argmin", _position, ARGMIN, exact=True, discontinuous=True)
any_ = _reduction("any", _logical, ANY, exact=True)
all_ = _reduction("all", _logical, ALL, exact=True)
