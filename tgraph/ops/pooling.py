"""Windows and borders: maxima and means over windows, padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.eager_context import constant
from ..core.operands import cast, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import bool_, int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat, flip
from .convolution import Ints, spread


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Any:
    """Elements added around: `pad` has (low, high) pairs, the last dimension's first.

    Negative amounts cut off. Modes: "constant" (with `value`), "reflect", "replicate", "circular".
    """
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(
            f"Padding length must be divisible by 2 and at most twice the number of dimensions of "
            f"the input ({input.ndim}), got {len(pad)}"
        )
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2)
    pairs += [(pad[at], pad[at + 1]) for at in range(len(pad) - 2, -1, -2)]
    if mode == "constant":
        return _pad_constant(input, pairs, 0 if value is None else value)
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            input = _pad_from_inside(input, axis, low, high, mode)
    return input


def _pad_constant(x: Tensor, pairs: Sequence[tuple[int, int]], value: float) -> Tensor:
    if any(low < 0 or high < 0 for low, high in pairs):
        starts = tuple(max(-low, 0) for low, _ in pairs)
        stops = tuple(size - max(-high, 0) for size, (_, high) in zip(x.shape, pairs))
        if any(stop < start for start, stop in zip(starts, stops)):
            raise RuntimeError(f"pad: the input {list(x.shape)} is too small to cut off {pairs}")
        x = apply(p.slice_, x, starts=starts, stops=stops, steps=(1,) * x.ndim)
    low = tuple(max(pair[0], 0) for pair in pairs)
    high = tuple(max(pair[1], 0) for pair in pairs)
    if not any(low) and not any(high):
        return m.clone(x)
    return apply(p.pad, x, low=low, high=high, interior=(0,) * x.ndim, value=value)


def _pad_from_inside(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if mode == "reflect":
        if max(low, high) >= size:
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({low}, {high}) at dimension {axis} of input {list(x.shape)}"
            )
        before = flip(m.slice_axis(x, axis, 1, low + 1), axis)
        after = flip(m.slice_axis(x, axis, size - 1 - high, size - 1), axis)
    elif mode == "circular":
        before = m.slice_axis(x, axis, size - low, size)
        after = m.slice_axis(x, axis, 0, high)
    elif mode == "replicate":
        sizes = list(x.shape)
        sizes[axis] = low
        before = m.expand(m.slice_axis(x, axis, 0, 1), sizes)
        sizes[axis] = high
        after = m.expand(m.slice_axis(x, axis, size - 1, size), sizes)
    else:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return cat([before, x, after], axis)


def _windows(
    x: Tensor, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Tensor:
    count = len(window)
    axes = tuple(range(x.ndim - count, x.ndim))
    return apply(
        p.unfold,
        x,
        axes=axes,
        sizes=tuple(window),
        strides=tuple(strides),
        dilations=tuple(dilations),
    )


@composite("max_pool")
@planned
def _max_windows(
    x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Tensor:
    count = len(window)
    ndim = x.ndim
    windows = _windows(x, window, strides, dilations)
    return apply(p.max_, windows, axes=tuple(range(ndim, ndim + count)), keepdims=False)


@input_vjp(_max_windows, saves=(0,))
@planned
def _max_windows_vjp(
    g: Tensor,
    out: TensorType,
    x: Tensor,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Tensor:
    """To the first place in each window that holds its maximum."""
    windows = _windows(x, window, strides, dilations)
    first = m.unsqueeze(_first_maximum(windows, len(window)), -1)
    taps = make_source(p.iota, x._type.device, size=math.prod(window), dtype=int64)
    spread_out = e.where(e.eq(taps, first), m.unsqueeze(g, -1), 0)
    ndim = x.ndim
    return apply(
        p.fold,
        m.reshape(spread_out, windows._type.shape),
        axes=tuple(range(ndim - len(window), ndim)),
        strides=strides,
        dilations=dilations,
        shape=x._type.shape,
    )


def _first_maximum(windows: Tensor, count: int) -> Tensor:
    """The number of the tap that holds the first maximum of each window."""
    outer = windows._type.shape[: windows.ndim - count]
    flat = m.reshape(windows, (*outer, math.prod(windows._type.shape[len(outer) :])))
    return apply(p.argmax, flat, axes=(len(outer),), keepdims=False)


def _lowest(x: Tensor) -> Any:
    if x._type.dtype.is_floating_point:
        return -math.inf
    return 0 if x._type.dtype is bool_ else _integer_lowest(x)


def _integer_lowest(x: Tensor) -> int:
    bits = 8 * x._type.dtype.itemsize
    return -(1 << (bits - 1)) if x._type.dtype.is_signed else 0


@planned
def _max_pool(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    count: int,
    return_indices: bool,
) -> Any:
    window = spread(kernel_size, count, "kernel_size")
    strides = window if stride is None or stride == () else spread(stride, count, "stride")
    pads, apart = spread(padding, count, "padding"), spread(dilation, count, "dilation")
    for size, low in zip(window, pads):
        if low > size // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={low}, kernel_size={size} and dilation={apart[0]}"
            )
    padded = _pool_padded(x, window, strides, pads, apart, ceil_mode, _lowest(x))
    result = _max_windows(padded, window=window, strides=strides, dilations=apart)
    if not return_indices:
        return result
    return result, _max_indices(x, padded, window, strides, pads, apart)


def _pool_padded(
    x: Tensor,
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    ceil_mode: bool,
    value: Any,
) -> Tensor:
    pairs = [(0, 0)] * (x.ndim - len(window))
    for size, taps, stride, low, by in zip(
        x.shape[-len(window) :], window, strides, pads, dilations
    ):
        reach = by * (taps - 1) + 1
        if size + 2 * low < reach:
            raise RuntimeError(
                f"pooling: an input of size {list(x.shape)} with padding {low} is smaller than the "
                f"window {list(window)}: output size is too small"
            )
        high = low
        if ceil_mode:
            count = -(-(size + 2 * low - reach) // stride) + 1
            count -= (count - 1) * stride >= size + low  # the last window starts inside
            high = max(high, (count - 1) * stride + reach - size - low)
        pairs.append((low, high))
    return x if not any(map(any, pairs)) else _pad_constant(x, pairs, value)


def _max_indices(
    x: Tensor,
    padded: Tensor,
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """The flat position in the unpadded plane of each window's first maximum."""
    count = len(window)
    windows = _windows(padded.detach(), window, strides, dilations)
    tap = _first_maximum(windows, count)
    device = tap._type.device
    flat = constant(0, int64, device)
    for at in range(count):
        below = math.prod(window[at + 1 :])
        place = e.remainder(e.floor_divide(tap, below), window[at])
        sizes = (1,) * at + (-1,) + (1,) * (count - at - 1)
        starts = make_source(p.iota, device, size=tap.shape[tap.ndim - count + at], dtype=int64)
        starts = m.reshape(e.sub(e.mul(starts, strides[at]), pads[at]), sizes)
        position = e.add(e.mul(place, dilations[at]), starts)
        size = x.shape[x.ndim - count + at]
        flat = e.add(e.mul(flat, size), position)
    return flat


