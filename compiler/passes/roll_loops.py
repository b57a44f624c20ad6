"""What a Python loop left behind, turn by turn, becomes one loop, whose body is compiled once.

`repeats.py` finds the turns. The body is that of one of them: it carries what the next turn reads,
writes what is read of all turns into a row of an array for each, and reads rows where its turns
read other parts each. So a forward loop and the loop of its gradients, which reads what the first
one made in the other order, become two loops and the arrays between them.

Small loops stay as they are, and so do loops of element by element arithmetic, whose turns one
kernel does without storing what is in between, as long as it can be compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np

from ...runtime.device import CPU
from ...runtime.dtypes import int64
from ...runtime.records import NamedTuple
from ..ir import Builder, Family, Graph, Node
from ..ir import primitives as p
from ..ir.graph import MANY_NODES
from .matching import call, constant, full, part, permute, reshape
from .repeated_turns import Before, Loop, Made, Numbers, Operand, Row, Same
from .repeats import find_loops, made_in_order
from .turn_body import TurnBody, stacked

FEWEST_NODES = MANY_NODES
"""Nodes that a loop must save."""
NODES_OF_INPUT = 12
"""With fewer nodes for each input, what looks alike has inputs of its own: layers, updates."""
FEWEST_FUSED = 32768
"""Nodes of element by element loops that one kernel does faster than a loop over memory."""
MOST_ROWS = 4
"""Turns whose values may be read one by one, behind a loop."""
_STORED = (
    Family.CONTRACTION, Family.REDUCE, Family.SCAN, Family.SORT, Family.LIBRARY, Family.WINDOW,
)  # fmt: skip
"""Families whose results lie in memory, so that turns are kernels of their own anyway."""


def roll_loops(graph: Graph) -> Graph:
    """`graph` with loops in the place of what repeats itself, where there is enough of that."""
    found = rolled_loops(graph)
    return graph if found is None else found.graph


def rolled_loops(graph: Graph) -> Rolled | None:
    """The graph with loops, and what of the one before it has; None where nothing is rolled."""
    if len(graph.nodes) < max(FEWEST_NODES, NODES_OF_INPUT * len(graph.inputs)):
        return None
    if any(node.type.device is not CPU for node in graph.inputs):
        return None  # a device has launches that repeat themselves captured, one by one
    order = made_in_order(graph)
    loops = [] if order is None else find_loops(graph, order)
    loops = _worth_it(graph, loops)
    return Rolled(graph, order or (), loops) if loops else None


# --- which loops ---------------------------------------------------------------------------------


def _worth_it(graph: Graph, loops: list[Loop]) -> list[Loop]:
    """The loops that are worth it, with those that they read from."""
    while True:
        places = _Places(loops)
        kept = [each for each in loops if _is_closed(graph, each, places)]
        kept = [each for group in _groups(kept) if _saves_enough(group) for each in group]
        if len(kept) == len(loops):
            return loops
        loops = kept


class _Places:
    """Which turn of which loop makes a node."""

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = loops
        self.of: dict[Node, tuple[Loop, int, int]] = {
            loop.node(turn, offset): (loop, turn, offset)
            for loop in loops
            for turn in range(loop.turns)
            for offset in range(loop.period)
        }

    def rows_read(self, loop: Loop) -> set[int]:
        """The offsets of `loop` whose values other loops read, turn by turn."""
        return {
            operand.offset
            for other in self.loops
            for row in other.operands
            for operand in row
            if isinstance(operand, Made) and operand.loop is loop
        }


def _is_closed(graph: Graph, loop: Loop, places: _Places) -> bool:
    """Whether loops that it reads from are there, and few of its values are read one by one."""
    read = {each.loop for row in loop.operands for each in row if isinstance(each, Made)}
    if not read.issubset(places.loops):
        return False
    turns = set()
    for turn in range(loop.turns):
        for offset in range(loop.period):
            readers = list(_readers(graph, loop, places, turn, offset))
            if readers and type(loop.node(turn, offset).type) is tuple:
                return False
            if turn < loop.turns - 1 and not all(_concatenates(graph, each) for each in readers):
                turns.add(turn)
    return len(turns) <= MOST_ROWS


def _readers(
    graph: Graph, loop: Loop, places: _Places, turn: int, offset: int
) -> Iterable[Node | None]:
    """Who reads a value behind the loop, but for loops that read all its turns; None: an output."""
    node = loop.node(turn, offset)
    if node in graph.outputs:
        yield None
    for reader in graph.consumers[node]:
        place = places.of.get(reader)
        if place is None:
            yield reader
        elif place[0] is not loop:
            other, _, at = place
            slots = [slot for slot, each in enumerate(reader.inputs) if each is node]
            operands = [other.operands[at][slot] for slot in slots]
            if not all(isinstance(each, (Made, Row)) for each in operands):
                yield reader


def _concatenates(graph: Graph, reader: Node | None) -> bool:
    if reader is None:
        return False
    if reader.primitive is p.reshape and reader not in graph.outputs:
        return all(each.primitive is p.concatenate for each in graph.consumers[reader])
    return reader.primitive is p.concatenate


def _groups(loops: Sequence[Loop]) -> list[list[Loop]]:
    """The loops, those together that read from each other."""
    group = {each: [each] for each in loops}
    for loop in loops:
        for operand in (each for row in loop.operands for each in row):
            if isinstance(operand, Made) and operand.loop in group:
                one, other = group[loop], group[operand.loop]
                if one is not other:
                    one += other
                    group.update(dict.fromkeys(other, one))
    return list({id(each): each for each in group.values()}.values())


def _saves_enough(loops: Sequence[Loop]) -> bool:
    fewer = sum((each.turns - 1) * each.period for each in loops)
    stored = any(
        each.node(0, offset).primitive.family in _STORED
        for each in loops
        for offset in range(each.period)
    )
    return fewer >= (FEWEST_NODES if stored else FEWEST_FUSED)


# --- the graph with loops ------------------------------------------------------------------------


class _Results(NamedTuple):
    """What a loop leaves: by offset, arrays of a row for each turn, and values of the last one."""

    rows: dict[int, Node]
    last: dict[int, Node]


class Rolled:
    """`graph`, and whose values its nodes have."""

    def __init__(self, graph: Graph, order: Sequence[Node], loops: Sequence[Loop]) -> None:
        self.old, self.loops = graph, loops
        self.build = Builder()
        self.new: dict[Node, Node] = {node: node for node in graph.inputs}
        self.places = _Places(loops)
        self.results: dict[Loop, _Results] = {}
        for node in order:
            if node in self.new:
                continue
            place = self.places.of.get(node)
            if place is None:
                self.new[node] = self._rebuilt(node)
            elif place[1:] == (0, 0):
                self.results[place[0]] = self._run(place[0])
        self.graph = graph.with_outputs([self._value(node) for node in graph.outputs])

    def origins(self) -> dict[Node, list[Node]]:
        """The nodes of the graph before whose values a node has: one, or one for each row."""
        found = {new: [old] for old, new in self.new.items()}
        for loop, results in self.results.items():
            for offset, node in results.last.items():
                found[node] = [loop.node(loop.turns - 1, offset)]
            for offset, node in results.rows.items():
                found[node] = [loop.node(turn, offset) for turn in range(loop.turns)]
        return found

    def _value(self, node: Node) -> Node:
        """What stands for a node, also for one of a loop that was passed."""
        found = self.new.get(node)
        if found is None:
            loop, turn, offset = self.places.of[node]
            results = self.results[loop]
            if turn == loop.turns - 1 and offset in results.last:
                found = results.last[offset]
            else:
                row = part(self.build, results.rows[offset], 0, turn, turn + 1)
                found = reshape(self.build, row, node.shape)
            self.new[node] = found
        return found

    def _rebuilt(self, node: Node) -> Node:
        if node.primitive is p.concatenate:
            parts = self._joined(node)
            if len(parts) < len(node.inputs):
                return call(self.build, p.concatenate, *parts, axis=node.attrs["axis"])
        return self.build.rebuild(node, [self._value(each) for each in node.inputs])

    def _joined(self, node: Node) -> list[Node]:
        """The parts of a concatenation: those of turns that follow each other are one."""
        axis, parts, at = node.attrs["axis"], list[Node](), 0
        while at < len(node.inputs):
            found = self._turn(node.inputs[at], axis)
            count = 1
            if found is not None:
                loop, turn, offset, source = found
                while at + count < len(node.inputs):
                    following = self._turn(node.inputs[at + count], axis)
                    if following is None or following[:3] != (loop, turn + count, offset):
                        break
                    count += 1
                if offset in self.results[loop].rows and count > 1:
                    rows = part(self.build, self.results[loop].rows[offset], 0, turn, turn + count)
                    parts.append(self._along(rows, source, node.inputs[at], axis, count))
                    at += count
                    continue
            parts.append(self._value(node.inputs[at]))
            at += 1
        return parts

    def _turn(self, piece: Node, axis: int) -> tuple[Loop, int, int, Node] | None:
        """The turn that made a part of a concatenation, or what it has got another axis from."""
        node = piece
        if node.primitive is p.reshape and node not in self.places.of:
            (node,) = piece.inputs
            if piece.shape != (*node.shape[:axis], 1, *node.shape[axis:]):
                return None
        place = self.places.of.get(node)
        return None if place is None else (*place, node)

    def _along(self, rows: Node, source: Node, piece: Node, axis: int, count: int) -> Node:
        """The rows of turns side by side along `axis`."""
        order = (*range(1, axis + 1), 0, *range(axis + 1, rows.type.ndim))
        moved = permute(self.build, rows, order)
        sizes = (*piece.shape[:axis], count * piece.shape[axis], *piece.shape[axis + 1 :])
        return reshape(self.build, moved, sizes)

    # --- one loop ---

    def _run(self, loop: Loop) -> _Results:
        """The loop itself, on what it begins with."""
        rows, last = self._wanted(loop)
        first = loop.first or {}
        state = [*first, *(each for each in map(Before, last) if each not in first)]
        types = [loop.node(0, each.offset).type for each in state]
        types += [stacked(loop.node(0, offset).type, loop.turns) for offset in rows]
        body = TurnBody(loop, state, rows, types)
        known = [first.get(each) for each in state]
        begin = [self.build.full((), 0, int64)]
        for type_, node in zip_longest(types, known):
            begin.append(full(self.build, type_, 0) if node is None else self._value(node))
        read = [self._read(each) for each in body.read]
        attrs = {
            "condition": body.condition(), "body": body.graph(), "carried": len(begin),
        }  # fmt: skip
        where = loop.node(0, 0).where
        made = self.build.apply(p.loop, [*begin, *read], attrs, where)
        got = [
            self.build.apply(p.get, [made], {"index": number}, where)
            for number in range(1, len(begin))
        ]
        ends = {each.offset: one for each, one in zip(state, got, strict=False) if each.turns == 1}
        return _Results(dict(zip(rows, got[len(state) :], strict=True)), ends)

    def _wanted(self, loop: Loop) -> tuple[list[int], list[int]]:
        """The offsets of which all turns are read behind the loop, and those of the last only."""
        rows, last = self.places.rows_read(loop), set[int]()
        for offset in range(loop.period):
            for turn in range(loop.turns):
                if any(True for _ in _readers(self.old, loop, self.places, turn, offset)):
                    (last if turn == loop.turns - 1 else rows).add(offset)
        return sorted(rows), sorted(last - rows)

    def _read(self, operand: Operand) -> Node:
        """What the body reads of the outside."""
        if isinstance(operand, Same):
            return self._value(operand.node)
        if isinstance(operand, Row):
            return self._value(operand.base)
        if isinstance(operand, Made):
            return self.results[operand.loop].rows[operand.offset]
        assert isinstance(operand, Numbers)
        values = np.array(operand.values, operand.of.type.dtype.numpy)
        return constant(self.build, operand.of.type.with_shape(values.shape), values)
