"""Attention: a mean of values, weighted by how keys fit queries."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..compiler.ir import primitives as p
from ..core.argument_types import Flag
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, bool_
from . import elementwise as e
from . import gather_scatter
from . import linalg as la
from . import movement as m
from . import reductions as r
from .activations import softmax
from .concatenation import cat
from .creation import zeros
from .diagonals import tril
from .dropout import dropout
from .linear_maps import linear
from .padding import pad


def _safe_softmax(scores: Tensor) -> Tensor:
    """The softmax along the last axis, zeros where all scores are -inf."""
    if not scores._type.shape[-1]:
        return softmax(scores, -1)
    hidden = e.eq(r.amax(scores, -1, True), -math.inf)
    return e.where(hidden, 0.0, softmax(e.where(hidden, 0.0, scores), -1))


@with_autocast
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
    later than the query. A query for which a mask leaves no key gets zeros. Weights are dropped
    with `dropout_p`, always. With `enable_gqa` several heads of the query (dimension -3) share one
    of key and value. Source: Vaswani et al., "Attention Is All You Need" (2017).
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if enable_gqa:
        _check_heads(query, key, value)
    return _scaled(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _check(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, causal: bool
) -> None:
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    dtype = query.dtype
    if key.dtype is not dtype or value.dtype is not dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if mask is None:
        return
    if causal:
        raise RuntimeError("explicit attn_mask should not be set when is_causal=True")
    if mask.dtype is not bool_ and mask.dtype is not dtype and mask.dtype.name != "float32":
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {mask.dtype} and query.dtype: {dtype} instead."
        )


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    heads = [each.shape[-3] if each.ndim > 2 else 1 for each in (query, key, value)]
    if any(not each or heads[0] % each for each in heads[1:]):
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{heads[1]} and {heads[2]} for {heads[0]}"
        )


@planned
def _scaled(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    if enable_gqa and query.ndim > 2:
        heads = query.shape[-3]
        key, value = (
            gather_scatter.repeat_interleave(each, heads // each.shape[-3], -3)
            for each in (key, value)
        )
    return attention(query, key, value, mask, dropout_p, is_causal, scale)[0]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    safe: bool = True,
) -> tuple[Tensor, Tensor]:
    """What all attention is: the result, and the weights.

    Unless `safe`, a query for which the mask leaves no key gets NaN.
    """
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.inf
    scores = la.matmul(e.mul(query, scale), m.transpose(key, -2, -1))
    if is_causal:
        one = constant(True, bool_, scores._type.device)
        mask = tril(apply(p.broadcast, one, shape=scores._type.shape[-2:]))
    if mask is not None:
        is_choice = mask._type.dtype is bool_
        scores = (
            e.where(mask, scores, -math.inf)
            if is_choice
            else e.add(scores, mask.to(scores._type.dtype))
        )
    usual = mask is None or is_causal or not safe
    weights = softmax(scores, -1) if usual else _safe_softmax(scores)
    weights = dropout(weights, dropout_p) if dropout_p else weights
    return la.matmul(weights, value), weights


# --- several heads --------------------------------------------------------------------------------


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: Flag,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: Flag = True,
    key_padding_mask: Tensor | None = None,
    need_weights: Flag = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: Flag = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: Flag = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `MultiheadAttention` computes: the result, and with `need_weights` the weights.

    Query, key and value are (time, batch, features), or (time, features), and projected by
    `in_proj_weight`, or the three `..._proj_weight`. Masks that are boolean are True where a key
    does not take part.
    """
    is_batched = _check_dimensions(query, key, value, key_padding_mask, attn_mask, num_heads)
    shared = 3 if query is key and key is value else 2 if key is value else 1
    if not is_batched:
        query, key, value = (m.unsqueeze(each, 1) for each in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else m.unsqueeze(key_padding_mask, 0)
    key_padding_mask = canonical_mask(
        key_padding_mask, "key_padding_mask", dtype_of(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    is_causal = bool(is_causal) and key_padding_mask is None and not need_weights
    attn_mask = None if is_causal else canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
    _check_features(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    weights = q_proj_weight, k_proj_weight, v_proj_weight
    if use_separate_proj_weight:
        _check_projections(query, key, value, weights, in_proj_bias)
    elif in_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    _check_mask(attn_mask, query, key, num_heads)
    _check_more(bias_k, bias_v, static_k, static_v, embed_dim_to_check)
    extra = (bias_k is not None) + bool(add_zero_attn)
    if key_padding_mask is not None:
        wanted = query.shape[1], (key if static_k is None else m.transpose(static_k, 0, 1)).shape[0]
        for axis, size in enumerate(wanted):
            if key_padding_mask.shape[axis] != size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{axis}] to be {size}, but got "
                    f"{key_padding_mask.shape[axis]}"
                )
    output, shown = _multi_head(
        query, key, value, in_proj_weight, in_proj_bias, *weights, bias_k, bias_v, static_k,
        static_v, out_proj_weight, out_proj_bias, key_padding_mask, attn_mask, num_heads,
        bool(add_zero_attn), dropout_p if training else 0.0, is_causal, bool(need_weights),
        bool(average_attn_weights), 1 if use_separate_proj_weight else shared, extra,
    )  # fmt: skip
    shown = shown if need_weights else None
    if is_batched:
        return output, shown
    return m.squeeze(output, 1), None if shown is None else m.squeeze(shown, 0)


@planned
def _multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    in_weight: Tensor | None,
    in_bias: Tensor | None,
    q_weight: Tensor | None,
    k_weight: Tensor | None,
    v_weight: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    static_k: Tensor | None,
    static_v: Tensor | None,
    out_weight: Tensor,
    out_bias: Tensor | None,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    heads: int,
    add_zero_attn: bool,
    dropout_p: float,
    is_causal: bool,
    need_weights: bool,
    average: bool,
    shared: int,
    extra: int,
) -> tuple[Tensor, ...]:
    """The result; and the weights, where they are needed.

    Of the inputs the last `shared` are the same; `extra` keys come behind those of the input.
    """
    times, batch, features = query._type.shape
    separate = None if in_weight is not None else (q_weight, k_weight, v_weight)
    q, k, v = _projected((query, key, value), in_weight, separate, in_bias, shared)
    if bias_k is not None and bias_v is not None:
        k, v = (
            cat([each, apply(p.broadcast, bias, shape=(1, batch, features))], 0)
            for each, bias in ((k, bias_k), (v, bias_v))
        )
    q, k, v = (_by_head(each, heads) for each in (q, k, v))
    if static_k is not None:
        k = m.reshape(static_k, batch, heads, *static_k._type.shape[1:])
    if static_v is not None:
        v = m.reshape(static_v, batch, heads, *static_v._type.shape[1:])
    if add_zero_attn:
        k, v = (
            cat([each, zeros((batch, heads, 1, each._type.shape[-1]), dtype=each.dtype,
                             device=each.device)], 2)
            for each in (k, v)
        )  # fmt: skip
    mask = _merged(key_padding_mask, attn_mask, batch, heads, extra)
    result, weights = attention(q, k, v, mask, dropout_p, is_causal, safe=not need_weights)
    rows = m.reshape(m.permute(result, 2, 0, 1, 3), times, batch, features)
    output = linear(rows, out_weight, out_bias)
    if not need_weights:
        return output, output.detach()
    return output, r.mean(weights, 1) if average else weights


def _projected(
    inputs: tuple[Tensor, Tensor, Tensor],
    weight: Tensor | None,
    separate: Any,
    bias: Tensor | None,
    shared: int,
) -> tuple[Tensor, ...]:
    """Query, key and value for all heads: one product for those that are the same."""
    biases = (None,) * 3 if bias is None else m.chunk(bias, 3)
    if weight is None:
        return tuple(map(linear, inputs, separate, biases))
    if shared == 3:
        return m.chunk(linear(inputs[0], weight, bias), 3, -1)
    if shared == 2:
        size = weight._type.shape[0] // 3
        first, rest = m.split(weight, [size, 2 * size])
        of_rest = None if bias is None else m.split(bias, [size, 2 * size])[1]
        q = linear(inputs[0], first, biases[0])
        return q, *m.chunk(linear(inputs[1], rest, of_rest), 2, -1)
    return tuple(map(linear, inputs, m.chunk(weight, 3), biases))


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(time, batch, features) as (batch, heads, time, features of one head)."""
    times, batch, features = x._type.shape
    return m.permute(m.reshape(x, times, batch, heads, features // heads), 1, 2, 0, 3)


def _merged(
    key_padding_mask: Tensor | None, attn_mask: Tensor | None, batch: int, heads: int, extra: int
) -> Tensor | None:
    """What to add to scores (batch, heads, query, key); `extra` keys always take part."""
    if attn_mask is not None:
        attn_mask = pad(attn_mask, (0, extra)) if extra else attn_mask
        if attn_mask.ndim == 3:
            attn_mask = m.reshape(attn_mask, batch, heads, *attn_mask._type.shape[1:])
    if key_padding_mask is None:
        return attn_mask
    padding = pad(key_padding_mask, (0, extra)) if extra else key_padding_mask
    padding = m.reshape(padding, batch, 1, 1, padding._type.shape[1])
    return padding if attn_mask is None else e.add(attn_mask, padding)


# --- checks ---------------------------------------------------------------------------------------


def dtype_of(mask: Tensor | None) -> DType | None:
    return None if mask is None else mask.dtype


def canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
) -> Tensor | None:
    """A mask to add to scores: -inf where a boolean one is True."""
    if mask is None:
        return None
    is_float = mask.dtype.is_floating_point
    if mask.dtype is not bool_ and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=3,
        )
    if is_float:
        return mask
    zero = zeros((), dtype=target_type, device=mask.device)
    return e.where(mask, -math.inf, zero)


def _check_dimensions(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch."""
    dims = query.ndim
    if dims not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
        )
    text = f"For {'batched' if dims == 3 else 'unbatched'} ({dims}-D) `query`, expected"
    if key.ndim != dims or value.ndim != dims:
        raise AssertionError(
            f"{text} `key` and `value` to be {dims}-D but found {key.ndim}-D and {value.ndim}-D "
            "tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != dims - 1:
        raise AssertionError(
            f"{text} `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(
            f"{text} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor "
            "instead"
        )
    if dims == 2 and attn_mask is not None and attn_mask.ndim == 3:
        expected = num_heads, query.shape[0], key.shape[0]
        if attn_mask.shape != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
            )
    return dims == 3


