"""Layers of neural networks as functions: linear, convolution, normalisation, attention.

`tgraph.nn.functional` offers these together with the activations and the losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import elementwise as e
from . import indexing as ix
from . import linalg as la
from . import movement as m
from . import random as rng
from . import reductions as r
from .activations import softmax
from .autograd.composite import composite
from .autograd.record import vjp
from .compiler.ir import TensorType
from .compiler.ir import primitives as p
from .creation import tril
from .dispatch import apply, constant
from .inplace import assign
from .operands import cast, require_tensor
from .runtime.dtypes import bool_, float32, int32, int64
from .tensor import Tensor

Ints = int | Sequence[int]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`; weight is [out, in]."""
    product = la.matmul(input, m.t(weight))
    return product if bias is None else e.add(product, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for every output o; weight is [out, in1, in2]."""
    result = la.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else e.add(result, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient."""
    if require_tensor(input, "embedding")._type.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input._type.dtype} instead (while checking arguments for "
            "embedding)"
        )
    rows = apply(p.index, weight, input, axis=0)
    if padding_idx is None:
        return rows
    at = padding_idx % weight._type.shape[0]
    is_padding = m.unsqueeze(e.eq(input, at), -1)
    return e.where(is_padding, rows.detach(), rows)  # type: ignore[attr-defined]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """See `tgraph.one_hot`."""
    return ix.one_hot(tensor, num_classes)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, elements become 0 with probability `p` and the others grow by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    result = _dropped(input, input._type.shape, p)
    return assign(input, result, "dropout_") if inplace else result


def _dropped(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    keep = e.ge(rng.uniform(shape, float32), p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return e.where(keep, e.mul(x, scale), 0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels: the first two dimensions (one of an unbatched input)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = 1 if input.ndim == 3 else 2
    shape = (*input.shape[:kept], *(1,) * (input.ndim - kept))
    result = _dropped(input, shape, p)
    return assign(input, result, "dropout2d_") if inplace else result


# --- convolution -------------------------------------------------------------------------------


def spread(value: Ints, count: int, name: str) -> tuple[int, ...]:
    """One number for every spatial dimension, or one for each."""
    if isinstance(value, int):
        return (value,) * count
    sizes = tuple(value)
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise RuntimeError(f"expected {name} to be a single integer or {count} of them: {value}")
    return sizes


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
    count: int,
) -> Tensor:
    name = f"conv{count}d"
    if x.ndim == count + 1:
        one = m.unsqueeze(x, 0)
        done = _convolution(one, weight, bias, stride, padding, dilation, groups, count)
        return m.squeeze(done, 0)
    _check_convolution(x, weight, bias, groups, count, name)
    strides, apart = spread(stride, count, "stride"), spread(dilation, count, "dilation")
    pads = _padding(padding, weight._type.shape[2:], apart, strides)
    for size, (low, high), taps, by in zip(x.shape[2:], pads, weight.shape[2:], apart):
        if size + low + high < by * (taps - 1) + 1:
            raise RuntimeError(
                f"{name}: calculated padded input size per channel: {size + low + high} is smaller "
                f"than the kernel size: {by * (taps - 1) + 1}"
            )
    result = apply(
        p.convolution,
        x,
        weight,
        strides=strides,
        padding=pads,
        dilation=apart,
        input_dilation=(1,) * count,
        groups=groups,
    )
    return result if bias is None else e.add(result, _channels(bias, count))


def _channels(vector: Tensor, count: int) -> Tensor:
    return m.reshape(vector, (-1, *(1,) * count))


def _check_convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, count: int, name: str
) -> None:
    if x.ndim != count + 2 or weight.ndim != count + 2:
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {list(x.shape)} and weight of size: {list(weight.shape)}"
        )
    if x._type.dtype is not weight._type.dtype:
        raise RuntimeError(
            f"{name}: input type ({x._type.dtype}) and weight type ({weight._type.dtype}) should "
            "be the same"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input"
            f"{list(x.shape)} to have {weight.shape[1] * groups} channels, but got {x.shape[1]} "
            "channels instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(f"{name}: out_channels must be divisible by groups={groups}")
    if bias is not None and bias.shape != (weight.shape[0],):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
            f"{weight.shape[0]} elements, but got bias of size {list(bias.shape)} instead"
        )


