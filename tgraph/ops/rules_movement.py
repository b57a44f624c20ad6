"""Gradient rules of movement and indexing: each is the transpose of a linear map."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.record import vjp
from ..core.tensor import Tensor
from ..runtime.device import Device
from .rules_elementwise import zeros_of

Ints = tuple[int, ...]


@vjp(p.reshape)
def _reshape(g: Tensor, out: TensorType, x: TensorType, shape: Ints) -> Any:
    return apply(p.reshape, g, shape=x.shape)


@vjp(p.permute)
def _permute(g: Tensor, out: TensorType, x: TensorType, axes: Ints) -> Any:
    return apply(p.permute, g, axes=tuple(sorted(range(len(axes)), key=axes.__getitem__)))


@vjp(p.broadcast)
def _broadcast(g: Tensor, out: TensorType, x: TensorType, shape: Ints) -> Any:
    return g  # the engine sums it back


@vjp(p.flip)
def _flip(g: Tensor, out: TensorType, x: TensorType, axes: Ints) -> Any:
    return apply(p.flip, g, axes=axes)


@vjp(p.slice_)
def _slice(
    g: Tensor, out: TensorType, x: TensorType, starts: Ints, stops: Ints, steps: Ints
) -> Any:
    if 0 in out.shape:
        return zeros_of(x)
    spread = [(count - 1) * step + 1 for count, step in zip(out.shape, steps)]
    high = (size - start - wide for size, start, wide in zip(x.shape, starts, spread))
    return apply(
        p.pad, g, low=starts, high=tuple(high), interior=tuple(by - 1 for by in steps), value=0
    )


@vjp(p.pad)
def _pad(
    g: Tensor, out: TensorType, x: TensorType, low: Ints, high: Ints, interior: Ints, value: Any
) -> Any:
    steps = tuple(between + 1 for between in interior)
    spread = ((size - 1) * step + 1 if size else 0 for size, step in zip(x.shape, steps))
    stops = tuple(before + wide for before, wide in zip(low, spread))
    return apply(p.slice_, g, starts=low, stops=stops, steps=steps)


@vjp(p.concatenate, None)
def _concatenate(g: Tensor, out: TensorType, *inputs: TensorType, axis: int, position: int) -> Any:
    before = sum(each.shape[axis] for each in inputs[:position])
    x = inputs[position]
    starts = [0] * x.ndim
    stops = list(x.shape)
    starts[axis], stops[axis] = before, before + x.shape[axis]
    return apply(p.slice_, g, starts=tuple(starts), stops=tuple(stops), steps=(1,) * x.ndim)


@vjp(p.slice_update, 0)
def _slice_update_base(
    g: Tensor, out: TensorType, base: TensorType, update: TensorType, **attrs: Any
) -> Any:
    return apply(p.slice_update, g, zeros_of(update), **attrs)


@vjp(p.slice_update, 1)
def _slice_update_update(
    g: Tensor, out: TensorType, base: TensorType, update: TensorType, **attrs: Any
) -> Any:
    return apply(p.slice_, g, **attrs)


@vjp(p.unfold)
def _unfold(
    g: Tensor,
    out: TensorType,
    x: TensorType,
    axes: Ints,
    sizes: Ints,
    strides: Ints,
    dilations: Ints,
) -> Any:
    return apply(p.fold, g, axes=axes, strides=strides, dilations=dilations, shape=x.shape)


@vjp(p.fold)
def _fold(
    g: Tensor,
    out: TensorType,
    x: TensorType,
    axes: Ints,
    strides: Ints,
    dilations: Ints,
    shape: Ints,
) -> Any:
    sizes = x.shape[len(shape) :]
    return apply(p.unfold, g, axes=axes, sizes=sizes, strides=strides, dilations=dilations)


@vjp(p.gather, 0, saves=(1,))
def _gather(g: Tensor, out: TensorType, x: TensorType, index: Tensor, axis: int) -> Any:
    return apply(p.scatter_add, zeros_of(x), index, g, axis=axis)


@vjp(p.scatter_add, 0)
def _scatter_add_base(g: Tensor, out: TensorType, *inputs: TensorType, axis: int) -> Any:
    return g


@vjp(p.scatter_add, 2, saves=(1,))
def _scatter_add_source(
    g: Tensor, out: TensorType, base: TensorType, index: Tensor, source: TensorType, axis: int
) -> Any:
    return apply(p.gather, g, index, axis=axis)


@vjp(p.index, None, saves=range(1, 64))
def _index(
    g: Tensor, out: TensorType, x: TensorType, *indices: Tensor, axis: int, position: int
) -> Any:
    return apply(p.index_put, zeros_of(x), *indices, g, axis=axis, accumulate=True)


@vjp(p.index_put, None, saves=range(1, 64))
def _index_put(
    g: Tensor,
    out: TensorType,
    base: TensorType,
    *rest: Any,
    axis: int,
    accumulate: bool,
    position: int,
) -> Any:
    *indices, values = rest
    if position > 0:
        return apply(p.index, g, *indices, axis=axis)
    if accumulate:
        return g
    zeros = zeros_of(values if isinstance(values, TensorType) else values._type)
    return apply(p.index_put, g, *indices, zeros, axis=axis, accumulate=False)


@vjp(p.transfer)
def _transfer(g: Tensor, out: TensorType, x: TensorType, device: Device) -> Any:
    return apply(p.transfer, g, device=x.device)
