"""Mean 0 and variance 1, over different dimensions; vectors of length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compiler.ir import TensorType
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.operands import cast, refuse_complex, require_float, result_type, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import DType
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .channels_last import keeps_channels_last
from .convolution import channels as _channels
from .norms import norm
from .padding import pad
from .pooling import avg_pool2d


@with_autocast
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
    axes = _last_axes("layer_norm", input, normalized_shape, weight, bias)
    require_float(input, "layer_norm")
    return _layer_norm(input, weight, bias, axes, eps)


def _last_axes(
    name: str,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None = None,
) -> tuple[int, ...]:
    """The axes that `normalized_shape` tells the sizes of, once all has been checked."""
    if isinstance(normalized_shape, int):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int"
        )
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got normalized_shape = []"
        )
    for kind, each in (("weight", weight), ("bias", bias)):
        if each is not None and each._type.shape != shape:
            raise RuntimeError(
                f"Expected {kind} to be of same shape as normalized_shape, but got {kind} of shape "
                f"{list(each.shape)} and normalized_shape = {list(shape)}"
            )
    if input.ndim < len(shape) or input._type.shape[input.ndim - len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[{', '.join(map(str, ('*', *shape)))}], but got input of size{list(input.shape)}"
        )
    return tuple(range(input.ndim - len(shape), input.ndim))


@planned
def _layer_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: tuple[int, ...], eps: float
) -> Tensor:
    return _scaled(normalized(x, axes=axes, eps=eps), weight, bias, x._type.dtype)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, dtype: DType) -> Tensor:
    """`x * weight + bias`, of `dtype`; of half types computed in float32 and rounded once."""
    if weight is not None:
        x = e.mul(x, widened(weight))
    if bias is not None:
        x = e.add(x, widened(bias))
    return cast(x, dtype) if dtype.is_half else x


def statistics(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and biased variance, with the axes kept; half types in float32."""
    wide = widened(x)
    center = r.mean(wide, axes, True)
    apart = e.sub(wide, center)
    return center, r.mean(e.mul(apart, apart), axes, True)


@composite("layer_norm")
@planned
def normalized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """Of half types in float32."""
    center, variance = statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    return e.mul(e.sub(cast(x, scale._type.dtype), center), scale)


@input_vjp(normalized, saves=(0,))
@planned
def _normalized_vjp(
    g: Tensor, out: TensorType, x: Tensor, axes: tuple[int, ...], eps: float
) -> Tensor:
    center, variance = statistics(x, axes)
    scale = e.rsqrt(e.add(variance, eps))
    unit = e.mul(e.sub(cast(x, scale._type.dtype), center), scale)
    along = e.mul(unit, r.mean(e.mul(g, unit), axes, True))
    inner = e.sub(e.sub(g, r.mean(g, axes, True)), along)
    return cast(e.mul(scale, inner), x._type.dtype)


@with_autocast
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divided by the root of the mean square over the last dimensions, then scaled."""
    axes = _last_axes("rms_norm", input, normalized_shape, weight)
    if not input._type.dtype.is_differentiable:
        raise NotImplementedError(f'"rms_norm" not implemented for {input._type.dtype.name}')
    small = eps
    if small is None:
        small = {"float64": 2.0**-52, "complex128": 2.0**-52, "bfloat16": 2.0**-7,
                 "float16": 2.0**-10}.get(input._type.dtype.name, 2.0**-23)  # fmt: skip
    return _rms_norm(input, weight, axes, small)


@planned
def _rms_norm(x: Tensor, weight: Tensor | None, axes: tuple[int, ...], eps: float) -> Tensor:
    wide = widened(x)
    scale = e.rsqrt(e.add(r.mean(e.mul(wide, wide), axes, True), eps))
    result = _scaled(e.mul(wide, scale), weight, None, x._type.dtype)
    return cast(result, x._type.dtype) if result._type.dtype.is_floating_point else result


@planned
@keeps_channels_last
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over groups of channels, then scaled and shifted by channel."""
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    samples, channels, *spatial = input.shape
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    for kind, each in (("weight", weight), ("bias", bias)):
        if each is not None and each._type.shape != (channels,):
            raise RuntimeError(
                f"Expected {kind} to be a vector of size equal to the number of channels in "
                f"input, but got {kind} of shape {list(each.shape)} and input of shape "
                f"{list(input.shape)}"
            )
    sizes = [samples * channels // num_groups, num_groups, *spatial]
    require_several(sizes, sizes)
    require_float(input, "group_norm")
    size = channels // num_groups * math.prod(spatial)
    grouped = m.reshape(input, samples, num_groups, size)
    result = m.reshape(normalized(grouped, axes=(2,), eps=eps), input.shape)
    return scaled_by_channel(result, weight, bias, input._type.dtype)


def require_several(shape: Sequence[int], shown: Sequence[int]) -> None:
    """An error where a channel has one value only: samples and sizes of space are all 1."""
    if math.prod((shape[0], *shape[2:])) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shown}"
        )


def scaled_by_channel(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dtype: DType
) -> Tensor:
    scale, shift = (
        None if each is None else _channels(each, x.ndim - 2) for each in (weight, bias)
    )
    return _scaled(x, scale, shift, dtype)


@planned
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divided by (k + alpha * the mean square of `size` neighbouring channels) ** beta.

    Source: Krizhevsky, Sutskever and Hinton, "ImageNet classification" (2012).
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if not input._type.numel:
        return input
    samples, channels, *spatial = input.shape
    squares = m.reshape(e.mul(input, input), samples, 1, channels, math.prod(spatial))
    padded = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    near = m.reshape(avg_pool2d(padded, (size, 1), 1), input.shape)
    return e.div(input, e.pow(e.add(e.mul(near, alpha), k), beta))


@planned
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divided by the norm along `dim`, or by `eps` where that is larger."""
    length = norm(input, p, dim, keepdim=True)
    return e.div(input, e.clamp(length, min=eps))


@planned
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    refuse_complex("cosine_similarity", x1, x2)
    dtype = result_type(x1, x2)
    x1, x2 = (
        each if each._type.dtype.is_floating_point else cast(each, dtype) for each in (x1, x2)
    )
    if x1._type.shape != x2._type.shape:
        x1, x2 = m.broadcast_tensors(x1, x2)  # `dim` may be one that only one of them has
    lengths = (e.clamp(norm(each, 2, dim, keepdim=True), min=eps) for each in (x1, x2))
    a, b = (e.div(each, length) for each, length in zip((x1, x2), lengths))
    return r.sum(e.mul(a, b), dim)


@planned
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of `x1 - x2 + eps` along the last dimension."""
    return norm(e.add(e.sub(x1, x2), eps), p, -1, keepdim)
