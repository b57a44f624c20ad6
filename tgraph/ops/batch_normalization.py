"""Mean 0 and variance 1 by channel, with running statistics: of batches, of each sample."""

from __future__ import annotations

import math

from ..compiler.ir.shapes import is_one
from ..core.inplace import assign
from ..core.operands import cast, require_float, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .convolution import channels as _channels
from .normalization import normalized, require_several, scaled_by_channel, statistics


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
    if input.ndim < 2 and not input._type.numel:
        return m.clone(input)
    if input.ndim < 2:
        raise ValueError(
            "batch_norm: expected an input of at least 2 dimensions, samples and channels, got "
            f"{list(input.shape)}"
        )
    if training:
        require_several(input._type.shape, input.shape)
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    given = running_mean, running_var, weight, bias
    _check_by_channel(input, given, "must be defined in evaluation mode", training)
    require_float(input, "batch_norm")
    if not training:
        return _by_running(input, running_mean, running_var, weight, bias, eps)
    return _by_input(input, *given, (0, *range(2, input.ndim)), momentum, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel of each sample, then scaled and shifted by channel.

    Running statistics, where given, are updated in place with the means over samples; without
    `use_input_stats` they are used instead.
    """
    if use_input_stats and math.prod(input._type.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    given = running_mean, running_var, weight, bias
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    _check_by_channel(input, given, "", use_input_stats)
    require_float(input, "instance_norm")
    if not use_input_stats:
        return _by_running(input, running_mean, running_var, weight, bias, eps)
    return _by_input(input, *given, tuple(range(2, input.ndim)), momentum, eps)


_NAMES = "running_mean", "running_var", "weight", "bias"


def _check_by_channel(
    input: Tensor, given: tuple[Tensor | None, ...], needed: str, from_input: bool
) -> None:
    """Errors where running statistics are missing, or something has another number of channels."""
    if not from_input:
        for name, each in zip(_NAMES[:2], given):
            if each is None:
                raise RuntimeError(f"{name} {needed}")
    elif (given[0] is None) != (given[1] is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    channels = input._type.shape[1]
    for name, each in zip(_NAMES, given):
        if each is None:
            continue
        if each._type.numel != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {each._type.numel}")
        if name.startswith("running") and each.ndim > 1:
            raise RuntimeError(f"{name} should have one dimension, got {list(each.shape)}")


def _by_input(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    axes: tuple[int, ...],
    momentum: float,
    eps: float,
) -> Tensor:
    """Normalised over `axes` by its own statistics; running ones learn of them."""
    result = _batch_norm(input, weight, bias, axes, eps)
    numbers = math.prod(input._type.shape[axis] for axis in axes)
    if running_mean is not None and running_var is not None and input._type.numel:
        _update_running(input, axes, running_mean, running_var, momentum, numbers)
    return result


@planned
def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: tuple[int, ...], eps: float
) -> Tensor:
    result = normalized(x, axes=axes, eps=eps)
    return scaled_by_channel(result, weight, bias, x._type.dtype)


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
    return scaled_by_channel(result, weight, bias, x._type.dtype)


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
    center, variance = statistics(x, axes)
    unbiased = e.mul(variance, correction)
    mean, var = (
        e.add(
            e.mul(running, 1 - momentum),
            e.mul(cast(_by_channel(new), running._type.dtype), momentum),
        )
        for running, new in ((running_mean, center), (running_var, unbiased))
    )
    return mean, var


def _by_channel(new: Tensor) -> Tensor:
    """Statistics with all axes kept, as one for each channel: the means over samples."""
    samples, channels = new._type.shape[:2]
    rows = m.reshape(new, samples, channels)
    return m.reshape(rows, channels) if is_one(samples) else r.mean(rows, 0)
