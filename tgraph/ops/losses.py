"""Losses, which `tgraph.nn.functional` offers too. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.operands import cast, refuse_complex, require_tensor, result_type, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import int64, uint8
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .activations import log_softmax, sigmoid
from .layers import cosine_similarity, pairwise_distance


def _in_float32(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`loss` of 16-bit floats in float32, so that it and each share of its gradient round once."""

    @wraps(loss)
    def computed(input: Tensor, target: Tensor, *args: Any, **options: Any) -> Tensor:
        if not isinstance(input, Tensor) or not isinstance(target, Tensor):
            return loss(input, target, *args, **options)  # which tells what is wrong
        dtype = result_type(input, target)
        if loss.__name__ != "l1_loss":  # which is made of absolute values
            refuse_complex(loss.__name__, input, target)
        if not dtype.is_half:
            return loss(input, target, *args, **options)
        wide = loss(*map(_widened, (input, target, *args)),
                    **{name: _widened(value) for name, value in options.items()})  # fmt: skip
        return cast(wide, dtype)

    return computed


def _widened(value: Any) -> Any:
    return widened(value) if isinstance(value, Tensor) else value


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return r.mean(loss)
    if reduction == "sum":
        return r.sum(loss)
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss


def _warn_sizes(input: Tensor, target: Tensor, name: str) -> None:
    require_tensor(input, name), require_tensor(target, name, "target")
    if input._type.shape != target._type.shape:
        warnings.warn(
            f"{name}: using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(input.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )


@_in_float32
def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Squared differences."""
    _warn_sizes(input, target, "mse_loss")
    return _squared_error(input, target, weight, reduction)


@planned
def _squared_error(x: Tensor, y: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    squared = _square_apart(x, y)
    return _reduced(squared if weight is None else e.mul(squared, weight), reduction)


@planned
def _square_apart(x: Tensor, y: Tensor) -> Tensor:
    apart = e.sub(x, y)
    return e.mul(apart, apart)


@_in_float32
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Absolute differences."""
    _warn_sizes(input, target, "l1_loss")
    return _absolute_error(input, target, reduction)


@planned
def _absolute_error(x: Tensor, y: Tensor, reduction: str) -> Tensor:
    return _reduced(e.abs(e.sub(x, y)), reduction)


@_in_float32
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Absolute differences, squared ones below `beta`, joined smoothly."""
    _warn_sizes(input, target, "smooth_l1_loss")
    if beta == 0:
        return l1_loss(input, target, reduction)
    return _smooth_error(input, target, beta, reduction)


@planned
def _smooth_error(x: Tensor, y: Tensor, beta: float, reduction: str) -> Tensor:
    return _reduced(_smooth_l1(x, y, beta), reduction)


@planned
def _smooth_l1(x: Tensor, y: Tensor, beta: float) -> Tensor:
    size = e.abs(e.sub(x, y))
    # The square is of what lies below `beta` only: far away it could be infinite, whose gradient
    # of 0 times infinity would be NaN.
    near = e.logical_not(e.ge(size, beta))  # NaN too
    inner = e.mul(e.square(e.where(near, size, 0)), 0.5 / beta)
    return e.where(near, inner, e.sub(size, 0.5 * beta))


@_in_float32
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """Half the squared difference, continued in a straight line beyond `delta`."""
    _warn_sizes(input, target, "huber_loss")
    return _huber_error(input, target, delta, reduction)


@planned
def _huber_error(x: Tensor, y: Tensor, delta: float, reduction: str) -> Tensor:
    return _reduced(_huber(x, y, delta), reduction)


@planned
def _huber(x: Tensor, y: Tensor, delta: float) -> Tensor:
    size = e.abs(e.sub(x, y))
    near = e.logical_not(e.gt(size, delta))
    inner = e.mul(e.square(e.where(near, size, 0)), 0.5)  # of near values only, as above
    outer = e.mul(e.sub(size, 0.5 * delta), delta)
    return e.where(near, inner, outer)


# --- classification ----------------------------------------------------------------------------


@planned
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the entry of the target class: `input` is [n, classes, ...], `target` [n, ...].

    The mean is over the targets, weighted by `weight` of their class; `ignore_index` is left out.
    """
    axis = _class_axis(input, target, "nll_loss")
    _check_classes(target)
    ignored = e.eq(target, ignore_index)
    safe = e.where(ignored, 0, target)
    at = m.unsqueeze(cast(safe, int64), axis)
    picked = m.squeeze(apply(p.gather, input, at, axis=axis), axis)
    if weight is None:
        loss = e.where(ignored, 0, e.neg(picked))
        if reduction != "mean":
            return _reduced(loss, reduction)
        return _mean_over(loss, e.logical_not(ignored))
    factors = e.where(ignored, 0, apply(p.index, weight, cast(safe, int64), axis=0))
    loss = e.mul(e.neg(picked), factors)
    loss = e.where(ignored, 0, loss)
    if reduction != "mean":
        return _reduced(loss, reduction)
    return _mean_over(loss, factors)


def _mean_over(loss: Tensor, weights: Tensor) -> Tensor:
    """The sum over that of the weights, which half types could not count."""
    total = r.sum(widened(loss))
    whole = cast(r.sum(widened(weights)), total._type.dtype)
    return cast(e.div(total, whole), loss._type.dtype)


def _class_axis(input: Tensor, target: Tensor, name: str) -> int:
    require_tensor(input, name), require_tensor(target, name, "target")
    axis = 1 if input.ndim > 1 else 0
    wanted = (*input.shape[:axis], *input.shape[axis + 1 :])
    if target._type.shape != wanted:
        if target.ndim and input.ndim and target.shape[:1] != input.shape[:1]:
            raise ValueError(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                f"({target.shape[0]})."
            )
        raise RuntimeError(
            f"{name}: expected target of shape {list(wanted)} for input {list(input.shape)}, got "
            f"{list(target.shape)}"
        )
    return axis


def _check_classes(target: Tensor) -> None:
    if not target._type.dtype.is_integral:
        raise RuntimeError(
            f"expected scalar type Long but found {target._type.dtype.name} for the target classes"
        )
    if target._type.dtype is uint8:
        raise RuntimeError("expected scalar type Long but found Byte for the target classes")


@planned
@_in_float32
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of softmax(input): classes in dimension 1 (0 of a vector).

    `target` has class indices, or probabilities in the shape of `input`.

    >>> import tgraph as tg
    >>> tg.nn.functional.cross_entropy(tg.zeros(1, 4), tg.tensor([2]))
    tensor(1.3863)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    require_tensor(input, "cross_entropy"), require_tensor(target, "cross_entropy", "target")
    axis = 1 if input.ndim > 1 else 0
    logs = log_softmax(input, axis)
    if target._type.dtype.is_floating_point:
        return _soft_cross_entropy(logs, target, weight, reduction, label_smoothing, axis)
    loss = nll_loss(logs, target, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    smooth = _smoothing(logs, target, weight, ignore_index, reduction, axis)
    classes = input.shape[axis]
    return e.add(e.mul(loss, 1 - label_smoothing), e.mul(smooth, label_smoothing / max(classes, 1)))


def _smoothing(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    axis: int,
) -> Tensor:
    """The part of label smoothing: minus the sum of all classes' logarithms."""
    ignored = e.eq(target, ignore_index)
    weighted = logs if weight is None else e.mul(logs, _by_class(weight, logs, axis))
    total = e.where(ignored, 0, e.neg(r.sum(weighted, axis)))
    if reduction != "mean":
        return _reduced(total, reduction)
    if weight is None:
        return _mean_over(total, e.logical_not(ignored))
    safe = cast(e.where(ignored, 0, target), int64)
    return _mean_over(total, e.where(ignored, 0, apply(p.index, weight, safe, axis=0)))


def _by_class(weight: Tensor, like: Tensor, axis: int) -> Tensor:
    return m.reshape(weight, (-1, *(1,) * (like.ndim - axis - 1)))


def _soft_cross_entropy(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    label_smoothing: float,
    axis: int,
) -> Tensor:
    if target._type.shape != logs._type.shape:
        raise RuntimeError(
            f"cross_entropy: expected probabilities of shape {list(logs.shape)}, got "
            f"{list(target.shape)}"
        )
    if label_smoothing:
        share = label_smoothing / max(logs.shape[axis], 1)
        target = e.add(e.mul(target, 1 - label_smoothing), share)
    if weight is not None:
        logs = e.mul(logs, _by_class(weight, logs, axis))
    loss = e.neg(r.sum(e.mul(logs, target), axis))
    if reduction == "mean":
        return r.mean(loss) if logs._type.numel else e.mul(r.sum(loss), math.nan)
    return _reduced(loss, reduction)


@composite("binary_cross_entropy_with_logits")
@planned
def _logistic_loss(x: Tensor, y: Tensor) -> Tensor:
    tail = e.log1p(e.exp(e.neg(e.abs(x))))
    return e.add(e.sub(e.maximum(x, 0), e.mul(x, y)), tail)


@input_vjp(_logistic_loss, 0, saves=(0, 1))
@planned
def _logistic_loss_input(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.mul(g, e.sub(sigmoid(x), y))


@input_vjp(_logistic_loss, 1, saves=(0,))
@planned
def _logistic_loss_target(g: Tensor, out: TensorType, x: Tensor, y: TensorType) -> Tensor:
    return e.neg(e.mul(g, x))


@planned
@_in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross-entropy of sigmoid(input), without overflow."""
    _check_same(input, target, "binary_cross_entropy_with_logits")
    target = cast(target, input._type.dtype)
    if pos_weight is None:
        loss = _logistic_loss(input, target)
    else:
        # softplus(-x) = loss for a target of 1.
        positive = _logistic_loss(input, apply(p.broadcast, _one(input), shape=input._type.shape))
        factor = e.add(e.mul(e.sub(pos_weight, 1), target), 1)
        loss = e.add(e.mul(e.sub(1, target), input), e.mul(factor, positive))
    return _reduced(loss if weight is None else e.mul(loss, weight), reduction)


def _one(like: Tensor) -> Tensor:
    return constant(1, like._type.dtype, like._type.device)


def _check_same(input: Tensor, target: Tensor, name: str) -> None:
    if input._type.shape != target._type.shape:
        raise ValueError(
            f"{name}: Target size ({list(target.shape)}) must be the same as input size "
            f"({list(input.shape)})"
        )


@planned
@_in_float32
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(y log(x) + (1 - y) log(1 - x)), with logarithms no lower than -100."""
    _check_same(input, target, "binary_cross_entropy")
    target = cast(target, input._type.dtype)
    loss = _cross_entropy_of_two(input, target)
    return _reduced(loss if weight is None else e.mul(loss, weight), reduction)


@planned
def _cross_entropy_of_two(x: Tensor, y: Tensor) -> Tensor:
    yes = e.clamp(e.log(x), min=-100)
    no = e.clamp(e.log1p(e.neg(x)), min=-100)
    return e.neg(e.add(e.mul(y, yes), e.mul(e.sub(1, y), no)))


@planned
@_in_float32
def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities `input` from `target`."""
    if log_target:
        loss = e.mul(e.exp(target), e.sub(target, input))
    else:
        positive = e.gt(target, 0)
        entropy = e.mul(target, e.log(e.where(positive, target, 1)))
        loss = e.sub(entropy, e.mul(target, input))
    if reduction == "batchmean":
        total = r.sum(widened(loss))
        return cast(e.div(total, input.shape[0]), loss._type.dtype)
    return _reduced(loss, reduction)


@planned
@_in_float32
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The negative log-likelihood of counts, without the term that only depends on them."""
    if log_input:
        loss = e.sub(e.exp(input), e.mul(target, input))
    else:
        loss = e.sub(input, e.mul(target, e.log(e.add(input, eps))))
    return _reduced(loss, reduction)


@planned
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of normal numbers with mean `input` and variance `var`."""
    refuse_complex("gaussian_nll_loss", input, target)
    safe = e.clamp(var, min=eps) if isinstance(var, Tensor) else max(var, eps)
    apart = e.sub(input, target)
    logs = e.log(safe) if isinstance(safe, Tensor) else math.log(safe)
    loss = e.mul(e.add(e.div(e.mul(apart, apart), safe), logs), 0.5)
    return _reduced(e.add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction)


# --- ranking -----------------------------------------------------------------------------------


@planned
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The input for targets of 1, max(0, margin - input) for targets of -1."""
    far = e.clamp(e.sub(margin, input), min=0)
    loss = e.add(e.where(e.eq(target, 1), input, 0), e.where(e.eq(target, -1), far, 0))
    return _reduced(loss, reduction)


@planned
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    apart = e.mul(e.neg(target), e.sub(input1, input2))
    return _reduced(e.clamp(e.add(apart, margin), min=0), reduction)


@planned
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos for targets of 1, max(0, cos - margin) for targets of -1."""
    cos = cosine_similarity(input1, input2, -1)
    apart = e.clamp(e.sub(cos, margin), min=0)
    return _reduced(e.where(e.eq(target, 1), e.sub(1, cos), apart), reduction)


@planned
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    reduction: str = "mean",
) -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    near = pairwise_distance(anchor, positive, p)
    far = pairwise_distance(anchor, negative, p)
    return _reduced(e.clamp(e.add(e.sub(near, far), margin), min=0), reduction)
