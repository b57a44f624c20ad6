"""A convolution in terms of windows, permutes and one matrix product.

In all of this, a convolution is y[n, o, out] = sum over c and k of windows[n, c, out, k] w[o, c, k]
where `out` and `k` stand for all spatial axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import gcd

from ...runtime.records import NamedTuple
from ..ir import Node
from ..ir import primitives as p
from ..ir.shapes import numel
from .matching import call, permute, reshape
from .rewrite import RewriteBuilder

# Convolutions that one over an input with zeros in between is cut into: more would be too small.
MAX_PHASES = 9
# Columns of each of their products, which with fewer would compute mostly what nobody wants.
FEWEST_OUTPUTS = 8
# Multiplications that are worth the kernels and products more, which must be compiled and started.
LEAST_FOR_PHASES = 1 << 22

Ints = tuple[int, ...]
Pairs = Sequence[tuple[int, int]]


def convolution_by_windows(build: RewriteBuilder, node: Node) -> Node:
    """[n * out, k * c] times [o, k * c] transposed; one batch entry per group."""
    x, w = node.inputs
    groups, count = node.attrs["groups"], x.shape[0]
    windows = _own_windows(build, node)
    out, taps = node.shape[2:], w.shape[2:]
    rows = _grouped_rows(build, windows, groups, len(out))
    kernels = _grouped_kernels(build, w, groups)
    product = call(build, p.matmul, rows, kernels, transpose_a=False, transpose_b=True)
    assert rows.shape[-1] == numel(taps) * w.shape[1]
    return _from_grouped_rows(build, product, groups, (count, *out))


def convolution_by_windows_transposed(build: RewriteBuilder, node: Node) -> Node:
    """The same sums for swapped samples and channels, as in a gradient of the kernels.

    windows[n, c, out, k] is read from windows of the size of the result, sliding over the taps:
    [c * k, out * n] transposed times [c * k, o].
    """
    x, w = node.inputs
    spatial = x.type.ndim - 2
    attrs, out, taps = node.attrs, node.shape[2:], w.shape[2:]
    windows = _windows(build, x, node, out, attrs["dilation"], attrs["strides"])
    # windows is [n, c, k, out]
    at_k, at_out = tuple(range(2, 2 + spatial)), tuple(range(2 + spatial, 2 + 2 * spatial))
    transposed = permute(build, windows, (1, *at_k, *at_out, 0))
    count, channels = x.shape[0], x.shape[1]
    columns = reshape(build, transposed, (channels * numel(taps), numel(out) * count))
    kernels = permute(build, w, (1, *range(2, 2 + spatial), 0))
    kernels = reshape(build, kernels, (channels * numel(taps), w.shape[0]))
    product = call(build, p.matmul, columns, kernels, transpose_a=True, transpose_b=False)
    result = reshape(build, product, (*out, count, w.shape[0]))
    return permute(build, result, (spatial, spatial + 1, *range(spatial)))


def convolution_by_channel(build: RewriteBuilder, node: Node) -> Node:
    """Products with the windows, summed over the channels of a group, if several, and the taps."""
    x, w = node.inputs
    out, taps = node.shape[2:], w.shape[2:]
    count, groups = x.shape[0], node.attrs["groups"]
    each = w.shape[0] // groups
    inner = w.shape[1:2] if w.shape[1] > 1 else ()
    windows = reshape(build, _own_windows(build, node), (count, groups, 1, *inner, *out, *taps))
    kernels = reshape(build, w, (1, groups, each, *inner, *(1 for _ in out), *taps))
    first = 3 + len(inner)
    products = call(build, p.mul, windows, kernels)
    axes = (*range(3, first), *range(first + len(out), first + len(out) + len(taps)))
    return reshape(build, call(build, p.sum_, products, axes=axes, keepdims=False), node.shape)


class _Phase(NamedTuple):
    """Along one axis, the results that lie `steps` apart: a convolution of the input as it is.

    The taps first, first + apart, ... meet numbers, the others zeros between them. The first
    result is made of the element `start` and following ones, `dilation` apart.
    """

    first: int
    apart: int
    taps: int
    start: int
    dilation: int


def _phases(node: Node, axis: int) -> list[_Phase]:
    """Of each remainder of a result's place; fewer where no tap meets a number.

    A result at p is the sum over taps t of the spread input at p + t * dilation - low, which holds
    a number where `steps` divides that.
    """
    taps, steps = node.inputs[1].shape[2 + axis], node.attrs["input_dilation"][axis]
    dilation, (low, _) = node.attrs["dilation"][axis], node.attrs["padding"][axis]
    apart, found = steps // gcd(dilation, steps), []
    for place in range(steps):
        hits = [tap for tap in range(taps) if (place + tap * dilation - low) % steps == 0]
        if hits:
            start = (place + hits[0] * dilation - low) // steps
            phase = _Phase(hits[0], apart, len(hits), start, dilation * apart // steps)
            found.append(phase)
    return found


def has_phases(node: Node) -> bool:
    """Whether windows overlap on the spread input, and its phases are few and wide products."""
    (x, w), steps = node.inputs, node.attrs["input_dilation"]
    wide = node.shape[1] >= FEWEST_OUTPUTS * node.attrs["groups"]
    large = x.type.numel // x.shape[1] * w.type.numel >= LEAST_FOR_PHASES
    overlap = all(tap > step or step == 1 for tap, step in zip(w.shape[2:], steps, strict=True))
    if numel(steps) > MAX_PHASES or not (wide and large and overlap):
        return False
    return all(len(_phases(node, axis)) == step for axis, step in enumerate(steps))


def convolution_by_phases(build: RewriteBuilder, node: Node) -> Node:
    """The input is spread by zeros: results that meet the same taps are a convolution each.

    All read the same padded input, and none multiplies zeros.
    """
    steps, spatial = node.attrs["input_dilation"], len(node.shape) - 2
    phases = [_phases(node, axis) for axis in range(spatial)]
    sizes = [-(-size // step) for size, step in zip(node.shape[2:], steps, strict=True)]
    padded, low = _padded_for_phases(build, node, phases, sizes)
    parts = {
        which: _phase(
            build, node, padded, low, [each[at] for each, at in zip(phases, which)], sizes
        )
        for which in itertools.product(*map(range, steps))
    }
    for axis in reversed(range(spatial)):
        ahead = dict.fromkeys(which[:axis] for which in parts)
        parts = {
            which: _joined(build, [parts[(*which, at)] for at in range(steps[axis])], 3 + 2 * axis)
            for which in ahead
        }
    whole = [size * step for size, step in zip(sizes, steps, strict=True)]
    result = reshape(build, parts[()], (*node.shape[:2], *whole))
    cut = [(0, size - every) for size, every in zip(node.shape[2:], whole, strict=True)]
    return pad_or_cut(build, result, 2, cut)


def _joined(build: RewriteBuilder, parts: list[Node], axis: int) -> Node:
    return parts[0] if len(parts) == 1 else call(build, p.concatenate, *parts, axis=axis)


def _padded_for_phases(
    build: RewriteBuilder, node: Node, phases: list[list[_Phase]], sizes: list[int]
) -> tuple[Node, list[int]]:
    """The input with what any phase reads beyond it, and how much that is in front."""
    (x, _), low, high = node.inputs, [], []
    for each, size, length in zip(phases, sizes, x.shape[2:], strict=True):
        low.append(max(0, *(-phase.start for phase in each)))
        high.append(max(0, *(phase.start + _reach(phase, size) - length for phase in each)))
    return pad_or_cut(build, x, 2, list(zip(low, high, strict=True))), low


def _reach(phase: _Phase, size: int) -> int:
    """Elements from the first to the last that so many results are made of."""
    return size + (phase.taps - 1) * phase.dilation


def _phase(
    build: RewriteBuilder,
    node: Node,
    x: Node,
    low: list[int],
    along: list[_Phase],
    sizes: list[int],
) -> Node:
    """The results of one phase, [n, o, size, 1, size, 1, ...]."""
    w = node.inputs[1]
    kernel = call(
        build, p.slice_, w,
        starts=(0, 0, *(each.first for each in along)),
        stops=(*w.shape[:2], *(each.first + (each.taps - 1) * each.apart + 1 for each in along)),
        steps=(1, 1, *(each.apart for each in along)),
    )  # fmt: skip
    starts = [before + each.start for before, each in zip(low, along, strict=True)]
    padding = tuple(
        (-start, start + _reach(each, size) - length)
        for start, each, size, length in zip(starts, along, sizes, x.shape[2:], strict=True)
    )
    ones = (1,) * len(along)
    result = call(
        build, p.convolution, x, kernel, strides=ones, padding=padding,
        dilation=tuple(each.dilation for each in along), input_dilation=ones,
        groups=node.attrs["groups"],
    )  # fmt: skip
    spread = (part for size in sizes for part in (size, 1))
    return reshape(build, result, (*node.shape[:2], *spread))


def convolution_by_fold(build: RewriteBuilder, node: Node) -> Node:
    """The input is spread by zeros and the windows slide by one: products first, then `fold`.

    Element p of the spread input, at p * d, reaches through tap t the results
    y = p * d - t * e + low for dilation e, which with the kernel flipped, t' = k - 1 - t, is
    y = p * d + t' * e - ((k - 1) * e - low): overlapping windows, d apart.
    """
    x, w = node.inputs
    groups, count = node.attrs["groups"], x.shape[0]
    inner, taps, outputs = x.shape[2:], w.shape[2:], w.shape[0]
    spatial = len(inner)
    flipped = call(build, p.flip, w, axes=tuple(range(2, 2 + spatial)))
    rows = _grouped_rows(build, x, groups, spatial)
    kernels = _grouped_taps(build, flipped, groups)
    product = call(build, p.matmul, rows, kernels, transpose_a=False, transpose_b=False)
    # [g, n * in, k * o / g] as [n, in, o, k]
    split = reshape(build, product, (groups, count, *inner, *taps, outputs // groups))
    at_in, at_taps = range(2, 2 + spatial), range(2 + spatial, 2 + 2 * spatial)
    transposed = permute(build, split, (1, *at_in, 0, 2 + 2 * spatial, *at_taps))
    windows = reshape(build, transposed, (count, *inner, outputs, *taps))
    result = _folded(build, windows, node)
    return permute(build, result, (0, spatial + 1, *range(1, 1 + spatial)))


def _folded(build: RewriteBuilder, windows: Node, node: Node) -> Node:
    """The windows [n, in, o, k] of the result added up, as [n, out, o]."""
    steps, apart = node.attrs["input_dilation"], node.attrs["dilation"]
    inner, taps = node.inputs[0].shape[2:], node.inputs[1].shape[2:]
    count, outputs = node.shape[:2]
    sizes = tuple(
        (size - 1) * step + (tap - 1) * dilation + 1
        for size, step, tap, dilation in zip(inner, steps, taps, apart, strict=True)
    )
    folded = call(
        build, p.fold, windows,
        axes=tuple(range(1, 1 + len(inner))), strides=steps, dilations=apart,
        shape=(count, *sizes, outputs),
    )  # fmt: skip
    low = [
        first - (tap - 1) * dilation
        for (first, _), tap, dilation in zip(node.attrs["padding"], taps, apart, strict=True)
    ]
    high = [
        wanted - size - before
        for wanted, size, before in zip(node.shape[2:], sizes, low, strict=True)
    ]
    return pad_or_cut(build, folded, 1, list(zip(low, high, strict=True)))


# --- pieces ---


def _windows(
    build: RewriteBuilder, x: Node, node: Node, sizes: Ints, strides: Ints, dilations: Ints
) -> Node:
    """[n, c, positions, sizes] of the padded input.

    A single sample or channel is left out meanwhile, so that a convolution and the gradient of its
    kernels, for which samples and channels change places, read the same windows.
    """
    lead = tuple(size for size in x.shape[:2] if size != 1)
    padded = _padded(build, reshape(build, x, (*lead, *x.shape[2:])), node)
    axes = tuple(range(len(lead), len(lead) + len(sizes)))
    windows = call(
        build, p.unfold, padded, axes=axes, sizes=sizes, strides=strides, dilations=dilations
    )
    return reshape(build, windows, (*x.shape[:2], *windows.shape[len(lead) :]))


def _own_windows(build: RewriteBuilder, node: Node) -> Node:
    """[n, c, out, k]"""
    x, w = node.inputs
    return _windows(build, x, node, w.shape[2:], node.attrs["strides"], node.attrs["dilation"])


def _padded(build: RewriteBuilder, x: Node, node: Node) -> Node:
    """The input spread and padded to exactly what the windows cover."""
    attrs, taps = node.attrs, node.inputs[1].shape[2:]
    interior = tuple(step - 1 for step in attrs["input_dilation"])
    first = x.type.ndim - len(taps)
    amounts = []
    for axis, (low, _) in enumerate(attrs["padding"]):
        size = x.shape[first + axis] + interior[axis] * (x.shape[first + axis] - 1)
        reach = (taps[axis] - 1) * attrs["dilation"][axis]
        covered = (node.shape[2 + axis] - 1) * attrs["strides"][axis] + reach + 1
        amounts.append((low, covered - size - low))
    return pad_or_cut(build, x, first, amounts, interior)


def pad_or_cut(
    build: RewriteBuilder, x: Node, first: int, amounts: Pairs, interior: Ints = ()
) -> Node:
    """Zeros around the axes from `first` on, or elements cut off where an amount is negative."""

    def all_axes(values: Sequence[int], other: int = 0) -> Ints:
        return (other,) * first + tuple(values) + (other,) * (x.type.ndim - first - len(amounts))

    low = all_axes([max(before, 0) for before, _ in amounts])
    high = all_axes([max(after, 0) for _, after in amounts])
    between = all_axes(interior or (0,) * len(amounts))
    if any((*low, *high, *between)):
        x = call(build, p.pad, x, low=low, high=high, interior=between, value=0.0)
    starts = all_axes([max(-before, 0) for before, _ in amounts])
    cut = all_axes([max(-after, 0) for _, after in amounts])
    if not any((*starts, *cut)):
        return x
    stops = tuple(size - last for size, last in zip(x.shape, cut, strict=True))
    return call(build, p.slice_, x, starts=starts, stops=stops, steps=(1,) * x.type.ndim)


def _grouped_rows(build: RewriteBuilder, windows: Node, groups: int, spatial: int) -> Node:
    """[n, c, out, ...] as [n * out, ... * c], with the groups in front if there are several."""
    count, channels, *rest = windows.shape
    at_out, at_taps = tuple(range(2, 2 + spatial)), tuple(range(2 + spatial, 2 + len(rest)))
    rows, taps = count * numel(tuple(rest[:spatial])), numel(tuple(rest[spatial:]))
    if groups == 1:
        transposed = permute(build, windows, (0, *at_out, *at_taps, 1))
        return reshape(build, transposed, (rows, taps * channels))
    each = channels // groups
    split = reshape(build, windows, (count, groups, each, *rest))
    at_out, at_taps = (tuple(axis + 1 for axis in axes) for axes in (at_out, at_taps))
    transposed = permute(build, split, (1, 0, *at_out, *at_taps, 2))
    return reshape(build, transposed, (groups, rows, taps * each))


def _grouped_kernels(build: RewriteBuilder, w: Node, groups: int) -> Node:
    """[o, c, k] as [o, k * c], with the groups in front if there are several."""
    outputs, channels, *taps = w.shape
    transposed = permute(build, w, (0, *range(2, 2 + len(taps)), 1))
    matrix = (outputs // groups, numel(tuple(taps)) * channels)
    return reshape(build, transposed, matrix if groups == 1 else (groups, *matrix))


def _grouped_taps(build: RewriteBuilder, w: Node, groups: int) -> Node:
    """[o, c, k] as [c, k * o], with the groups in front if there are several."""
    outputs, channels, *taps = w.shape
    each = outputs // groups
    at = range(3, 3 + len(taps))
    split = reshape(build, w, (groups, each, channels, *taps))
    transposed = permute(build, split, (0, 2, *at, 1))
    matrix = (channels, numel(tuple(taps)) * each)
    return reshape(build, transposed, matrix if groups == 1 else (groups, *matrix))


def _from_grouped_rows(
    build: RewriteBuilder, product: Node, groups: int, rows: tuple[int, ...]
) -> Node:
    """[n * out, o], or [g, n * out, o / g], as [n, o, out] where `rows` is (n, *out)."""
    spatial, each = len(rows) - 1, product.shape[-1]
    if groups == 1:
        split = reshape(build, product, (*rows, each))
        return permute(build, split, (0, spatial + 1, *range(1, spatial + 1)))
    split = reshape(build, product, (groups, *rows, each))
    transposed = permute(build, split, (1, 0, spatial + 2, *range(2, spatial + 2)))
    return reshape(build, transposed, (rows[0], groups * each, *rows[1:]))