def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of the last dimension; see `max_pool2d`."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, 1, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of the last two dimensions, `stride` (the window's size) apart.

    The gradient goes to the first maximum of each window.
    """
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, 2, return_indices)


@planned
def _avg_pool(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    count: int,
) -> Tensor:
    window = spread(kernel_size, count, "kernel_size")
    strides = window if stride is None or stride == () else spread(stride, count, "stride")
    pads = spread(padding, count, "padding")
    ones = (1,) * count
    if x._type.dtype.is_half:
        wide = _avg_pool(widened(x), kernel_size, stride, padding, ceil_mode, count_include_pad,
                         divisor_override, count)  # fmt: skip
        return cast(wide, x._type.dtype)
    padded = _pool_padded(x, window, strides, pads, ones, ceil_mode, 0)
    axes = tuple(range(x.ndim, x.ndim + count))
    total = apply(p.sum_, _windows(padded, window, strides, ones), axes=axes, keepdims=False)
    plain = padded.shape[-count:] == tuple(n + 2 * by for n, by in zip(x.shape[-count:], pads))
    if divisor_override is not None:
        return e.div(total, divisor_override)
    if (count_include_pad and plain) or padded is x:
        return e.div(total, math.prod(window))
    counted = pads if not count_include_pad else (0,) * count
    size = tuple(n + 2 * (by - not_) for n, by, not_ in zip(x.shape[-count:], pads, counted))
    one = apply(p.broadcast, constant(1, x._type.dtype, x._type.device), shape=size)
    lows = tuple(counted)
    highs = tuple(w - n - low for w, n, low in zip(padded.shape[-count:], size, lows))
    marks = apply(p.pad, one, low=lows, high=highs, interior=(0,) * count, value=0)
    taps = _windows(marks, window, strides, ones)
    inside = apply(p.sum_, taps, axes=tuple(range(count, 2 * count)), keepdims=False)
    return e.div(total, inside)


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Means over windows of the last dimension; see `avg_pool2d`."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows of the last two dimensions, zeros of the padding counted or not."""
    return _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2
    )


@planned
def adaptive_avg_pool2d(input: Tensor, output_size: Ints) -> Tensor:
    """Means over windows that divide the last two dimensions into `output_size` parts."""
    result = input
    for axis, parts in zip((-2, -1), spread(output_size, 2, "output_size")):
        size = input.shape[axis]
        if size % parts == 0:
            result = r.mean(m.unflatten(result, axis, (parts, size // parts)), axis)
            continue
        bounds = [(at * size // parts, -(-(at + 1) * size // parts)) for at in range(parts)]
        at_axis = axis % input.ndim
        means = [r.mean(m.slice_axis(result, at_axis, *each), at_axis, True) for each in bounds]
        result = cat(means, at_axis)
    return result
