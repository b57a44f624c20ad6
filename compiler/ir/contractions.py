"""Matrix products, convolutions and attention.

- `matmul(a, b; transpose_a, transpose_b)`: a is [..., m, k] (or [..., k, m] when transposed),
  b is [..., k, n]; leading axes broadcast; same dtype; half types accumulate in float32;
- `convolution(x, w; strides, padding, dilation, input_dilation, groups)`: x is
  [n, c, *spatial], w is [o, c / groups, *window]; a cross-correlation as in every
  neural-network library; `padding` is a (low, high) pair per spatial axis, `input_dilation`
  spreads the input by zeros, which makes the gradient of a convolution a convolution;
- `attention(query, key, value, *masks; scale, bias, mask, fill, diagonal, zeros)`:
  softmax(scale query keyᵀ) value, where query is [..., m, d], key [..., n, d] and value
  [..., n, e]; leading axes broadcast. With `bias` the first of the masks is a number added to each
  score; with `mask` the last of them is false where a score is `fill` instead, and unless
  `diagonal` is None those of a query i for the keys behind i + diagonal are -inf. Where all scores
  of a query are -inf its weights are NaN, or 0 with `zeros`. What gives the same result step by
  step is made of other primitives: only a pass writes this one, and the next two;
- `attention_rows(...)`, of the same: the result of attention, and of each query the largest score
  and what the exponentials of the differences from it are multiplied by to be weights, [..., 2, m];
- `attention_gradient(query, key, value, gradient, rows, sums, *masks; parts, ...)`: the gradients
  of the first three where `gradient` is that of the result. `rows` are those of attention_rows,
  `sums` [..., 1, m] those of result times gradient. All have the leading axes of the result. That
  of the query comes in so many `parts`, along a first axis, which are to be added up.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import bool_
from .primitive import Attrs, Family, Primitive, register
from .shapes import broadcast, window_count
from .types import IRTypeError, TensorType


def _infer_matmul(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    a, b = types
    if a.dtype is not b.dtype or a.dtype is bool_ or a.device != b.device:
        raise IRTypeError(f"matmul expected two matrices of one number type, got {a} and {b}")
    if a.ndim < 2 or b.ndim < 2:
        raise IRTypeError(f"matmul expected at least 2 axes, got {a} and {b}")
    m, k = a.shape[-2:] if not attrs["transpose_a"] else a.shape[:-3:-1]
    k_b, n = b.shape[-2:] if not attrs["transpose_b"] else b.shape[:-3:-1]
    if k != k_b:
        raise IRTypeError(f"matmul cannot contract {a} with {b}: sizes {k} and {k_b} differ")
    return a.with_shape((*broadcast(a.shape[:-2], b.shape[:-2]), m, n))


def convolved_size(
    size: int,
    window: int,
    stride: int,
    padding: tuple[int, int],
    dilation: int,
    input_dilation: int,
) -> int:
    """The size of one spatial axis after a convolution."""
    spread = size + (input_dilation - 1) * max(size - 1, 0)
    return window_count(spread + sum(padding), window, stride, dilation)


def _infer_convolution(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    x, w = types
    groups = attrs["groups"]
    if x.dtype is not w.dtype or not x.dtype.is_floating_point:
        raise IRTypeError(f"convolution expected one float type, got {x} and {w}")
    if x.ndim != w.ndim or x.ndim < 3:
        raise IRTypeError(f"convolution expected [n, c, ...] and [o, c, ...], got {x} and {w}")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise IRTypeError(f"convolution with groups={groups}: channels of {x} do not fit {w}")
    spatial = map(
        convolved_size,
        x.shape[2:],
        w.shape[2:],
        attrs["strides"],
        attrs["padding"],
        attrs["dilation"],
        attrs["input_dilation"],
    )
    return x.with_shape((x.shape[0], w.shape[0], *spatial))


def _infer_attention(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    query, key, value, *masks = types
    if len(masks) != attrs["bias"] + attrs["mask"]:
        raise IRTypeError(f"attention with {len(masks)} masks does not fit {dict(attrs)}")
    if any(each.dtype is not query.dtype for each in (key, value, *masks[: attrs["bias"]])):
        raise IRTypeError(f"attention expected operands of one type, got {query}, {key}, {value}")
    if attrs["mask"] and masks[-1].dtype is not bool_:
        raise IRTypeError(f"attention expected a boolean mask, got {masks[-1]}")
    (m, width), (n, key_width), (values, value_width) = (each.shape[-2:] for each in types[:3])
    if width != key_width or n != values:
        raise IRTypeError(f"attention cannot join {query}, {key} and {value}")
    scores = (*broadcast(query.shape[:-2], key.shape[:-2]), m, n)
    for each in masks:
        scores = broadcast(scores, each.shape)
    if scores[-2:] != (m, n):
        raise IRTypeError(f"attention's masks go beyond its {m} queries and {n} keys")
    return query.with_shape((*broadcast(scores[:-2], value.shape[:-2]), m, value_width))


def _infer_attention_rows(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    result = _infer_attention(types, attrs)
    *lead, queries, _ = result.shape
    return result, result.with_shape((*lead, 2, queries))


def _infer_attention_gradient(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    query, key, value, gradient, rows, sums, *masks = types
    result = _infer_attention([query, key, value, *masks], attrs)
    *lead, queries, _ = result.shape
    if gradient != result:
        raise IRTypeError(f"attention_gradient expected {result}, got a gradient {gradient}")
    if (rows.shape, sums.shape) != ((*lead, 2, queries), (*lead, 1, queries)):
        raise IRTypeError(f"attention_gradient of {gradient} does not fit {rows} and {sums}")
    return (
        query.with_shape((attrs["parts"], *lead, *query.shape[-2:])),
        key.with_shape((*lead, *key.shape[-2:])),
        value.with_shape((*lead, *value.shape[-2:])),
    )


matmul = register(Primitive("matmul", Family.CONTRACTION, _infer_matmul, arity=2))
convolution = register(Primitive("convolution", Family.CONTRACTION, _infer_convolution, arity=2))
attention = register(Primitive("attention", Family.CONTRACTION, _infer_attention))
attention_rows = register(Primitive("attention_rows", Family.SEVERAL, _infer_attention_rows))
attention_gradient = register(
    Primitive("attention_gradient", Family.SEVERAL, _infer_attention_gradient)
)
