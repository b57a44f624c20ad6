"""Moves permutes to where they cost nothing: towards the outputs, into matmul's flags, or away.

A permute in front of an elementwise function, a reduction, a pad, a slice, windows or a reshape of
whole groups of axes moves behind it, so that values keep the order in which they were made until
an operation needs another. Products of many matrices become few large ones.
"""

from __future__ import annotations

import math

from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.reshape_groups import reshape_groups
from ..ir.shapes import Shape
from .canonicalize import RULES as CANONICAL
from .matching import call, permute, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite

Axes = tuple[int, ...]


def _inverse(axes: Axes) -> Axes:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


@rewrite(Family.ELEMENTWISE, reading=[p.permute])
def elementwise_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    """Where all larger operands are permuted alike, the result is permuted instead."""
    for permuted in node.inputs:
        if permuted.primitive is p.permute:
            break
    else:
        return None
    axes: Axes = permuted.attrs["axes"]
    if len(axes) != node.type.ndim:
        return None
    operands = [_unpermuted(build, each, axes) for each in node.inputs]
    if None in operands:
        return None
    return permute(build, build.rebuild(node, [each for each in operands if each]), axes)


def _unpermuted(build: RewriteBuilder, node: Node, axes: Axes) -> Node | None:
    """The value whose permutation by `axes` is `node`, if there is one without moving elements."""
    if node.primitive is p.permute:
        return node.inputs[0] if node.attrs["axes"] == axes else None
    if node.type.ndim == 0:
        return node
    shape = (1,) * (len(axes) - node.type.ndim) + node.shape
    if sum(size != 1 for size in shape) > 1:
        return None
    return reshape(build, node, tuple(shape[at] for at in _inverse(axes)))


@rewrite(Family.REDUCE, reading=[p.permute])
def reduction_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes: Axes = x.attrs["axes"]
    reduced = {axes[axis] for axis in node.attrs["axes"]}
    keepdims = node.attrs["keepdims"]
    result = call(
        build, node.primitive, x.inputs[0], axes=tuple(sorted(reduced)), keepdims=keepdims
    )
    left = [axis for axis in axes if keepdims or axis not in reduced]
    return permute(build, result, _ranked(left))


@rewrite(p.cumsum, p.cumprod, p.cummax, p.cummin)
def scan_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    x = node.inputs[0]
    if x.primitive is not p.permute or len(node.inputs) > 1:
        return None
    axes: Axes = x.attrs["axes"]
    attrs = {**node.attrs, "axis": axes[node.attrs["axis"]]}
    return permute(build, call(build, node.primitive, x.inputs[0], **attrs), axes)


def _ranked(axes: list[int]) -> Axes:
    """`axes` renumbered without gaps."""
    position = {axis: at for at, axis in enumerate(sorted(axes))}
    return tuple(position[axis] for axis in axes)


_PER_AXIS = {p.pad: ("low", "high", "interior"), p.slice_: ("starts", "stops", "steps")}


@rewrite(*_PER_AXIS)
def pad_or_slice_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes: Axes = x.attrs["axes"]
    back = _inverse(axes)
    attrs = dict(node.attrs)
    for name in _PER_AXIS[node.primitive]:
        attrs[name] = tuple(node.attrs[name][at] for at in back)
    return permute(build, call(build, node.primitive, x.inputs[0], **attrs), axes)


@rewrite(p.flip)
def flip_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes: Axes = x.attrs["axes"]
    flipped = tuple(sorted(axes[axis] for axis in node.attrs["axes"]))
    return permute(build, call(build, p.flip, x.inputs[0], axes=flipped), axes)


@rewrite(p.concatenate)
def concatenate_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    if not all(each.primitive is p.permute for each in node.inputs):
        return None
    axes: Axes = node.inputs[0].attrs["axes"]
    if any(each.attrs["axes"] != axes for each in node.inputs):
        return None
    sources = [each.inputs[0] for each in node.inputs]
    joined = call(build, p.concatenate, *sources, axis=axes[node.attrs["axis"]])
    return permute(build, joined, axes)


@rewrite(p.unfold)
def unfold_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    """Windows keep their place at the end; only the axes they slide along are renamed."""
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes: Axes = x.attrs["axes"]
    along = tuple(axes[axis] for axis in node.attrs["axes"])
    windows = call(build, p.unfold, x.inputs[0], **{**node.attrs, "axes": along})
    return permute(build, windows, (*axes, *range(len(axes), node.type.ndim)))


@rewrite(p.fold)
def fold_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    """The windows' own axes must stay at the end; the order of the others moves behind."""
    (x,) = node.inputs
    if x.primitive is not p.permute:
        return None
    axes: Axes = x.attrs["axes"]
    kept, taps = axes[: node.type.ndim], axes[node.type.ndim :]
    order = _ranked(list(kept))
    if order == tuple(range(len(order))):
        return None
    windows = permute(build, x.inputs[0], (*sorted(kept), *taps))
    back = _inverse(order)
    folded = call(
        build, p.fold, windows,
        axes=tuple(order[axis] for axis in node.attrs["axes"]),
        shape=tuple(node.shape[at] for at in back),
        strides=node.attrs["strides"], dilations=node.attrs["dilations"],
    )  # fmt: skip
    return permute(build, folded, order)


