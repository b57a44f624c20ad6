"""Losses, which `tgraph.nn.functional` offers too. `reduction` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same
from ..core.argument_types import Flag
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.operands import cast, promote, refuse_complex, require_float, require_tensor, widened
from ..core.planned import planned
from ..core.state import state
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import int64, uint8
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .activations import log_softmax, sigmoid
from .loss_reduction import as_input, in_float32, mean_over, reduced, reduction_of, warn_sizes


@with_autocast
@in_float32
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences; with `weight` their weighted mean.

    >>> import tgraph as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(2.)
    """
    warn_sizes(input, target, "mse_loss")
    reduction = reduction_of(size_average, reduce, reduction)
    _check_weight(input, weight)
    return _squared_error(input, target, weight, reduction)


@planned
def _squared_error(x: Tensor, y: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    return _weighted(_square_apart(x, y), weight, reduction)


def _check_weight(input: Tensor, weight: Tensor | None) -> None:
    if weight is not None and weight._type.shape != input._type.shape:
        raise ValueError("Weights and input must have the same size.")


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """A loss times weights, whose mean is that of the weights."""
    if weight is None:
        return reduced(loss, reduction)
    if reduction == "mean":
        return e.div(r.sum(e.mul(loss, weight)), r.sum(weight))
    return reduced(e.mul(loss, weight), reduction)


@planned
def _square_apart(x: Tensor, y: Tensor) -> Tensor:
    apart = e.sub(*promote("mse_loss", x, y))
    return e.mul(apart, apart)


@with_autocast
@in_float32
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute differences; with `weight` their weighted mean."""
    warn_sizes(input, target, "l1_loss")
    reduction = reduction_of(size_average, reduce, reduction)
    _check_weight(input, weight)
    return _absolute_error(input, target, weight, reduction)


@planned
def _absolute_error(x: Tensor, y: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    return _weighted(e.abs(e.sub(x, y)), weight, reduction)


@with_autocast
@in_float32
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Absolute differences, squared ones below `beta`, joined smoothly."""
    warn_sizes(input, target, "smooth_l1_loss")
    reduction = reduction_of(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _absolute_error(input, target, None, reduction)
    return _smooth_error(input, target, beta, reduction)


@planned
def _smooth_error(x: Tensor, y: Tensor, beta: float, reduction: str) -> Tensor:
    return reduced(_smooth_l1(x, y, beta), reduction)


@planned
def _smooth_l1(x: Tensor, y: Tensor, beta: float) -> Tensor:
    size = e.abs(e.sub(*promote("smooth_l1_loss", x, y)))
    # The square is of what lies below `beta` only: far away it could be infinite, whose gradient
    # of 0 times infinity would be NaN.
    near = e.logical_not(e.ge(size, beta))  # NaN too
    inner = e.mul(e.square(e.where(near, size, 0)), 0.5 / beta)
    return e.where(near, inner, e.sub(size, 0.5 * beta))


@with_autocast
@in_float32
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared difference, continued in a straight line beyond `delta`."""
    warn_sizes(input, target, "huber_loss")
    _check_weight(input, weight)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return _huber_error(input, target, weight, delta, reduction)


@planned
def _huber_error(
    x: Tensor, y: Tensor, weight: Tensor | None, delta: float, reduction: str
) -> Tensor:
    loss = as_input(_huber(x, y, delta), x)
    return reduced(loss if weight is None else e.mul(loss, weight), reduction)


@planned
def _huber(x: Tensor, y: Tensor, delta: float) -> Tensor:
    size = e.abs(e.sub(*promote("huber_loss", x, y)))
    near = e.logical_not(e.gt(size, delta))
    inner = e.mul(e.square(e.where(near, size, 0)), 0.5)  # of near values only, as above
    outer = e.mul(e.sub(size, 0.5 * delta), delta)
    return e.where(near, inner, outer)


# --- classification ----------------------------------------------------------------------------


@with_autocast
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the entry of the target class: `input` is [n, classes, ...], `target` [n, ...].

    The mean is over the targets, weighted by `weight` of their class; `ignore_index` is left out.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return _nll_loss(input, target, weight, ignore_index, reduction)


@planned
def _nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    target = _of_vector(input, target)
    axis = _class_axis(input, target, "nll_loss")
    _check_classes(target)
    require_float(input, "nll_loss")
    if weight is not None:
        _check_class_weights("nll_loss", weight, input._type.shape[axis])
    ignored = e.eq(target, ignore_index)
    safe = e.where(ignored, 0, target)
    at = m.unsqueeze(cast(safe, int64), axis)
    picked = m.squeeze(apply(p.gather, input, at, axis=axis), axis)
    if weight is None:
        loss = e.where(ignored, 0, e.neg(picked))
        if reduction != "mean":
            return reduced(loss, reduction)
        return mean_over(loss, e.logical_not(ignored))
    factors = e.where(ignored, 0, apply(p.index, weight, cast(safe, int64), axis=0))
    loss = e.mul(e.neg(picked), factors)
    loss = e.where(ignored, 0, loss)
    if reduction != "mean":
        return reduced(loss, reduction)
    return mean_over(loss, factors)


def _check_class_weights(name: str, weight: Tensor, classes: int) -> None:
    """RuntimeError unless there is one number for each class."""
    if not are_same(weight._type.shape, (classes,)):
        raise RuntimeError(
            f"{name}: weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(weight._type.shape)}"
        )


def _of_vector(input: Tensor, target: Tensor) -> Tensor:
    """The target, without its one dimension where the input is a vector of classes."""
    require_tensor(input, "nll_loss"), require_tensor(target, "nll_loss", "target")
    is_class = not target._type.dtype.is_differentiable
    if input.ndim == 1 and is_class and are_same(target._type.shape, (1,)):
        return m.reshape(target, ())
    return target


def _class_axis(input: Tensor, target: Tensor, name: str) -> int:
    require_tensor(input, name), require_tensor(target, name, "target")
    axis = 1 if input.ndim > 1 else 0
    wanted = (*input.shape[:axis], *input.shape[axis + 1 :])
    if target._type.shape != wanted:
        _check_batch(input, target)
        raise RuntimeError(
            f"{name}: expected target of shape {list(wanted)} for input {list(input.shape)}, got "
            f"{list(target.shape)}"
        )
    return axis


def _check_batch(input: Tensor, target: Tensor) -> None:
    if not input.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim == 1 and target.ndim == 1 and target.shape[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}"
        )
    if input.ndim > 1 and target.shape[:1] != input.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 0})."
        )


def _check_classes(target: Tensor) -> None:
    if not target._type.dtype.is_integral:
        raise RuntimeError(
            f"expected scalar type Long but found {target._type.dtype.name} for the target classes"
        )
    if target._type.dtype is uint8:
        raise RuntimeError("expected scalar type Long but found Byte for the target classes")


@with_autocast
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of softmax(input): classes in dimension 1 (0 of a vector).

    `target` has class indices, or probabilities in the shape of `input`.

    >>> import tgraph as tg
    >>> tg.nn.functional.cross_entropy(tg.zeros(1, 4), tg.tensor([2]))
    tensor(1.3863)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


@planned
@in_float32
def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    require_tensor(input, "cross_entropy"), require_tensor(target, "cross_entropy", "target")
    target = _of_vector(input, target)
    axis = 1 if input.ndim > 1 else 0
    logs = log_softmax(input, axis)
    if weight is not None:
        _check_class_weights("cross_entropy", weight, logs.shape[axis])
    if target._type.dtype.is_floating_point:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_cross_entropy(logs, target, weight, reduction, label_smoothing, axis)
    loss = _nll_loss(logs, target, weight, ignore_index, reduction)
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
        return reduced(total, reduction)
    if weight is None:
        return mean_over(total, e.logical_not(ignored))
    safe = cast(e.where(ignored, 0, target), int64)
    return mean_over(total, e.where(ignored, 0, apply(p.index, weight, safe, axis=0)))


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
        _check_batch(logs, target)
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
    return reduced(loss, reduction)


@composite("binary_cross_entropy_with_logits")
@planned
def _logistic_loss(x: Tensor, y: Tensor) -> Tensor:
    size = e.abs(x)
    share = e.where(e.ge(x, 0), e.sub(1, y), y)  # of max(x, 0) - x y, infinite where x is
    return e.add(e.mul(size, share), e.log1p(e.exp(e.neg(size))))


@input_vjp(_logistic_loss, 0, saves=(0, 1))
@planned
def _logistic_loss_input(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.mul(g, e.sub(sigmoid(x), y))


@input_vjp(_logistic_loss, 1, saves=(0,))
@planned
def _logistic_loss_target(g: Tensor, out: TensorType, x: Tensor, y: TensorType) -> Tensor:
    return e.neg(e.mul(g, x))


@with_autocast
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The binary cross-entropy of sigmoid(input), without overflow."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


@planned
@in_float32
def _binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    pos_weight: Tensor | None,
) -> Tensor:
    name = "binary_cross_entropy_with_logits"
    _check_same(input, target, name)
    dtype = (target if target._type.dtype.is_floating_point else input)._type.dtype
    input, target = promote(name, require_float(input, name), target)
    if pos_weight is None:
        loss = _logistic_loss(input, target)
    else:
        # softplus(-x) = loss for a target of 1.
        positive = _logistic_loss(input, apply(p.broadcast, _one(input), shape=input._type.shape))
        refuse_complex(f"{name} with a weight", pos_weight)
        factor = e.add(e.mul(e.sub(pos_weight, 1), target), 1)
        loss = e.add(e.mul(e.sub(1, target), input), e.mul(factor, positive))
    return cast(reduced(_by_element(loss, weight, name), reduction), dtype)


def _by_element(loss: Tensor, weight: Tensor | None, name: str) -> Tensor:
    """A loss times weights, which must broadcast to its shape."""
    if weight is None:
        return loss
    if not are_same(m.broadcast_shapes(loss._type.shape, weight._type.shape), loss._type.shape):
        raise RuntimeError(
            f"{name}: expected a weight that broadcasts to the shape of the loss "
            f"{list(loss.shape)}, got {list(weight.shape)}"
        )
    refuse_complex(f"{name} with a weight", weight)
    return e.mul(loss, weight)


def _one(like: Tensor) -> Tensor:
    return constant(1, like._type.dtype, like._type.device)


def _check_same(input: Tensor, target: Tensor, name: str) -> None:
    if input._type.shape != target._type.shape:
        raise ValueError(
            f"{name}: Target size ({list(target.shape)}) must be the same as input size "
            f"({list(input.shape)})"
        )


@with_autocast
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(y log(x) + (1 - y) log(1 - x)), with logarithms no lower than -100.

    RuntimeError where eager code sees an `input` outside of [0, 1].

    >>> import tgraph as tg
    >>> tg.nn.functional.binary_cross_entropy(tg.tensor([0.5]), tg.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    require_tensor(input, "binary_cross_entropy")
    require_tensor(target, "binary_cross_entropy", "target")
    _check_same(input, target, "binary_cross_entropy")
    is_checked = state.context is None and not input.is_meta
    if is_checked and not bool(_are_shares(input.detach())):
        raise RuntimeError("all elements of input should be between 0 and 1")
    return _binary_cross_entropy(input, target, weight, reduction)


@planned
def _are_shares(x: Tensor) -> Tensor:
    outside = e.logical_or(e.lt(x, 0), e.gt(x, 1))
    return r.all(e.logical_not(outside))


@planned
@in_float32
def _binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    name = "binary_cross_entropy"
    input, target = promote(name, input, target)
    loss = _cross_entropy_of_two(require_float(input, name), target)
    return reduced(_by_element(loss, weight, name), reduction)


@composite("binary_cross_entropy")
@planned
def _cross_entropy_of_two(x: Tensor, y: Tensor) -> Tensor:
    yes = e.clamp(e.log(x), min=-100)
    no = e.clamp(e.log1p(e.neg(x)), min=-100)
    return e.neg(e.add(e.mul(y, yes), e.mul(e.sub(1, y), no)))


@input_vjp(_cross_entropy_of_two, 0, saves=(0, 1))
@planned
def _cross_entropy_of_two_input(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    spread = e.clamp(e.mul(e.sub(1, x), x), min=1e-12)
    return e.mul(g, e.div(e.sub(x, y), spread))


@input_vjp(_cross_entropy_of_two, 1, saves=(0,))
@planned
def _cross_entropy_of_two_target(g: Tensor, out: TensorType, x: Tensor, y: TensorType) -> Tensor:
    yes = e.clamp(e.log(x), min=-100)
    no = e.clamp(e.log1p(e.neg(x)), min=-100)
    return e.mul(g, e.sub(no, yes))


@with_autocast
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities `input` from `target`.

    "mean" is over all elements; "batchmean", over the rows, is what the definition says.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    for each in (input, target):
        if not each._type.dtype.is_differentiable:
            raise RuntimeError(f"kl_div: Integral inputs not supported, got {each._type.dtype}")
    return _kl_div(input, target, reduction, log_target)


@planned
@in_float32
def _kl_div(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    if log_target:
        loss = e.mul(e.exp(target), e.sub(target, input))
    else:
        none = e.eq(target, 0)
        entropy = e.mul(target, e.log(e.where(none, 1, target)))
        loss = e.sub(entropy, e.mul(target, input))
    if reduction == "batchmean":
        total = r.sum(widened(loss))
        count = input.shape[0] if input.ndim else 1
        return cast(e.div(total, count), loss._type.dtype)
    return reduced(loss, reduction)


@with_autocast
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts; `full` adds Stirling's term, of the counts alone."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _poisson_nll_loss(input, target, log_input, full, eps, reduction)


@planned
@in_float32
def _poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: str
) -> Tensor:
    if log_input:
        loss = e.sub(e.exp(input), e.mul(target, input))
    else:
        loss = e.sub(input, e.mul(target, e.log(e.add(input, eps))))
    return reduced(e.add(loss, _stirling(target)) if full else loss, reduction)


def _stirling(counts: Tensor) -> Tensor:
    """log(counts!) for counts above 1, approximately."""
    above = e.gt(counts, 1)
    safe = e.where(above, counts, 1)
    logs = e.sub(e.mul(safe, e.log(safe)), safe)
    return e.where(above, e.add(logs, e.mul(e.log(e.mul(safe, 2 * math.pi)), 0.5)), 0)


@with_autocast
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: Flag = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of normal numbers with mean `input` and variance `var`.

    `var` is a number or a tensor of the shape of `input`, of which one dimension may be 1, or the
    last left out. Gradients go to it as if it were not limited to `eps`. ValueError where eager
    code sees a negative one.
    """
    refuse_complex("gaussian_nll_loss", input, target)
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = m.expand(constant(var, input._type.dtype, input._type.device), input.shape)
    if var._type.shape != input._type.shape:
        if input._type.shape[:-1] == var._type.shape:
            var = m.unsqueeze(var, -1)
        elif not _broadcasts_once(var, input):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    is_checked = state.context is None and not var.is_meta
    if is_checked and bool(r.any(e.lt(var.detach(), 0))):
        raise ValueError("var has negative entry/entries")
    return _gaussian_nll_loss(input, target, var, bool(full), eps, reduction)


def _broadcasts_once(var: Tensor, input: Tensor) -> bool:
    """Whether `var` has one size of 1 where `input` has another, and no other difference."""
    pairs = zip(input._type.shape, var._type.shape)
    return input.ndim == var.ndim and [own for size, own in pairs if size != own] == [1]


@planned
def _gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str
) -> Tensor:
    input, target, var = promote("gaussian_nll_loss", input, target, var)
    limited = e.add(e.sub(var, var.detach()), eps)
    safe = e.where(e.lt(var, eps), limited, var)
    apart = e.sub(input, target)
    loss = e.mul(e.add(e.log(safe), e.div(e.mul(apart, apart), safe)), 0.5)
    return reduced(e.add(loss, 0.5 * math.log(2 * math.pi)) if full else loss, reduction)
