"""Maxima, means and norms over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.eager_context import constant
from ..core.operands import cast, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import bool_, int64
from ..runtime.records import NamedTuple
from . import elementwise as e
from . import movement as m
from .activations import relu
from .channels_last import keeps_channels_last
from .convolution import Ints, spread
from .padding import pad_constant
from .windows import windows_of


@composite("max_pool")
@planned
def _max_windows(
    x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> Tensor:
    count = len(window)
    ndim = x.ndim
    windows = windows_of(x, window, strides, dilations)
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
    windows = windows_of(x, window, strides, dilations)
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


class _Windows(NamedTuple):
    """How windows lie on the last dimensions of an input."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def _checked_windows(
    x: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, count: int
) -> _Windows:
    """RuntimeError unless all are numbers that windows can have, and `x` has their dimensions."""
    sizes = spread(kernel_size, count, "kernel_size")
    strides = sizes if stride is None or stride in ((), []) else spread(stride, count, "stride")
    pads, dilations = spread(padding, count, "padding"), spread(dilation, count, "dilation")
    for name, least, values in (
        ("kernel_size", 1, sizes), ("stride", 1, strides), ("dilation", 1, dilations),
        ("pad", 0, pads),
    ):  # fmt: skip
        if min(values) < least:
            bound = "greater than zero" if least else "non-negative"
            raise RuntimeError(f"{name} must be {bound}, but got {min(values)}")
    for size, pad, by in zip(sizes, pads, dilations):
        if pad > ((size - 1) * by + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad}, kernel_size={size} and dilation={by}"
            )
    check_planes(x, count)
    return _Windows(sizes, strides, pads, dilations)


def check_planes(x: Tensor, count: int) -> None:
    """RuntimeError unless `x` is a sample with `count` spatial dimensions, or a batch of such."""
    if x.ndim in (count + 1, count + 2) and 0 not in x._type.shape[x.ndim - count - 1 :]:
        return
    raise RuntimeError(
        f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with optional 0 dim batch size "
        f"for input, that is a non-empty {count + 1}D or {count + 2}D (batch mode) tensor. "
        f"Expected input's non-batch dimensions to have positive length, but got: {list(x.shape)}"
    )


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
    windows = _checked_windows(x, kernel_size, stride, padding, dilation, count)
    padded = _pool_padded(x, windows, ceil_mode, _lowest(x))
    result = _max_windows(
        padded, window=windows.sizes, strides=windows.strides, dilations=windows.dilations
    )
    if not return_indices:
        return result
    return result, _max_indices(x, padded, windows)


