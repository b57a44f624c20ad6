"""Embeddings: rows of a table by index, and reductions of bags of them."""

from __future__ import annotations

import math

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.composite import composite
from ..core.dispatch import apply, check_devices
from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from ..core.layouts import sparse_coo
from ..core.operands import cast, require_tensor
from ..core.sparse_tensor import make_sparse
from ..core.tensor import Tensor
from ..core.values import known_values
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import int32, int64
from . import creation
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .gather_scatter import gather, index_add, index_select
from .norms import norm
from .sorting import argsort, searchsorted


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient.

    With `max_norm`, rows that are taken and whose norm is larger are first made shorter in place.
    `scale_grad_by_freq` divides the gradient of a row by how often it is taken. With `sparse` the
    gradient is a sparse tensor, of the rows that are taken; it is dense where a compiled function
    calls backward() itself.
    """
    _check_indices(input, "embedding")
    if require_tensor(weight, "embedding").ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    padding_idx = row_of_padding(padding_idx, weight.shape[0])
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    rows = _taken(weight, input) if sparse else apply(p.index, weight, input, axis=0)
    if scale_grad_by_freq:
        rows = _with_scaled_gradient(rows, m.unsqueeze(_inverse_counts(input, weight), -1))
    if padding_idx is None:
        return rows
    is_padding = m.unsqueeze(e.eq(input, padding_idx), -1)
    return e.where(is_padding, rows.detach(), rows)


@composite("embedding")
def _taken(weight: Tensor, input: Tensor) -> Tensor:
    return apply(p.index, weight, input, axis=0)


@input_vjp(_taken, saves=(1,))
def _taken_vjp(g: Tensor, out: TensorType, weight: TensorType, input: Tensor) -> Tensor:
    elements = m.reshape(g, -1, weight.shape[1])
    if current_context().gives_sparse:
        at = m.reshape(cast(input, int64), 1, -1)
        return make_sparse(sparse_coo, (at,), elements, weight.shape, at.shape[1] < 2)
    zeros = creation.zeros(*weight.shape, dtype=g.dtype, device=g.device)
    return index_add(zeros, 0, m.reshape(input, -1), elements)


def _check_indices(input: Tensor, name: str) -> None:
    if require_tensor(input, name)._type.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input._type.dtype} instead (while checking arguments for "
            f"{name})"
        )


def row_of_padding(padding_idx: int | None, rows: int) -> int | None:
    """The row that a padding index, perhaps from the end, means."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings, got {padding_idx} for {rows} rows"
        )
    return padding_idx % rows


def shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Write rows of a norm of at most `max_norm` in the place of those that are taken."""
    with no_grad():
        at = m.reshape(input, -1)
        rows = apply(p.index, weight.detach(), at, axis=0)
        norms = norm(rows, norm_type, -1, keepdim=True)
        scale = e.where(e.gt(norms, max_norm), e.div(max_norm, e.add(norms, 1e-7)), 1.0)
        weight[at] = e.mul(rows, scale)


def _inverse_counts(input: Tensor, weight: Tensor) -> Tensor:
    """For each index, one by how often it is there."""
    at = m.reshape(input, -1)
    zeros = creation.zeros(weight.shape[0], dtype=weight.dtype, device=weight.device)
    counts = index_add(zeros, 0, at, creation.ones_like(at, dtype=weight.dtype))
    return e.reciprocal(m.reshape(index_select(counts, 0, at), input.shape))


@composite("with_scaled_gradient")
def _with_scaled_gradient(x: Tensor, scale: Tensor) -> Tensor:
    return apply(p.copy, x)


@input_vjp(_with_scaled_gradient, saves=(1,))
def _with_scaled_gradient_vjp(g: Tensor, out: TensorType, x: TensorType, scale: Tensor) -> Tensor:
    return e.mul(g, scale)


# --- bags ----------------------------------------------------------------------------------------


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of rows of `weight`, of bags of indices: (bags, features).

    Bags are the rows of a 2D `input`, or begin at `offsets` in a 1D one; with `include_last_offset`
    the last offset is where the last bag ends. Empty bags give zeros, and indices `padding_idx` are
    left out. `per_sample_weights`, for "sum" alone, are as `input`. Other options are those of
    `embedding`. `scale_grad_by_freq` counts how often a row is taken in all bags together.
    """
    _check_bags(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    _check_indices(input, "embedding_bag")
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    padding = _padding_of_bag(padding_idx, weight.shape[0])
    rows = embedding(input, weight, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    kept = None if padding is None else m.unsqueeze(e.ne(input, padding), -1)
    if per_sample_weights is not None:
        rows = e.mul(rows, m.unsqueeze(per_sample_weights, -1))
    if input.ndim == 2:
        return _of_rows(rows, kept, mode)
    assert offsets is not None
    check_devices("embedding_bag", (input._type, offsets._type))
    return _of_offsets(rows, kept, mode, _starts(offsets, input.shape[0], include_last_offset))


def _check_bags(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
    per_sample_weights: Tensor | None,
) -> None:
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim not in (1, 2):
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
            f"fixed length sequences. However, found offsets of type {type(offsets)}"
        )
    if input.ndim == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets is not None and offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is None:
        return
    if mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )
    if per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "embedding_bag: expected per_sample_weights of the dtype of weight, "
            f"{weight.dtype}, got {per_sample_weights.dtype}"
        )


