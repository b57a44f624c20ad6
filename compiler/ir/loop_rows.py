"""Loops that read or write a row of a tensor in each turn, as scans do: whose row it is."""

from __future__ import annotations

from ...runtime.records import NamedTuple
from . import primitives as p
from .graph import Graph
from .node import Builder, Node
from .turns import number_of, turn_number


class RowLoop(NamedTuple):
    """A loop with a known number of turns, and what of its state numbers them from 0 on."""

    node: Node
    counter: Node
    turns: int

    @property
    def body(self) -> Graph:
        found: Graph = self.node.attrs["body"]
        return found

    @property
    def condition(self) -> Graph:
        found: Graph = self.node.attrs["condition"]
        return found

    @property
    def carried(self) -> int:
        found: int = self.node.attrs["carried"]
        return found

    def visits_all(self, at: Node, rows: Node) -> bool:
        """Whether `at` is each row of `rows` in one of the turns: the first one first, or last."""
        if type(rows.shape[0]) is not int or rows.shape[0] != self.turns:
            return False
        if at is self.counter:
            return True
        return (
            at.primitive is p.sub
            and at.inputs[1] is self.counter
            and number_of(at.inputs[0]) == self.turns - 1
        )

    def read_row(self, node: Node) -> tuple[int, Node] | None:
        """The number of what the loop only reads, and the row, if `node` is that row of it."""
        if node.primitive is not p.index or len(node.inputs) != 2 or node.attrs["axis"] != 0:
            return None
        rows, at = node.inputs
        if rows not in self.body.inputs[self.carried :] or not self.visits_all(at, rows):
            return None
        return self.body.inputs.index(rows), at

    def written_row(self, number: int) -> tuple[Node, Node] | None:
        """The row of each turn, and its value, if the loop writes all rows of this state."""
        rows, after = self.body.inputs[number], self.body.outputs[number]
        if after.primitive is not p.index_put or len(after.inputs) != 3:
            return None
        if after.inputs[0] is not rows or after.attrs["axis"] != 0 or after.attrs["accumulate"]:
            return None
        _, at, value = after.inputs
        if not self.visits_all(at, rows) or not self.is_only_in(rows, after):
            return None
        return at, value

    def is_only_in(self, state: Node, after: Node) -> bool:
        """Whether nothing but `after` reads a value of the state."""
        of_condition = self.condition.inputs[self.body.inputs.index(state)]
        return (
            self.body.consumers[state] == (after,)
            and state not in self.body.outputs
            and not self.condition.reads.get(of_condition, 0)
        )


def row_loop(node: Node) -> RowLoop | None:
    """`node` as a loop over rows, if its turns are numbered and their number is known."""
    if node.primitive is not p.loop:
        return None
    found = turn_number(node)
    return RowLoop(node, node.attrs["body"].inputs[found[0]], found[1]) if found else None


def written_state(node: Node) -> list[int]:
    """The numbers of the state of which a loop writes all rows, and reads nothing before."""
    loop = row_loop(node)
    if loop is None:
        return []
    return [at for at in range(loop.carried) if loop.written_row(at) is not None]


def row(build: Builder, rows: Node, at: Node) -> Node:
    return build.apply(p.index, [rows, at], {"axis": 0})


def with_row(build: Builder, rows: Node, at: Node, value: Node) -> Node:
    attrs = {"axis": 0, "accumulate": False}
    return build.apply(p.index_put, [rows, at, value], attrs, value.where)
