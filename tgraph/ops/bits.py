"""The bits of a value as elements of another type, where it has no memory of its own yet."""

from __future__ import annotations

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, uint8, uint16, uint32, uint64

_UNSIGNED = {each.itemsize: each for each in (uint8, uint16, uint32, uint64)}


def _reshaped(x: Tensor, *shape: int) -> Tensor:
    return apply(p.reshape, x, shape=shape)


def bits_as(x: Tensor, dtype: DType) -> Tensor:
    """The memory of `x` as `dtype`, as a view: with other sizes of elements, another last size."""
    old = x._type.dtype
    same_size = old.itemsize == dtype.itemsize
    if old is dtype:
        return x
    if dtype.is_complex:
        parts = bits_as(_reshaped(x, *x._type.shape, 1) if same_size else x, dtype.to_real())
        if not same_size:
            *outer, last = parts._type.shape
            parts = _reshaped(parts, *outer, last // 2, 2)
        return apply(p.view_as_complex, parts)
    if old.is_complex:
        pairs = bits_as(apply(p.view_as_real, x), dtype)
        if same_size:
            return _reshaped(pairs, *x._type.shape)
        *outer, last, count = pairs._type.shape
        return _reshaped(pairs, *outer, last * count)
    if same_size:
        return apply(p.bitcast, x, dtype=dtype)
    source, target = _UNSIGNED[old.itemsize], _UNSIGNED[dtype.itemsize]
    return bits_as(apply(p.repack, bits_as(x, source), source=source, dtype=target), dtype)
