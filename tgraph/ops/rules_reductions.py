"""Gradient rules of reductions."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same, reduce
from ..core.complex_parts import conjugate
from ..core.dispatch import apply
from ..core.operands import cast, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from . import elementwise as e
from .scans import shifted

Ints = tuple[int, ...]


def _restored(reduced: Tensor, x: TensorType, axes: Ints) -> Any:
    """A reduced tensor with its axes back, of size 1."""
    shape = reduce(x.shape, axes, keepdims=True)
    return (
        reduced if are_same(reduced._type.shape, shape) else apply(p.reshape, reduced, shape=shape)
    )


@input_vjp(p.sum_)
def _sum(g: Tensor, out: TensorType, x: TensorType, axes: Ints, keepdims: bool) -> Any:
    spread = _restored(g, x, axes) if g._type.shape else g
    return apply(p.broadcast, spread, shape=x.shape)


@planned
def _extreme(g: Tensor, out: Tensor, x: Tensor, axes: Ints, keepdims: bool) -> Any:
    """The cotangent, spread evenly over all places that hold the extreme value."""
    mask = cast(e.eq(x, _restored(out, x._type, axes)), x._type.dtype)
    count = apply(p.sum_, widened(mask), axes=axes, keepdims=True)
    share = e.div(widened(_restored(g, x._type, axes)), count)
    return e.mul(mask, cast(share, x._type.dtype))


input_vjp(p.max_, saves=(0, OUTPUT))(_extreme)
input_vjp(p.min_, saves=(0, OUTPUT))(_extreme)


@input_vjp(p.prod, saves=(0,))
def _prod(g: Tensor, out: TensorType, x: Tensor, axes: Ints, keepdims: bool) -> Any:
    """The product of all other elements, without dividing, so that zeros are right too."""
    shape, x = x._type.shape, conjugate(x)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    order = kept + axes
    count = math.prod(shape[axis] for axis in axes)
    outer = tuple(shape[axis] for axis in kept)
    rows = apply(p.reshape, apply(p.permute, x, axes=order), shape=(*outer, count))
    last = len(outer)
    before, behind = (
        shifted(apply(p.cumprod, rows, axis=last, reverse=reverse), last, not reverse, 1)
        for reverse in (False, True)
    )
    others = e.mul(before, behind)
    moved = apply(p.reshape, others, shape=tuple(shape[axis] for axis in order))
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return e.mul(_restored(g, x._type, axes), apply(p.permute, moved, axes=back))
