"""Rules about single positions: a row that is written at one place needs no scatter.

The gradient of picking one element of each row (cross-entropy's, above all) is a scatter of one
number per row. As `where(at the position, base + number, base)` it is an elementwise operation,
which fuses with what surrounds it, and its sum over the row is known.
"""

from __future__ import annotations

from typing import Any

from ...runtime.device import CPU
from ...runtime.dtypes import int32, int64
from ..ir import Node
from ..ir import primitives as p
from .matching import call, holds, reshape, scalar, scalar_of
from .rewrite import RewriteBuilder, rewrite


@rewrite(p.scatter_add)
def scatter_of_one(build: RewriteBuilder, node: Node) -> Node | None:
    """`where(i == position, base + source, base)`; to read the position out of iota checks it."""
    base, positions, source = node.inputs
    axis = node.attrs["axis"]
    if positions.shape != _with_size(base, axis, 1) or base.type.dtype.kind == "bool":
        return None
    size = base.shape[axis]
    attrs: dict[str, Any] = {"size": size, "dtype": int32 if size < 1 << 31 else int64}
    if base.type.device != CPU:
        attrs["device"] = base.type.device
    counted = call(build, p.iota, **attrs)
    flat = reshape(build, positions, (positions.type.numel,))
    position = reshape(build, call(build, p.gather, counted, flat, axis=0), positions.shape)
    along = tuple(size if at == axis else 1 for at in range(base.type.ndim))
    here = call(build, p.eq, reshape(build, counted, along), position)
    if scalar_of(base) is not None:
        base = scalar(build, base, scalar_of(base))
    return call(build, p.where, here, call(build, p.add, base, source), base)


@rewrite(p.sum_)
def sum_of_one(build: RewriteBuilder, node: Node) -> Node | None:
    """The sum over a row that is zero but for one element, as `scatter_of_one` makes it."""
    (x,) = node.inputs
    if x.primitive is not p.where or not holds(x.inputs[2], 0):
        return None
    here, value, _ = x.inputs
    axis = _axis_of_one(here)
    if axis is None or axis not in node.attrs["axes"] or here.shape != x.shape:
        return None
    narrow = _with_size(x, axis, 1)
    if (1,) * (x.type.ndim - value.type.ndim) + value.shape != narrow:
        return None
    return call(build, p.sum_, reshape(build, value, narrow), **node.attrs)


def _axis_of_one(here: Node) -> int | None:
    """The axis along which `here` is true exactly once, by the form that `scatter_of_one` gives."""
    if here.primitive is not p.eq:
        return None
    counted, position = here.inputs
    if _below_reshape(counted).primitive is not p.iota:
        counted, position = position, counted
    source, checked = _below_reshape(counted), _below_reshape(position)
    if source.primitive is not p.iota or checked.primitive is not p.gather:
        return None
    size = source.attrs["size"]
    if checked.inputs[0] is not source or position.type.ndim != here.type.ndim:
        return None
    axes = [at for at, length in enumerate(position.shape) if length != here.shape[at]]
    return axes[0] if len(axes) == 1 and here.shape[axes[0]] == size else None


def _below_reshape(node: Node) -> Node:
    return node.inputs[0] if node.primitive is p.reshape else node


def _with_size(node: Node, axis: int, size: int) -> tuple[int, ...]:
    return (*node.shape[:axis], size, *node.shape[axis + 1 :])


RULES = (scatter_of_one, sum_of_one)
