"""Borders: elements added around a tensor, or cut off."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.eager_context import stored
from ..core.planned import planned
from ..core.tensor import Tensor
from . import movement as m
from .channels_last import laid_as
from .concatenation import cat, flip

Pairs = Sequence[tuple[int, int]]


@with_autocast
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Elements added around: `pad` has (low, high) pairs, the last dimension's first.

    Negative amounts cut off. Modes: "constant" (with `value`), and for the last one to three
    dimensions of a sample or a batch "reflect" (mirrored at the edge, which is not repeated),
    "replicate" (the edge) and "circular" (from the other end).

    >>> import tgraph as tg
    >>> tg.nn.functional.pad(tg.arange(3.0)[None], (2, 1), mode="reflect")
    tensor([[2., 1., 0., 1., 2., 1.]])
    """
    found = _padded(input, pad, mode, value)
    return found if mode == "circular" else laid_as(found, input)


def _padded(input: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' must be str, not {type(mode).__name__}")
    amounts, ndim = tuple(pad), input.ndim
    if len(amounts) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(amounts)}")
    if len(amounts) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(amounts)} and input of dimension {ndim}"
        )
    inner = [(amounts[at], amounts[at + 1]) for at in range(len(amounts) - 2, -1, -2)]
    pairs = (*((0, 0) for _ in range(ndim - len(inner))), *inner)
    if mode == "constant":
        return pad_constant(input, pairs, 0 if value is None else value)
    _check_mode(mode, value, len(inner), ndim)
    if mode == "circular":
        _check_circular(input, pairs)
    else:
        _check_edges(input, pairs, len(inner), mode)
    if not any(map(any, inner)):
        return m.clone(input)
    lows, highs = zip(*pairs)
    return _pad_from_inside(input, lows, highs, mode)


def _check_mode(mode: str, value: float | None, count: int, ndim: int) -> None:
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if not 1 <= count <= 3 or ndim - count not in (1, 2):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now; got "
            f"padding of {count} dimensions for an input with {ndim}"
        )


def pad_constant(x: Tensor, pairs: Pairs, value: float) -> Tensor:
    """`x` with `value` around, or less of it where an amount is negative."""
    for axis, (size, (low, high)) in enumerate(zip(x._type.shape, pairs)):
        if (low < 0 or high < 0) and (size + low + high < 0 or size < -low or size < -high):
            raise RuntimeError(
                f"The input size {size}, plus negative padding {low} and {high} resulted in a "
                f"negative output size, which is invalid. Check dimension {axis} of your input."
            )
    x = _cut(x, pairs)
    low = tuple(max(pair[0], 0) for pair in pairs)
    high = tuple(max(pair[1], 0) for pair in pairs)
    if not any(low) and not any(high):
        return m.clone(x)
    value = stored(value, x._type.dtype)
    return apply(p.pad, x, low=low, high=high, interior=(0,) * x.ndim, value=value)


def _cut(x: Tensor, pairs: Pairs) -> Tensor:
    """Without what negative amounts cut off."""
    if all(low >= 0 and high >= 0 for low, high in pairs):
        return x
    starts = tuple(max(-low, 0) for low, _ in pairs)
    stops = tuple(size - max(-high, 0) for size, (_, high) in zip(x._type.shape, pairs))
    return apply(p.slice_, x, starts=starts, stops=stops, steps=(1,) * x.ndim)


def _check_edges(x: Tensor, pairs: Pairs, count: int, mode: str) -> None:
    sizes = [size + low + high for size, (low, high) in zip(x._type.shape, pairs)]
    for axis, (size, (low, high)) in enumerate(zip(x._type.shape, pairs)):
        if not low and not high:
            continue
        if mode == "reflect" and max(low, high) >= size:
            raise RuntimeError(
                "Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({low}, {high}) at dimension {axis} of input {list(x.shape)}"
            )
        if sizes[axis] < 0 or not size:
            raise RuntimeError(
                f"input {list(x.shape)} is too small: padding ({low}, {high}) of dimension {axis} "
                f"would leave a size of {sizes[axis]}"
            )
    if max(sizes[-count:]) < 1:
        raise RuntimeError(f"input {list(x.shape)} is too small: padding {pairs} leaves nothing")


def _check_circular(x: Tensor, pairs: Pairs) -> None:
    for size, (low, high) in zip(x._type.shape, pairs):
        if size + low + high < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension.")
        kept = size + min(low, 0) + min(high, 0)  # what is cut off does not come in again
        if max(low, high) > kept:
            raise RuntimeError("Padding value causes wrapping around more than once.")


@planned
def _pad_from_inside(x: Tensor, lows: tuple[int, ...], highs: tuple[int, ...], mode: str) -> Tensor:
    pairs = tuple(zip(lows, highs))
    if mode == "circular":  # what was cut off does not come in at the other end
        x = _cut(x, pairs)
    for axis, (low, high) in enumerate(pairs):
        if low > 0 or high > 0:
            x = _with_edges(x, axis, max(low, 0), max(high, 0), mode)
    if mode == "circular":
        return x
    return _cut(x, [(min(low, 0), min(high, 0)) for low, high in pairs])


def _with_edges(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    size = x._type.shape[axis]
    if mode == "reflect":
        before = flip(m.slice_axis(x, axis, 1, low + 1), axis)
        after = flip(m.slice_axis(x, axis, size - 1 - high, size - 1), axis)
    elif mode == "circular":
        before = m.slice_axis(x, axis, size - low, size)
        after = m.slice_axis(x, axis, 0, high)
    else:
        sizes = list(x._type.shape)
        sizes[axis] = low
        before = m.expand(m.slice_axis(x, axis, 0, 1), sizes)
        sizes[axis] = high
        after = m.expand(m.slice_axis(x, axis, size - 1, size), sizes)
    return cat([each for each in (before, x, after) if each._type.shape[axis]], axis)
