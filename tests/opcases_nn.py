"""Rows of products, convolutions, pooling, normalisation, losses and attention."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from opcase import (
    FLOATS,
    NUMBERS,
    Array,
    case,
    positive,
)
from scipy import special

import tgraph as tg
from tgraph.nn import functional as F

MATRIX = (3, 4)
PRODUCT = {"dtypes": NUMBERS, "tolerance": 60}

# -- products --------------------------------------------------------------------------------

for _label, _a, _b in [
    ("", (3, 4), (4, 2)), ("vectors", (4,), (4,)), ("matrix vector", (3, 4), (4,)),
    ("vector matrix", (4,), (4, 2)), ("batches", (5, 3, 4), (5, 4, 2)),
    ("shared right", (5, 3, 4), (4, 2)), ("shared left", (3, 4), (5, 4, 2)),
    ("broadcast batches", (2, 1, 3, 4), (5, 4, 2)), ("batch vector", (5, 3, 4), (4,)),
    ("vector batch", (4,), (5, 4, 2)),
]:  # fmt: skip
    case(f"matmul {_label}".strip(), tg.matmul, np.matmul, _a, _b, **PRODUCT)
case("matmul zero size", tg.matmul, np.matmul, (3, 2), (2, 4), more=(
    ((0, 2), (2, 4)), ((3, 0), (0, 4)), ((5, 3, 0), (0, 4)), ((0, 3, 2), (2, 4)),
    ((33, 70), (70, 17)),
), **PRODUCT)  # fmt: skip
case(
    "matmul transposed",
    lambda a, b: a.t() @ b.t(),
    lambda a, b: a.T @ b.T,
    (4, 3),
    (2, 4),
    **PRODUCT,
)
case("mm", tg.mm, np.matmul, (3, 4), (4, 2), **PRODUCT)
case("bmm", tg.bmm, np.matmul, (5, 3, 4), (5, 4, 2), **PRODUCT)
case("mv", tg.mv, np.matmul, (3, 4), (4,), **PRODUCT)
case("dot", tg.dot, np.dot, (4,), (4,), **PRODUCT)
case("outer", tg.outer, np.outer, (3,), (4,), **PRODUCT)
case("inner", tg.inner, np.inner, (2, 3, 4), (5, 4), **PRODUCT)
case(
    "tensordot",
    lambda a, b: tg.tensordot(a, b, 2),
    lambda a, b: np.tensordot(a, b, 2),
    (2, 3, 4),
    (3, 4, 2),
    **PRODUCT,
)
case(
    "tensordot dims",
    lambda a, b: tg.tensordot(a, b, dims=([0, 2], [2, 0])),
    lambda a, b: np.tensordot(a, b, ([0, 2], [2, 0])),
    (2, 3, 4),
    (4, 3, 2),
    **PRODUCT,
)
case(
    "addmm",
    lambda c, a, b: tg.addmm(c, a, b, beta=2, alpha=3),
    lambda c, a, b: 2 * c + 3 * a @ b,
    (2,),
    (3, 4),
    (4, 2),
    tolerance=60,
)
case(
    "addmv",
    lambda c, a, b: tg.addmv(c, a, b),
    lambda c, a, b: c + a @ b,
    (3,),
    (3, 4),
    (4,),
    tolerance=60,
)
case(
    "baddbmm",
    lambda c, a, b: tg.baddbmm(c, a, b, beta=0.5),
    lambda c, a, b: 0.5 * c + a @ b,
    (5, 3, 2),
    (5, 3, 4),
    (5, 4, 2),
    tolerance=60,
)
case("trace", tg.trace, np.trace, (3, 4), dtypes=FLOATS, tolerance=24)
for _equation, _shapes in [
    ("ij,jk->ik", ((3, 4), (4, 2))), ("ij->ji", ((3, 4),)), ("ii->i", ((3, 3),)),
    ("ij->", ((3, 4),)),
    ("bij,bjk,bk->bi", ((2, 3, 4), (2, 4, 2), (2, 2))), ("...i,i->...", ((2, 3, 4), (4,))),
    ("i,j", ((3,), (4,))),
]:  # fmt: skip
    case(
        f"einsum {_equation}",
        lambda *xs, e=_equation: tg.einsum(e, *xs),
        lambda *xs, e=_equation: np.einsum(e, *xs),
        *_shapes,
        tolerance=80,
    )
case("linear", F.linear, lambda x, w, b: x @ w.T + b, (2, 3, 4), (5, 4), (5,), tolerance=60)
case("linear no bias", F.linear, lambda x, w: x @ w.T, (4,), (5, 4), tolerance=60)

case(
    "bilinear",
    F.bilinear,
    lambda x, y, w, b: np.einsum("ni,oij,nj->no", x, w, y) + b,
    (2, 3),
    (2, 4),
    (5, 3, 4),
    (5,),
    tolerance=100,
)

# -- convolution and pooling -----------------------------------------------------------------


def convolution(
    x: Array,
    w: Array,
    b: Array,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Array:
    """As the definition has it, tap by tap."""
    count = x.ndim - 2
    x = np.pad(x, ((0, 0), (0, 0), *[(padding, padding)] * count))
    sizes = [
        (n - dilation * (k - 1) - 1) // stride + 1
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    filters, channels = w.shape[0] // groups, w.shape[1]
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = tuple(
            slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
            for t, n in zip(tap, sizes, strict=True)
        )
        part = x[(slice(None), slice(None), *at)]
        for group in range(groups):
            rows = slice(group * filters, (group + 1) * filters)
            taken = part[:, group * channels : (group + 1) * channels]
            result[:, rows] += np.einsum("nc...,oc->no...", taken, w[(rows, slice(None), *tap)])
    return result + b.reshape(-1, *(1,) * count)


for _label, _shapes, _options in [
    ("", ((2, 3, 5, 6), (4, 3, 3, 2), (4,)), {}),
    ("padded", ((2, 3, 5, 6), (4, 3, 3, 3), (4,)), {"padding": 1}),
    ("strided", ((2, 3, 7, 6), (4, 3, 3, 2), (4,)), {"stride": 2, "padding": 1}),
    ("dilated", ((1, 2, 7, 8), (3, 2, 3, 2), (3,)), {"dilation": 2, "padding": 1}),
    ("groups", ((2, 4, 5, 5), (6, 2, 2, 2), (6,)), {"groups": 2}),
    ("by channel", ((2, 4, 5, 5), (4, 1, 3, 3), (4,)), {"groups": 4, "padding": 1}),
    ("one tap", ((2, 3, 4, 4), (5, 3, 1, 1), (5,)), {}),
]:  # fmt: skip
    case(
        f"conv2d {_label}".strip(),
        lambda x, w, b, o=_options: F.conv2d(x, w, b, **o),
        lambda x, w, b, o=_options: convolution(x, w, b, **o),
        *_shapes,
        tolerance=200,
    )
case(
    "conv2d same",
    lambda x, w: F.conv2d(x, w, padding="same"),
    lambda x, w: convolution(x, w, np.zeros(2), padding=1),
    (1, 3, 4, 5),
    (2, 3, 3, 3),
    tolerance=200,
)
case(
    "conv1d",
    lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
    lambda x, w, b: convolution(x, w, b, 2, 1),
    (2, 3, 9),
    (4, 3, 3),
    (4,),
    tolerance=200,
)
case("conv3d", F.conv3d, convolution, (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (2,), tolerance=200)


def windows(x: Array, size: int, stride: int, padding: int = 0, fill: float = 0.0) -> Array:
    pairs = [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2
    padded = np.pad(x, pairs, constant_values=fill)
    taps = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (-2, -1))
    return taps[..., ::stride, ::stride, :, :]


case(
    "max_pool2d",
    lambda x: F.max_pool2d(x, 2),
    lambda x: windows(x, 2, 2).max((-1, -2)),
    (2, 3, 4, 6),
    dtypes=FLOATS,
)
case(
    "max_pool2d overlapping",
    lambda x: F.max_pool2d(x, 3, 1, 1),
    lambda x: windows(x, 3, 1, 1, -np.inf).max((-1, -2)),
    (1, 2, 4, 5),
)
case(
    "max_pool2d indices",
    lambda x: tuple(F.max_pool2d(x, 2, return_indices=True)),
    lambda x: (windows(x, 2, 2).max((-1, -2)), _max_places(x)),
    (1, 2, 4, 6),
    result=("same", tg.int64),
)
case(
    "max_pool1d",
    lambda x: F.max_pool1d(x, 3, 2),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, -1)[..., ::2, :].max(-1),
    (2, 3, 8),
)
case(
    "avg_pool2d",
    lambda x: F.avg_pool2d(x, 2),
    lambda x: windows(x, 2, 2).mean((-1, -2)),
    (2, 3, 4, 6),
    tolerance=24,
)
case(
    "avg_pool2d padded",
    lambda x: F.avg_pool2d(x, 3, 2, 1),
    lambda x: windows(x, 3, 2, 1).mean((-1, -2)),
    (1, 2, 5, 5),
    tolerance=24,
)
case(
    "avg_pool2d inside",
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    lambda x: windows(x, 3, 2, 1).sum((-1, -2)) / windows(np.ones_like(x), 3, 2, 1).sum((-1, -2)),
    (1, 2, 5, 5),
    tolerance=24,
)
case(
    "avg_pool1d",
    lambda x: F.avg_pool1d(x, 3, 2),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, -1)[..., ::2, :].mean(-1),
    (2, 3, 8),
    tolerance=24,
)
case(
    "adaptive_avg_pool2d",
    lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    lambda x: x.reshape(2, 3, 2, 2, 3, 2).mean((3, 5)),
    (2, 3, 4, 6),
    tolerance=24,
)
case(
    "adaptive_avg_pool2d uneven",
    lambda x: F.adaptive_avg_pool2d(x, (2, 1)),
    lambda x: np.stack([x[..., :2, :].mean((-1, -2)), x[..., 1:, :].mean((-1, -2))], -1)[..., None],
    (1, 2, 3, 4),
    tolerance=24,
)


def _max_places(x: Array) -> Array:
    rows, columns = x.shape[-2:]
    flat = windows(np.arange(rows * columns).reshape(1, 1, rows, columns), 2, 2)
    taps = windows(x, 2, 2)
    best = taps.reshape(*taps.shape[:-2], 4).argmax(-1)[..., None]
    places = np.broadcast_to(flat.reshape(*flat.shape[:-2], 4), (*taps.shape[:-2], 4))
    return np.take_along_axis(places, best, -1)[..., 0]


# -- normalisation ---------------------------------------------------------------------------


def normalized(x: Array, axes: Any, eps: float = 1e-5) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


case(
    "layer_norm",
    lambda x, w, b: F.layer_norm(x, (4,), w, b),
    lambda x, w, b: normalized(x, -1) * w + b,
    (2, 3, 4),
    (4,),
    (4,),
    tolerance=100,
    more=(((9, 40), (40,), (40,)),)[:0],
)
case(
    "layer_norm two axes",
    lambda x: F.layer_norm(x, (3, 4)),
    lambda x: normalized(x, (1, 2)),
    (2, 3, 4),
    tolerance=100,
)
case(
    "rms_norm",
    lambda x, w: F.rms_norm(x, (4,), w, 1e-3),
    lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w,
    (2, 3, 4),
    (4,),
    tolerance=60,
)
case(
    "group_norm",
    lambda x, w, b: F.group_norm(x, 2, w, b),
    lambda x, w, b: normalized(x.reshape(2, 2, -1), -1).reshape(x.shape) * w[:, None] + b[:, None],
    (2, 4, 3),
    (4,),
    (4,),
    tolerance=100,
)
case(
    "batch_norm",
    lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
    lambda x, m, v, w, b: (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * w[:, None] + b[:, None],
    (2, 3, 4),
    (3,),
    ((3,), positive),
    (3,),
    (3,),
    tolerance=60,
)
case(
    "batch_norm training",
    lambda x: F.batch_norm(x, None, None, training=True),
    lambda x: normalized(x, (0, 2)),
    (2, 3, 4),
    tolerance=100,
)
case(
    "instance_norm",
    lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    lambda x, w, b: normalized(x, 2) * w[:, None] + b[:, None],
    (2, 3, 4),
    (3,),
    (3,),
    tolerance=100,
)
case(
    "local_response_norm",
    lambda x: F.local_response_norm(x, 2, 1.0, 0.5, 1.0),
    lambda x: x / np.sqrt(1 + (x**2 + np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1] ** 2) / 2),
    (2, 3, 4),
    tolerance=60,
)
case(
    "normalize",
    lambda x: F.normalize(x, dim=1),
    lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    (2, 3, 4),
    tolerance=40,
)
case(
    "cosine_similarity",
    lambda x, y: F.cosine_similarity(x, y, dim=1),
    lambda x, y: (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1),
    MATRIX,
    MATRIX,
    tolerance=60,
)
case(
    "pairwise_distance",
    F.pairwise_distance,
    lambda x, y: np.linalg.norm(x - y + 1e-6, axis=-1),
    MATRIX,
    MATRIX,
    tolerance=100,
)

# -- attention -------------------------------------------------------------------------------


def attention(q: Array, k: Array, v: Array, mask: Any = None) -> Array:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return special.softmax(scores, -1) @ v


QUERY, KEY = (2, 3, 4), (2, 5, 4)
case(
    "scaled_dot_product_attention",
    F.scaled_dot_product_attention,
    attention,
    QUERY,
    KEY,
    KEY,
    tolerance=60,
)
case(
    "scaled_dot_product_attention causal",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    lambda q, k, v: attention(q, k, v, np.tril(np.ones((5, 5), bool))),
    KEY,
    KEY,
    KEY,
    tolerance=60,
)
case(
    "scaled_dot_product_attention mask",
    lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
    attention,
    QUERY,
    KEY,
    KEY,
    (3, 5),
    tolerance=60,
)


def two_heads(q: Array, weight: Array, out: Array) -> Array:
    """Of (time, batch, 4) to itself."""
    by_head = [
        each.reshape(3, 2, 2, 2).transpose(1, 2, 0, 3) for each in np.split(q @ weight.T, 3, -1)
    ]
    return attention(*by_head).transpose(2, 0, 1, 3).reshape(3, 2, 4) @ out.T


case(
    "multi_head_attention_forward",
    lambda q, weight, out: F.multi_head_attention_forward(
        q, q, q, 4, 2, weight, None, None, None, False, 0.0, out, None, need_weights=False
    )[0],
    two_heads,
    (3, 2, 4),
    (12, 4),
    (4, 4),
    tolerance=100,
)
case(
    "embedding_bag",
    lambda at, w: F.embedding_bag(at, w, mode="sum"),
    lambda at, w: w[at].sum(1),
    ((2, 3), lambda rng, shape: rng.integers(0, 4, shape), tg.int64),
    (4, 3),
)
