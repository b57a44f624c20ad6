"""Variances and sums of exponentials of long rows and columns in one pass over memory.

Both take two reductions, of which the second needs the result of the first: the mean, or the
largest element. A row that no cache holds comes from memory twice. Here pieces that a cache holds
are folded to a tuple each, in two passes over the piece, and tuples are joined:

- of sums of deviations and of their squares: a piece's sum s and mean m, and of its n elements
  r = sum(x - m), which is nothing but rounding, and q = sum((x - m)**2). For any number c

      sum(x - c) = r + n (m - c),    sum((x - c)**2) = q + 2 (m - c) r + n (m - c)**2

  (Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance", 1983);
- of sums of exponentials: a piece's largest element p and e = sum(exp(x - p)). For any c

      sum(exp(x - c)) = e exp(p - c)

  (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

So c, which somebody computes of the first reduction, stays what it was. Tuples are joined in
float64. The pieces depend on the shape alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...runtime.dtypes import DType, float64
from ...runtime.records import NamedTuple
from ..ir import Builder, Graph, Node, TensorType, transform
from ..ir import primitives as p
from .matching import call, cast, constant, part, reshape, scalar


class Limits(NamedTuple):
    """What a target's caches hold: rows of at least `row` bytes, of `whole` bytes in all, come from
    memory twice, pieces of `piece` floats, or half as many doubles, do not. Of fewer elements than
    `fewest` nothing is won. Of columns pieces have `column` floats; 0 where they are left alone."""

    row: int
    whole: int
    piece: int
    fewest: int
    column: int


# A core's second-level cache holds 1 MB, half of it for sure what a kernel reads; what all cores
# share, 16 MB. What lies there came no faster in pieces.
FOR_THREADS = Limits(row=1 << 19, whole=1 << 24, piece=1 << 14, fewest=1 << 10, column=0)
# A block keeps so many elements in registers; what the second-level cache holds comes from there.
# 16 threads keep a piece of a column. Columns of four pieces would not fit into shared memory.
FOR_GPU = Limits(row=1 << 18, whole=1 << 25, piece=1 << 13, fewest=1 << 11, column=1 << 9)

LEAST_BESIDE = 32
"""Columns that lie side by side, so that lines of memory are read whole."""
MOST_VISITED = 32
"""Nodes that are looked at between the two reductions."""

Axes = tuple[int, ...]


def one_pass_statistics(graph: Graph) -> Graph:
    return _rewritten(graph, FOR_THREADS)


def one_pass_statistics_for_gpu(graph: Graph) -> Graph:
    return _rewritten(graph, FOR_GPU)


def _rewritten(graph: Graph, limits: Limits) -> Graph:
    if p.sub not in graph.primitives:
        return graph
    late = {node: found for node in graph.nodes if (found := _late_sum(node, limits)) is not None}
    if not late:
        return graph
    # What the first reductions are of, with the kind of those behind them.
    early = {found.first: found.kind for found in late.values()}
    return transform(graph, partial(_rewrite, early, late, limits))


class Late(NamedTuple):
    """A sum over elements less something that the reduction `first` of the same elements gives."""

    first: Node
    kind: str


MOMENTS, EXPONENTIALS = "moments", "exponentials"


def _late_sum(node: Node, limits: Limits) -> Late | None:
    if node.primitive is not p.sum_ or not node.type.dtype.is_floating_point:
        return None
    apart, kind = node.inputs[0], MOMENTS
    if apart.primitive is p.exp:
        apart, kind = apart.inputs[0], EXPONENTIALS
    elif apart.primitive is p.mul and apart.inputs[0] is apart.inputs[1]:
        apart = apart.inputs[0]
    if apart.primitive is not p.sub:
        return None
    (x, center), axes = apart.inputs, node.attrs["axes"]
    if x.shape != apart.shape or not _is_constant_along(center, axes, x.type.ndim):
        return None
    if _cut(x, axes, limits) is None:
        return None
    wanted = p.max_ if kind == EXPONENTIALS else p.sum_
    first = _reduction_below(center, wanted, x, axes)
    return None if first is None else Late(first, kind)


def _is_constant_along(node: Node, axes: Axes, ndim: int) -> bool:
    missing = ndim - node.type.ndim
    return all(axis < missing or node.shape[axis - missing] == 1 for axis in axes)


def _reduction_below(node: Node, wanted: Any, x: Node, axes: Axes) -> Node | None:
    """The reduction of `x` that `node` is computed from, with no larger values in between."""
    most, stack, seen = node.type.numel, [node], {node}
    while stack and len(seen) <= MOST_VISITED:
        each = stack.pop()
        if each.primitive is wanted and each.inputs[0] is x and each.attrs["axes"] == axes:
            return each
        for operand in each.inputs:
            is_tensor = isinstance(operand.type, TensorType)  # not several, of a factorization
            if is_tensor and operand not in seen and operand.type.numel <= most:
                seen.add(operand)
                stack.append(operand)
    return None


# -- pieces ----------------------------------------------------------------------------------


class Cut(NamedTuple):
    """Pieces of rows: those reduced axes that a piece has whole, and the one that is cut, if any,
    into pieces of so many positions."""

    whole: Axes
    axis: int | None
    length: int


def _cut(x: Node, axes: Axes, limits: Limits) -> Cut | None:
    """How the reduction of x over `axes` goes in pieces; None where that wins nothing."""
    shape, item = x.shape, x.type.dtype.itemsize
    row = prod(shape[axis] for axis in axes)
    beside = prod(shape[axes[-1] + 1 :])
    if axes[-1] == x.type.ndim - 1:
        piece, fewest, is_long = limits.piece, limits.fewest, row * item >= limits.row
    else:
        piece, fewest = limits.column, limits.column // 4
        is_long = beside >= LEAST_BESIDE and row >= 4 * piece > 0
    if not is_long or x.type.numel * item < limits.whole:
        return None
    inner, first = 1, len(axes)
    piece = piece * 4 // max(4, item)
    while first > 0 and inner * shape[axes[first - 1]] <= piece:
        first -= 1
        inner *= shape[axes[first]]
    if first == 0:
        return None
    if inner >= fewest:
        return Cut(axes[first:], None, 0)
    size, most = shape[axes[first - 1]], piece // inner
    even = (each for each in range(most, most // 2, -1) if size % each == 0)
    return Cut(axes[first:], axes[first - 1], next(even, most))


Fold = Callable[[Builder, Node, Axes], tuple[Node, ...]]


def _of_pieces(build: Builder, x: Node, cut: Cut, fold: Fold) -> tuple[Node, ...]:
    """The tuple of each piece: x's shape, with as many positions along the axis that is cut as it
    has pieces, and one along those that pieces have whole."""
    if cut.axis is None:
        return fold(build, x, cut.whole)
    axis, length, size = cut.axis, cut.length, x.shape[cut.axis]
    pieces = size // length
    even = pieces * length
    main = x if even == size else part(build, x, axis, 0, even)
    split = reshape(build, main, (*x.shape[:axis], pieces, length, *x.shape[axis + 1 :]))
    inner = tuple(each + 1 for each in (axis, *cut.whole))
    kept = tuple(1 if each in cut.whole else n for each, n in enumerate(x.shape))
    lined = (*kept[:axis], pieces, *kept[axis + 1 :])
    found = tuple(reshape(build, each, lined) for each in fold(build, split, inner))
    if even == size:
        return found
    rest = fold(build, part(build, x, axis, even, size), (axis, *cut.whole))
    return tuple(call(build, p.concatenate, *pair, axis=axis) for pair in zip(found, rest))


def _counts(build: Builder, x: Node, cut: Cut, like: Node) -> Node:
    """How many elements the pieces have."""
    inner = prod(x.shape[axis] for axis in cut.whole)
    if cut.axis is None:
        return scalar(build, like, inner)
    pieces, rest = divmod(x.shape[cut.axis], cut.length)
    if not rest:
        return scalar(build, like, inner * cut.length)
    counts = np.array([*[inner * cut.length] * pieces, inner * rest], np.float64)
    shape = [1] * x.type.ndim
    shape[cut.axis] = pieces + 1
    return constant(build, like.type.with_shape(tuple(shape)), counts.reshape(shape))


# -- what pieces fold to ---------------------------------------------------------------------


def _moments(build: Builder, x: Node, axes: Axes) -> tuple[Node, ...]:
    """Sum, mean, and the sums of what is left and of its square."""
    attrs = {"axes": axes, "keepdims": True}
    total = build.apply(p.sum_, [x], attrs)
    count = prod(x.shape[axis] for axis in axes)
    mean = call(build, p.mul, total, scalar(build, x, 1 / count))
    apart = call(build, p.sub, x, mean)
    square = call(build, p.mul, apart, apart)
    return total, mean, build.apply(p.sum_, [apart], attrs), build.apply(p.sum_, [square], attrs)


def _exponentials(build: Builder, x: Node, axes: Axes) -> tuple[Node, ...]:
    """The largest element, and the sum of exponentials of distances to it.

    Where it is infinite or NaN, to zero: `e exp(p - c)` then is what it would be without pieces.
    """
    attrs = {"axes": axes, "keepdims": True}
    peak = build.apply(p.max_, [x], attrs)
    unfit = call(build, p.logical_or, call(build, p.isnan, peak), call(build, p.isinf, peak))
    center = call(build, p.where, unfit, scalar(build, x, 0.0), peak)
    exponentials = call(build, p.exp, call(build, p.sub, x, center))
    return peak, build.apply(p.sum_, [exponentials], attrs)


_FOLDS: dict[str, Fold] = {MOMENTS: _moments, EXPONENTIALS: _exponentials}


# -- what they are joined to -----------------------------------------------------------------


def _rewrite(
    early: dict[Node, str],
    late: dict[Node, Late],
    limits: Limits,
    build: Builder,
    node: Node,
    inputs: tuple[Node, ...],
) -> Node:
    if node in early:
        return _joined_first(build, node, inputs[0], early[node], limits)
    if node in late:
        return _joined_late(build, node, inputs[0], late[node].kind, limits)
    return build.rebuild(node, inputs)


def _tuples(build: Builder, x: Node, axes: Axes, kind: str, limits: Limits) -> tuple[Node, ...]:
    cut = _cut(x, axes, limits)
    assert cut is not None
    return _of_pieces(build, x, cut, _FOLDS[kind])


def _joined_first(build: Builder, node: Node, x: Node, kind: str, limits: Limits) -> Node:
    first = _tuples(build, x, node.attrs["axes"], kind, limits)[0]
    wide = first if kind == EXPONENTIALS else cast(build, first, float64)
    return _reduced(build, node, wide, node.primitive)


def _joined_late(build: Builder, node: Node, operand: Node, kind: str, limits: Limits) -> Node:
    is_square = operand.primitive is p.mul
    apart = operand if operand.primitive is p.sub else operand.inputs[0]
    (x, center), axes = apart.inputs, node.attrs["axes"]
    tuples = [_wide(build, each) for each in _tuples(build, x, axes, kind, limits)]
    center = _wide(build, center)
    if kind == EXPONENTIALS:
        peak, total = tuples
        factor = call(build, p.exp, call(build, p.sub, peak, center))
        return _reduced(build, node, call(build, p.mul, total, factor), p.sum_)
    _, mean, rest, squares = tuples
    cut = _cut(x, axes, limits)
    assert cut is not None
    distance = call(build, p.sub, mean, center)
    whole = call(build, p.mul, _counts(build, x, cut, distance), distance)
    if not is_square:
        return _reduced(build, node, call(build, p.add, rest, whole), p.sum_)
    twice = call(build, p.mul, rest, scalar(build, distance, 2.0))
    inner = call(build, p.mul, distance, call(build, p.add, twice, whole))
    return _reduced(build, node, call(build, p.add, squares, inner), p.sum_)


def _wide(build: Builder, node: Node) -> Node:
    return cast(build, node, float64)


def _reduced(build: Builder, node: Node, of: Node, primitive: Any) -> Node:
    """What pieces give, as the reduction `node` would have."""
    attrs = {"axes": node.attrs["axes"], "keepdims": node.attrs["keepdims"]}
    found = build.apply(primitive, [of], attrs, node.where)
    dtype: DType = node.type.dtype
    return reshape(build, cast(build, found, dtype), node.shape)
