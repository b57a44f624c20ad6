"""A graph is its inputs and outputs; order and consumers are computed from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from .node import Builder, Node, infer_type
from .primitive import Primitive
from .sources import input_
from .types import IRTypeError


class Graph:
    """Inputs and outputs; everything between is reached from the outputs.

    Inputs are `input` nodes, in the order in which values are fed. `str(graph)` is its stable text
    form, which `text.py` writes; `graph.to_networkx()` is in `export.py`.
    """

    __slots__ = ("__dict__", "inputs", "outputs")

    to_networkx: ClassVar[Callable[[Graph], Any]]

    def __init__(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, inputs first, each after the nodes it reads."""
        return tuple(toposort(self.outputs, first=self.inputs))

    @cached_property
    def primitives(self) -> frozenset[Primitive]:
        """What is applied anywhere."""
        return frozenset([node.primitive for node in self.nodes])

    @cached_property
    def consumers(self) -> dict[Node, tuple[Node, ...]]:
        """The nodes that read each node, without repetition, in order."""
        readers: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for operand in dict.fromkeys(node.inputs):
                readers[operand].append(node)
        return {node: tuple(found) for node, found in readers.items()}

    def with_outputs(self, outputs: Sequence[Node]) -> Graph:
        """The graph of other outputs over the same inputs; this one, where they are the same."""
        return self if tuple(outputs) == self.outputs else Graph(self.inputs, outputs)

    def forget(self) -> None:
        """Drop the order and the consumers, which are computed again where somebody asks."""
        self.__dict__.clear()

    def verify(self) -> None:
        """Infer every type again; IRTypeError prints the neighbours of a faulty node."""
        known = set(self.inputs)
        for node in self.nodes:
            if node.primitive is input_ and node not in known:
                raise IRTypeError(f"{node} is read but is no input of the graph")
            expected = infer_type(node.primitive, [each.type for each in node.inputs], node.attrs)
            if expected != node.type:
                raise IRTypeError(self._fault(node, expected))

    def _fault(self, node: Node, expected: Any) -> str:
        lines = [f"{node.primitive.name} has type {node.type}, its rule says {expected}"]
        lines += [f"  reads {operand} from {operand.where}" for operand in node.inputs]
        lines += [f"  read by {reader}" for reader in self.consumers[node]]
        return "\n".join([*lines, f"  made at {node.where}"])

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes>"


def toposort(
    outputs: Iterable[Node], first: Iterable[Node] = (), known: Iterable[Node] = ()
) -> list[Node]:
    """Every node that `outputs` need, after the nodes it reads; iterative, linear.

    `first` come before all others; nodes of `known`, and what they need, are left out.
    """
    order: list[Node] = []
    seen: set[Node] = set(known)
    stack: list[Node | None] = [*reversed([*first, *outputs])]
    while stack:
        node = stack.pop()
        if node is None:  # the operands of the one below are in order now
            order.append(stack.pop())  # type: ignore[arg-type]
        elif node not in seen:
            seen.add(node)
            if node.inputs:
                stack += node, None
                stack += [operand for operand in node.inputs[::-1] if operand not in seen]
            else:
                order.append(node)
    return order


def transform(
    graph: Graph,
    rewrite: Callable[[Builder, Node, tuple[Node, ...]], Node],
    of: Collection[Primitive] | None = None,
) -> Graph:
    """Rebuild `graph` bottom-up in one walk.

    `rewrite(builder, node, inputs)` gives the node that stands for `node`, whose inputs have been
    rewritten to `inputs`; `builder.rebuild(node, inputs)` keeps it. Graph inputs stay themselves.
    A graph without any of the primitives `of`, which alone `rewrite` replaces, is left as it is.
    """
    if of is not None and graph.primitives.isdisjoint(of):
        return graph
    build = Builder()
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        if node not in new:
            new[node] = rewrite(build, node, tuple(new[operand] for operand in node.inputs))
    return graph.with_outputs([new[node] for node in graph.outputs])
