"""A graph as other libraries' graphs."""

from __future__ import annotations

from typing import Any

from .graph import Graph
from .node import Node
from .text import node_names
from .types import TensorType


def unique_names(graph: Graph) -> dict[Node, str]:
    """The names of the text form, told apart where several inputs have one name.

    The first keeps it, the next are "%x.1", "%x.2" and so on.
    """
    names: dict[Node, str] = {}
    taken: set[str] = set()
    for node, name in node_names(graph).items():
        found, number = name, 0
        while found in taken:
            number += 1
            found = f"{name}.{number}"
        taken.add(found)
        names[node] = found
    return names


def to_networkx(graph: Graph) -> Any:
    """`graph` as a `networkx.DiGraph`, for its algorithms and file formats.

    Keys are the names of the text form, in its order. Attributes of a node are `op`, `shape`,
    `dtype` (tuples of them where it has several results), `where`, `attrs` and `node`, the Node
    itself. An edge leads from an operand to what reads it; its `positions` say which operands it
    is. The DiGraph's own attributes `inputs` and `outputs` are the keys, in order.

    >>> from tgraph.compiler.ir import Builder, TensorType, input_node, primitives as p
    >>> from tgraph.runtime.dtypes import float32
    >>> build, x = Builder(), input_node("x", TensorType((2,), float32))
    >>> found = Graph([x], [build.apply(p.mul, [x, x])]).to_networkx()
    >>> found.nodes["%0"]["op"], found.edges["%x", "%0"]["positions"], found.graph["outputs"]
    ('mul', (0, 1), ('%0',))
    """
    import networkx

    names = unique_names(graph)
    result = networkx.DiGraph(
        inputs=tuple(names[node] for node in graph.inputs),
        outputs=tuple(names[node] for node in graph.outputs),
    )
    for node in graph.nodes:
        result.add_node(names[node], **_attributes(node))
        positions: dict[Node, tuple[int, ...]] = {}
        for position, operand in enumerate(node.inputs):
            positions[operand] = (*positions.get(operand, ()), position)
        for operand, found in positions.items():
            result.add_edge(names[operand], names[node], positions=found)
    return result


def _attributes(node: Node) -> dict[str, Any]:
    several = not isinstance(node.type, TensorType)
    types: Any = node.type
    return {
        "op": node.primitive.name,
        "shape": tuple(each.shape for each in types) if several else node.type.shape,
        "dtype": tuple(each.dtype for each in types) if several else node.type.dtype,
        "where": node.where,
        "attrs": node.attrs,
        "node": node,
    }
