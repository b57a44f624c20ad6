"""A loop as it was written out: what its turns read, and what each hands to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.records import NamedTuple, record
from ..ir import Node


class Inside(NamedTuple):
    """What the node at `offset` gives in the same turn."""

    offset: int


class Before(NamedTuple):
    """What the node at `offset` gave in the turn before, or some more turns ago."""

    offset: int
    turns: int = 1


class Same(NamedTuple):
    node: Node


class Numbers(NamedTuple):
    """A number of each turn."""

    values: tuple[Any, ...]
    of: Node


class Row(NamedTuple):
    """So many rows of `base` along `axis` as are its `width`: those of a turn lie side by side.

    In the turn number t it is the part number `start + step * t` of all that have this width.
    """

    base: Node
    axis: int
    width: int
    start: int
    step: int


class Made(NamedTuple):
    """What the node at `offset` of another loop gave in its turn `start + step * t`."""

    loop: Loop
    offset: int
    start: int
    step: int


Operand = Inside | Before | Same | Numbers | Row | Made


class Moves(NamedTuple):
    """A node reads or writes another part of an axis in each turn, as `Row` has it."""

    axis: int
    width: int
    start: int
    step: int


@record(eq=False, frozen=False)
class Loop:
    """Turns of `period` nodes each, from the node number `start` of `order`."""

    order: Sequence[Node]
    start: int
    period: int
    turns: int
    operands: list[tuple[Operand, ...]]
    moves: list[Moves | None]

    @property
    def stop(self) -> int:
        return self.start + self.turns * self.period

    def node(self, turn: int, offset: int) -> Node:
        return self.order[self.start + turn * self.period + offset]

    @property
    def carried(self) -> list[Before]:
        """What one turn hands to the next, which reads it or hands it on."""
        longest: dict[int, int] = {}
        for row in self.operands:
            for each in row:
                if isinstance(each, Before):
                    longest[each.offset] = max(longest.get(each.offset, 0), each.turns)
        return [Before(at, turns + 1) for at in sorted(longest) for turns in range(longest[at])]

    @property
    def first(self) -> dict[Before, Node | None] | None:
        """What `carried` is in the first turn, None where nobody asks; None if that is not one."""
        found: dict[Before, Node | None] = dict.fromkeys(self.carried)
        for offset, row in enumerate(self.operands):
            for slot, each in enumerate(row):
                if not isinstance(each, Before):
                    continue
                for turn in range(each.turns):
                    node = self.node(turn, offset).inputs[slot]
                    key = each._replace(turns=each.turns - turn)
                    if found[key] not in (None, node) or node.type != self.node(0, key.offset).type:
                        return None
                    found[key] = node
        return found
