"""The body of a loop that was found written out: one of its turns, for any number of the turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...runtime.dtypes import int64
from ..ir import Builder, Graph, Node, TensorType, input_node
from ..ir import primitives as p
from .matching import call, full, reshape
from .repeated_turns import Before, Inside, Loop, Made, Moves, Numbers, Operand, Row, Same


def stacked(type_: TensorType, turns: int) -> TensorType:
    return type_.with_shape((turns, *type_.shape))


class TurnBody:
    """The body of a loop, from the turn number, the state, the rows and what it reads besides."""

    def __init__(
        self,
        loop: Loop,
        state: Sequence[Before],
        rows: Sequence[int],
        types: Sequence[TensorType],
    ) -> None:
        self.loop, self.build = loop, Builder()
        self.turn = input_node("turn", TensorType((), int64))
        self.state = [input_node(f"state{at}", each) for at, each in enumerate(types)]
        self.carried = dict(zip(state, self.state, strict=False))
        self.read: list[Operand] = []  # what stands outside for `captured`
        self.captured: list[Node] = []
        self._captures: dict[object, Node] = {}
        self.padded: dict[int, Node] = {}  # by offset what is put among padding
        made: list[Node] = []
        for offset in range(loop.period):
            made.append(self._made(offset, made))
        arrays = self.state[len(state) :]
        self.outputs = [
            call(self.build, p.add, self.turn, self._number(1)),
            *(self._next(each, made) for each in state),
            *(
                call(
                    self.build,
                    p.index_put,
                    array,
                    self.turn,
                    made[offset],
                    axis=0,
                    accumulate=False,
                )
                for offset, array in zip(rows, arrays, strict=True)
            ),
        ]

    def _next(self, carried: Before, made: Sequence[Node]) -> Node:
        """What is carried, one turn later."""
        if carried.turns == 1:
            return made[carried.offset]
        return self.carried[Before(carried.offset, carried.turns - 1)]

    @property
    def inputs(self) -> list[Node]:
        return [self.turn, *self.state, *self.captured]

    def graph(self) -> Graph:
        return Graph(self.inputs, self.outputs)

    def condition(self) -> Graph:
        inputs = [input_node("unread", each.type) for each in self.inputs]
        goes_on = call(self.build, p.lt, inputs[0], self._number(self.loop.turns))
        return Graph(inputs, [goes_on])

    def _number(self, value: int) -> Node:
        return self.build.full((), value, int64)

    def _at(self, start: int, step: int) -> Node:
        """The position `start + step * turn`."""
        moved = call(self.build, p.mul, self.turn, self._number(step))
        return call(self.build, p.add, moved, self._number(start))

    def _made(self, offset: int, made: Sequence[Node]) -> Node:
        """What one node of a turn gives."""
        node, moves = self.loop.node(0, offset), self.loop.moves[offset]
        inputs = []
        for slot, each in enumerate(self.loop.operands[offset]):
            if isinstance(each, Inside):
                inputs.append(made[each.offset])
            elif isinstance(each, Before):
                inputs.append(self.carried[each])
            else:
                inputs.append(self._outside(each, node.inputs[slot]))
        if node.primitive is p.add:
            added = self._added_row(offset, inputs)
            if added is not None:
                return added
        if moves is None:
            return self.build.rebuild(node, inputs)
        if node.primitive is p.slice_:
            return self._sliced(node, inputs[0], moves)
        if node.primitive is p.slice_update:
            return self._updated(node, inputs[0], inputs[1], moves)
        row = self.padded[offset] = self._padded(node, inputs[0], moves)
        return self._put(full(self.build, node.type, node.attrs["value"]), row, moves)

    def _outside(self, operand: Operand, like: Node) -> Node:
        if isinstance(operand, Same):
            if operand.node.primitive is p.full:
                return self.build.rebuild(operand.node, ())
            return self._capture(operand.node, operand, like.type)
        if isinstance(operand, Numbers):
            count = len(operand.values)
            table = self._capture(operand, operand, like.type.with_shape((count,)))
            return call(self.build, p.index, table, self.turn, axis=0)
        if isinstance(operand, Row):
            base = self._capture(operand.base, Same(operand.base), operand.base.type)
            return reshape(self.build, self._row(base, Moves(*operand[1:])), like.shape)
        assert isinstance(operand, Made)
        type_ = stacked(like.type, operand.loop.turns)
        array = self._capture((operand.loop, operand.offset), operand, type_)
        return call(self.build, p.index, array, self._at(*operand[2:]), axis=0)

    def _capture(self, key: object, operand: Operand, type_: TensorType) -> Node:
        found = self._captures.get(key)
        if found is None:
            found = self._captures[key] = input_node("captured", type_)
            self.captured.append(found)
            self.read.append(operand)
        return found

    # --- what reads or writes another row in each turn ---

    def _row(self, base: Node, moves: Moves) -> Node:
        """The part of this turn."""
        parts = reshape(self.build, base, _in_parts(base, moves))
        return call(self.build, p.index, parts, self._at(moves.start, moves.step), axis=moves.axis)

    def _sliced(self, node: Node, base: Node, moves: Moves) -> Node:
        rest = _within(node, moves, starts=0, stops=moves.width)
        return call(self.build, p.slice_, self._row(base, moves), **rest)

    def _updated(self, node: Node, base: Node, value: Node, moves: Moves) -> Node:
        rest = _within(node, moves, starts=0, stops=moves.width)
        row = call(self.build, p.slice_update, self._row(base, moves), value, **rest)
        return self._put(base, row, moves)

    def _padded(self, node: Node, value: Node, moves: Moves) -> Node:
        """The part that is not padding."""
        return call(self.build, p.pad, value, **_within(node, moves, low=0, high=0))

    def _put(self, base: Node, row: Node, moves: Moves, accumulate: bool = False) -> Node:
        parts = reshape(self.build, base, _in_parts(base, moves))
        at = self._at(moves.start, moves.step)
        attrs = {"axis": moves.axis, "accumulate": accumulate}
        written = self.build.apply(p.index_put, [parts, at, row], attrs)
        return reshape(self.build, written, base.shape)

    def _added_row(self, offset: int, inputs: Sequence[Node]) -> Node | None:
        """The sum of something and a row among zeros, which is added where it belongs."""
        for slot, operand in enumerate(self.loop.operands[offset]):
            if not isinstance(operand, Inside):
                continue
            pad, moves = self.loop.node(0, operand.offset), self.loop.moves[operand.offset]
            if moves is None or pad.primitive is not p.pad or pad.attrs["value"] != 0:
                continue
            if operand != self.loop.operands[offset][1 - slot]:
                row = self.padded[operand.offset]
                return self._put(inputs[1 - slot], row, moves, accumulate=True)
        return None


def _in_parts(base: Node, moves: Moves) -> tuple[int, ...]:
    """The shape of `base` with an axis of parts before that of what is in them."""
    axis, width = moves.axis, moves.width
    return (*base.shape[:axis], base.shape[axis] // width, width, *base.shape[axis + 1 :])


def _within(node: Node, moves: Moves, **own: int) -> dict[str, Any]:
    """The attributes of a node, but its `own` for the axis that moves: those in the part."""
    axis, attrs = moves.axis, dict(node.attrs)
    for name, value in own.items():
        attrs[name] = (*attrs[name][:axis], value, *attrs[name][axis + 1 :])
    return attrs
