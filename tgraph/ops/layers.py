"""Layers of neural networks as functions: linear, convolution, normalisation, attention.

`tgraph.nn.functional` offers these together with the activations and the losses.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.inplace import applied
from ..core.operands import require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_, float32, int32, int64
from . import elementwise as e
from . import gather_scatter
from . import linalg as la
from . import movement as m
from . import random as rng
from . import reductions as r
from .activations import softmax
from .batch_normalization import batch_norm, instance_norm
from .convolution import conv1d, conv2d, conv3d
from .creation import tril
from .normalization import (
    cosine_similarity,
    group_norm,
    layer_norm,
    local_response_norm,
    normalize,
    pairwise_distance,
    rms_norm,
)
from .pooling import adaptive_avg_pool2d, avg_pool1d, avg_pool2d, max_pool1d, max_pool2d, pad

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "conv1d",
    "conv2d",
    "conv3d",
    "cosine_similarity",
    "dropout",
    "dropout2d",
    "embedding",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "linear",
    "local_response_norm",
    "max_pool1d",
    "max_pool2d",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "rms_norm",
    "scaled_dot_product_attention",
]


@planned
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`; weight is [out, in]."""
    product = la.matmul(input, m.t(weight))
    return product if bias is None else e.add(product, bias)


@planned
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for every output o; weight is [out, in1, in2]."""
    result = la.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else e.add(result, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient."""
    if require_tensor(input, "embedding")._type.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input._type.dtype} instead (while checking arguments for "
            "embedding)"
        )
    rows = apply(p.index, weight, input, axis=0)
    if padding_idx is None:
        return rows
    at = padding_idx % weight._type.shape[0]
    is_padding = m.unsqueeze(e.eq(input, at), -1)
    return e.where(is_padding, rows.detach(), rows)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """See `tgraph.one_hot`."""
    return gather_scatter.one_hot(tensor, num_classes)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, elements become 0 with probability `p` and the others grow by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    return applied(_dropped, input, "dropout_", inplace, input._type.shape, p)


@planned
def _dropped(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    keep = e.ge(rng.uniform(shape, float32, device=x._type.device), p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return e.where(keep, e.mul(x, scale), 0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels: the first two dimensions (one of an unbatched input)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = 1 if input.ndim == 3 else 2
    shape = (*input.shape[:kept], *(1,) * (input.ndim - kept))
    return applied(_dropped, input, "dropout2d_", inplace, shape, p)


def _safe_softmax(scores: Tensor) -> Tensor:
    """The softmax along the last axis, zeros where all scores are -inf."""
    if not scores._type.shape[-1]:
        return softmax(scores, -1)
    hidden = e.eq(r.amax(scores, -1, True), -math.inf)
    return e.where(hidden, 0.0, softmax(e.where(hidden, 0.0, scores), -1))


@planned
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value over the last two dimensions.

    A boolean mask says which keys take part, a float one is added; `is_causal` masks keys that come
    later than the query. A query for which a mask leaves no key gets zeros. Source: Vaswani et al.,
    "Attention Is All You Need" (2017).
    """
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (gather_scatter.repeat_interleave(each, times, -3) for each in (key, value))
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.inf
    scores = la.matmul(e.mul(query, scale), m.transpose(key, -2, -1))
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("explicit attn_mask should not be set when is_causal=True")
        one = constant(True, bool_, scores._type.device)
        ones = apply(p.broadcast, one, shape=scores._type.shape[-2:])
        attn_mask = tril(ones)
    if attn_mask is not None:
        is_choice = attn_mask._type.dtype is bool_
        scores = e.where(attn_mask, scores, -math.inf) if is_choice else e.add(scores, attn_mask)
    weights = softmax(scores, -1) if attn_mask is None or is_causal else _safe_softmax(scores)
    return la.matmul(dropout(weights, dropout_p) if dropout_p else weights, value)
