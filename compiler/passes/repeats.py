"""Where a graph repeats itself: stretches of nodes that a Python loop left behind, turn by turn.

Nodes are taken in the order in which they were made. A stretch whose nodes are alike at a distance
is cut into turns, where the fewest values cross a cut; then each operand of one turn in the middle
says what it is to all of them: made in the same turn or the one before, the same value for all, a
number of each turn, a row of something, or what another loop made in its turns. The loop is as long
as that holds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.complex_numbers import is_complex
from ..ir.size_number import is_expression
from .repeated_turns import Before, Inside, Loop, Made, Moves, Numbers, Operand, Row, Same

Array = np.ndarray[Any, Any]

FEWEST_TURNS = 8
MOST_BEFORE = 4
"""Turns from which a turn may read what was made so long ago."""
PERIODS = 12
"""So many distances between equal nodes are looked at, those that cover most nodes first."""
ALIKE = 8
"""Nodes in a row by which a place is known again."""
MOST_ALIKE = 4
"""Stretches of a turn that are alike, but for what they read."""
ALONE = (Family.TRANSFER, Family.OPAQUE, Family.CONTROL)
"""Families that stay outside of loops: they have an order, or graphs of their own."""
MOVING = {
    p.slice_: ("starts", "stops"),
    p.slice_update: ("starts", "stops"),
    p.pad: ("low", "high"),
}
"""Attributes that may go on from turn to turn."""


def made_in_order(graph: Graph) -> list[Node] | None:
    """The nodes of `graph` as they were made; None where passes have mixed them.

    Sources come first, and their rows, which several turns may share.
    """
    order = sorted(graph.nodes, key=_number)
    if any(each.number > node.number for node in order for each in node.inputs):
        return None
    first = [node for node in order if _is_first(node)]
    return [*first, *(node for node in order if not _is_first(node))]


_number = operator.attrgetter("number")


def _is_first(node: Node) -> bool:
    """Whether it is no part of a turn: a source, or a row of one."""
    if node.primitive is p.slice_ or node.primitive is p.reshape:
        row = _row_of(node)
        return row is not None and not row[0].inputs
    return not node.inputs


def find_loops(graph: Graph, order: Sequence[Node]) -> list[Loop]:
    """Loops of at least FEWEST_TURNS that share no nodes, in order."""
    stretches, found = _stretches(order), list[Loop]()
    at = {node: number for number, node in enumerate(order)} if stretches else {}
    while True:  # again where one was found: others may read what it makes in its turns
        known = len(found)
        for period, start, stop in stretches:
            if any(start < each.stop and each.start < stop for each in found):
                continue
            first = start + _cut(order, at, graph, period, start, stop)
            turns = (stop - first) // period
            loop = None
            if turns >= FEWEST_TURNS:
                loop = _Search(order, at, found, first, period, turns).run()
            if loop is not None:
                found.append(loop)
        if len(found) == known:
            return sorted(found, key=lambda each: each.start)


def _stretches(order: Sequence[Node]) -> list[tuple[int, int, int]]:
    """(period, start, stop) where nodes are alike at the distance `period`, longest first."""
    numbers: dict[Any, int] = {}
    kinds = np.array([numbers.setdefault(_kind(node), len(numbers)) for node in order])
    found = []
    for period in _distances(kinds):
        alike = np.concatenate([[False], kinds[period:] == kinds[:-period], [False]])
        edges = np.flatnonzero(alike[1:] != alike[:-1])
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            for count in range(1, MOST_ALIKE + 1):
                if stop - start >= (FEWEST_TURNS * count - 1) * period:
                    found.append((count * period, start, stop + period))
    return sorted(set(found), key=lambda each: (each[1] - each[2], each[0]))


def _distances(kinds: Array) -> list[int]:
    """The distances from one place to the next where the last few kinds are the same.

    Those that cover most nodes come first.
    """
    size = len(kinds) - ALIKE + 1
    if size <= 1:
        return []
    mixed = np.zeros(size, np.uint64)
    for shift in range(ALIKE):  # a hash, which may confuse some: what is found is looked at
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + kinds[shift : shift + size].astype(
            np.uint64
        )
    places = np.argsort(mixed, kind="stable")
    same = mixed[places[1:]] == mixed[places[:-1]]
    counts = np.bincount((places[1:] - places[:-1])[same])
    order = np.argsort(-counts * np.arange(len(counts)), kind="stable")[:PERIODS]
    return [int(each) for each in order if counts[each]]


def _kind(node: Node) -> Any:
    """Equal for nodes that may be the same step of two turns."""
    primitive = node.primitive
    if primitive in MOVING:
        return node if _is_first(node) else (primitive, node.type, node.attrs.get("steps"))
    if not node.inputs or primitive.family in ALONE or is_complex(node):
        return node
    return node.what, node.type


def _cut(
    order: Sequence[Node], at: Mapping[Node, int], graph: Graph, period: int, start: int, stop: int
) -> int:
    """Where turns begin, from `start`: there the fewest values are alive."""
    middle = start + (stop - start) // (2 * period) * period
    alive = np.zeros(2 * period + 1, int)
    for offset in range(period):
        node = order[middle + offset]
        last = max([at[each] for each in graph.consumers[node] if at[each] < stop], default=0)
        life = min(last - middle - offset, period)
        if life > 0:  # a cut before any of the `life` nodes behind this one divides it
            alive[offset + 1] += 1
            alive[offset + 1 + life] -= 1
    counts = np.cumsum(alive)[:-1].reshape(2, period).sum(axis=0)
    return int(counts.argmin())


def _is_number(node: Node) -> bool:
    return node.primitive is p.full and not node.shape and not is_expression(node.attrs["value"])


def _row_of(node: Node) -> tuple[Node, int, int, int] | None:
    """(base, axis, width, number) of what is a part of something, whatever its shape."""
    while node.primitive is p.reshape:
        (node,) = node.inputs
    if node.primitive is not p.slice_ or not _are_plain((*node.attrs["starts"], *node.shape)):
        return None
    (base,) = node.inputs
    cut = [axis for axis, size in enumerate(base.shape) if node.shape[axis] != size]
    if len(cut) != 1 or node.attrs["steps"][cut[0]] != 1:
        return None
    axis, width = cut[0], node.shape[cut[0]]
    start = node.attrs["starts"][axis]
    if not width or start % width or base.shape[axis] % width:
        return None
    return base, axis, width, start // width


def _are_plain(values: Sequence[Any]) -> bool:
    return not any(map(is_expression, values))


def _shifted(values: Sequence[int], axis: int, shift: int) -> tuple[int, ...]:
    return (*values[:axis], values[axis] + shift, *values[axis + 1 :])


class _Search:
    """For the longest loop around the turn in the middle of a stretch."""

    def __init__(
        self, order: Sequence[Node], at: Mapping[Node, int], others: Sequence[Loop], first: int,
        period: int, turns: int,
    ) -> None:  # fmt: skip
        self.order, self.at, self.others = order, at, others
        self.first, self.period = first, period
        self.middle = turns // 2
        self.begin, self.end = 0, turns  # turns of which all holds that was seen so far

    def run(self) -> Loop | None:
        operands, moves = [], []
        for offset in range(self.period):
            move = self._moves(offset)
            if isinstance(move, bool):
                return None
            self._keep(lambda turn: self._moves_so(offset, move, turn))  # noqa: B023
            row = []
            for slot in range(len(self._node(self.middle, offset).inputs)):
                operand = self._operand(offset, slot)
                if operand is None:
                    return None
                self._keep(
                    lambda turn: self._holds(offset, slot, operand, turn),  # noqa: B023
                    operand.turns if isinstance(operand, Before) else 0,
                )
                row.append(operand)
            if self.end - self.begin < FEWEST_TURNS:
                return None
            operands.append(row)
            moves.append(move)
        return self._loop(operands, moves)

    def _node(self, turn: int, offset: int) -> Node:
        return self.order[self.first + turn * self.period + offset]

    def _keep(self, holds: Callable[[int], bool], first: int = 0) -> None:
        """Leave out turns from that on, to both sides of the middle, where it does not.

        The `first` turns of a loop are left alone: what they read was there before.
        """
        for turn in range(self.middle, self.end):
            if not holds(turn):
                self.end = turn
                break
        for turn in range(self.middle - 1, self.begin + first - 1, -1):
            if not holds(turn):
                self.begin = turn + 1 - first
                break

    def _moves(self, offset: int) -> Moves | bool | None:
        """How attributes of a node go on, None if they do not; False where no loop can do that."""
        node, after = self._node(self.middle, offset), self._node(self.middle + 1, offset)
        names = MOVING.get(node.primitive)
        if names is None or node.what == after.what:
            return None
        if not all(_are_plain(each.attrs[name]) for each in (node, after) for name in names):
            return False
        begins, follows = node.attrs[names[0]], after.attrs[names[0]]
        moving = [axis for axis, each in enumerate(begins) if each != follows[axis]]
        if len(moving) != 1:
            return False
        (axis,) = moving
        part, whole = node, node.inputs[0]
        if node.primitive is not p.slice_:
            part, whole = node.inputs[-1], node
        step, width = follows[axis] - begins[axis], part.shape[axis]
        if not width or any(each % width for each in (step, begins[axis], whole.shape[axis])):
            return False
        gaps = node.attrs["interior"] if node.primitive is p.pad else node.attrs["steps"]
        if gaps[axis] != (0 if node.primitive is p.pad else 1):
            return False
        start, step = begins[axis] // width, step // width
        return Moves(axis, width, start - self.middle * step, step)

    def _moves_so(self, offset: int, moves: Any, turn: int) -> bool:
        node, like = self._node(turn, offset), self._node(self.middle, offset)
        if moves is None:
            return bool(node.what == like.what)
        low, high = MOVING[node.primitive]
        shift = moves.step * moves.width * (turn - self.middle)
        behind = -shift if node.primitive is p.pad else shift  # the less there is behind
        return (
            node.attrs[low] == _shifted(like.attrs[low], moves.axis, shift)
            and node.attrs[high] == _shifted(like.attrs[high], moves.axis, behind)
            and all(node.attrs[name] == like.attrs[name] for name in {*like.attrs} - {low, high})
        )

    def _operand(self, offset: int, slot: int) -> Operand | None:
        """What an operand is to all turns, as two in the middle have it."""
        node = self._node(self.middle, offset).inputs[slot]
        after = self._node(self.middle + 1, offset).inputs[slot]
        if node is after:
            return Same(node)
        behind = self.at[node] - self.first - self.middle * self.period
        if behind >= 0:
            return Inside(behind)
        if type(node.type) is tuple:
            return None
        if behind >= -MOST_BEFORE * self.period:
            turns, offset = divmod(behind, self.period)
            return Before(offset, -turns)
        if _is_number(node) and _is_number(after):
            return Numbers((), node)
        row, following = _row_of(node), _row_of(after)
        if row is not None and following is not None and row[:3] == following[:3]:
            step = following[3] - row[3]
            return Row(*row[:3], row[3] - self.middle * step, step)
        return self._made(node, after)

    def _made(self, node: Node, after: Node) -> Made | None:
        for other in self.others:
            places = [
                divmod(self.at[each] - other.start, other.period)
                for each in (node, after)
                if other.start <= self.at[each] < other.stop
            ]
            if len(places) == 2 and places[0][1] == places[1][1]:
                (turn, offset), (following, _) = places
                step = following - turn
                return Made(other, offset, turn - self.middle * step, step)
        return None

    def _holds(self, offset: int, slot: int, operand: Operand, turn: int) -> bool:
        node = self._node(turn, offset).inputs[slot]
        if isinstance(operand, Same):
            return node is operand.node
        if isinstance(operand, Inside):
            return self.at[node] == self.first + turn * self.period + operand.offset
        if isinstance(operand, Before):
            made = self.first + (turn - operand.turns) * self.period + operand.offset
            return self.at[node] == made
        if isinstance(operand, Numbers):
            return _is_number(node) and node.type == operand.of.type
        if isinstance(operand, Row):
            at = operand.start + operand.step * turn
            return _row_of(node) == (*operand[:3], at)
        other, wanted = operand.loop, operand.start + operand.step * turn
        return 0 <= wanted < other.turns and node is other.node(wanted, operand.offset)

    def _loop(self, operands: list[list[Operand]], moves: list[Moves | None]) -> Loop | None:
        """The loop of the turns that are left, if what it begins with is there before it."""
        begin = self.begin
        outside = [each.node for row in operands for each in row if isinstance(each, Same)]
        outside += [each.base for row in operands for each in row if isinstance(each, Row)]
        latest = max([self.at[each] for each in outside], default=-1)
        if latest >= self.first + begin * self.period:
            begin = (latest - self.first) // self.period + 1
        for start in range(begin, min(begin + MOST_BEFORE, self.end - FEWEST_TURNS) + 1):
            loop = self._loop_from(start, operands, moves)
            first = loop.first
            if first == {}:
                return None  # nothing goes from turn to turn
            if first and all(each is None or self.at[each] < loop.start for each in first.values()):
                return loop
        return None

    def _loop_from(
        self, begin: int, operands: list[list[Operand]], moves: list[Moves | None]
    ) -> Loop:
        counted = [
            tuple(self._number(begin, self.end, offset, slot) if isinstance(each, Numbers)
                  else _from(each, begin) for slot, each in enumerate(row))
            for offset, row in enumerate(operands)
        ]  # fmt: skip
        start = self.first + begin * self.period
        shifted = [None if each is None else _from(each, begin) for each in moves]
        return Loop(self.order, start, self.period, self.end - begin, counted, shifted)

    def _number(self, begin: int, end: int, offset: int, slot: int) -> Numbers:
        nodes = [self._node(turn, offset).inputs[slot] for turn in range(begin, end)]
        return Numbers(tuple(each.attrs["value"] for each in nodes), nodes[0])


def _from(of: Any, turn: int) -> Any:
    """The same, with the turns counted from `turn` on."""
    if isinstance(of, (Row, Made, Moves)):
        return of._replace(start=of.start + turn * of.step)
    return of
