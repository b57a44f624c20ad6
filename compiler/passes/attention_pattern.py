"""The form of attention in a graph: what softmax weights are made of, taken apart.

Matching asks the builder how often the nodes in between are read, since they are not computed any
more where attention is joined.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ...runtime.dtypes import float32, float64
from ...runtime.records import NamedTuple
from ..ir import Node
from ..ir import primitives as p
from .matching import call, permute, scalar_of
from .rewrite import RewriteBuilder

MAX_WIDTH = 256
"""Of queries and values: a thread works on a panel of them on its stack."""
FEW_QUERIES = 6
"""So many queries or fewer leave most lanes of vectors without work: products by rows are better.
"""
FACTORS = (2.0**-20, 2.0**20)
"""Scales that may move from scores to queries: of these, only such overflow or underflow, where
scores did not, as are nearer than this to the ends of the range."""


class Scores(NamedTuple):
    """Scores taken apart: a product times `scale`, and what is done to it."""

    product: Node
    scale: float = 1.0
    bias: Node | None = None
    masks: tuple[Node, ...] = ()
    fill: float = -math.inf
    diagonal: int | None = None
    path: tuple[Node, ...] = ()
    """From the whole to the product, each an operand of the one before."""


class Softmax(NamedTuple):
    """What weights are the softmax of; they are 0 where all scores are -inf, if `hidden` says so.

    `weights` are those that softmax itself gives.
    """

    scores: Node
    weights: Node
    hidden: Node | None = None


class Attention(NamedTuple):
    """The operands of attention, its attributes, and what it was found as."""

    query: Node
    key: Node
    value: Node
    masks: tuple[Node, ...]
    attrs: dict[str, Any]
    softmax: Softmax
    scores: Scores


def attention_in(build: RewriteBuilder, node: Node) -> Attention | None:
    """What the product `node` is the attention of, if it is any, and one that pays."""
    weights, value = node.inputs
    if node.attrs["transpose_a"] or node.type.dtype not in (float32, float64):
        return None
    found = softmaxed(build, weights)
    scores = None if found is None else taken_apart(build, found.scores)
    if found is None or scores is None or scores.product.shape[-2:] != found.scores.shape[-2:]:
        return None
    query, key = _oriented(build, scores.product)
    if not is_factor(scores.scale) or not _pays(query, key, node):
        return None
    if node.attrs["transpose_b"]:
        value = swapped(build, value)
    bias = () if scores.bias is None else (scores.bias,)
    mask = _all_of(build, scores.masks)
    attrs = {
        "scale": scores.scale, "bias": bool(bias), "mask": bool(mask), "fill": scores.fill,
        "diagonal": scores.diagonal, "zeros": found.hidden is not None,
    }  # fmt: skip
    return Attention(query, key, value, (*bias, *mask), attrs, found, scores)


def is_factor(scale: float) -> bool:
    return FACTORS[0] <= abs(scale) <= FACTORS[1]


def _pays(query: Node, key: Node, result: Node) -> bool:
    queries, width = query.shape[-2:]
    wide = max(width, result.shape[-1]) > MAX_WIDTH
    return queries > FEW_QUERIES and not wide and 0 not in (width, key.shape[-2])


def _oriented(build: RewriteBuilder, product: Node) -> tuple[Node, Node]:
    """Queries and keys, each a row."""
    query, key = product.inputs
    if product.attrs["transpose_a"]:
        query = swapped(build, query)
    return query, key if product.attrs["transpose_b"] else swapped(build, key)


def swapped(build: RewriteBuilder, node: Node) -> Node:
    *lead, rows, columns = range(node.type.ndim)
    return permute(build, node, (*lead, columns, rows))


def softmaxed(build: RewriteBuilder, weights: Node) -> Softmax | None:
    """What `weights` are the softmax of along the last axis, if nobody wants what is between."""
    if not build.read_once(weights):
        return None
    weights = single(weights) or weights
    if weights.primitive is not p.where:
        scores = _below_softmax(build, weights)
        return None if scores is None else Softmax(scores, weights)
    condition, zero, rest = weights.inputs
    shown = _below_softmax(build, rest) if build.read_once(rest) else None
    if shown is None or shown.primitive is not p.where or shown.inputs[:2] != (condition, zero):
        return None
    scores = shown.inputs[2]
    none_seen = scalar_of(zero) == 0 and _is_hidden(build, condition, scores)
    return Softmax(scores, rest, condition) if none_seen else None


def _is_hidden(build: RewriteBuilder, condition: Node, scores: Node) -> bool:
    """Whether `condition`, read twice, says of each row of scores that all of them are -inf."""
    if condition.primitive is not p.eq or not build.read_twice(condition):
        return False
    top, infinity = condition.inputs
    return scalar_of(infinity) == -math.inf and _folds(build, top, p.max_, scores)


def _below_softmax(build: RewriteBuilder, weights: Node) -> Node | None:
    if weights.primitive is not p.div or not build.read_once(weights):
        return None
    powers, total = weights.inputs
    if powers.primitive is not p.exp or not _folds(build, total, p.sum_, powers):
        return None
    (below,) = powers.inputs
    if below.primitive is not p.sub or not build.read_once(below):
        return None
    scores, top = below.inputs
    return scores if _folds(build, top, p.max_, scores) else None


def single(node: Node) -> Node | None:
    """The matrix that `node` shows with other leading axes, all of size one."""
    if node.primitive is not p.reshape or math.prod(node.shape[:-2]) != 1:
        return None
    (matrix,) = node.inputs
    return matrix if matrix.shape[-2:] == node.shape[-2:] else None


def _folds(build: RewriteBuilder, node: Node, primitive: object, of: Node) -> bool:
    """Whether `node` is a reduction of the rows of `of`, and only one more node reads `of`."""
    if node.primitive is not primitive or node.inputs != (of,):
        return False
    rows = node.attrs["keepdims"] and node.attrs["axes"] == (of.type.ndim - 1,)
    return bool(rows and build.read_once(node) and build.read_twice(of))


# -- scores -------------------------------------------------------------------------------------


def taken_apart(build: RewriteBuilder, node: Node) -> Scores | None:
    """The form of `node`, which is read by softmax alone, looked at from the outside inwards."""
    scale, bias, masks, fill, diagonal = 1.0, None, [], None, None
    path = [node]
    while node.primitive is not p.matmul:
        if node.primitive is p.where and bias is None:
            found = _hidden(node)
            if found is None or not _stays_hidden(found.fill, fill, scale):
                return None
            node, fill = found.scores, found.fill
            limit = diagonal_of(found.condition, found.is_seen) if fill == -math.inf else None
            if limit is None:
                masks.append(found.seen(build))
            else:
                diagonal = limit if diagonal is None else min(limit, diagonal)
        elif (factor := factor_of(node)) is not None:
            node, by = factor
            scale *= by
        elif (matrix := single(node)) is not None:
            node = matrix
        elif node.primitive is p.add and bias is None and scale == 1.0:
            first, second = node.inputs
            node, bias = (first, second) if _leads_to_product(build, first) else (second, first)
        else:
            return None
        if not build.read_once(node):
            return None
        path.append(node)
    fill = -math.inf if fill is None else fill
    return Scores(node, scale, bias, tuple(masks), fill, diagonal, tuple(path))


def _leads_to_product(build: RewriteBuilder, node: Node) -> bool:
    while True:
        factor = factor_of(node)
        matrix = factor[0] if factor else single(node)
        if matrix is None:
            break
        node = matrix
    return node.primitive is p.matmul and build.read_once(node)


class _Hidden(NamedTuple):
    """A `where` that has `fill` for some scores: its condition, and whether that shows others."""

    scores: Node
    fill: float
    condition: Node
    is_seen: bool

    def seen(self, build: RewriteBuilder) -> Node:
        return self.condition if self.is_seen else call(build, p.logical_not, self.condition)


def _hidden(node: Node) -> _Hidden | None:
    condition, one, other = node.inputs
    if scalar_of(other) is not None:
        return _Hidden(one, scalar_of(other), condition, True)
    return _Hidden(other, scalar_of(one), condition, False) if scalar_of(one) is not None else None


def _stays_hidden(fill: float, outer: float | None, scale: float) -> bool:
    """Whether hidden scores keep `fill` where they are scaled and others hidden afterwards."""
    return outer in (None, fill) and (scale == 1.0 or (fill == -math.inf and scale > 0))


def factor_of(node: Node) -> tuple[Node, float] | None:
    """What `node` is a multiple of, and by which number."""
    if node.primitive is p.mul:
        one, other = node.inputs
        for factor, rest in ((one, other), (other, one)):
            if scalar_of(factor) is not None and rest.shape == node.shape:
                return rest, scalar_of(factor)
    if node.primitive is p.div:
        rest, factor = node.inputs
        value = scalar_of(factor)
        if value and rest.shape == node.shape:
            return rest, 1 / value
    return None


def _all_of(build: RewriteBuilder, masks: tuple[Node, ...]) -> tuple[Node, ...]:
    """What all masks show, at most one mask."""
    if not masks:
        return ()
    joined, *others = masks
    for each in others:
        joined = call(build, p.logical_and, joined, each)
    return (joined,)


# -- conditions on positions --------------------------------------------------------------------

_ORDERS = {  # the larger side is that of the query, and whether both may be equal
    p.ge: (0, True), p.gt: (0, False), p.le: (1, True), p.lt: (1, False),
}  # fmt: skip


def diagonal_of(condition: Node, is_seen: bool) -> int | None:
    """d where `condition` says that a query i sees the keys up to i + d, or hides those behind."""
    if condition.primitive not in _ORDERS:
        return None
    sides = [_position(each) for each in condition.inputs]
    larger, equal = _ORDERS[condition.primitive]
    if not is_seen:
        larger, equal = 1 - larger, not equal
    query, key = sides[larger], sides[1 - larger]
    if query is None or key is None or (query[0], key[0]) != (-2, -1):
        return None
    return query[1] - key[1] - (not equal)


def _position(node: Node) -> tuple[int, int] | None:
    """The axis, from the end, along which `node` counts, and the number it begins with."""
    axis, moves, shape = None, [0], node.shape
    while node.primitive is not p.iota:
        long = [at - node.type.ndim for at, size in enumerate(node.shape) if size > 1]
        if len(long) == 1 and axis is None:
            axis = long[0]
        if node.primitive in (p.add, p.sub):
            first, second = node.inputs
            number = scalar_of(second)
            if not isinstance(number, int):
                return None
            moves.append(number if node.primitive is p.add else -number)
            node = first
        elif node.primitive is p.broadcast or (node.primitive is p.reshape and axis is not None):
            (node,) = node.inputs
        else:
            return None
    axis = -1 if axis is None else axis
    counts = shape[axis] == node.attrs["size"]  # otherwise it begins again, or never counts
    return (axis, sum(moves)) if counts and _fits(node, moves) else None


def _fits(iota: Node, moves: list[int]) -> bool:
    """Whether counting and moving, the last move first, stay in the range of the dtype."""
    if not iota.type.dtype.is_integral:
        return False
    limits = np.iinfo(iota.type.dtype.numpy)
    starts = itertools.accumulate(reversed(moves))
    last = iota.attrs["size"] - 1
    return all(limits.min <= start and start + last <= limits.max for start in starts)