def _padding(
    padding: Ints | str, window: Sequence[int], dilation: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * len(window)
        if padding != "same":
            raise RuntimeError(f"Invalid padding string: '{padding}'; use 'valid' or 'same'")
        if any(stride != 1 for stride in strides):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [by * (taps - 1) for taps, by in zip(window, dilation)]
        return tuple((total // 2, total - total // 2) for total in totals)
    sizes = spread(padding, len(window), "padding")
    if min(sizes) < 0:
        raise RuntimeError("negative padding is not supported")
    return tuple((size, size) for size in sizes)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of [n, c, length] with [o, c / groups, taps]."""
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of [n, c, height, width] with [o, c / groups, rows, columns].

    `padding` adds zeros at both sides, or is "same" or "valid".
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of [n, c, depth, height, width] with [o, c / groups, *window]."""
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 3)


# --- pooling and padding -----------------------------------------------------------------------


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
        before = m.flip(m.slice_axis(x, axis, 1, low + 1), axis)
        after = m.flip(m.slice_axis(x, axis, size - 1 - high, size - 1), axis)
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
    return m.cat([before, x, after], axis)


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
def _max_windows(
    x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Tensor:
    count = len(window)
    ndim = x.ndim
    windows = _windows(x, window, strides, dilations)
    return apply(p.max_, windows, axes=tuple(range(ndim, ndim + count)), keepdims=False)


@vjp(_max_windows, saves=(0,))
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
    taps = apply(p.iota, size=math.prod(window), dtype=int64)
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
    windows = _windows(padded.detach(), window, strides, dilations)  # type: ignore[attr-defined]
    tap = _first_maximum(windows, count)
    flat: Any = None
    for at in range(count):
        below = math.prod(window[at + 1 :])
        place = e.remainder(e.floor_divide(tap, below), window[at])
        sizes = (1,) * at + (-1,) + (1,) * (count - at - 1)
        starts = apply(p.iota, size=tap.shape[tap.ndim - count + at], dtype=int64)
        starts = m.reshape(e.sub(e.mul(starts, strides[at]), pads[at]), sizes)
        position = e.add(e.mul(place, dilations[at]), starts)
        size = x.shape[x.ndim - count + at]
        flat = position if flat is None else e.add(e.mul(flat, size), position)
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
    one = apply(p.broadcast, constant(1, x._type.dtype), shape=size)
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
        result = m.cat(means, at_axis)
    return result


# --- normalisation -----------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, then scaled and shifted.

    Source: Ba, Kiros and Hinton, "Layer Normalization" (2016).
    """
    shape = tuple(normalized_shape)
    if input._type.shape[input.ndim - len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"{['*', *shape]}, but got input of size{list(input.shape)}"
        )
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    result = _normalized(input, axes=axes, eps=eps)
    if weight is not None:
        result = e.mul(result, weight)
    return result if bias is None else e.add(result, bias)


def _statistics(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and biased variance, with the axes kept; half types in float32."""
    wide = cast(x, float32) if x._type.dtype.is_half else x
    center = r.mean(wide, axes, True)
    apart = e.sub(wide, center)
    return center, r.mean(e.mul(apart, apart), axes, True)


@composite("layer_norm")
def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    center, variance = _statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    return cast(e.mul(e.sub(cast(x, scale._type.dtype), center), scale), x._type.dtype)


@vjp(_normalized, saves=(0,))
def _normalized_vjp(
    g: Tensor, out: TensorType, x: Tensor, axes: tuple[int, ...], eps: float
) -> Tensor:
    center, variance = _statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    unit = e.mul(e.sub(cast(x, scale._type.dtype), center), scale)
    wide = cast(g, scale._type.dtype)
    along = e.mul(unit, r.mean(e.mul(wide, unit), axes, True))
    inner = e.sub(e.sub(wide, r.mean(wide, axes, True)), along)
    return cast(e.mul(scale, inner), x._type.dtype)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divided by the root of the mean square over the last dimensions, then scaled."""
    shape = tuple(normalized_shape)
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    small = eps
    if small is None:
        small = {"float64": 2.0**-52, "bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
            input._type.dtype.name, 2.0**-23
        )
    scale = e.rsqrt(e.add(r.mean(e.mul(input, input), axes, True), small))
    result = e.mul(input, scale)
    return result if weight is None else e.mul(result, weight)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over groups of channels, then scaled and shifted by channel."""
    samples, channels, *spatial = input.shape
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    grouped = m.reshape(input, samples, num_groups, -1)
    result = m.reshape(_normalized(grouped, axes=(2,), eps=eps), input.shape)
    count = len(spatial)
    if weight is not None:
        result = e.mul(result, _channels(weight, count))
    return result if bias is None else e.add(result, _channels(bias, count))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 by channel (dimension 1), then scaled and shifted.

    In training the batch's own statistics are used and the running ones updated in place.
    """
    count = input.ndim - 2
    axes = (0, *range(2, input.ndim))
    if training or running_mean is None or running_var is None:
        numbers = input._type.numel // max(input.shape[1], 1)
        if training and numbers <= 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{list(input.shape)}"
            )
        result = _normalized(input, axes=axes, eps=eps)
        if training and running_mean is not None and running_var is not None:
            _update_running(input, axes, running_mean, running_var, momentum, numbers)
    else:
        scale = e.rsqrt(e.add(_channels(running_var, count), eps))
        result = e.mul(e.sub(input, _channels(running_mean, count)), scale)
    if weight is not None:
        result = e.mul(result, _channels(weight, count))
    return result if bias is None else e.add(result, _channels(bias, count))


def _update_running(
    x: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    numbers: int,
) -> None:
    center, variance = _statistics(x.detach(), axes)  # type: ignore[attr-defined]
    unbiased = e.mul(variance, numbers / max(numbers - 1, 1))
    for running, new in ((running_mean, center), (running_var, unbiased)):
        fresh = cast(m.reshape(new, running.shape), running._type.dtype)
        mixed = e.add(e.mul(running, 1 - momentum), e.mul(fresh, momentum))
        assign(running, mixed, "batch_norm")


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divided by the norm along `dim`, or by `eps` where that is larger."""
    length = r.norm(input, p, dim, keepdim=True)
    return e.div(input, e.clamp(length, min=eps))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    lengths = (e.clamp(r.norm(each, 2, dim, keepdim=True), min=eps) for each in (x1, x2))
    a, b = (e.div(each, length) for each, length in zip((x1, x2), lengths))
    return r.sum(e.mul(a, b), dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of `x1 - x2 + eps` along the last dimension."""
    return r.norm(e.add(e.sub(x1, x2), eps), p, -1, keepdim)


# --- attention ---------------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value over the last two dimensions.

    A boolean mask says which keys take part, a float one is added; `is_causal` masks keys that
    come later than the query. Source: Vaswani et al., "Attention Is All You Need" (2017).
    """
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (m.repeat_interleave(each, times, -3) for each in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = la.matmul(e.mul(query, factor), m.transpose(key, -2, -1))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("explicit attn_mask should not be set when is_causal=True")
        ones = apply(p.broadcast, constant(True, bool_), shape=scores._type.shape[-2:])
        attn_mask = tril(ones)
    if attn_mask is not None:
        is_choice = attn_mask._type.dtype is bool_
        scores = e.where(attn_mask, scores, -math.inf) if is_choice else e.add(scores, attn_mask)
    weights = softmax(scores, -1)
    return la.matmul(dropout(weights, dropout_p) if dropout_p else weights, value)
