"""The text form of a graph: stable, one line a node, for tests, debugging and error messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.dtypes import DType
from .graph import Graph, nested_graphs
from .node import Node
from .sources import input_
from .types import TensorType


def format_attr(value: Any) -> str:
    """An attribute as text; arrays are abbreviated, functions shown by name."""
    if isinstance(value, np.ndarray):
        flat = ", ".join(str(item) for item in value.reshape(-1)[:4].tolist())
        more = ", ..." if value.size > 4 else ""
        return f"[{flat}{more}]"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorType):
        return str(value)
    if isinstance(value, Graph):
        return f"graph of {len(value.nodes)}"
    if isinstance(value, tuple):
        inner = ", ".join(format_attr(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return repr(value)


def format_type(type_: Any) -> str:
    """A TensorType, or the tuple of them of a node with several results."""
    if isinstance(type_, TensorType):
        return str(type_)
    return "(" + ", ".join(str(each) for each in type_) + ")"


def node_names(graph: Graph) -> dict[Node, str]:
    """A short name per node: its own for inputs, %0, %1, ... in order for the rest."""
    names: dict[Node, str] = {}
    count = 0
    for node in graph.nodes:
        if node.primitive is input_:
            names[node] = f"%{node.attrs['name']}"
        else:
            names[node] = f"%{count}"
            count += 1
    return names


def format_node(node: Node, names: dict[Node, str]) -> str:
    """One line: name, type, primitive, operands, attributes."""
    operands = ", ".join(names[operand] for operand in node.inputs)
    attrs = ", ".join(f"{name}={format_attr(node.attrs[name])}" for name in sorted(node.attrs))
    call = f"{node.primitive.name}({operands}{'; ' if operands and attrs else ''}{attrs})"
    return f"{names[node]}: {format_type(node.type)} = {call}"


def format_graph(graph: Graph) -> str:
    """The whole graph: inputs, one line per node, and what is returned.

    Graphs among the attributes of a node follow its line, further to the right.

    >>> from tgraph.compiler.ir import Builder, Graph, input_node, primitives as p
    >>> from tgraph.compiler.ir import TensorType
    >>> from tgraph.runtime.dtypes import float32
    >>> build, x = Builder(), input_node("x", TensorType((2,), float32))
    >>> print(Graph([x], [build.apply(p.exp, [x])]))
    graph(%x: float32[2])
      %0: float32[2] = exp(%x)
      return %0
    """
    lines: list[str] = []
    pending: list[str | tuple[str, str, Graph]] = [("", "graph", graph)]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            lines.append(part)
        else:
            pending += _parts(*part)[::-1]
    return "\n".join(lines)


def _parts(indent: str, title: str, graph: Graph) -> list[str | tuple[str, str, Graph]]:
    """The lines of a graph, with graphs inside where theirs belong."""
    names = node_names(graph)
    heading = ", ".join(f"{names[node]}: {node.type}" for node in graph.inputs)
    parts: list[str | tuple[str, str, Graph]] = [f"{indent}{title}({heading})"]
    for node in graph.nodes:
        if node.primitive is not input_:
            parts.append(f"{indent}  {format_node(node, names)}")
            parts += [(f"{indent}    ", name, inner) for name, inner in named_graphs(node)]
    returned = ", ".join(names[node] for node in graph.outputs)
    return [*parts, f"{indent}  return {returned}"]


def named_graphs(node: Node) -> list[tuple[str, Graph]]:
    """The graphs among the attributes of a node, with what they are called: "body", "branch 0"."""
    graphs = nested_graphs(node)
    if graphs and "branches" in node.attrs:
        return [(f"branch {number}", graph) for number, graph in enumerate(graphs)]
    names = [name for name in sorted(node.attrs) if isinstance(node.attrs[name], Graph)]
    return list(zip(names, graphs, strict=True))