def _check_features(
    query: Tensor, key: Tensor, value: Tensor, features: int, heads: int, is_separate: bool
) -> None:
    found = query.shape[2]
    if found != features:
        raise AssertionError(f"was expecting embedding dimension of {features}, but got {found}")
    if found % heads:
        raise AssertionError(f"embed_dim {found} not divisible by num_heads {heads}")
    if is_separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not is_separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_projections(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None
) -> None:
    features = query.shape[2]
    for name, x, weight in zip(("query", "key", "value"), (query, key, value), weights):
        if weight is None:
            raise AssertionError(
                f"use_separate_proj_weight is True but {name[0]}_proj_weight is None"
            )
        expected = features, x.shape[2]
        if weight.shape != expected:
            raise AssertionError(
                f"expecting {name} weights shape of {expected}, but got {weight.shape}"
            )
    if bias is not None and bias.shape != (3 * features,):
        raise AssertionError(
            f"expecting a bias of shape {(3 * features,)} for query, key and value, but got "
            f"{bias.shape}"
        )


def _check_mask(mask: Tensor | None, query: Tensor, key: Tensor, heads: int) -> None:
    if mask is None:
        return
    sizes = query.shape[0], key.shape[0]
    expected = sizes if mask.ndim == 2 else (query.shape[1] * heads, *sizes)
    if mask.shape != expected:
        raise RuntimeError(
            f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}."
        )


def _check_more(
    bias_k: Tensor | None, bias_v: Tensor | None, static_k: Tensor | None,
    static_v: Tensor | None, features: int,
) -> None:  # fmt: skip
    if (bias_k is None) != (bias_v is None):
        one, other = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{one} is set but {other} is None")
    if bias_k is not None and static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if bias_k is not None and static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    for name, each in (("bias_k", bias_k), ("bias_v", bias_v)):
        fits = ([features], [1, features], [1, 1, features])
        if each is not None and list(each.shape) not in fits:
            raise RuntimeError(
                f"multi_head_attention_forward(): expected {name} to be [1, 1, {features}], got "
                f"{list(each.shape)}"
            )
