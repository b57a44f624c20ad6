"""`hash_tensor`: a number of the bits of all elements."""

from __future__ import annotations

import math

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axes
from ..core.dispatch import apply
from ..core.operands import cast, refuse_complex, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import float64, int64, uint64
from . import movement as m
from .bits import bits_as
from .comparison import bitwise_xor
from .reductions import Dims


@public(method=True, out="exact")
def hash_tensor(input: Tensor, dim: Dims = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or of the bits of all elements along `dim`, as uint64.

    Of float64 and int64, which elements are converted to first; `mode` 0 is the only one.

    >>> import tgraph as tg
    >>> tg.hash_tensor(tg.tensor([1, 2, 7]))
    tensor(4, dtype=tgraph.uint64)
    """
    require_tensor(input, "hash_tensor")
    refuse_complex("hash_tensor", input)
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    shape = input._type.shape
    named = dim is not None and (isinstance(dim, int) or len(dim) > 0)
    axes = normalize_axes(dim, len(shape)) if named else tuple(range(len(shape)))
    if not input._type.numel and not named:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    for axis in axes:
        if not shape[axis]:
            raise IndexError(f"hash_tensor: Expected reduction dim {axis} to have non-zero size.")
    return _hash(input, axes, keepdim)


@planned
def _hash(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """One half of the elements with the other, until there is one."""
    shape, dtype = x._type.shape, x._type.dtype
    wide = float64 if dtype.is_floating_point else uint64 if dtype is uint64 else int64
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    count = math.prod(shape[axis] for axis in axes)
    rows = m.permute(bits_as(cast(x, wide), uint64), (*kept, *axes))
    rows = m.reshape(rows, (*(shape[axis] for axis in kept), count))
    while count > 1:
        half = count // 2
        folded = bitwise_xor(m.narrow(rows, -1, 0, half), m.narrow(rows, -1, half, half))
        last = m.narrow(rows, -1, 2 * half, count % 2)
        rows = apply(p.concatenate, folded, last, axis=len(kept)) if count % 2 else folded
        count = half + count % 2
    sizes = [1 if axis in axes else size for axis, size in enumerate(shape)]
    return m.reshape(rows, sizes if keepdim else [shape[axis] for axis in kept])
