"""Small branches on a GPU: all sides are computed, and the results of one are selected.

Whoever lets Python choose waits for the number that decides, and for what it launches then, which
takes as long as several small kernels. So sides that take less together are computed without asking
anybody, as long as nothing in them can fail: a `while_loop` with a bound, whose turns behind the
last leave the state as it is, becomes one graph.
"""

from __future__ import annotations

from math import prod

from ....runtime.dtypes import bool_, int64
from ...ir import Builder, Family, Graph, Node, transform
from ...ir import primitives as p
from ...passes.simplify_control import inlined
from .machine import GPU

WAIT = 12_000.0
"""Nanoseconds from the last kernel before a decision to the first one behind it."""
FLOP = 1 / 20_000
"""Nanoseconds of an operation of a small product."""

_FAMILIES = (Family.SOURCE, Family.ELEMENTWISE, Family.VIEW, Family.REDUCE, Family.RANDOM)
_DIVISIONS = (p.floor_divide, p.remainder)


def select_branches(graph: Graph) -> Graph:
    """`graph` with selections in the place of branches whose sides take less than a wait."""
    if p.branch not in graph.primitives:
        return graph
    selected: dict[Node, list[Node]] = {}

    def rewrite(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.primitive is p.get and node.inputs[0] in selected:
            return selected[node.inputs[0]][node.attrs["index"]]
        if node.primitive is not p.branch:
            return build.rebuild(node, inputs)
        graphs = [select_branches(each) for each in node.attrs["branches"]]
        if not all(map(_may_be_computed, graphs)) or sum(map(_time, graphs)) > WAIT:
            return build.rebuild(node, inputs)
        index, *operands = inputs
        sides = [inlined(build, each, operands) for each in graphs]
        selected[node] = _selection(build, index, sides, node)
        return index  # which nothing reads: results are found above

    return transform(graph, rewrite)


def _may_be_computed(graph: Graph) -> bool:
    """Whether nothing in a graph can fail, calls anybody, or may run for long."""
    for node in graph.nodes:
        family = node.primitive.family
        if family not in _FAMILIES and node.primitive is not p.matmul:
            return False
        if node.primitive in _DIVISIONS and node.type.dtype.is_integral:
            divisor = node.inputs[1]
            if divisor.primitive is not p.full or not divisor.attrs["value"]:
                return False
        if node.primitive is p.require:
            return False
    return True


def _time(graph: Graph) -> float:
    """What a side takes, about, whose elementwise parts are one kernel with what they read."""
    moved = [node for node in (*graph.inputs, *graph.outputs) if graph.reads.get(node, 1)]
    time, starts = 0.0, 1
    for node in graph.nodes:
        family = node.primitive.family
        if family in (Family.ELEMENTWISE, Family.REDUCE, Family.RANDOM):
            read = max((each.type.nbytes for each in node.inputs), default=0)
            time += node.primitive.cost * max(node.type.nbytes, read) * GPU.operation
        if family in (Family.REDUCE, Family.CONTRACTION):
            starts, moved = starts + 1, [*moved, node, *node.inputs]
        if family is Family.CONTRACTION:
            left = node.inputs[0]
            inner = left.shape[-2 if node.attrs["transpose_a"] else -1]
            time += 2 * prod(node.shape) * inner * FLOP
    return time + starts * GPU.start + sum(GPU.byte(n) * n for n in (x.type.nbytes for x in moved))


def _selection(build: Builder, index: Node, sides: list[list[Node]], branch: Node) -> list[Node]:
    """The results of one of the sides, by a number that is clamped."""
    found = sides[0]
    where = branch.where
    is_bool = index.type.dtype is bool_
    number = index if is_bool else build.apply(p.cast, [index], {"dtype": int64}, where)
    for at, side in enumerate(sides[1:], 1):
        chosen = number
        if not is_bool:
            attrs = {"shape": (), "value": at, "dtype": int64, "device": index.type.device}
            least = build.apply(p.full, (), attrs, where)
            chosen = build.apply(p.ge, [number, least], {}, where)
        found = [
            one if one is other else build.apply(p.where, [chosen, one, other], {}, where)
            for one, other in zip(side, found, strict=True)
        ]
        if is_bool:  # there is no third one
            break
    return found
