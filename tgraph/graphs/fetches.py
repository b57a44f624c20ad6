"""What a run is asked for: nested tensors, operations and variables."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node
from ..core import pytree
from ..core.dispatch import settled
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple
from .graph_trace import GraphTrace
from .lookup import named
from .operation import Operation


class Fetches(NamedTuple):
    """Leaves of what is fetched.

    `places` tells what stands at each leaf of the result: the number of a node, a variable, or
    None for an operation. `nodes` are what is fetched, `others` what operations need.
    """

    leaves: list[Any]
    tree: pytree.TreeSpec
    nodes: tuple[Node, ...]
    others: tuple[Node, ...]
    places: list[int | Tensor | None]

    @property
    def is_single(self) -> bool:
        """Whether what is fetched is one leaf by itself."""
        return bool(self.tree == pytree.LEAF)

    @property
    def is_flat(self) -> bool:
        """Whether it is a container with nothing but leaves in it."""
        return all(child == pytree.LEAF for child in self.tree.children)


def fetches_of(trace: GraphTrace, fetches: Any) -> Fetches:
    """What `fetches` asks of a graph; TypeError or ValueError for what it does not have."""
    leaves, tree = pytree.flatten(fetches)
    nodes: dict[Node, int] = {}
    places: list[int | Tensor | None] = []
    others: list[Node] = []
    for path, leaf in zip(tree.paths("fetches"), leaves, strict=True):
        each = named(trace, leaf) if type(leaf) is str else leaf
        if isinstance(each, Operation):
            _check_graph(trace, each.graph.trace is trace, path, f"operation '{each.name}'")
            others += each.nodes
            places.append(None)
        elif isinstance(each, Tensor) and type(each._value) is Node:
            _check_graph(
                trace, trace.owns(each._value), path, f"tensor made at {each._value.where}"
            )
            node = _node_of(trace, each)
            places.append(nodes.setdefault(node, len(nodes)))
        elif isinstance(each, Tensor) and trace.graph.is_variable(each):
            places.append(each)
        elif isinstance(each, Tensor):
            raise ValueError(
                f"{path} is a tensor that has a value already and is no variable of the graph"
            )
        else:
            raise TypeError(
                f"{path} is a {type(each).__name__}: a run fetches tensors and operations of its "
                "graph, and variables, or their names"
            )
    return Fetches(leaves, tree, tuple(nodes), tuple(others), places)


def _check_graph(trace: GraphTrace, is_own: bool, path: str, what: str) -> None:
    if not is_own:
        raise ValueError(f"{path}, the {what}, belongs to another graph than the session's")


def _node_of(trace: GraphTrace, tensor: Tensor) -> Node:
    view = tensor._view
    if view is not None and view.changes != view.memory.changes:
        was_final, trace.is_final = trace.is_final, False
        try:
            with trace.entered():
                settled(tensor)
        finally:
            trace.is_final = was_final
    node: Node = tensor._value
    return node
