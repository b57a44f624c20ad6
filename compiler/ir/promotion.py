"""PyTorch's type promotion.

A result type is found among three classes of operands that outrank each other: tensors with
dimensions, zero-dimensional tensors, Python scalars. A lower class only matters when its category
(bool < integral < floating) is higher than that of the class above it.
Source: the "Type Promotion" section of the `torch.dtype` documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ...runtime.dtypes import DType, bfloat16, bool_, float16, float32, int16, int64, uint32

_CATEGORY = {"bool": 0, "uint": 1, "int": 1, "float": 2}
default_dtype: DType = float32


@cache
def promote_types(a: DType, b: DType) -> DType:
    """The smallest type to which both promote.

    >>> from tgraph.runtime.dtypes import int8, uint8, float16, bfloat16
    >>> promote_types(uint8, int8), promote_types(float16, bfloat16)
    (tgraph.int16, tgraph.float32)
    """
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda dtype: (_CATEGORY[dtype.kind], dtype.itemsize))
    if _CATEGORY[low.kind] < _CATEGORY[high.kind]:
        return high
    if {low, high} == {float16, bfloat16}:
        return float32
    if high.kind == "float":
        return high
    return _promote_integers(low, high)


def _promote_integers(low: DType, high: DType) -> DType:
    if low.kind == high.kind or (high.kind == "int" and high.itemsize > low.itemsize):
        return high
    if high is uint32 or low is uint32:
        return int64
    return int16  # uint8 with int8


def scalar_dtype(value: bool | int | float) -> DType:
    """The type that a Python scalar takes on its own: bool, int64 or the default float."""
    if isinstance(value, bool):
        return bool_
    return int64 if isinstance(value, int) else default_dtype


def result_type(
    tensors: Iterable[DType], zero_dim: Iterable[DType] = (), scalars: Iterable[DType] = ()
) -> DType:
    """The promoted type of operands: tensors with dimensions, 0-d tensors, Python scalars.

    >>> from tgraph.runtime.dtypes import float16, float64, int32
    >>> result_type([int32], [float64])
    tgraph.float64
    >>> result_type([float16], [float64])
    tgraph.float16
    """
    result: DType | None = None
    for rank in (tensors, zero_dim, scalars):
        of_rank: DType | None = None
        for dtype in rank:
            of_rank = dtype if of_rank is None else promote_types(of_rank, dtype)
        if of_rank is None:
            continue
        if result is None:
            result = of_rank
        elif _CATEGORY[of_rank.kind] > _CATEGORY[result.kind]:
            result = promote_types(result, of_rank)
    if result is None:
        raise ValueError("result_type needs at least one operand")
    return result


def can_cast(source: DType, target: DType) -> bool:
    """Whether writing `source` into `target` in place is allowed: never to a lower category."""
    return _CATEGORY[source.kind] <= _CATEGORY[target.kind]
