"""Where library calls and Python functions find their operands: views of what lies in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.plan_steps import ArrayRef, BufferRef, Spread
from ...runtime.records import record
from ..fusion.fused_graph import FusedGraph
from ..ir import Node
from ..kernel.memory_views import spread_view, strided_view


class Operands:
    """The operands of the steps of one fused graph, whose nodes lie at `place`."""

    def __init__(self, fused: FusedGraph, place: Mapping[Node, BufferRef]) -> None:
        self.fused = fused
        self.place = place

    def arrays(self, step: Node) -> tuple[ArrayRef, ...]:
        """The operands of a step as they lie in memory."""
        return tuple(self.array(step, operand) for operand in step.inputs)

    def array(self, step: Node, operand: Node) -> ArrayRef:
        """One operand of a step."""
        base, (strides, offset) = self._view(step, operand)
        size, ref = operand.type.dtype.itemsize, self.place[base]
        return ArrayRef(
            BufferRef(ref.slot, ref.offset + offset * size),
            operand.shape,
            operand.type.dtype.numpy,
            tuple(stride * size for stride in strides),
        )

    def result(self, node: Node) -> ArrayRef:
        """What a step writes."""
        return ArrayRef(self.place[node], node.shape, node.type.dtype.numpy)

    def read_bytes(self, step: Node) -> int:
        """Bytes that a step reads of its operands."""
        rules, in_memory = self.fused.rules, self.fused.in_memory
        unread = rules.unread_operands(step)
        return sum(
            min(each.type.nbytes, in_memory(rules.step_operand(step, each)).type.nbytes)
            for at, each in enumerate(step.inputs)
            if at not in unread
        )

    def matrix(self, step: Node, operand: Node, transpose: bool) -> Matrix:
        """An operand of a matrix product, which is to be transposed or not."""
        images = self.fused.rules.windows_base(step, operand)
        if images is not None:
            return self._windows(operand, self.fused.in_memory(images), transpose)
        base, (strides, offset) = self._view(step, operand)
        rows, columns = operand.shape[-2:]
        row, column = strides[-2:]
        plain = (column == 1 or columns == 1) and (row >= columns or rows == 1)
        if plain:
            leading = max(row if rows > 1 else 0, columns, 1)
        else:
            leading = max(column if columns > 1 else 0, rows, 1)
        place, batch = self._place_in(operand, base, strides[:-2], offset)
        return Matrix(place, transpose == plain, leading, batch)

    def _windows(self, operand: Node, base: Node, transpose: bool) -> Matrix:
        """A matrix of windows, which the product gathers from the images themselves."""
        found = spread_view(operand, base, self.fused.rules.buffer(base))
        assert found is not None, f"{operand} is no view of {base}"
        spread, (strides, offset) = found
        place, batch = self._place_in(operand, base, strides, offset)
        wanted = Spread(spread.columns, spread.rows) if transpose else spread
        return Matrix(place, False, 0, batch, wanted)

    def _view(self, step: Node, operand: Node) -> tuple[Node, tuple[Sequence[int], int]]:
        """What holds an operand, and its strides and offset there, in elements."""
        base = self.fused.in_memory(self.fused.rules.step_operand(step, operand))
        view = strided_view(operand, base, self.fused.rules.buffer(base))
        assert view is not None, f"{operand} is no view of {base}"
        return base, view

    def _place_in(
        self, operand: Node, base: Node, strides: Sequence[int], offset: int
    ) -> tuple[BufferRef, dict[int, int]]:
        """Where an operand begins, and the strides of its leading axes."""
        ref, axes = self.place[base], range(-len(strides), 0)
        place = BufferRef(ref.slot, ref.offset + offset * operand.type.dtype.itemsize)
        sizes = operand.shape[:-2]
        return place, {
            axis: 0 if size == 1 else stride for axis, size, stride in zip(axes, sizes, strides)
        }


@record()
class Matrix:
    """A matrix operand: whether BLAS must transpose it as stored, and its strides.

    One of windows is `spread`, without such strides.
    """

    ref: BufferRef
    transposed: bool
    leading: int
    batch: Mapping[int, int]
    spread: Spread | None = None

    def stride(self, from_end: int) -> int:
        return self.batch.get(from_end, 0)
