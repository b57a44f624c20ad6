"""Writes a loop with scans: threads take neighbouring elements and hand on what they fold to.

All threads of a group take as many neighbours each, a tile of the row; what a tile folds to is
carried to the next (as in CUB; D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with
Decoupled Look-back", 2016). Threads meet in every scan, so its loop body is cut into parts: what a
scan folds, and what is made of its values. What passes from one part to the next lies in registers,
one for each neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

from ...ir.monoids import LINEAR
from ...kernel.index import Axis
from ...kernel.kernel import Instr, Stage
from .scalar import c_type, convert, literal
from .schedule import CudaSchedule, is_packable
from .stage_body import BLOCK_STEPS, JOIN, KernelWriter, StageBody, carry

_ANYWHERE = ("const", "result")
"""Instructions whose values have one name in all parts."""
_FREE = ("index", "condition")
"""Instructions that are written in every part that uses them, if they wait for nothing."""


class ScanLoop(StageBody):
    """The instructions of a stage with scans."""

    def __init__(self, writer: KernelWriter, stage: Stage) -> None:
        super().__init__(writer, stage)
        self.scans = [number for number, instr in enumerate(stage.body) if instr.op == "scan"]
        self.part = _parts(stage.body)
        self.kept: dict[int, str] = {}  # the registers of what later parts use
        self.size = prod(axis.size for axis in stage.axes)
        self.neighbours = 1

    def write_loop(self, schedule: CudaSchedule, caches: bool, sums: Sequence[Instr]) -> None:
        """The loop over tiles, of which a thread has `neighbours`; it caches rows where `caches`.

        What it adds up is carried to the totals of `sums` now and then.
        """
        writer, line = self.writer, self.writer.line
        tile = schedule.group * schedule.vector
        self.neighbours = schedule.vector
        self.kept = {number: f"kept_{number}" for number in self._used_later()}
        for number in self.scans:
            line(f"{self._running_type(number)} carry_{number} = {self._start(number)};")
        if caches:  # registers have no addresses: loops over them are written out
            line("#pragma unroll 8" if schedule.cached_in_shared else "#pragma unroll")
        steps = -(-self.size // tile)
        with writer.block(f"for ({writer.integer} step = 0; step < {steps}; ++step)"):
            member = f" + member * {schedule.vector}" if schedule.group > 1 else ""
            line(f"const {writer.integer} first = step * {tile}{member};")
            self._write_tile(schedule)
            if sums:
                every = BLOCK_STEPS // schedule.vector
                with writer.block(f"if (step % {every} == {every - 1})"):
                    for instr in sums:
                        line(carry(instr))

    def _write_tile(self, schedule: CudaSchedule) -> None:
        """One part behind another, and the scans in between."""
        ends_inside = self.size % (schedule.group * schedule.vector) != 0
        self._declare()
        for part in range(max(self.part) + 1):
            self._write_part(part, self.size if ends_inside else 0)
            for number in self.scans:
                if self.part[number] == part:
                    self._write_scan(number, schedule)

    # -- parts ---------------------------------------------------------------------------

    def _used_later(self) -> list[int]:
        """What a part computes, but for scans, that a later one uses."""
        found = {
            source
            for number, instr in enumerate(self.stage.body)
            for source in instr.sources
            if self.part[source] < self.part[number] and not self._is_everywhere(source)
        }
        return sorted(found.difference(self.scans))

    def _is_everywhere(self, number: int) -> bool:
        """Whether a value can be named, or written again, in every part."""
        return (
            number in self.values
            or self.stage.body[number].op in _ANYWHERE
            or self._is_written_again(number)
        )

    def _is_written_again(self, number: int) -> bool:
        instr = self.stage.body[number]
        return instr.op in _FREE and not instr.sources

    def _declare(self) -> None:
        for number, name in self.kept.items():
            type_ = c_type(self.stage.body[number].dtype)
            self.writer.line(f"{type_} {name}[{self.neighbours}] = {{}};")
        for number in self.scans:
            self.writer.line(
                f"{self._running_type(number)} run_{number}[{self.neighbours}] = {{}};"
            )

    def _write_part(self, part: int, limit: int) -> None:
        """The instructions of one part for all neighbours that lie below `limit`, if there is one.

        Of neighbours that are whole vectors, all do or none.
        """
        writer, axes = self.writer, self.stage.axes
        outside = dict(self.values)
        own = [
            number
            for number, of_part in enumerate(self.part)
            if of_part == part and number not in outside and not self._is_written_again(number)
        ]
        if axes[-1].size % self.neighbours == 0:
            with writer.block(f"if (first < {limit})" if limit else ""):
                self._write_vectors(own)
        else:
            with self._each():
                writer.line(f"const {writer.integer} j = first + v;")
                with writer.block(f"if (j < {limit})"):
                    writer.decode("j", axes)
                    self._write_instructions(own)
        self.values = outside

    def _write_vectors(self, own: Sequence[int]) -> None:
        last = self.stage.axes[-1]
        self.writer.decode("first", self.stage.axes)
        packed = [number for number in own if self._can_pack(number, last)]
        for number in packed:
            self._open_pack(number, last, self.neighbours)
        with self._each():
            self.names = {last: f"({last} + v)"} if self.neighbours > 1 else {}
            self._write_instructions(own)
            self.names = {}
        for number in packed:
            if self.stage.body[number].op == "store":
                self._close_pack(number, self.writer.active)

    @contextmanager
    def _each(self) -> Iterator[None]:
        self.slot = f"step * {self.neighbours} + v" if self.neighbours > 1 else "step"
        with self.writer.unrolled("v", self.neighbours):
            yield

    def _can_pack(self, number: int, axis: Axis) -> bool:
        if self.neighbours == 1:
            return False
        instr = self.stage.body[number]
        return is_packable(instr, axis, self.neighbours) and self._is_ready(number)

    def _write_instructions(self, own: Sequence[int]) -> None:
        self.guard = self.writer.active
        body = self.stage.body
        used = {source for number in own for source in body[number].sources}
        for number in sorted({*own, *used}.difference(self.values)):
            if number in own:
                self.values[number] = self._instr(number, body[number])
                if number in self.kept:
                    self.writer.line(f"{self.kept[number]}[v] = {self.values[number]};")
            elif number in self.kept:
                self.values[number] = f"{self.kept[number]}[v]"
            elif number in self.scans:
                self.values[number] = self._result_of(number)
            else:  # the same in every part
                self.values[number] = self._instr(number, body[number])

    # -- scans ---------------------------------------------------------------------------

    def _scan(self, number: int, instr: Instr, args: Sequence[str]) -> str:
        """What a scan folds is put where it finds it; its values belong to the next part."""
        running = self._running(number)
        value = convert(args[0], instr.dtype, running)
        if instr.value[1] is LINEAR:
            factor = convert(args[1], instr.dtype, running)
            value = f"tg_linear<{c_type(running)}>({factor}, {value})"
        self.writer.line(f"run_{number}[v] = {value};")
        return ""

    def _write_scan(self, number: int, schedule: CudaSchedule) -> None:
        join = JOIN[self.stage.body[number].value[1]]
        shared = f"({self._running_type(number)}*){'shared' if schedule.joined else '0'}"
        self.writer.line(
            f"tg_scan<{join}, {schedule.group}>(run_{number}, carry_{number}, {shared});"
        )

    def _result_of(self, number: int) -> str:
        instr = self.stage.body[number]
        added = ".added" if instr.value[1] is LINEAR else ""
        return self._scanned(number, instr, f"run_{number}[v]{added}")

    def _running_type(self, number: int) -> str:
        type_ = c_type(self._running(number))
        return f"Linear<{type_}>" if self.stage.body[number].value[1] is LINEAR else type_

    def _start(self, number: int) -> str:
        monoid, running = self.stage.body[number].value[1], self._running(number)
        start = literal(monoid.identity(running), running)
        return f"{{{literal(1, running)}, {start}, false}}" if monoid is LINEAR else start


def _parts(body: Sequence[Instr]) -> list[int]:
    """For every instruction, how many scans it waits for that wait for each other."""
    found: list[int] = []
    for instr in body:
        behind = (found[source] + (body[source].op == "scan") for source in instr.sources)
        found.append(max(behind, default=0))
    return found
