"""Rows in order, where nobody asks where their elements were: NumPy sorts them by vectors."""

from __future__ import annotations

from ..ir import Graph, Node
from ..ir import primitives as p
from .matching import call, permute
from .rewrite import RewriteBuilder, apply_rules, rewrite


@rewrite(p.gather)
def sorted_rows(build: RewriteBuilder, node: Node) -> Node | None:
    """`gather(x, argsort(x))`, or with an axis of `x` as the last one for `argsort`."""
    x, positions = node.inputs
    found, axes = _unpermuted(positions)
    if found.primitive is not p.argsort or found.attrs["count"] != found.inputs[0].shape[-1]:
        return None
    (rows,) = found.inputs
    base, order = _unpermuted(rows)
    if _unpermuted(x) != (base, tuple(order[at] for at in axes)):
        return None
    is_along = node.attrs["axis"] == axes.index(len(axes) - 1)
    if not is_along or not build.read_once(found) or not build.read_once(positions):
        return None
    return permute(build, call(build, p.sort, rows, descending=found.attrs["descending"]), axes)


def _unpermuted(node: Node) -> tuple[Node, tuple[int, ...]]:
    """What `node` is a permute of, and the axes of that in the order of its own."""
    if node.primitive is p.permute:
        return node.inputs[0], node.attrs["axes"]
    return node, tuple(range(node.type.ndim))


def sort_values(graph: Graph) -> Graph:
    return apply_rules(graph, (sorted_rows,), count_reads=True)
