"""A graph is its inputs and outputs; order and consumers are computed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from .node import Builder, Node, Structured, infer_type
from .primitive import Family, Primitive
from .sources import input_
from .types import IRTypeError

MANY_NODES = 256
"""A graph with fewer nodes compiles in little time, whether it repeats itself or not."""


class Graph(Structured):
    """Inputs and outputs; everything between is reached from the outputs.

    Inputs are `input` nodes, in the order in which values are fed. `str(graph)` is its stable text
    form, which `text.py` writes; `graph.to_networkx()` is in `export.py`. Nodes of control flow
    have graphs among their attributes, whose nodes are not among `nodes`.
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
            for operand in node.inputs:
                found = readers[operand]
                if not found or found[-1] is not node:
                    found.append(node)
        return {node: tuple(found) for node, found in readers.items()}

    @cached_property
    def reads(self) -> Mapping[Node, int]:
        """How many nodes, and outputs, read each node."""
        operands = [*self.outputs]
        for node in self.nodes:
            inputs = node.inputs
            operands += inputs if len(inputs) < 2 else set(inputs)
        found = Counter(dict.fromkeys(self.nodes, 0))
        found.update(operands)
        return found

    @cached_property
    def structure(self) -> Hashable:
        """Equal for graphs that compute the same of inputs of the same types.

        Neither the names of inputs nor lines of the program are part of it.
        """
        number = {node: at for at, node in enumerate(self.nodes)}
        nodes = tuple(
            (
                node.type if node.primitive is input_ else node.what,
                tuple([number[each] for each in node.inputs]),
            )
            for node in self.nodes
        )
        return _HashedOnce((len(self.inputs), nodes, tuple(map(number.__getitem__, self.outputs))))

    @property
    def whole(self) -> list[Graph]:
        """This graph and those among the attributes of nodes, outer ones first; iterative."""
        found: dict[Graph, None] = {}
        pending = [self]
        while pending:
            graph = pending.pop()
            if graph not in found:
                found[graph] = None
                pending += _all_nested(graph)[::-1]
        return list(found)

    def with_outputs(self, outputs: Sequence[Node]) -> Graph:
        """The graph of other outputs over the same inputs; this one, where they are the same."""
        return self if tuple(outputs) == self.outputs else Graph(self.inputs, outputs)

    def forget(self) -> None:
        """Drop the order and the consumers, which are computed again where somebody asks."""
        self.__dict__.clear()

    def verify(self) -> None:
        """Infer every type again, also of the graphs among attributes.

        IRTypeError prints the neighbours of a faulty node.
        """
        for graph in self.whole:
            graph._verify_nodes()

    def _verify_nodes(self) -> None:
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


class _HashedOnce:
    """A large key whose hash is computed once."""

    __slots__ = ("hashed", "key")

    def __init__(self, key: Hashable) -> None:
        self.key, self.hashed = key, hash(key)

    def __hash__(self) -> int:
        return self.hashed

    def __reduce__(self) -> tuple[Any, ...]:
        return _HashedOnce, (self.key,)  # hashes are those of one process

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _HashedOnce):
            return NotImplemented
        return self is other or (self.hashed == other.hashed and self.key == other.key)


def nested_graphs(node: Node) -> list[Graph]:
    """The graphs among the attributes of a node, in the order of their names."""
    if node.primitive.family is not Family.CONTROL:
        return []
    values = [node.attrs[name] for name in sorted(node.attrs)]
    listed = [each for value in values for each in (value if type(value) is tuple else (value,))]
    return [each for each in listed if isinstance(each, Graph)]


def map_whole(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """`change` of a graph, and of all graphs among the attributes of what it makes; iterative."""
    changed: dict[Graph, Graph] = {}
    final: dict[Graph, Graph] = {}
    pending = [graph]
    while pending:
        current = pending[-1]
        if current not in changed:
            changed[current] = change(current)
            pending += _all_nested(changed[current])
            continue
        pending.pop()
        final[current] = _with_nested(changed[current], final)
    return final[graph]


def _all_nested(graph: Graph) -> list[Graph]:
    if not any(each.family is Family.CONTROL for each in graph.primitives):
        return []
    return [each for node in graph.nodes for each in nested_graphs(node)]


def _with_nested(graph: Graph, new: dict[Graph, Graph]) -> Graph:
    """`graph` with others in the place of the graphs among its attributes."""
    if all(new[each] is each for each in _all_nested(graph)):
        return graph

    def replaced(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(replaced, value))
        return new[value] if isinstance(value, Graph) else value

    def rewrite(build: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
        if not nested_graphs(node):
            return build.rebuild(node, inputs)
        attrs = {name: replaced(value) for name, value in node.attrs.items()}
        return build.apply(node.primitive, inputs, attrs, node.where)

    return transform(graph, rewrite)


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
            pending = [operand for operand in node.inputs[::-1] if operand not in seen]
            if pending:
                stack += node, None
                stack += pending
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
