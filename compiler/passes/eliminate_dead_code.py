"""Nothing is computed that nothing reads.

Nodes that no output needs are not part of a graph to begin with. Here single elements follow: a
slice moves in front of what only the slice reads, so that `(x @ w)[:, -1]` multiplies one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.shapes import slice_size
from .canonicalize import RULES as CANONICAL
from .matching import call, permute
from .rewrite import RewriteBuilder, apply_rules, rewrite

Range = tuple[int, int, int]


@rewrite(p.slice_)
def slice_before_what_it_reads(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if not x.inputs or not build.read_once(x):
        return None
    if x.primitive.family is Family.ELEMENTWISE:
        return build.rebuild(x, [_sliced(build, each, _ranges(node)) for each in x.inputs])
    if x.primitive is p.matmul:
        return _sliced_matmul(build, x, _ranges(node))
    if x.primitive is p.permute:
        return _sliced_permute(build, x, _ranges(node))
    if x.primitive is p.convolution and node.type.numel:
        return _sliced_convolution(build, x, _ranges(node))
    return None


def _ranges(node: Node) -> list[Range]:
    names = ("starts", "stops", "steps")
    return list(zip(*(node.attrs[name] for name in names), strict=True))


def _sliced(build: RewriteBuilder, x: Node, ranges: Sequence[Range]) -> Node:
    """The part of `x` that reaches `ranges` of the shape it broadcasts to; all of an axis of 1."""
    own = ranges[len(ranges) - x.type.ndim :]
    kept = [
        (0, min(slice_size(*each), 1), 1) if size == 1 else each
        for size, each in zip(x.shape, own, strict=True)
    ]
    starts, stops, steps = (
        (tuple(values) for values in zip(*kept, strict=True)) if kept else ((),) * 3
    )
    if all(each == (0, size, 1) for size, each in zip(x.shape, kept, strict=True)):
        return x
    return call(build, p.slice_, x, starts=starts, stops=stops, steps=steps)


def _sliced_matmul(build: RewriteBuilder, product: Node, ranges: Sequence[Range]) -> Node | None:
    """Rows come from the first operand, columns from the second, matrices from both."""
    *batch, row, column = ranges
    whole = (0, product.inputs[0].shape[-1 if not product.attrs["transpose_a"] else -2], 1)
    a_last = [whole, row] if product.attrs["transpose_a"] else [row, whole]
    b_last = [column, whole] if product.attrs["transpose_b"] else [whole, column]
    a, b = product.inputs
    return build.rebuild(
        product, [_sliced(build, a, [*batch, *a_last]), _sliced(build, b, [*batch, *b_last])]
    )


def _sliced_convolution(build: RewriteBuilder, y: Node, ranges: Sequence[Range]) -> Node:
    """Samples come from the input, channels from the kernels, positions from the padding."""
    samples, channels, *positions = ranges
    x, w = y.inputs
    x = _sliced(build, x, [samples, *_whole(x)[1:]])
    if y.attrs["groups"] == 1:
        w = _sliced(build, w, [channels, *_whole(w)[1:]])
    moved = [_moved_window(y, axis, *at) for axis, at in enumerate(positions, 2)]
    strides, padding = zip(*moved, strict=True)
    result = call(build, p.convolution, x, w, **{**y.attrs, "strides": strides, "padding": padding})
    if y.attrs["groups"] == 1:
        return result
    return _sliced(build, result, [_whole(result)[0], channels, *_whole(result)[2:]])


def _whole(x: Node) -> list[Range]:
    return [(0, size, 1) for size in x.shape]


def _moved_window(
    y: Node, axis: int, start: int, stop: int, step: int
) -> tuple[int, tuple[int, int]]:
    """The stride and padding for which only the positions start:stop:step are computed."""
    at = axis - 2
    stride, (low, high) = y.attrs["strides"][at], y.attrs["padding"][at]
    last = start + (slice_size(start, stop, step) - 1) * step
    unread = (y.shape[axis] - 1 - last) * stride
    return stride * step, (low - start * stride, high - unread)


def _sliced_permute(build: RewriteBuilder, x: Node, ranges: Sequence[Range]) -> Node:
    axes = x.attrs["axes"]
    back = sorted(range(len(axes)), key=axes.__getitem__)
    return permute(build, _sliced(build, x.inputs[0], [ranges[at] for at in back]), axes)


RULES = (slice_before_what_it_reads, *CANONICAL)


def eliminate_dead_code(graph: Graph) -> Graph:
    return apply_rules(graph, RULES, count_reads=True)
