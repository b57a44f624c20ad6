"""The graph: types, primitives, nodes, and what can be asked of them."""

from . import primitives
from .decisions import is_decision, is_exact, is_float, is_reproducible
from .export import to_networkx
from .graph import Graph, map_whole, nested_graphs, toposort, transform
from .host_calls import effect_of, is_repeatable
from .node import UNKNOWN, Builder, Node, Provenance, infer_type
from .primitive import PRIMITIVES, Family, Primitive, primitive_named, register
from .promotion import can_cast, promote_types, result_type, scalar_dtype
from .text import format_graph
from .types import IRKindError, IRTypeError, TensorType


def input_node(name: str, type: TensorType, where: Provenance = UNKNOWN) -> Node:
    """A new value fed from outside, distinct from every other."""
    return Node(primitives.input_, (), {"name": name, "type": type}, type, where)


Graph.__str__ = format_graph  # type: ignore[assignment, method-assign]
Graph.to_networkx = to_networkx

__all__ = [
    "PRIMITIVES", "UNKNOWN", "Builder", "Family", "Graph", "IRKindError", "IRTypeError", "Node",
    "Primitive", "Provenance", "TensorType", "can_cast", "effect_of", "format_graph", "infer_type",
    "input_node", "is_decision", "is_exact", "is_float", "is_repeatable", "is_reproducible",
    "map_whole", "nested_graphs", "primitive_named", "primitives", "promote_types", "register",
    "result_type", "scalar_dtype", "toposort", "transform",
]  # fmt: skip
