"""Losses of how far scores, vectors and classes are apart."""

from __future__ import annotations

from collections.abc import Callable

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.operands import cast, promote, require_float, require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .activations import logsigmoid
from .creation import arange
from .loss_reduction import as_input, in_float32, reduced, reduction_of
from .normalization import pairwise_distance
from .scans import cumsum


@with_autocast
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input for targets of 1, max(0, margin - input) for targets of -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _hinge_embedding_loss(input, target, margin, reduction)


@planned
@in_float32
def _hinge_embedding_loss(input: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    far = e.clamp(e.sub(margin, input), min=0)
    loss = e.add(e.where(e.ne(target, 1), far, 0), e.where(e.ne(target, -1), input, 0))
    return reduced(loss, reduction)


@with_autocast
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _margin_ranking_loss(input1, input2, target, margin, reduction)


@planned
@in_float32
def _margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    apart = e.mul(e.neg(target), e.sub(input1, input2))
    return reduced(e.clamp(e.add(apart, margin), min=0), reduction)


@with_autocast
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), without overflow."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _soft_margin_loss(input, target, reduction)


@planned
@in_float32
def _soft_margin_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    loss = e.neg(logsigmoid(e.mul(target, input)))
    if not are_same(loss._type.shape, input._type.shape):
        raise RuntimeError(
            f"soft_margin_loss: expected a target that broadcasts to the shape of the input "
            f"{list(input.shape)}, got {list(target.shape)}"
        )
    return reduced(as_input(loss, input), reduction)


# --- vectors -----------------------------------------------------------------------------------


@with_autocast
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos for targets of 1, max(0, cos - margin) for targets of -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    require_tensor(target, "cosine_embedding_loss", "target")
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
            f"inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    return _cosine_embedding_loss(input1, input2, target, margin, reduction)


@planned
@in_float32
def _cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str
) -> Tensor:
    lengths = [e.add(r.sum(e.mul(each, each), -1), 1e-12) for each in (input1, input2)]
    cos = e.div(r.sum(e.mul(input1, input2), -1), e.sqrt(e.mul(*lengths)))
    apart = e.where(e.eq(target, -1), e.clamp(e.sub(cos, margin), min=0), 0)
    return reduced(e.where(e.eq(target, 1), e.sub(1, cos), apart), reduction)


@with_autocast
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, |anchor - positive| - |anchor - negative| + margin), by the norm of order `p`.

    With `swap` the smaller of |anchor - negative| and |positive - negative| is taken.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative, margin)
    return _triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )


@planned
@in_float32
def _triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, order: float, eps: float,
    swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    near = pairwise_distance(anchor, positive, order, eps)
    far = pairwise_distance(anchor, negative, order, eps)
    if swap:
        far = e.minimum(far, pairwise_distance(positive, negative, order, eps))
    return reduced(e.clamp(e.add(e.sub(near, far), margin), min=0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any distance.

    >>> import tgraph as tg
    >>> a, b, c = tg.zeros(1, 2), tg.ones(1, 2), 3 * tg.ones(1, 2)
    >>> apart = lambda x, y: (x - y).abs().sum(-1)
    >>> F = tg.nn.functional
    >>> F.triplet_margin_with_distance_loss(a, b, c, distance_function=apart, margin=5.0)
    tensor(1.)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_triplet(anchor, positive, negative, margin)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = e.minimum(far, distance(positive, negative))
    return reduced(e.clamp(e.sub(e.add(near, margin), far), min=0), reduction)


# --- classes -----------------------------------------------------------------------------------


@with_autocast
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over classes but the true one of max(0, margin - x[true] + x)**p, over their number.

    `input` is [n, classes] or [classes], `target` [n] or [].
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_rows(input, target, "multi_margin_loss", input.shape[:-1])
    if weight is not None and weight._type.numel != (input.shape[-1] if input.ndim else 1):
        raise RuntimeError(
            f"inconsistent weight size, expected {input.shape[-1]} but got {list(weight.shape)}"
        )
    if target._type.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target._type.dtype.name}")
    require_float(input, "multi_margin_loss")
    return _multi_margin_loss(input, target, p, margin, weight, reduction)


def _check_rows(input: Tensor, target: Tensor, name: str, wanted: tuple[int, ...]) -> None:
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(input.shape)}"
        )
    is_one = input.ndim < 2 and target._type.numel == 1 and not wanted
    if tuple(target.shape) != tuple(wanted) and not is_one:
        raise RuntimeError(
            f"{name}: inconsistent target size, expected {list(wanted)} but got "
            f"{list(target.shape)}"
        )


@planned
@in_float32
def _multi_margin_loss(
    input: Tensor, target: Tensor, power: int, margin: float, weight: Tensor | None, reduction: str
) -> Tensor:
    input = input if input.ndim else m.unsqueeze(input, 0)
    classes = input.shape[-1]
    rows = m.reshape(target, input.shape[:-1])
    at = m.unsqueeze(rows, -1)
    own = apply(p.gather, input, at, axis=input.ndim - 1)
    apart = e.add(e.sub(margin, own), input)
    wrong = e.ne(arange(classes, device=input.device), at)
    apart = e.where(e.logical_and(wrong, e.gt(apart, 0)), apart, 0)
    loss = e.mul(apart, apart) if power == 2 else apart
    if weight is not None:
        loss = e.mul(loss, m.unsqueeze(apply(p.index, weight, rows, axis=0), -1))
    return reduced(e.div(r.sum(loss, -1), classes), reduction)


@with_autocast
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over true classes i and others j of max(0, 1 - x[i] + x[j]), over all classes.

    `input` is [n, classes] or [classes]; `target`, of its shape, lists the true classes of each
    row before the first -1.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_rows(input, target, "multilabel_margin_loss", input.shape)
    if target._type.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target._type.dtype.name}")
    require_float(input, "multilabel_margin_loss")
    return _multilabel_margin_loss(input, target, reduction)


@planned
@in_float32
def _multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    if not input.ndim:
        input, target = m.unsqueeze(input, 0), m.reshape(target, (1,))
    axis, classes = input.ndim - 1, input.shape[-1]
    listed = e.eq(cumsum(cast(e.lt(target, 0), int64), axis), 0)
    at = cast(e.where(listed, target, 0), int64)
    positions = arange(classes, device=input.device)
    same = e.logical_and(e.eq(m.unsqueeze(at, -1), positions), m.unsqueeze(listed, -1))
    others = e.logical_not(r.any(same, axis))
    own = apply(p.gather, input, at, axis=axis)
    apart = e.add(e.sub(1, m.unsqueeze(own, -1)), m.unsqueeze(input, -2))
    counts = e.logical_and(m.unsqueeze(listed, -1), m.unsqueeze(others, -2))
    loss = e.where(e.logical_and(counts, e.gt(apart, 0)), apart, 0)
    return reduced(e.div(r.sum(loss, (-2, -1)), classes), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes, the last dimension, of the binary cross-entropy of sigmoid(input)."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _multilabel_soft_margin_loss(input, target, weight, reduction)


@planned
@in_float32
def _multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    input, target = promote("multilabel_soft_margin_loss", input, target)
    loss = e.neg(
        e.add(
            e.mul(target, logsigmoid(input)),
            e.mul(e.sub(1, target), logsigmoid(e.neg(input))),
        )
    )
    loss = loss if weight is None else e.mul(loss, weight)
    return reduced(e.div(r.sum(loss, -1), input.shape[-1]), reduction)
