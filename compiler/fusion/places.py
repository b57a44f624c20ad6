"""At how many places a value is computed that lies nowhere in memory: once for each that reads it.

Elementwise operations read their operands where they are computed themselves; several that do so
at one place share the value. Views, windows and gathers read elsewhere. (XLA counts the same in
its `FusionNodeIndexingEvaluation`, against the same explosion.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.shapes import numel
from ..kernel.kernel_io import has_loops, iteration_shape
from .rules import is_step

# Of places that are told apart; the elements of more are added up.
MAX_PLACES = 16

_MANY = "many places"


class Places:
    """Counted from the readers to what they read: `read_operands` for each node of a graph."""

    def __init__(self, graph: Graph, has_memory: Callable[[Node], bool]) -> None:
        self.has_memory = has_memory
        # Of each node: elements at each place, which is a way from a reader in memory.
        self._places: dict[Node, dict[Hashable, float]] = {node: {} for node in graph.nodes}

    def computed(self, node: Node) -> float:
        """How many elements of a node its readers make a kernel compute."""
        return sum(self._places[node].values())

    def read_operands(self, node: Node) -> None:
        """Note where `node` reads its operands, once all is noted that reads `node`.

        Steps read memory alone.
        """
        if is_step(node):
            return
        places = self._places[node]
        if self.has_memory(node):
            # Without the node: what several kernels read at equal places is none of this count.
            shape = iteration_shape(node) if has_loops(node) else node.shape
            places = {shape: 1.0 * numel(shape)}
        for number, operand in enumerate(node.inputs):
            if self.has_memory(operand):
                continue
            found = self._places[operand]
            for place, elements in places.items():
                where, share = self._place(node, number, place)
                if len(found) >= MAX_PLACES and where not in found:
                    found[_MANY] = found.get(_MANY, 0.0) + elements * share
                else:
                    found[where] = max(found.get(where, 0.0), elements * share)

    def _place(self, node: Node, number: int, place: Hashable) -> tuple[Hashable, float]:
        """Where a node at `place` reads an operand, and how many elements for each of its own."""
        operand = node.inputs[number]
        if node.primitive.family is Family.ELEMENTWISE and operand.shape == node.shape:
            return place, 1.0
        ratio = operand.type.numel / max(1, node.type.numel)
        elsewhere = node, number, place
        match node.primitive.family:
            case Family.ELEMENTWISE:
                return ("broadcast", operand.shape, place), ratio
            case Family.REDUCE | Family.SCAN if self.has_memory(node):
                return place, 1.0
            case Family.REDUCE | Family.WINDOW | Family.SCATTER | Family.RANDOM:
                return elsewhere, ratio
        is_position = number > 0 and node.primitive in (p.gather, p.index)
        return elsewhere, ratio if is_position or node.primitive is p.broadcast else 1.0
