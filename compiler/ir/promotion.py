"""PyTorch's type promotion.

A result type is found among three classes of operands that outrank each other: tensors with
dimensions, zero-dimensional tensors, Python scalars. A lower class only matters when its category
(bool < integral < floating < complex) is higher than that of the class above it.
Source: the "Type Promotion" section of the `torch.dtype` documentation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ...runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

CATEGORY = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
default_dtype: DType = float32


@cache
def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest type to which both promote.

    >>> from tgraph.runtime.dtypes import int8, uint8, float16, bfloat16
    >>> promote_types(uint8, int8), promote_types(float16, bfloat16)
    (tgraph.int16, tgraph.float32)
    """
    if type1 is type2:
        return type1
    low, high = sorted((type1, type2), key=lambda dtype: (CATEGORY[dtype.kind], dtype.itemsize))
    if high.kind == "complex":
        return complex128 if float64 in (low, high) or complex128 in (low, high) else complex64
    if CATEGORY[low.kind] < CATEGORY[high.kind]:
        return high
    if {low, high} == {float16, bfloat16}:
        return float32
    if high.kind == "float":
        return high
    return _promote_integers(low, high)


def _promote_integers(low: DType, high: DType) -> DType:
    if low.kind == high.kind or (high.kind == "int" and high.itemsize > low.itemsize):
        return high
    unsigned = low if low.kind == "uint" else high
    if unsigned is uint64:
        raise RuntimeError(
            "Promotion for uint64 with signed integers is not supported, attempted to promote "
            f"{low} and {high}: no integer type holds both; convert one of them with .to() first"
        )
    return {uint8: int16, uint16: int32, uint32: int64}[unsigned]


def scalar_dtype(value: bool | int | float | complex) -> DType:
    """The type that a Python scalar takes on its own: bool, int64, the default float or complex."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, complex):
        return default_complex()
    return int64 if isinstance(value, int) else default_dtype


def default_complex() -> DType:
    """The complex type whose parts have the default float type; complex64 where there is none."""
    return complex128 if default_dtype is float64 else complex64


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
        elif CATEGORY[of_rank.kind] > CATEGORY[result.kind]:
            result = _raised(result, of_rank)
    if result is None:
        raise ValueError("result_type needs at least one operand")
    return result


def _raised(result: DType, by: DType) -> DType:
    """`result` in the category of an operand of a lower class; a float says how wide a pair is."""
    if by.is_complex and result.is_floating_point:
        return complex128 if result is float64 else complex64
    return promote_types(result, by)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether writing `from_` into `to` in place is allowed: never to a lower category."""
    return CATEGORY[from_.kind] <= CATEGORY[to.kind]
