"""Pictures of graphs that are built up front."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import Node
from ..graphs.graph import Graph
from .graph_picture import Ends, graph_picture
from .picture import Picture

_INPUTS = {"placeholder": "argument", "captured": "captured", "random": "random"}


def built_picture(graph: Graph, fetches: Any = None) -> Picture:
    """What a run for `fetches` computes, before any optimisation; all there is for None."""
    part = graph.part(fetches)
    kinds: dict[Node, str] = {}
    for entry in part.inputs:
        kinds[entry.node] = _INPUTS.get(entry.source.kind, "number")
        if entry.source.kind == "captured" and graph.is_variable(entry.source.key):
            kinds[entry.node] = "parameter"
    written = {part.first_write + at: source for at, (_, source) in enumerate(part.writes)}
    return graph_picture(part.graph, "graph, as built", Ends(kinds, written=written))
