"""Programs over arrays in NumPy; in float64 the reference."""

from __future__ import annotations

import numpy as np

from ..case import Array, Case, Data
from ..contenders.with_numpy import case
from . import formulas


def stencil(data: Data) -> Case:
    return case(lambda u: formulas.stencil(np.concatenate, u), data["u"])


def stencil_3d(data: Data) -> Case:
    return case(lambda u: formulas.stencil_3d(lambda u: np.pad(u, 1), u), data["u"])


def image_filter(data: Data) -> Case:
    return case(lambda u: formulas.image_filter(u, formulas.TAPS), data["u"])


def argmax(data: Data) -> Case:
    return case(lambda x: x.argmax(1), data["x"])


def topk(data: Data) -> Case:
    def function(x: Array) -> tuple[Array, Array]:
        chosen = np.argpartition(x, -10, 1)[:, -10:]
        order = np.argsort(-np.take_along_axis(x, chosen, 1), 1)
        index = np.take_along_axis(chosen, order, 1)
        return np.take_along_axis(x, index, 1), index

    return case(function, data["x"])


def sort(data: Data) -> Case:
    return case(lambda x: np.sort(x, -1), data["x"])


def cumsum(data: Data) -> Case:
    return case(lambda x: x.cumsum(1), data["x"])


def cumsum_columns(data: Data) -> Case:
    return case(lambda x: x.cumsum(0), data["x"])


def column_softmax(data: Data) -> Case:
    def function(x: Array) -> Array:
        e = np.exp(x - x.max(0))
        return e / e.sum(0)

    return case(function, data["x"])


def recurrence(data: Data) -> Case:
    return case(lambda x: formulas.recurrence(np, np.stack, x), data["x"])


def columns(data: Data) -> Case:
    return case(lambda u: formulas.columns(np, np.stack, u), data["u"])


def box_overlaps(data: Data) -> Case:
    return case(lambda a, b: formulas.box_overlaps(np, np.max, a, b), data["a"], data["b"])


def float64_sums(data: Data) -> Case:
    return case(lambda x: formulas.float64_sums(np, x), data["x"])


def gather_sum(data: Data) -> Case:
    return case(lambda table, index: table[index].sum(1), data["table"], data["index"])


def masked_softmax(data: Data) -> Case:
    def function(x: Array, mask: Array) -> Array:
        scores = np.where(mask, x, x.dtype.type(-np.inf))
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return case(function, data["x"], data["mask"])


def _logsumexp(x: Array, axis: int) -> Array:
    top = x.max(axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


def logsumexp_chain(data: Data) -> Case:
    inputs = (data["start"], data["transitions"], data["evidence"])
    return case(lambda *given: formulas.forward_algorithm(_logsumexp, *given), *inputs)


def solves(data: Data) -> Case:
    inputs = (data["matrices"], data["right"])
    return case(lambda *given: formulas.solved(np.stack, *given), *inputs)


def vmap_solves(data: Data) -> Case:
    def function(matrices: Array, right: Array) -> Array:
        return np.linalg.solve(matrices, right[..., None])[..., 0]

    return case(function, data["matrices"], data["right"])


def hashing(data: Data) -> Case:
    return case(formulas.hashed, data["x"])


def histogram(data: Data) -> Case:
    return case(formulas.histogram, data["x"], data["edges"])


def nearest(data: Data) -> Case:
    def function(queries: Array, points: Array) -> tuple[Array, Array]:
        squares = formulas.distances(queries, points)
        return squares.min(1), squares.argmin(1)

    return case(function, data["queries"], data["points"])


def monte_carlo(data: Data) -> Case:
    random = np.random.default_rng(0)
    size = tuple(data["size"])
    return case(
        lambda: formulas.option_price(np.exp, random.standard_normal(size, dtype=np.float32))
    )


def spectral(data: Data) -> Case:
    inputs = (data["u"], data["cosines"], data["sines"], data["numbers"])
    return case(lambda *given: formulas.spectral_step(np.exp, *given), *inputs)