@rewrite(p.reshape, reading=[p.permute])
def reshape_of_permuted(build: RewriteBuilder, node: Node) -> Node | None:
    """A reshape that splits axes, or merges neighbours that the permute kept together."""
    (x,) = node.inputs
    if x.primitive is not p.permute or not node.type.numel:
        return None
    (source,) = x.inputs
    axes: Axes = x.attrs["axes"]
    real = [axis for axis, size in enumerate(source.shape) if size != 1]
    groups = reshape_groups(x.shape, node.shape)
    places = []
    for inner, _ in groups:
        taken = [real.index(axes[axis]) for axis in inner if x.shape[axis] != 1]
        if not taken or taken != list(range(taken[0], taken[0] + len(taken))):
            return None
        places.append(taken[0])
    in_source_order = sorted(range(len(groups)), key=places.__getitem__)
    return _regrouped(build, source, node.shape, [groups[at][1] for at in in_source_order])


def _regrouped(
    build: RewriteBuilder, source: Node, shape: Shape, groups: list[tuple[int, ...]]
) -> Node:
    """`source` reshaped to the result's axes in the order of `groups`, then put in order."""
    order = tuple(axis for group in groups for axis in group)
    split = reshape(build, source, tuple(shape[axis] for axis in order))
    return permute(build, split, _inverse(order))


# --- matrix products ---


@rewrite(p.matmul, reading=[p.permute])
def matmul_of_transposed(build: RewriteBuilder, node: Node) -> Node | None:
    """A permute that turns the last two axes round becomes a flag."""
    operands, attrs = list(node.inputs), dict(node.attrs)
    for at, flag in enumerate(("transpose_a", "transpose_b")):
        operand = operands[at]
        if operand.primitive is not p.permute:
            continue
        *batch, row, column = operand.attrs["axes"]
        if row > column:
            operands[at] = permute(build, operand.inputs[0], (*batch, column, row))
            attrs[flag] = not attrs[flag]
    if tuple(operands) == node.inputs:
        return None
    return call(build, p.matmul, *operands, **attrs)


@rewrite(p.permute, reading=[p.matmul])
def transposed_matmul(build: RewriteBuilder, node: Node) -> Node | None:
    """(a b)^T is b^T a^T, if nothing else reads the product."""
    (product,) = node.inputs
    if product.primitive is not p.matmul or not build.read_once(product):
        return None
    *batch, row, column = node.attrs["axes"]
    if (column, row) != (product.type.ndim - 2, product.type.ndim - 1):
        return None
    a, b = product.inputs
    swapped = call(
        build, p.matmul, b, a,
        transpose_a=not product.attrs["transpose_b"],
        transpose_b=not product.attrs["transpose_a"],
    )  # fmt: skip
    return permute(build, swapped, (*batch, column, row))


@rewrite(p.matmul)
def matmul_of_single_matrices(build: RewriteBuilder, node: Node) -> Node | None:
    """Leading axes of size one say nothing."""
    operands = [
        reshape(build, each, each.shape[-2:]) if math.prod(each.shape[:-2]) == 1 else each
        for each in node.inputs
    ]
    if tuple(operands) == node.inputs:
        return None
    return reshape(build, build.rebuild(node, operands), node.shape)


@rewrite(p.matmul)
def matmul_of_all_rows(build: RewriteBuilder, node: Node) -> Node | None:
    """Many matrices times one are one tall matrix times one."""
    a, b = node.inputs
    if a.type.ndim == 2 or b.type.ndim != 2 or node.attrs["transpose_a"]:
        return None
    rows = reshape(build, a, (math.prod(a.shape[:-1]), a.shape[-1]))
    return reshape(build, build.rebuild(node, [rows, b]), node.shape)


@rewrite(p.sum_, reading=[p.matmul])
def sum_of_matmuls(build: RewriteBuilder, node: Node) -> Node | None:
    """sum_i a_i^T b_i over all leading axes is one product with a longer contraction."""
    (product,) = node.inputs
    if product.primitive is not p.matmul or not build.read_once(product):
        return None
    a, b = product.inputs
    lead = product.type.ndim - 2
    flags = product.attrs["transpose_a"] and not product.attrs["transpose_b"]
    all_of_them = lead > 0 and node.attrs["axes"] == tuple(range(lead))
    if not flags or not all_of_them or a.shape[:-2] != b.shape[:-2]:
        return None
    rows = math.prod(a.shape[:-1])
    tall = [reshape(build, each, (rows, each.shape[-1])) for each in (a, b)]
    return reshape(build, build.rebuild(product, tall), node.shape)


RULES = (
    elementwise_of_permuted,
    reduction_of_permuted,
    scan_of_permuted,
    pad_or_slice_of_permuted,
    flip_of_permuted,
    concatenate_of_permuted,
    unfold_of_permuted,
    fold_of_permuted,
    reshape_of_permuted,
    matmul_of_transposed,
    transposed_matmul,
    matmul_of_single_matrices,
    matmul_of_all_rows,
    sum_of_matmuls,
    *CANONICAL,
)


def propagate_layouts(graph: Graph) -> Graph:
    return apply_rules(graph, RULES, count_reads=True)