def _pool_padded(x: Tensor, windows: _Windows, ceil_mode: bool, value: Any) -> Tensor:
    inner = len(windows.sizes)
    pairs = [(0, 0)] * (x.ndim - inner)
    made = []
    for size, taps, stride, low, by in zip(x.shape[-inner:], *windows):
        reach, high = by * (taps - 1) + 1, low
        count = (size + 2 * low - reach) // stride + 1
        if ceil_mode:
            count = -(-(size + 2 * low - reach) // stride) + 1
            count -= (count - 1) * stride >= size + low  # the last window starts inside
            high = max(high, (count - 1) * stride + reach - size - low)
        pairs.append((low, high))
        made.append(count)
    if min(made) < 1:
        raise RuntimeError(
            f"Given input size: {_by(x.shape[-inner - 1 :])}. Calculated output size: "
            f"{_by([x.shape[-inner - 1], *made])}. Output size is too small. Invalid computed "
            f"output size: {min(made)}"
        )
    return x if not any(map(any, pairs)) else pad_constant(x, pairs, value)


def _by(sizes: Sequence[int]) -> str:
    return f"({'x'.join(map(str, sizes))})"


def _max_indices(x: Tensor, padded: Tensor, windows: _Windows) -> Tensor:
    """The flat position in the unpadded plane of each window's first maximum."""
    sizes, strides, pads, dilations = windows
    count = len(sizes)
    tap = _first_maximum(windows_of(padded.detach(), sizes, strides, dilations), count)
    device = tap._type.device
    flat = constant(0, int64, device)
    for at in range(count):
        below = math.prod(sizes[at + 1 :])
        place = e.remainder(e.floor_divide(tap, below), sizes[at])
        shape = (1,) * at + (-1,) + (1,) * (count - at - 1)
        starts = make_source(p.iota, device, size=tap.shape[tap.ndim - count + at], dtype=int64)
        starts = m.reshape(e.sub(e.mul(starts, strides[at]), pads[at]), shape)
        position = e.add(e.mul(place, dilations[at]), starts)
        if pads[at]:  # of equal elements, all -inf, the first is one of the padding
            position = e.where(e.lt(position, 0), e.remainder(position, dilations[at]), position)
        flat = e.add(e.mul(flat, x.shape[x.ndim - count + at]), position)
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
    return _max_pool(
        input, kernel_size, stride, padding, dilation, ceil_mode, 1, bool(return_indices)
    )


@keeps_channels_last
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
    return _max_pool(
        input, kernel_size, stride, padding, dilation, ceil_mode, 2, bool(return_indices)
    )


@with_autocast
@keeps_channels_last
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima over windows of the last three dimensions; see `max_pool2d`."""
    return _max_pool(
        input, kernel_size, stride, padding, dilation, ceil_mode, 3, bool(return_indices)
    )


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
    if x._type.dtype.is_half:
        wide = _avg_pool(widened(x), kernel_size, stride, padding, ceil_mode, count_include_pad,
                         divisor_override, count)  # fmt: skip
        return cast(wide, x._type.dtype)
    if not x._type.dtype.is_floating_point and x._type.dtype is not int64:
        raise NotImplementedError(f'"avg_pool{count}d" not implemented for {x._type.dtype.name}')
    windows = _checked_windows(x, kernel_size, stride, padding, 1, count)
    window, strides, pads, ones = windows
    mode = "trunc" if x._type.dtype is int64 else None
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    padded = _pool_padded(x, windows, ceil_mode, 0)
    axes = tuple(range(x.ndim, x.ndim + count))
    total = apply(p.sum_, windows_of(padded, window, strides, ones), axes=axes, keepdims=False)
    plain = padded.shape[-count:] == tuple(n + 2 * by for n, by in zip(x.shape[-count:], pads))
    if divisor_override is not None:
        return e.div(total, divisor_override, rounding_mode=mode)
    if (count_include_pad and plain) or padded is x:
        return e.div(total, math.prod(window), rounding_mode=mode)
    counted = pads if not count_include_pad else (0,) * count
    size = tuple(n + 2 * (by - not_) for n, by, not_ in zip(x.shape[-count:], pads, counted))
    one = apply(p.broadcast, constant(1, x._type.dtype, x._type.device), shape=size)
    lows = tuple(counted)
    highs = tuple(w - n - low for w, n, low in zip(padded.shape[-count:], size, lows))
    marks = apply(p.pad, one, low=lows, high=highs, interior=(0,) * count, value=0)
    taps = windows_of(marks, window, strides, ones)
    inside = apply(p.sum_, taps, axes=tuple(range(count, 2 * count)), keepdims=False)
    return e.div(total, inside, rounding_mode=mode)


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


@keeps_channels_last
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


@with_autocast
@keeps_channels_last
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means over windows of the last three dimensions; see `avg_pool2d`."""
    return _avg_pool(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3
    )


@planned
def _lp_pool(
    x: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None, ceil_mode: bool, count: int
) -> Tensor:
    norm_type = float(norm_type)  # asked for here, as its value decides what is computed
    if math.isinf(norm_type):
        found = e.abs(x) if norm_type > 0 else e.neg(e.abs(x))
        largest = _max_pool(found, kernel_size, stride, 0, 1, ceil_mode, count, False)
        return largest if norm_type > 0 else e.neg(largest)
    powers = e.pow(x, norm_type)
    mean = _avg_pool(powers, kernel_size, stride, 0, ceil_mode, True, None, count)
    total = e.mul(e.mul(e.sign(mean), relu(e.abs(mean))), math.prod(spread(kernel_size, count, "")))
    return e.pow(total, 1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Norms over windows of the last dimension; see `lp_pool2d`."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


@keeps_channels_last
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The `norm_type`-th root of the sum of such powers, over windows of two dimensions.

    >>> import tgraph as tg
    >>> tg.nn.functional.lp_pool2d(tg.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


@keeps_channels_last
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Norms over windows of the last three dimensions; see `lp_pool2d`."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)
