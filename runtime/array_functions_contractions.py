"""Products, convolutions and attention over an array module; half types compute in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function, compute_dtype, quiet, quietly
from .array_functions_movement import unfold

Ints = tuple[int, ...]


def _matmul(xp: Any, a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Array:
    if xp is not np:
        # Imported here, as most programs use no GPU.
        from .cuda import eager_matmul

        product = eager_matmul.matmul(a, b, transpose_a, transpose_b)
        if product is not None:
            return product
    dtype = a.dtype
    wide = compute_dtype(dtype)
    if wide is not dtype:
        product = _matmul(xp, a.astype(wide), b.astype(wide), transpose_a, transpose_b)
        return quietly(product.astype, dtype)
    if transpose_a:
        a = a.swapaxes(-1, -2)
    if transpose_b:
        b = b.swapaxes(-1, -2)
    a, b = _for_blas(xp, a), _for_blas(xp, b)
    if a.ndim > 2 and b.ndim == 2 and (a.flags.c_contiguous or xp is not np):
        # One product of all rows instead of one per leading index.
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return quietly(xp.matmul, rows, b).reshape((*a.shape[:-1], b.shape[-1]))
    return quietly(xp.matmul, a, b)


def _for_blas(xp: Any, a: Array) -> Array:
    """`a`, copied where neither of its last axes is dense: NumPy would not call BLAS for it."""
    if a.flags.c_contiguous:
        return a
    step, inner = a.strides[-2:]
    item = a.itemsize
    if inner == item and step >= item * a.shape[-1]:
        return a
    if step == item and inner >= item * a.shape[-2]:
        return a
    return xp.ascontiguousarray(a) if a.dtype.kind in "fcV" else a


@quiet
def _convolution(
    xp: Any,
    x: Array,
    w: Array,
    strides: Ints,
    padding: tuple[tuple[int, int], ...],
    dilation: Ints,
    input_dilation: Ints,
    groups: int,
) -> Array:
    dtype = x.dtype
    wide = compute_dtype(dtype)
    x, w = x.astype(wide, copy=False), w.astype(wide, copy=False)
    if x.size == 0 or w.size == 0:
        sizes = map(
            _convolved, x.shape[2:], w.shape[2:], strides, padding, dilation, input_dilation
        )
        return xp.zeros((x.shape[0], w.shape[0], *sizes), dtype)
    x = _spread(xp, x, padding, input_dilation)
    spatial = x.ndim - 2
    windows = unfold(xp, x, tuple(range(2, x.ndim)), w.shape[2:], strides, dilation)
    batch = x.shape[0]
    out = windows.shape[2 : 2 + spatial]
    taps = math.prod(w.shape[1:])
    # [c, *window, n, *out]: the longest contiguous runs are the rows of the output.
    order = (1, *range(2 + spatial, 2 + 2 * spatial), 0, *range(2, 2 + spatial))
    columns = windows.transpose(order).reshape(groups, taps, batch * math.prod(out))
    kernels = w.reshape(groups, w.shape[0] // groups, taps)
    result = xp.matmul(kernels, columns).reshape(w.shape[0], batch, *out).swapaxes(0, 1)
    return result.astype(dtype, order="C")


def _convolved(
    size: int, window: int, stride: int, padding: tuple[int, int], dilation: int, spread: int
) -> int:
    """The size of one spatial axis of the result."""
    whole = size + (spread - 1) * max(size - 1, 0) + sum(padding)
    return max(0, (whole - dilation * (window - 1) - 1) // stride + 1)


def _spread(xp: Any, x: Array, padding: tuple[tuple[int, int], ...], input_dilation: Ints) -> Array:
    """`x` with zeros between and around; negative padding cuts off."""
    sizes = [
        size + (between - 1) * max(size - 1, 0)
        for size, between in zip(x.shape[2:], input_dilation)
    ]
    shape = [max(size + low + high, 0) for size, (low, high) in zip(sizes, padding)]
    if shape == list(x.shape[2:]) and not any(map(any, padding)):
        return x
    result = xp.zeros((*x.shape[:2], *shape), x.dtype)
    source, target = [slice(None)] * 2, [slice(None)] * 2
    for count, wide, step, (low, _) in zip(x.shape[2:], shape, input_dilation, padding):
        first = max(-(low // step), 0)  # the first and last element that stay inside
        last = min((wide - 1 - low) // step, count - 1)
        kept = max(last - first + 1, 0)
        start = first * step + low
        source.append(slice(first, first + kept))
        target.append(slice(start, start + kept * step, step) if kept else slice(0, 0))
    result[tuple(target)] = x[tuple(source)]
    return result


@quiet
def _attention(
    xp: Any, query: Array, key: Array, value: Array, *masks: Array, zeros: bool, **attrs: Any
) -> Array:
    return _attention_rows(xp, query, key, value, *masks, zeros=zeros, **attrs)[0]


@quiet
def _attention_rows(
    xp: Any, query: Array, key: Array, value: Array, *masks: Array, zeros: bool, **attrs: Any
) -> tuple[Array, Array]:
    scores, _ = _scores(xp, query, key, *masks, **attrs)
    top = scores.max(-1, keepdims=True)
    hidden = top == -math.inf
    top = xp.where(hidden, scores.dtype.type(0), top)
    weights = xp.exp(scores - top)
    share = 1 / weights.sum(-1, keepdims=True)
    share = xp.where(hidden & zeros, scores.dtype.type(0), share)
    result = _matmul(xp, weights * share, value, False, False)
    kept = xp.stack([top[..., 0], share[..., 0]], -2)
    return result, xp.broadcast_to(kept, (*result.shape[:-2], *kept.shape[-2:]))


@quiet
def _attention_gradient(
    xp: Any,
    query: Array,
    key: Array,
    value: Array,
    gradient: Array,
    rows: Array,
    sums: Array,
    *masks: Array,
    zeros: bool,
    scale: float,
    parts: int,
    **attrs: Any,
) -> tuple[Array, Array, Array]:
    scores, seen = _scores(xp, query, key, *masks, scale=scale, **attrs)
    top, share = rows[..., 0, :, None], rows[..., 1, :, None]
    weights = xp.exp(scores - top) * share
    change = weights * (_matmul(xp, gradient, value, False, True) - sums.swapaxes(-1, -2))
    kept = seen & ~((share == 0) & zeros)
    change = xp.where(kept, change * change.dtype.type(scale), change.dtype.type(0))
    of_query = _matmul(xp, change, key, False, False)
    others = xp.zeros((parts - 1, *of_query.shape), of_query.dtype)
    return (
        xp.concatenate([of_query[None], others]),
        _matmul(xp, change, query, True, False),
        _matmul(xp, weights, gradient, True, False),
    )


def _scores(
    xp: Any,
    query: Array,
    key: Array,
    *masks: Array,
    scale: float,
    bias: bool,
    mask: bool,
    fill: float,
    diagonal: int | None,
) -> tuple[Array, Array]:
    """Scores, and which of them are not hidden."""
    scores = _matmul(xp, query * query.dtype.type(scale), key, False, True)
    if bias:
        scores = scores + masks[0]
    seen = xp.ones((), bool)
    if mask:
        seen = masks[-1]
        scores = xp.where(seen, scores, scores.dtype.type(fill))
    if diagonal is not None:
        queries, keys = (xp.arange(size) for size in scores.shape[-2:])
        near = keys <= queries[:, None] + diagonal
        scores = xp.where(near, scores, scores.dtype.type(-math.inf))
        seen = seen & near
    return scores, seen


FUNCTIONS: dict[str, Function] = {
    "matmul": _matmul,
    "convolution": _convolution,
    "attention": _attention,
    "attention_rows": _attention_rows,
    "attention_gradient": _attention_gradient,
}
