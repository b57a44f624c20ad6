"""The two gradients of a convolution, which are convolutions again.

The one with respect to the input is what is called a transposed convolution.
"""

from __future__ import annotations

from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply, make_source
from ..core.tensor import Tensor
from .convolution_kinds import convolved

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def input_gradient(
    g: Tensor,
    w: Tensor,
    shape: Ints,
    strides: Ints,
    padding: Pairs,
    dilation: Ints,
    input_dilation: Ints,
    groups: int,
) -> Any:
    """The gradient of an input of `shape`, from that of the result.

    The cotangent, spread by the strides, convolved with the mirrored windows. It is computed for
    the padded and spread input, of which the input's own places are taken.
    """
    if 0 in g._type.shape or 0 in shape:
        return apply(p.broadcast, _zero(g), shape=shape)
    mirrored = _mirrored(w, groups)
    reach = [by * (taps - 1) for by, taps in zip(dilation, w._type.shape[2:])]
    spread = [(size - 1) * by + 1 for size, by in zip(shape[2:], input_dilation)]
    covered = [(size - 1) * by + 1 for size, by in zip(g._type.shape[2:], strides)]
    low = [span - pad[0] for span, pad in zip(reach, padding)]
    high = [size - wide + pad[0] for size, wide, pad in zip(spread, covered, padding)]
    whole = convolved(
        g,
        mirrored,
        strides=(1,) * len(strides),
        padding=tuple((max(before, 0), max(after, 0)) for before, after in zip(low, high)),
        dilation=dilation,
        input_dilation=strides,
        groups=groups,
    )
    starts = tuple(max(-before, 0) for before in low)
    stops = tuple(start + size for start, size in zip(starts, spread))
    return _window(whole, starts, stops, input_dilation)


def weight_gradient(
    g: Tensor,
    x: Tensor,
    shape: Ints,
    strides: Ints,
    padding: Pairs,
    dilation: Ints,
    input_dilation: Ints,
    groups: int,
) -> Any:
    """The gradient of windows of `shape`, from that of the result.

    A convolution of the input with the cotangent, in which samples take the channels' place.
    """
    if 0 in g._type.shape or 0 in x._type.shape:
        return apply(p.broadcast, _zero(g), shape=shape)
    samples, channels, *spatial = x._type.shape
    per_group = channels // groups
    rest = tuple(range(3, 3 + len(spatial)))
    split = apply(p.reshape, x, shape=(samples, groups, per_group, *spatial))
    swapped = apply(p.permute, split, axes=(2, 1, 0, *rest))
    by_channel = apply(p.reshape, swapped, shape=(per_group, groups * samples, *spatial))
    windows = apply(p.permute, g, axes=(1, 0, *(axis - 1 for axis in rest)))
    whole = apply(
        p.convolution,
        by_channel,
        windows,
        strides=dilation,
        padding=padding,
        dilation=strides,
        input_dilation=input_dilation,
        groups=groups,
    )
    count = len(spatial)
    taps = _window(whole, (0,) * count, shape[2:], (1,) * count)
    return apply(p.permute, taps, axes=(1, 0, *(axis - 1 for axis in rest)))


def _zero(like: Tensor) -> Any:
    from_zero = make_source(p.full, like._type.device, shape=(), value=0.0, dtype=like._type.dtype)
    return from_zero


def _window(x: Tensor, starts: Ints, stops: Ints, steps: Ints) -> Any:
    """The spatial part of [a, b, *spatial] from starts to stops; `x` itself if that is all."""
    shape = x._type.shape
    if stops == shape[2:] and not any(starts) and set(steps) == {1}:
        return x
    return apply(
        p.slice_, x, starts=(0, 0, *starts), stops=(*shape[:2], *stops), steps=(1, 1, *steps)
    )


def _mirrored(w: Tensor, groups: int) -> Any:
    """Windows [g * o, c, *spatial] as [g * c, o, *mirrored spatial]."""
    outer, channels, *spatial = w._type.shape
    per_group = outer // groups
    rest = tuple(range(3, 3 + len(spatial)))
    split = apply(p.reshape, w, shape=(groups, per_group, channels, *spatial))
    swapped = apply(p.permute, split, axes=(0, 2, 1, *rest))
    merged = apply(p.reshape, swapped, shape=(groups * channels, per_group, *spatial))
    return apply(p.flip, merged, axes=tuple(range(2, 2 + len(spatial))))
