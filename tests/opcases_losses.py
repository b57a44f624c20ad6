"""Rows of losses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from opcase import Array, below, case, positive, share, signs
from scipy import special

import tgraph as tg
from tgraph.nn import functional as F

MATRIX = (3, 4)

REDUCED = {"mean": np.mean, "sum": np.sum, "none": lambda loss: loss}


def loss(name: str, function: Any, reference: Any, *arguments: Any, **options: Any) -> None:
    """Rows for each way to reduce."""
    for how, reduce in REDUCED.items():
        case(
            f"{name} {how}",
            lambda *xs, r=how: function(*xs, reduction=r),
            lambda *xs, reduce=reduce: reduce(reference(*xs)),
            *arguments,
            **{"tolerance": 60, **options},
        )


loss("mse_loss", F.mse_loss, lambda x, y: (x - y) ** 2, MATRIX, MATRIX)
loss("l1_loss", F.l1_loss, lambda x, y: np.abs(x - y), MATRIX, MATRIX)
loss(
    "smooth_l1_loss",
    F.smooth_l1_loss,
    lambda x, y: np.where(np.abs(x - y) < 1, 0.5 * (x - y) ** 2, np.abs(x - y) - 0.5),
    MATRIX,
    MATRIX,
)
loss(
    "huber_loss",
    lambda x, y, reduction: F.huber_loss(x, y, reduction, 0.7),
    lambda x, y: special.huber(0.7, x - y),
    MATRIX,
    MATRIX,
)


def picked(x: Array, target: Array) -> Array:
    return -np.take_along_axis(x, target[:, None], 1)[:, 0]


TARGET = ((3,), below(4), tg.int64)
loss("nll_loss", F.nll_loss, picked, MATRIX, TARGET)
loss(
    "cross_entropy",
    F.cross_entropy,
    lambda x, t: picked(special.log_softmax(x, 1), t),
    MATRIX,
    TARGET,
)
loss(
    "cross_entropy images",
    F.cross_entropy,
    lambda x, t: picked(special.log_softmax(x, 1), t),
    (2, 4, 3),
    ((2, 3), below(4), tg.int64),
)
loss(
    "cross_entropy shares",
    F.cross_entropy,
    lambda x, t: -(special.log_softmax(x, 1) * t).sum(1),
    MATRIX,
    (MATRIX, share),
)
case(
    "cross_entropy weights",
    lambda x, t, w: F.cross_entropy(x, t, w),
    lambda x, t, w: (picked(special.log_softmax(x, 1), t) * w[t]).sum() / w[t].sum(),
    MATRIX,
    TARGET,
    ((4,), positive),
    tolerance=60,
)
case(
    "cross_entropy ignored",
    lambda x, t: F.cross_entropy(x, t, ignore_index=1),
    lambda x, t: picked(special.log_softmax(x, 1), t)[t != 1].mean(),
    (8, 4),
    ((8,), below(4), tg.int64),
    tolerance=60,
)
case(
    "cross_entropy smoothed",
    lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2),
    lambda x, t: np.mean(
        0.8 * picked(special.log_softmax(x, 1), t) - 0.2 * special.log_softmax(x, 1).mean(1)
    ),
    MATRIX,
    TARGET,
    tolerance=60,
)
loss(
    "binary_cross_entropy",
    F.binary_cross_entropy,
    lambda x, y: -(y * np.log(x) + (1 - y) * np.log1p(-x)),
    (MATRIX, share),
    (MATRIX, share),
)
loss(
    "binary_cross_entropy_with_logits",
    F.binary_cross_entropy_with_logits,
    lambda x, y: np.logaddexp(x, 0) - x * y,
    MATRIX,
    (MATRIX, share),
)
case(
    "binary_cross_entropy_with_logits weights",
    lambda x, y, p: F.binary_cross_entropy_with_logits(x, y, pos_weight=p),
    lambda x, y, p: np.mean((1 - y) * np.logaddexp(x, 0) + p * y * np.logaddexp(-x, 0)),
    MATRIX,
    (MATRIX, share),
    ((4,), positive),
    tolerance=60,
)
loss("kl_div", F.kl_div, lambda x, y: y * (np.log(y) - x), MATRIX, (MATRIX, share))
loss(
    "poisson_nll_loss",
    lambda x, y, reduction: F.poisson_nll_loss(x, y, reduction=reduction),
    lambda x, y: np.exp(x) - y * x,
    MATRIX,
    (MATRIX, positive),
)
loss(
    "gaussian_nll_loss",
    lambda x, y, v, reduction: F.gaussian_nll_loss(x, y, v, reduction=reduction),
    lambda x, y, v: 0.5 * (np.log(v) + (x - y) ** 2 / v),
    MATRIX,
    MATRIX,
    (MATRIX, positive),
)
loss(
    "hinge_embedding_loss",
    F.hinge_embedding_loss,
    lambda x, t: np.where(t == 1, x, np.maximum(1 - x, 0)),
    MATRIX,
    (MATRIX, signs, tg.int64),
)
loss(
    "margin_ranking_loss",
    lambda x, y, t, reduction: F.margin_ranking_loss(x, y, t, 0.3, reduction=reduction),
    lambda x, y, t: np.maximum(-t * (x - y) + 0.3, 0),
    (5,),
    (5,),
    ((5,), signs, tg.int64),
)
loss(
    "cosine_embedding_loss",
    lambda x, y, t, reduction: F.cosine_embedding_loss(x, y, t, 0.1, reduction=reduction),
    lambda x, y, t: np.where(t == 1, 1 - cosine(x, y), np.maximum(cosine(x, y) - 0.1, 0)),
    MATRIX,
    MATRIX,
    ((3,), signs, tg.int64),
)
loss(
    "triplet_margin_loss",
    lambda a, p, n, reduction: F.triplet_margin_loss(a, p, n, reduction=reduction),
    lambda a, p, n: np.maximum(
        np.linalg.norm(a - p + 1e-6, axis=-1) - np.linalg.norm(a - n + 1e-6, axis=-1) + 1, 0
    ),
    MATRIX,
    MATRIX,
    MATRIX,
    tolerance=150,
)


def cosine(x: Array, y: Array) -> Array:
    lengths = [(each * each).sum(-1) + 1e-12 for each in (x, y)]
    return (x * y).sum(-1) / np.sqrt(lengths[0] * lengths[1])


def one_hot_of(target: Array, classes: int) -> Array:
    return np.eye(classes)[target]


case(
    "soft_margin_loss",
    F.soft_margin_loss,
    lambda x, t: np.logaddexp(-t * x, 0).mean(),
    MATRIX,
    (MATRIX, signs, tg.int64),
    tolerance=60,
)
case(
    "multi_margin_loss",
    lambda x, t, w: F.multi_margin_loss(x, t, 2, 0.7, w, reduction="sum"),
    lambda x, t, w: (
        ((1 - one_hot_of(t, 4)) * np.maximum(0.7 + picked(x, t)[:, None] + x, 0) ** 2).sum(1)
        @ w[t]
        / 4
    ),
    MATRIX,
    TARGET,
    ((4,), positive),
    tolerance=60,
)


def near_the_true(x: Array, target: Array) -> float:
    found = 0.0
    for row, listed in zip(x, target):
        listed = listed[: np.argmax(listed < 0)] if (listed < 0).any() else listed
        others = [j for j in range(len(row)) if j not in listed]
        found += sum(max(1 - row[i] + row[j], 0) for i in listed for j in others) / len(row)
    return found


case(
    "multilabel_margin_loss",
    lambda x, t: F.multilabel_margin_loss(x, t - 1, reduction="sum"),
    lambda x, t: near_the_true(x, t - 1),
    MATRIX,
    (MATRIX, below(5), tg.int64),
    tolerance=60,
)
case(
    "multilabel_soft_margin_loss",
    F.multilabel_soft_margin_loss,
    lambda x, y, w: (w * (np.logaddexp(x, 0) - x * y)).mean(),
    MATRIX,
    (MATRIX, share),
    ((4,), positive),
    tolerance=60,
)
case(
    "triplet_margin_with_distance_loss",
    lambda a, p, n: F.triplet_margin_with_distance_loss(
        a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1), swap=True
    ),
    lambda a, p, n: np.maximum(
        np.abs(a - p).sum(-1) + 1 - np.minimum(np.abs(a - n).sum(-1), np.abs(p - n).sum(-1)), 0
    ).mean(),
    (1, 4),
    (1, 4),
    (1, 4),
    gradient=False,
)
case(
    "linear_cross_entropy",
    lambda x, w, b, t: F.linear_cross_entropy(x, w, t, linear_bias=b),
    lambda x, w, b, t: picked(special.log_softmax(np.einsum("ni,cdi->ncd", x, w) + b, 1), t).mean(),
    MATRIX,
    (5, 2, 4),
    (5, 2),
    ((3, 2), below(5), tg.int64),
    tolerance=150,
)


def aligned(logs: Array, labels: list[int]) -> float:
    """The probability of labels, as the sum over all paths of classes."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        merged = [each for each, _ in itertools.groupby(path) if each]
        if merged == labels:
            total += np.exp(sum(logs[at, each] for at, each in enumerate(path)))
    return -np.log(total)


def ctc_lengths(x: Any) -> tuple[list[int], list[int]]:
    return [x.shape[0] - at for at in range(x.shape[1])], [2 - at for at in range(x.shape[1])]


def ctc_of_some(x: tg.Tensor) -> tg.Tensor:
    targets = tg.ones(x.shape[1], 2, dtype=tg.int64)
    return F.ctc_loss(F.log_softmax(x, 2), targets, *ctc_lengths(x), reduction="none")


def aligned_rows(x: Array) -> Array:
    pairs = enumerate(zip(*ctc_lengths(x)))
    return np.array(
        [aligned(special.log_softmax(x, 2)[:time, at], [1] * size) for at, (time, size) in pairs]
    )


case(
    "ctc_loss", ctc_of_some, aligned_rows, (4, 2, 3), tolerance=150, dtypes=(tg.float32, tg.float64)
)
