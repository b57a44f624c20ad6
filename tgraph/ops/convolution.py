"""Convolutions (cross-correlations, as in every neural-network library)."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import movement as m

Ints = int | Sequence[int]


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


@planned
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
    return result if bias is None else e.add(result, channels(bias, count))


def channels(vector: Tensor, count: int) -> Tensor:
    """A vector of one element per channel, to broadcast over `count` spatial dimensions."""
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
