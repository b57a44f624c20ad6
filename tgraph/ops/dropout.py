"""Dropout: elements or channels that a random choice takes out in training."""

from __future__ import annotations

import math
import warnings

from ..core.inplace import applied
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import float32
from . import basic_draws
from . import elementwise as e
from .channels_last import in_order_of


def check_probability(p: float) -> None:
    """ValueError unless `p` is a probability."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _channels(x: Tensor, outer: int) -> tuple[int, ...]:
    """The shape of what is one for all places of a channel."""
    return (*x._type.shape[:outer], *(1,) * (x.ndim - outer))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, elements become 0 with probability `p` and the others grow by 1 / (1 - p)."""
    check_probability(p)
    if not training or p == 0:
        return input
    return applied(_dropped, input, "dropout_", inplace, input._type.shape, p)


@planned
def _dropped(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    keep = e.ge(basic_draws.uniform(shape, float32, device=x._type.device), p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return in_order_of(e.where(keep, e.mul(x, scale), 0), x)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of [n, c, length] or [c, length]."""
    check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if not training or p == 0:
        return input
    return applied(_dropped, input, "dropout1d_", inplace, _channels(input, input.ndim - 1), p)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels: of each of the first two dimensions.

    As in PyTorch, an input of three dimensions is taken to be [n, c, length], with a warning.
    """
    check_probability(p)
    if input.ndim not in (3, 4):
        warnings.warn(_unusual("dropout2d", input.ndim, 2), stacklevel=2)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. To say so, use dropout1d instead.",
            stacklevel=2,
        )
    if not training or p == 0:
        return input
    _check_channels(input)
    return applied(_dropped, input, "dropout2d_", inplace, _channels(input, 2), p)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of [n, c, depth, height, width], or of one such sample."""
    check_probability(p)
    if input.ndim not in (4, 5):
        warnings.warn(_unusual("dropout3d", input.ndim, 3), stacklevel=2)
    outer = 2 if input.ndim == 5 else 1
    if not training or p == 0:
        return input
    return applied(_dropped, input, "dropout3d_", inplace, _channels(input, outer), p)


def _unusual(name: str, ndim: int, count: int) -> str:
    return (
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{count} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
        f"{count + 1}D or {count + 2}D inputs)."
    )


def _check_channels(x: Tensor) -> None:
    if x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")


# What `selu` gives a large negative number, without its sign.
_SATURATED = 1.7580993408473766


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what `selu` gives: elements become its lowest value.

    Source: Klambauer et al., "Self-normalizing neural networks" (2017).
    """
    check_probability(p)
    if not training or p == 0:
        return input
    return applied(_alpha_dropped, input, "alpha_dropout_", inplace, input._type.shape, p)


def feature_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`dropout` of whole channels: of each of the first two dimensions."""
    check_probability(p)
    if not training or p == 0:
        return input
    _check_channels(input)
    return applied(_dropped, input, "feature_dropout_", inplace, _channels(input, 2), p)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels: of each of the first two dimensions."""
    check_probability(p)
    if not training or p == 0:
        return input
    _check_channels(input)
    shape = _channels(input, 2)
    return applied(_alpha_dropped, input, "feature_alpha_dropout_", inplace, shape, p)


@planned
def _alpha_dropped(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    p = float(p)
    if p == 1:
        return e.mul(x, 0)
    keep = e.ge(basic_draws.uniform(shape, float32, device=x._type.device), p)
    scale = 1 / math.sqrt((_SATURATED * _SATURATED * p + 1) * (1 - p))
    shift = _SATURATED * scale * p
    return e.where(keep, e.add(e.mul(x, scale), shift), shift - _SATURATED * scale)
