"""No element is read from a tensor that has none.

Every value without elements becomes a `full` of its type, which is never computed, and what reads
one becomes what is left of it: a sum of nothing is 0, a padded nothing is all padding. So nothing
below needs to think of axes of size zero. Positions in an empty axis stay: they are an error
where they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...runtime.device import CPU
from ..ir import Builder, Family, Graph, Node, TensorType, transform
from ..ir import primitives as p
from ..ir.monoids import MONOID_OF


def replace_empty(graph: Graph) -> Graph:
    """`graph` with values without elements known as such."""
    if all(_is_opaque(node) or 0 not in node.type.shape for node in graph.nodes):
        return graph
    rebuilt = transform(graph, _without_empty)
    return Graph(graph.inputs, rebuilt.outputs)


def _is_opaque(node: Node) -> bool:
    return not isinstance(node.type, TensorType)


def _full(build: Builder, node: Node, value: Any) -> Node:
    """A `full` of the type of `node`, on its device."""
    shape, dtype, device = node.type
    attrs = {"shape": shape, "value": value, "dtype": dtype}
    placed = {} if device == CPU else {"device": device}
    return build.apply(p.full, (), {**attrs, **placed}, node.where)


def _nothing(build: Builder, node: Node) -> Node:
    """Zeros of the type of `node`, which is never looked at where there are none."""
    kind = node.type.dtype.kind
    value = False if kind == "bool" else 0.0 if kind == "float" else 0
    return _full(build, node, value)


def _without_empty(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    if _is_opaque(node) or node.primitive.family is Family.OPAQUE:
        return build.rebuild(node, inputs)
    if node.type.numel == 0:
        return _nothing(build, node)
    inputs = tuple(each if _has_elements(each) else _nothing(build, each) for each in inputs)
    if all(map(_has_elements, inputs)):
        return build.rebuild(node, inputs)
    rest = _REST.get(node.primitive.name)
    return build.rebuild(node, inputs) if rest is None else rest(build, node, inputs)


def _has_elements(node: Node) -> bool:
    return _is_opaque(node) or node.type.numel > 0


def _identity(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    identity = MONOID_OF[node.primitive].identity(node.type.dtype)
    value = float(identity) if node.type.dtype.is_floating_point else identity
    return _full(build, node, value)


def _zeros(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    return _nothing(build, node)


def _padding(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    return _full(build, node, node.attrs["value"])


def _pieces(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    return build.rebuild(node, [each for each in inputs if _has_elements(each)])


def _base(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    return inputs[0]


# What is left of a primitive with elements in its result, but none in some input.
_REST: dict[str, Callable[[Builder, Node, tuple[Node, ...]], Node]] = {
    "sum": _identity,
    "prod": _identity,
    "any": _identity,
    "all": _identity,
    "pad": _padding,
    "concatenate": _pieces,
    "slice_update": _base,
    "scatter_add": _base,
    "index_put": _base,
    "fold": _zeros,
    "matmul": _zeros,
    "convolution": _zeros,
}
