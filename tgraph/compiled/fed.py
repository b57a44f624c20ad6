"""Nodes of a trace as plans are made of them: inputs for what is known, and sizes as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ..compiler.ir import Builder, Graph, Node, TensorType, toposort
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import Sizes, SymInt
from ..compiler.ir.size_number import computed, is_expression
from ..compiler.plan.plan_sizes import PlanSizes
from ..core.trace_state import Source
from ..core.traced_number import NumberExpression, number_value
from ..tracing.trace_context import scalar_of


class Fed:
    """Nodes of a trace, with `inputs` in the place of those whose values are known already.

    `sizes` are those of the dims that the trace left open. Its inputs are others then, which
    become some of `inputs`.
    """

    def __init__(self, inputs: Mapping[Node, Node], sizes: Sizes | None = None) -> None:
        self.inputs = dict(inputs)
        self.sizes = sizes or {}
        self._build = Builder()
        self._new = dict(inputs)

    @property
    def open(self) -> PlanSizes | None:
        """What its sizes belong to where they are those of a plan for many."""
        scopes = {size.scope for size in self.sizes.values() if type(size) is SymInt}
        return next((each for each in scopes if isinstance(each, PlanSizes)), None)

    def apply(self, nodes: Sequence[Node]) -> list[Node]:
        """What stands for each node; the same for the same node, whenever it is asked."""
        if not self.inputs and not self.sizes:
            return list(nodes)
        for node in toposort(nodes, known=self._new):
            if node not in self._new:
                self._new[node] = (
                    self._input(node) if node.primitive is p.input_ else self._at(node)
                )
        return [self._new[node] for node in nodes]

    def with_inputs(self, inputs: Mapping[Node, Node]) -> Fed:
        """The same, with more inputs."""
        return Fed(self.inputs | inputs, self.sizes)

    def type_of(self, node: Node) -> TensorType:
        """The type of a node where sizes are known."""
        return type_at(node.type, self.sizes)

    def _input(self, node: Node) -> Node:
        type_ = self.type_of(node)
        if type_ is node.type:
            return node
        attrs = MappingProxyType({**node.attrs, "type": type_})
        new = self.inputs[node] = Node(node.primitive, (), attrs, type_, node.where)
        return new

    def _at(self, node: Node) -> Node:
        operands = [self._new[operand] for operand in node.inputs]
        if not self.sizes:
            return self._build.rebuild(node, operands)
        new = self._build.rebuild(node, operands, attrs_at(node.attrs, self.sizes) or node.attrs)
        if new.type != type_at(node.type, self.sizes):
            raise SizeError(f"{node.primitive.name} at {node.where}")
        return new

    def origins(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of the trace that `nodes` stand for."""
        of = {new: old for old, new in self._new.items()}
        return [of.get(node, node) for node in nodes]


class SizeError(Exception):
    """A graph whose types come out otherwise at certain sizes than they were traced."""


def type_at(type_: Any, sizes: Sizes) -> Any:
    """A type, or those of several results, where sizes are known."""
    if type(type_) is not TensorType:
        return tuple(type_at(each, sizes) for each in type_)
    shape = type_.shape
    if not any(type(size) is SymInt for size in shape):
        return type_
    return type_.with_shape(tuple(value_at(size, sizes) for size in shape))


def attrs_at(attrs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any] | None:
    """Attributes where sizes are known; None where nothing of them was open."""
    found = {name: value_at(value, sizes) for name, value in attrs.items()}
    if all(found[name] is value for name, value in attrs.items()):
        return None
    if isinstance(attrs.get("value"), (NumberExpression, Source)):
        found["value"] = computed(partial(scalar_of, dtype=attrs["dtype"]), found["value"])
    return found


def value_at(value: Any, sizes: Sizes) -> Any:
    """An attribute where sizes are known; itself where nothing of it was open."""
    if is_expression(value):
        return value.at(sizes)
    if type(value) is TensorType:
        return type_at(value, sizes)
    if isinstance(value, (NumberExpression, Source)):
        return number_value(value, lambda source: source.key.at(sizes))
    if isinstance(value, Graph):
        return graph_at(value, sizes)
    if type(value) in (tuple, list):
        found = type(value)(value_at(each, sizes) for each in value)
        return value if all(map(_is, found, value)) else found
    return value


def graph_at(graph: Graph, sizes: Sizes) -> Graph:
    """A graph inside of a node where sizes are known; itself where nothing of it was open."""
    fed = Fed({}, sizes)
    inputs, outputs = fed.apply(graph.inputs), fed.apply(graph.outputs)
    is_same = all(map(_is, (*inputs, *outputs), (*graph.inputs, *graph.outputs)))
    return graph if is_same else Graph(inputs, outputs)


def _is(one: Any, other: Any) -> bool:
    return one is other
