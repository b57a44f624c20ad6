"""Buffers for the tile of a transposing task, in which what vectors read is contiguous."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....runtime import transpose_native
from ...kernel.index import Axis, Quotient, Remainder, data_atoms
from ...kernel.kernel import Instr
from ...kernel.simplify_loops import mentions
from .function_writer import Writer
from .schedule import TRANSPOSE_TILE, Schedule

# From row to row of a buffer: rows at the distance of a power of two would share few cache lines.
PITCH = TRANSPOSE_TILE + 16
# Of all buffers together: they lie on a thread's stack.
MOST_BYTES = 64 << 10

Bounds = tuple[str, str]
"""Names of the first value of an axis and of the one behind the last."""


class TileBuffers:
    """The buffers of a kernel, one for each load that would gather elements, by its number.

    A buffer has the lanes of a tile side by side, row by row of the other axis.
    """

    def __init__(self, writer: Writer, schedule: Schedule, is_large: bool) -> None:
        self.writer = writer
        self.schedule = schedule
        self._first: Mapping[Axis, str] = {}
        self._loads: dict[int, Instr] = _transposed(schedule) if is_large else {}
        for number, load in self._loads.items():
            size = f"[{TRANSPOSE_TILE * PITCH} x i{8 * self._itemsize(load)}]"
            writer.allocas.append(f"{_name(number)} = alloca {size}, align 64")

    def __len__(self) -> int:
        return len(self._loads)

    def _itemsize(self, load: Instr) -> int:
        return self.schedule.kernel.params[load.param].dtype.itemsize

    def place(self, number: int, axes: Mapping[Axis, str]) -> str | None:
        """Where the load of this number finds its element, if that is in a buffer."""
        if number not in self._loads:
            return None
        run, lane = self._axes()
        row, column = (
            self.writer.op(f"sub nuw nsw i64 {axes[axis]}, {self._first[axis]}")
            for axis in (run, lane)
        )
        row = self.writer.op(f"mul nuw nsw i64 {row}, {PITCH}")
        offset = self.writer.plus(row, column)
        type_ = f"i{8 * self._itemsize(self._loads[number])}"
        return self.writer.op(f"getelementptr inbounds {type_}, ptr {_name(number)}, i64 {offset}")

    def fill(self, address: Callable[[Instr], str], run: Bounds, lane: Bounds) -> None:
        """Fill the buffers for a tile; `address` tells where a load finds its first element."""
        self._first = dict(zip(self._axes(), (run[0], lane[0])))
        rows, lanes = (self.writer.op(f"sub i64 {high}, {low}") for low, high in (run, lane))
        for number, load in self._loads.items():
            name = transpose_native.symbol(self._itemsize(load))
            self.writer.declarations.add(f"declare void @{name}({transpose_native.ARGUMENTS})")
            self.writer.line(
                f"call void @{name}(ptr {address(load)}, i64 {self._stride(load)}, i64 {lanes}, "
                f"i64 {rows}, ptr {_name(number)}, i64 {PITCH})"
            )

    def _stride(self, load: Instr) -> int:
        """From lane to lane, in elements."""
        assert load.index is not None
        return load.index.terms[self._axes()[1]]

    def _axes(self) -> tuple[Axis, Axis]:
        run, lane = self.schedule.run, self.schedule.lane
        assert run is not None and lane is not None
        return run, lane


def _name(number: int) -> str:
    return f"%tile{number}"


def _transposed(schedule: Schedule) -> dict[int, Instr]:
    """The loads of a transposing kernel that are contiguous along the other axis of its tile."""
    kernel, run, lane = schedule.kernel, schedule.run, schedule.lane
    if run is None or lane is None or len(kernel.stages) != 1:
        return {}
    found: dict[int, Instr] = {}
    room = MOST_BYTES
    for number, instr in enumerate(kernel.stages[0].body):
        if not _is_transposed(instr, run, lane):
            continue
        room -= TRANSPOSE_TILE * PITCH * kernel.params[instr.param].dtype.itemsize
        if room < 0:
            break
        found[number] = instr
    return found


def _is_transposed(instr: Instr, run: Axis, lane: Axis) -> bool:
    if instr.op != "load" or instr.index is None or instr.mask:
        return False
    terms = instr.index.terms
    is_affine = not data_atoms(instr.index) and not any(
        isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (run, lane))
        for atom in terms
    )
    return is_affine and terms.get(run) == 1 and abs(terms.get(lane, 0)) > 1
