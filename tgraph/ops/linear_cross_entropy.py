"""The cross-entropy of a linear map's results, which are the scores of the classes."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import elementwise as e
from . import movement as m
from .linear_maps import linear
from .losses import cross_entropy


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    `input` is [n, in] or [in], `linear_weight` [classes, in] or [classes, d1, ..., in], whose
    scores are [n, classes, d1, ...]. `options`, of how PyTorch divides the work, change nothing
    here.

    >>> import tgraph as tg
    >>> weight = tg.zeros(4, 3)
    >>> tg.nn.functional.linear_cross_entropy(tg.ones(2, 3), weight, tg.tensor([0, 1]))
    tensor(1.3863)
    """
    _check(input, linear_weight, linear_bias)
    if options is not None and not hasattr(options, "acc_dtype"):
        raise TypeError(
            "linear_cross_entropy(): argument 'options' must be LinearCrossEntropyOptions, not "
            f"{type(options).__name__}"
        )
    classes, *inner = linear_weight.shape[:-1]
    flat = m.reshape(linear_weight, (-1, linear_weight.shape[-1])) if inner else linear_weight
    scores = linear(input, flat)
    if inner:
        scores = m.reshape(scores, (*input.shape[:-1], classes, *inner))
    if linear_bias is not None:
        scores = e.add(scores, linear_bias)
    if target.shape == scores.shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(
        scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction, label_smoothing=label_smoothing,
    )  # fmt: skip


def _check(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.ndim}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    if bias is not None and tuple(bias.shape) != tuple(weight.shape[:-1]):
        raise RuntimeError(
            f"expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}"
        )
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
