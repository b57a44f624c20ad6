"""Gradient rules of reductions."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import reduce
from ..core.dispatch import apply
from ..core.operands import cast, widened
from ..core.record import OUTPUT, vjp
from ..core.tensor import Tensor
from . import elementwise as e

Ints = tuple[int, ...]


def _restored(reduced: Tensor, x: TensorType, axes: Ints) -> Any:
    """A reduced tensor with its axes back, of size 1."""
    shape = reduce(x.shape, axes, keepdims=True)
    return reduced if reduced._type.shape == shape else apply(p.reshape, reduced, shape=shape)


@vjp(p.sum_)
def _sum(g: Tensor, out: TensorType, x: TensorType, axes: Ints, keepdims: bool) -> Any:
    return apply(p.broadcast, _restored(g, x, axes), shape=x.shape)


def _extreme(g: Tensor, out: Tensor, x: Tensor, axes: Ints, keepdims: bool) -> Any:
    """The cotangent, spread evenly over all places that hold the extreme value."""
    mask = cast(e.eq(x, _restored(out, x._type, axes)), x._type.dtype)
    count = apply(p.sum_, widened(mask), axes=axes, keepdims=True)
    share = e.div(widened(_restored(g, x._type, axes)), count)
    return e.mul(mask, cast(share, x._type.dtype))


vjp(p.max_, saves=(0, OUTPUT))(_extreme)
vjp(p.min_, saves=(0, OUTPUT))(_extreme)


@vjp(p.prod, saves=(0,))
def _prod(g: Tensor, out: TensorType, x: Tensor, axes: Ints, keepdims: bool) -> Any:
    """The product of all other elements, without dividing, so that zeros are right too."""
    shape = x._type.shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    order = kept + axes
    count = math.prod(shape[axis] for axis in axes)
    outer = tuple(shape[axis] for axis in kept)
    rows = apply(p.reshape, apply(p.permute, x, axes=order), shape=(*outer, count))
    others = e.mul(_products_before(rows), _reversed(_products_before(_reversed(rows))))
    moved = apply(p.reshape, others, shape=tuple(shape[axis] for axis in order))
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return e.mul(_restored(g, x._type, axes), apply(p.permute, moved, axes=back))


def _reversed(rows: Tensor) -> Any:
    return apply(p.flip, rows, axes=(rows._type.ndim - 1,))


def _products_before(rows: Tensor) -> Tensor:
    """The product of all elements to the left of each: a scan in log2(n) doubling steps."""
    count = rows._type.shape[-1]
    result: Tensor = _shifted(rows, 1)
    reach = 1
    while reach < count:
        result = e.mul(result, _shifted(result, reach))
        reach *= 2
    return result


def _shifted(rows: Tensor, by: int) -> Any:
    """Rows moved right by `by`, with ones coming in."""
    *outer, count = rows._type.shape
    ndim = len(outer) + 1
    by = min(by, count)
    head = apply(
        p.slice_,
        rows,
        starts=(0,) * ndim,
        stops=(*outer, count - by),
        steps=(1,) * ndim,
    )
    zero = (0,) * ndim
    return apply(p.pad, head, low=(*zero[1:], by), high=zero, interior=zero, value=1)