def _padding_of_bag(padding_idx: int | None, rows: int) -> int | None:
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but "
            f"got {padding_idx}"
        )
    return row_of_padding(padding_idx, rows)


def _starts(offsets: Tensor, number: int, include_last: bool) -> Tensor:
    """Where bags begin among `number` indices; checked where values are known."""
    if offsets.dtype not in (int32, int64):
        raise RuntimeError(
            f"embedding_bag: expected offsets to be int32 or int64, got {offsets.dtype}"
        )
    if include_last and not offsets.shape[0]:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1, got none")
    values = known_values(offsets)
    if values:
        if values[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                f"from position 0. However, got {values[0]}"
            )
        if values[-1] > number:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {number} but got offsets[-1] "
                f"of {values[-1]}"
            )
        if values != sorted(values):
            raise RuntimeError("embedding_bag: expected offsets that do not become smaller")
    return offsets[:-1] if include_last else offsets


def _of_rows(rows: Tensor, kept: Tensor | None, mode: str) -> Tensor:
    """Of bags of one length, (bags, length, features)."""
    length = rows.shape[1]
    if mode == "max":
        if not length:
            return r.sum(rows, 1)
        known = rows.detach() if kept is None else e.where(kept, rows.detach(), -math.inf)
        found = m.squeeze(gather(rows, 1, r.argmax(known, 1, keepdim=True)), 1)
        return found if kept is None else e.where(r.any(kept, 1), found, 0.0)
    sums = r.sum(rows if kept is None else e.where(kept, rows, 0.0), 1)
    if mode == "sum":
        return sums
    if kept is None:
        return e.div(sums, length) if length else sums
    return e.div(sums, e.clamp(r.sum(kept, 1), min=1).to(sums.dtype))


def _of_offsets(rows: Tensor, kept: Tensor | None, mode: str, starts: Tensor) -> Tensor:
    """Of bags that begin at `starts` among `rows`, (indices, features)."""
    number, features = rows.shape
    bags, place = starts.shape[0], rows.device
    if not bags or not number:
        return e.add(creation.zeros(bags, features, dtype=rows.dtype, device=place), r.sum(rows))
    bag = e.sub(searchsorted(starts, creation.arange(number, device=place), right=True), 1)
    taken = creation.ones(number, 1, dtype=rows.dtype, device=place)
    taken = taken if kept is None else kept.to(rows.dtype)
    counts = index_add(creation.zeros(bags, 1, dtype=rows.dtype, device=place), 0, bag, taken)
    if mode == "max":
        return _largest(rows, kept, bag, starts, counts)
    zeros = creation.zeros(bags, features, dtype=rows.dtype, device=place)
    sums = index_add(zeros, 0, bag, rows if kept is None else e.where(kept, rows, 0.0))
    return sums if mode == "sum" else e.div(sums, e.clamp(counts, min=1))


def _largest(
    rows: Tensor, kept: Tensor | None, bag: Tensor, starts: Tensor, counts: Tensor
) -> Tensor:
    """The largest elements of each bag; of equal ones the gradient goes to the first.

    In each column elements are sorted by size, then by bag: the first of a bag is its largest.
    """
    number, features = rows.shape
    known = rows.detach() if kept is None else e.where(kept, rows.detach(), -math.inf)
    by_size = argsort(known, 0, descending=True, stable=True)
    of_bag = m.reshape(index_select(bag, 0, m.reshape(by_size, -1)), number, features)
    order = gather(by_size, 0, argsort(of_bag, 0, stable=True))
    first = index_select(order, 0, e.clamp(starts, max=number - 1))
    return e.where(e.gt(counts, 0), gather(rows, 0, first), 0.0)
