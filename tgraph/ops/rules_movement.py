"""Gradient rules of movement and indexing: each is the transpose of a linear map."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import diagonal_slice
from ..core.dispatch import apply, zeros_of
from ..core.tensor import Tensor
from ..core.vjp_rules import Attrs, Cotangents, Wanted, input_vjp, vjp
from ..runtime.device import Device

Ints = tuple[int, ...]


@input_vjp(p.reshape)
def _reshape(g: Tensor, out: TensorType, x: TensorType, shape: Ints) -> Any:
    return apply(p.reshape, g, shape=x.shape)


@input_vjp(p.permute)
def _permute(g: Tensor, out: TensorType, x: TensorType, axes: Ints) -> Any:
    return apply(p.permute, g, axes=tuple(sorted(range(len(axes)), key=axes.__getitem__)))


@input_vjp(p.broadcast)
def _broadcast(g: Tensor, out: TensorType, x: TensorType, shape: Ints) -> Any:
    return g  # the engine sums it back


@input_vjp(p.flip)
def _flip(g: Tensor, out: TensorType, x: TensorType, axes: Ints) -> Any:
    return apply(p.flip, g, axes=axes)


@input_vjp(p.slice_)
def slice_vjp(
    g: Tensor, out: TensorType, x: TensorType, starts: Ints, stops: Ints, steps: Ints
) -> Any:
    if any(step != 1 and count == 0 for count, step in zip(out.shape, steps)):
        return zeros_of(x)
    spread = [_spread(count, step) for count, step in zip(out.shape, steps)]
    high = (size - start - wide for size, start, wide in zip(x.shape, starts, spread))
    return apply(
        p.pad, g, low=starts, high=tuple(high), interior=tuple(by - 1 for by in steps), value=0
    )


@input_vjp(p.diagonal)
def _diagonal(g: Tensor, out: TensorType, x: TensorType, offset: int) -> Any:
    flat, taken = diagonal_slice(x.shape, offset)
    return apply(p.reshape, slice_vjp(g, out, x.with_shape(flat), **taken), shape=x.shape)


@input_vjp(p.pad)
def _pad(
    g: Tensor, out: TensorType, x: TensorType, low: Ints, high: Ints, interior: Ints, value: Any
) -> Any:
    steps = tuple(between + 1 for between in interior)
    spread = (_spread(size, step) for size, step in zip(x.shape, steps))
    stops = tuple(before + wide for before, wide in zip(low, spread))
    return apply(p.slice_, g, starts=low, stops=stops, steps=steps)


def _spread(count: int, step: int) -> int:
    """How many elements so many take up that are a step apart."""
    return count if step == 1 else (count - 1) * step + 1 if count else 0


@vjp(p.concatenate)
def _concatenate(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), axis = cotangents, attrs["axis"]
    found: list[Tensor | None] = []
    start = 0
    for x, is_wanted in zip(inputs, wanted, strict=True):
        starts, stops = [0] * x.ndim, list(x.shape)
        starts[axis], stops[axis] = start, start + x.shape[axis]
        start = stops[axis]
        span = {"starts": tuple(starts), "stops": tuple(stops), "steps": (1,) * x.ndim}
        found.append(apply(p.slice_, g, **span) if is_wanted else None)
    return found


@input_vjp(p.barrier)
def _barrier(g: Tensor, out: Any, x: Any, after: Any) -> Tensor:
    return g


@input_vjp(p.barrier, 1)
def _barrier_after(g: Tensor, out: Any, x: Any, after: Any) -> None:
    return None


@input_vjp(p.slice_update, 0)
def _slice_update_base(
    g: Tensor, out: TensorType, base: TensorType, update: TensorType, **attrs: Any
) -> Any:
    return apply(p.slice_update, g, zeros_of(update), **attrs)


@input_vjp(p.slice_update, 1)
def _slice_update_update(
    g: Tensor, out: TensorType, base: TensorType, update: TensorType, **attrs: Any
) -> Any:
    return apply(p.slice_, g, **attrs)


@input_vjp(p.unfold)
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


@input_vjp(p.fold)
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


@input_vjp(p.gather, 0, saves=(1,))
def _gather(g: Tensor, out: TensorType, x: TensorType, index: Tensor, axis: int) -> Any:
    return apply(p.scatter_add, zeros_of(x), index, g, axis=axis)


@input_vjp(p.scatter_add, 0)
def _scatter_add_base(g: Tensor, out: TensorType, *inputs: TensorType, axis: int) -> Any:
    return g


@input_vjp(p.scatter_add, 2, saves=(1,))
def _scatter_add_source(
    g: Tensor, out: TensorType, base: TensorType, index: Tensor, source: TensorType, axis: int
) -> Any:
    return apply(p.gather, g, index, axis=axis)


def _indices(wanted: Wanted) -> range:
    """Those of `index_put` lie between what is written to and the values."""
    return range(1, len(wanted) - 1)


@vjp(p.index, saves=lambda wanted: range(1, len(wanted)))
def _index(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), (x, *indices) = cotangents, inputs
    found = apply(p.index_put, zeros_of(x), *indices, g, axis=attrs["axis"], accumulate=True)
    return [found, *(None for _ in indices)]


@vjp(p.index_put, saves=_indices)
def _index_put(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), (_, *indices, values) = cotangents, inputs
    of_base = g
    if wanted[0] and not attrs["accumulate"]:
        of_base = apply(p.index_put, g, *indices, zeros_of(values), **attrs)
    of_values = apply(p.index, g, *indices, axis=attrs["axis"]) if wanted[-1] else None
    return [of_base if wanted[0] else None, *(None for _ in indices), of_values]


@input_vjp(p.transfer)
def _transfer(g: Tensor, out: TensorType, x: TensorType, device: Device) -> Any:
    return apply(p.transfer, g, device=x.device)
