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
from ..ir.size_number import computed
from ..kernel.kernel_io import has_loops, iteration_shape
from .rules import is_step

# Of places that are told apart; the elements of more are added up.
MAX_PLACES = 16

_MANY = "many places"


class Places:
    """Counted for the nodes that are asked about, and what reads them on the way to memory.

    What reads a node has to be decided before the node is asked about.
    """

    def __init__(self, graph: Graph, has_memory: Callable[[Node], bool]) -> None:
        self.has_memory = has_memory
        self._readers = graph.consumers
        # Of a node: elements at each place, which is a way from a reader in memory.
        self._places: dict[Node, dict[Hashable, float]] = {}

    def computed(self, node: Node) -> float:
        """How many elements of a node its readers make a kernel compute."""
        found, pending = self._places, [node]
        while pending:
            each = pending[-1]
            readers = self._readers[each]
            unknown = [] if each in found else [
                reader for reader in readers if reader not in found and not self.has_memory(reader)
            ]  # fmt: skip
            if unknown:
                pending += unknown
                continue
            pending.pop()
            if each not in found:
                found[each] = {}
                for reader in reversed(readers):
                    self._add_places(each, reader, found[each])
        return sum(found[node].values())

    def _add_places(self, node: Node, reader: Node, found: dict[Hashable, float]) -> None:
        """Note where `reader`, whose places are known, reads `node`. Steps read memory alone."""
        if is_step(reader):
            return
        if self.has_memory(reader):
            # Without the reader: what several kernels read at equal places is none of this count.
            shape = iteration_shape(reader) if has_loops(reader) else reader.shape
            places: dict[Hashable, float] = {shape: 1.0 * numel(shape)}
        else:
            places = self._places[reader]
        for number, operand in enumerate(reader.inputs):
            if operand is not node:
                continue
            for place, elements in places.items():
                where, share = self._place(reader, number, place)
                if len(found) >= MAX_PLACES and where not in found:
                    found[_MANY] = found.get(_MANY, 0.0) + elements * share
                else:
                    found[where] = max(found.get(where, 0.0), elements * share)

    def _place(self, node: Node, number: int, place: Hashable) -> tuple[Hashable, float]:
        """Where a node at `place` reads an operand, and how many elements for each of its own."""
        operand = node.inputs[number]
        if node.primitive.family is Family.ELEMENTWISE and operand.shape == node.shape:
            return place, 1.0
        ratio = operand.type.numel / computed(max, node.type.numel, 1)
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
