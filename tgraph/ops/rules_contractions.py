"""Gradient rules of matrix products and convolutions."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate
from ..core.dispatch import apply, make_source
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def _matmul(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Any:
    return apply(p.matmul, a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@input_vjp(p.matmul, 0, saves=(1,))
def _matmul_left(
    g: Tensor, out: TensorType, a: TensorType, b: Tensor, transpose_a: bool, transpose_b: bool
) -> Any:
    b = conjugate(b)
    if transpose_a:
        return _matmul(b, g, transpose_b, True)
    return _matmul(g, b, False, not transpose_b)


@input_vjp(p.matmul, 1, saves=(0,))
def _matmul_right(
    g: Tensor, out: TensorType, a: Tensor, b: TensorType, transpose_a: bool, transpose_b: bool
) -> Any:
    a = conjugate(a)
    if transpose_b:
        return _matmul(g, a, True, transpose_a)
    return _matmul(a, g, not transpose_a, False)


@input_vjp(p.convolution, 0, saves=(1,))
def _convolution_input(
    g: Tensor,
    out: TensorType,
    x: TensorType,
    w: Tensor,
    strides: Ints,
    padding: Pairs,
    dilation: Ints,
    input_dilation: Ints,
    groups: int,
) -> Any:
    """The cotangent, spread by the strides, convolved with the mirrored windows.

    It is computed for the padded and spread input, of which the input's own places are taken.
    """
    if 0 in out.shape or 0 in x.shape:
        return apply(p.broadcast, _zero(g), shape=x.shape)
    mirrored = _mirrored(w, groups)
    reach = [by * (taps - 1) for by, taps in zip(dilation, w._type.shape[2:])]
    spread = [(size - 1) * by + 1 for size, by in zip(x.shape[2:], input_dilation)]
    covered = [(size - 1) * by + 1 for size, by in zip(out.shape[2:], strides)]
    low = [span - pad[0] for span, pad in zip(reach, padding)]
    high = [size - wide + pad[0] for size, wide, pad in zip(spread, covered, padding)]
    whole = apply(
        p.convolution,
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


@input_vjp(p.convolution, 1, saves=(0,))
def _convolution_weight(
    g: Tensor,
    out: TensorType,
    x: Tensor,
    w: TensorType,
    strides: Ints,
    padding: Pairs,
    dilation: Ints,
    input_dilation: Ints,
    groups: int,
) -> Any:
    """A convolution of the input with the cotangent, in which samples take the channels' place."""
    if 0 in out.shape or 0 in x._type.shape:
        return apply(p.broadcast, _zero(g), shape=w.shape)
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
    taps = _window(whole, (0,) * count, w.shape[2:], (1,) * count)
    return apply(p.permute, taps, axes=(1, 0, *(axis - 1 for axis in rest)))
