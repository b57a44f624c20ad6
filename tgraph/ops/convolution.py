"""Convolutions (cross-correlations, as in every neural-network library)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.autocast import with_autocast
from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import movement as m
from .channels_last import laid_as
from .convolution_kinds import convolved, of_parts

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
    check_dimensions(x, weight, count, name)
    check_dtypes(x, weight, bias, name)
    strides, apart = spread(stride, count, "stride"), spread(dilation, count, "dilation")
    pads = _padding(padding, weight._type.shape[2:], apart, strides)
    check_steps(strides, (), apart)
    _check_convolution(x, weight, bias, groups)
    sizes = [size + low + high for size, (low, high) in zip(x._type.shape[2:], pads)]
    reach = [by * (taps - 1) + 1 for taps, by in zip(weight._type.shape[2:], apart)]
    if any(size < wide for size, wide in zip(sizes, reach)):
        raise RuntimeError(
            f"{name}: Calculated padded input size per channel: {by_sizes(sizes)}. Kernel size: "
            f"{by_sizes(reach)}. Kernel size can't be greater than actual input size"
        )
    attrs: dict[str, Any] = {
        "strides": strides, "padding": pads, "dilation": apart, "input_dilation": (1,) * count,
        "groups": groups,
    }  # fmt: skip
    if x._type.dtype.is_complex:
        result = of_parts(x, weight, lambda x, w: convolved(x, w, **attrs))
    else:
        result = convolved(x, weight, **attrs)
    return result if bias is None else e.add(result, channels(bias, count))


def channels(vector: Tensor, count: int) -> Tensor:
    """A vector of one element per channel, to broadcast over `count` spatial dimensions."""
    return m.reshape(vector, (-1, *(1,) * count))


def by_sizes(sizes: Sequence[int]) -> str:
    """(2 x 3), as messages have sizes."""
    return f"({' x '.join(map(str, sizes))})"


def check_dimensions(x: Tensor, weight: Tensor, count: int, name: str) -> None:
    """RuntimeError unless `x` is a batch with `count` spatial dimensions and `weight` fits it."""
    if weight.ndim != count + 2 and weight.ndim < 3:
        raise RuntimeError(
            f"weight should have at least three dimensions, but got weight of size: "
            f"{list(weight.shape)} for {name}"
        )
    if x.ndim != count + 2:
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {name}, but got "
            f"input of size: {list(x.shape)}"
        )
    if weight.ndim != count + 2:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
            f"{list(weight.shape)}, but got {x.ndim}-dimensional input of size {list(x.shape)} "
            f"instead (in {name})"
        )
    if 0 in weight._type.shape[2:]:
        raise RuntimeError(
            f"{name}: kernel size should be greater than zero, but got weight of size "
            f"{list(weight.shape)}"
        )
    if 0 in x._type.shape[2:]:
        raise RuntimeError(
            f"{name}: Only zero batch or zero channel inputs are supported, but got input of size "
            f"{list(x.shape)}"
        )


def check_dtypes(x: Tensor, weight: Tensor, bias: Tensor | None, name: str) -> None:
    """RuntimeError unless all have one dtype."""
    for label, other in (("weight", weight), ("bias", bias)):
        if other is not None and other._type.dtype is not x._type.dtype:
            raise RuntimeError(
                f"{name}: Input type ({x._type.dtype}) and {label} type ({other._type.dtype}) "
                "should be the same"
            )


def check_steps(strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int]) -> None:
    """RuntimeError for what windows cannot be moved by."""
    if min(strides) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(pads, default=0) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(dilations) <= 0:
        raise RuntimeError("dilation should be greater than zero")


def _check_convolution(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    own = f"Given groups={groups}, weight of size {list(weight.shape)}"
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(weight.shape)} instead"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"{own}, expected input{list(x.shape)} to have {weight.shape[1] * groups} channels, "
            f"but got {x.shape[1]} channels instead"
        )
    if bias is not None and bias.shape != (weight.shape[0],):
        raise RuntimeError(
            f"{own}, expected bias to be 1-dimensional with {weight.shape[0]} elements, but got "
            f"bias of size {list(bias.shape)} instead"
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


@with_autocast
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


@with_autocast
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
    found = _convolution(input, weight, bias, stride, padding, dilation, groups, 2)
    return laid_as(found, input, weight)


@with_autocast
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
    found = _convolution(input, weight, bias, stride, padding, dilation, groups, 3)
    return laid_as(found, input, weight)
