"""Images whose windows a matrix product could only gather number by number are transposed first.

A product reads windows from the images themselves where numbers lie side by side along its rows or
columns (`memory_views.py`). With a stride and channels in front of places they do not. One copy of
the images with another axis last is then less than the matrix of windows, which has most elements
several times.
"""

from __future__ import annotations

from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p
from ..kernel.kernel_io import BufferLayout
from ..kernel.memory_views import longest_run, unfolded


def lay_out_windows(graph: Graph) -> Graph:
    """Put another axis of images last where windows of theirs are multiplied."""
    if p.unfold not in graph.primitives:
        return graph
    return transform(graph, _rewrite, of=[p.matmul])


def _rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
    if node.primitive is p.matmul and 1 not in node.shape[-2:]:
        operands = tuple(_transposed(build, each) for each in operands)
    return build.rebuild(node, operands)


def _transposed(build: Builder, matrix: Node) -> Node:
    """`matrix` made of windows of transposed images, if that makes it easier to gather."""
    windows = unfolded(matrix)
    if windows is None or _run(matrix, windows):
        return matrix
    (x,) = windows.inputs
    if windows.type.numel <= x.type.numel:
        return matrix
    others = [axis for axis in range(x.type.ndim) if axis not in windows.attrs["axes"]]
    best, most = matrix, 0
    for last in others:
        new = _rebuilt(build, matrix, windows, _windows_of_transposed(build, windows, last))
        run = _run(new, unfolded(new))
        if run > most:
            best, most = new, run
    return best


def _run(matrix: Node, windows: Node | None) -> int:
    if windows is None:
        return 0
    (x,) = windows.inputs
    return longest_run(matrix, x, BufferLayout.contiguous(x.shape))


def _windows_of_transposed(build: Builder, windows: Node, last: int) -> Node:
    """The same windows of a copy of the images that has the axis `last` behind all others."""
    (x,) = windows.inputs
    order = (*(axis for axis in range(x.type.ndim) if axis != last), last)
    transposed = build.apply(p.permute, [x], {"axes": order}, x.where)
    along = tuple(order.index(axis) for axis in windows.attrs["axes"])
    attrs = {**windows.attrs, "axes": along}
    new = build.apply(p.unfold, [transposed], attrs, windows.where)
    back = (*map(order.index, range(x.type.ndim)), *range(x.type.ndim, new.type.ndim))
    return build.apply(p.permute, [new], {"axes": back}, windows.where)


def _rebuilt(build: Builder, node: Node, old: Node, new: Node) -> Node:
    """`node`, which views lead to from `old`, made of `new`."""
    if node is old:
        return new
    return build.rebuild(node, [_rebuilt(build, node.inputs[0], old, new)])
