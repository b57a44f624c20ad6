"""Mean 0 and variance 1, over different dimensions; vectors of length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.inplace import assign
from ..core.operands import cast, refuse_complex, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import DType
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .convolution import channels as _channels


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
    refuse_complex("layer_norm", input)
    shape = tuple(normalized_shape)
    if input._type.shape[input.ndim - len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[{', '.join(map(str, ('*', *shape)))}], but got input of size{list(input.shape)}"
        )
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    return _layer_norm(input, weight, bias, axes, eps)


@planned
def _layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: tuple[int, ...], eps: float
) -> Tensor:
    return _scaled(_normalized(x, axes=axes, eps=eps), weight, bias, x._type.dtype)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, dtype: DType) -> Tensor:
    """`x * weight + bias`, of `dtype`; of half types computed in float32 and rounded once."""
    if weight is not None:
        x = e.mul(x, widened(weight))
    if bias is not None:
        x = e.add(x, widened(bias))
    return cast(x, dtype) if dtype.is_half else x


def _statistics(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and biased variance, with the axes kept; half types in float32."""
    wide = widened(x)
    center = r.mean(wide, axes, True)
    apart = e.sub(wide, center)
    return center, r.mean(e.mul(apart, apart), axes, True)


@composite("layer_norm")
@planned
def _normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """Of half types in float32."""
    center, variance = _statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    return e.mul(e.sub(cast(x, scale._type.dtype), center), scale)


@input_vjp(_normalized, saves=(0,))
@planned
def _normalized_vjp(
    g: Tensor, out: TensorType, x: Tensor, axes: tuple[int, ...], eps: float
) -> Tensor:
    center, variance = _statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    unit = e.mul(e.sub(cast(x, scale._type.dtype), center), scale)
    along = e.mul(unit, r.mean(e.mul(g, unit), axes, True))
    inner = e.sub(e.sub(g, r.mean(g, axes, True)), along)
    return cast(e.mul(scale, inner), x._type.dtype)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divided by the root of the mean square over the last dimensions, then scaled."""
    refuse_complex("rms_norm", input)
    shape = tuple(normalized_shape)
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    small = eps
    if small is None:
        small = {"float64": 2.0**-52, "bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
            input._type.dtype.name, 2.0**-23
        )
    return _rms_norm(input, weight, axes, small)


@planned
def _rms_norm(x: Tensor, weight: Tensor | None, axes: tuple[int, ...], eps: float) -> Tensor:
    wide = widened(x)
    scale = e.rsqrt(e.add(r.mean(e.mul(wide, wide), axes, True), eps))
    return _scaled(e.mul(wide, scale), weight, None, x._type.dtype)


@planned
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over groups of channels, then scaled and shifted by channel."""
    refuse_complex("group_norm", input)
    samples, channels, *spatial = input.shape
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    size = channels // num_groups * math.prod(spatial)
    grouped = m.reshape(input, samples, num_groups, size)
    result = m.reshape(_normalized(grouped, axes=(2,), eps=eps), input.shape)
    return _scaled_by_channel(result, weight, bias, input._type.dtype)


def _scaled_by_channel(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dtype: DType
) -> Tensor:
    scale, shift = (
        None if each is None else _channels(each, x.ndim - 2) for each in (weight, bias)
    )
    return _scaled(x, scale, shift, dtype)


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
    refuse_complex("batch_norm", input)
    if input.ndim < 2:
        raise ValueError(
            "batch_norm: expected an input of at least 2 dimensions, samples and channels, got "
            f"{list(input.shape)}"
        )
    axes = (0, *range(2, input.ndim))
    if training or running_mean is None or running_var is None:
        numbers = input._type.numel // max(input.shape[1], 1)
        if training and numbers <= 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{list(input.shape)}"
            )
        result = _batch_norm(input, weight, bias, axes, eps)
        if training and running_mean is not None and running_var is not None:
            _update_running(input, axes, running_mean, running_var, momentum, numbers)
        return result
    return _by_running(input, running_mean, running_var, weight, bias, eps)


@planned
def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: tuple[int, ...], eps: float
) -> Tensor:
    result = _normalized(x, axes=axes, eps=eps)
    return _scaled_by_channel(result, weight, bias, x._type.dtype)


@planned
def _by_running(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    count = x.ndim - 2
    scale = e.rsqrt(e.add(widened(_channels(running_var, count)), eps))
    center = widened(_channels(running_mean, count))
    result = e.mul(e.sub(widened(x), center), scale)
    return _scaled_by_channel(result, weight, bias, x._type.dtype)


def _update_running(
    x: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    numbers: int,
) -> None:
    given = x.detach(), running_mean, running_var
    mixed = _mixed_statistics(*given, axes, momentum, numbers / max(numbers - 1, 1))
    for running, new in zip((running_mean, running_var), mixed):
        assign(running, new, "batch_norm")


@planned
def _mixed_statistics(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    axes: tuple[int, ...],
    momentum: float,
    correction: float,
) -> tuple[Tensor, Tensor]:
    """The running mean and variance with the part `momentum` taken from those of `x`."""
    center, variance = _statistics(x, axes)
    unbiased = e.mul(variance, correction)
    mean, var = (
        e.add(
            e.mul(running, 1 - momentum),
            e.mul(cast(m.reshape(new, running.shape), running._type.dtype), momentum),
        )
        for running, new in ((running_mean, center), (running_var, unbiased))
    )
    return mean, var


@planned
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divided by the norm along `dim`, or by `eps` where that is larger."""
    length = r.norm(input, p, dim, keepdim=True)
    return e.div(input, e.clamp(length, min=eps))


@planned
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    refuse_complex("cosine_similarity", x1, x2)
    lengths = (e.clamp(r.norm(each, 2, dim, keepdim=True), min=eps) for each in (x1, x2))
    a, b = (e.div(each, length) for each, length in zip((x1, x2), lengths))
    return r.sum(e.mul(a, b), dim)


@planned
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of `x1 - x2 + eps` along the last dimension."""
    return r.norm(e.add(e.sub(x1, x2), eps), p, -1, keepdim)
