"""The innermost loops of a CPU kernel: cut where conditions change, in blocks, chunks, vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from ....runtime.records import NamedTuple, replace
from ...ir.size_number import computed, decided, is_expression
from ...kernel import regions
from ...kernel.dependences import dependences
from ...kernel.index import Axis, data_atoms
from ...kernel.kernel import Instr, Stage
from ...kernel.regions import Part
from ...plan.plan_sizes import key_of
from .function_writer import ONE_BY_ONE, VectorLoop, Writer, known_number
from .instructions import StageBody
from .scan_loops import CHUNK, CHUNK_AXIS, scan_loops
from .schedule import Schedule
from .schedule_notes import Notes
from .storage import Storage
from .tiles import TileBuffers
from .vectors import PieceLoop, Vectors

# Vectors that are added up side by side in a block of a sum.
SIDE_BY_SIDE = 4
# Rows of a scan that are walked together.
ROWS = 4
# Rough operations below which a kernel is compiled the quick way, one number at a time: a call
# takes a microsecond longer at most, and the first one several milliseconds less.
SMALL_WORK = 4_000


def is_large(schedule: Schedule) -> bool:
    """Whether there is work that pays for vectors, cuts and the optimiser's time."""
    if any(map(_folds_openly, schedule.kernel.stages)):
        return True
    found: bool = decided(_is_much, schedule.work)
    return found


def _folds_openly(stage: Stage) -> bool:
    """Whether values are folded along an axis of open size, as is compiled once for many."""
    folds = any(instr.op == "reduce" for instr in stage.body)
    return folds and any(is_expression(axis.size) for axis in stage.axes)


def _halves(length: int, width: int) -> int:
    """How many halves of a vector take in a row; 0 where two do not, or there is nothing."""
    return -(-2 * length // width) if length <= width else 0


def _is_much(work: int) -> bool:
    return work >= SMALL_WORK


class LoopStep(NamedTuple):
    """The body of a stage inside of an innermost loop, and names of axes around it alone.

    A step with accumulators of its own has them in a `lane`.
    """

    body: StageBody
    axes: Mapping[Axis, str]
    lane: str = ""


class InnerLoops:
    """Writes the innermost loops of one kernel around the bodies of its stages.

    `axes` names the current values of the loops around them. `cut` has the axis of the current
    stage that its sums walk in blocks, and how many steps make one.
    """

    def __init__(self, schedule: Schedule, register_bytes: int) -> None:
        self.schedule = schedule
        self.kernel = schedule.kernel
        self.is_large = is_large(schedule)
        self.writer = Writer(vectorised=self.is_large)
        self.notes = Notes()
        self.rows_together = rows_together(schedule)
        self.tiles = TileBuffers(self.writer, schedule, self.is_large)
        self.storage = Storage(self.writer, schedule, self.tiles, self.rows_together)
        self.vectors = Vectors(schedule.kernel, self.storage, register_bytes, self.is_large)
        self.axes: dict[Axis, str] = {}
        self.cut: dict[Axis, int] = {}

    def parts(self, stage: Stage, axis: Axis) -> list[Part]:
        """An axis of a stage, cut where conditions change if there is work that pays for it."""
        return regions.parts(stage, axis) if self.is_large else [regions.whole(stage, axis)]

    def short_rows(self) -> tuple[Any, int] | None:
        """Where rows of open length may be one vector each, its lanes; `_halves` comes before."""
        stages = [stage for stage in self.kernel.stages if stage.axes]
        if not (self.kernel.rows and self.is_large and any(map(_folds_openly, stages))):
            return None
        ops = {instr.op for instr in self.kernel.instructions()}
        if self.schedule.lane is not None or not ops.isdisjoint(("scan", "check")):
            return None
        width, length = self.vectors.register_bytes, stages[0].axes[-1].size
        for stage in stages:
            (part, *more), (axis, *others) = self.parts(stage, stage.axes[-1]), stage.axes
            if more or others or key_of(axis.size) != key_of(length):
                return None
            if not self.vectors.may_mask(part):
                return None
            width = min(width, self.vectors.width(axis, [stage]))
        return computed(_halves, length, width), width

    def together(self, part: Part) -> int:
        """How many values of a sum are added up side by side."""
        if not (self.is_large and self.vectors.can_vectorise(part)):
            return 1
        return SIDE_BY_SIDE * self.vectors.width(part.counter, part.stages)

    def enter_lane(self, at: str) -> None:
        assert self.schedule.lane is not None
        self.axes[self.schedule.lane] = self.storage.lane = at

    def walk(self, steps: Sequence[LoopStep], axis: Axis, low: str, high: str) -> None:
        """The innermost loop over [low, high) of `axis`, cut where conditions change.

        Along the last axis of a stage it also goes in blocks where that is cut.
        """
        with self._noted_checks(steps, axis, low, high):
            self._walk_parts(steps, axis, low, high)

    @contextmanager
    def _noted_checks(
        self, steps: Sequence[LoopStep], axis: Axis, low: str, high: str
    ) -> Iterator[None]:
        """Loops in which a failed check is noted; if there was one, all checks report once more.

        A loop that reports has more ways out than one, and is not vectorised.
        """
        stage = steps[0].body.stage
        if not self._notes_checks(stage, axis):
            yield
            return
        self.storage.notes = True
        yield
        self.storage.notes = False
        report, done = self.writer.fresh("report"), self.writer.fresh("done")
        self.writer.line(f"br i1 {self.storage.noted()}, label %{report}, label %{done}")
        self.writer.label(report)
        self._walk_piece(steps, regions.whole(_checks_alone(stage), axis), low, high)
        self.writer.line(f"br label %{done}")
        self.writer.label(done)

    def _notes_checks(self, stage: Stage, axis: Axis) -> bool:
        """Whether checks stand inside of a loop along `axis` that could have vectors."""
        stores = [instr for instr in stage.body if instr.op == "store"]
        scattered = any(instr.index is not None and data_atoms(instr.index) for instr in stores)
        scans = any(instr.op == "scan" for instr in stage.body)
        if not self.is_large or scattered or scans:
            return False
        inside = dependences(self.kernel, stage)
        checks = [at for at, instr in enumerate(stage.body) if instr.op == "check"]
        return any(axes is None or axis in axes for axes in map(inside.__getitem__, checks))

    def _walk_parts(self, steps: Sequence[LoopStep], axis: Axis, low: str, high: str) -> None:
        stage = steps[0].body.stage
        parts = self.parts(stage, axis)
        self.notes.cut(axis, len(parts), max(part.step for part in parts))
        for number, part in enumerate(parts):
            if number:
                self.storage.seal(stage)
            for piece, first, last in self._pieces(part, regions.whole(stage, axis), low, high):
                loops = self._scan_loops(steps[0].body, piece)
                if loops:
                    self._walk_chunks(steps, piece, loops, *_known(first, last))
                elif axis in self.cut:
                    self._walk_blocks(steps, piece, *_known(first, last), self.cut[axis])
                elif self.vectors.takes_together(piece, len(steps)):
                    self._walk_piece(steps, piece, first, last)
                else:
                    for step in steps:
                        self._walk_piece([step], piece, first, last)

    def _pieces(
        self, part: Part, whole: Part, low: str, high: str
    ) -> Iterator[tuple[Part, str, str]]:
        """What of `part` lies in [low, high), with the bounds of its counter.

        At both ends there may be less than all phases; these are pieces of the `whole`.
        """
        number = self.writer.integer
        if part.low > 0:
            low = number("smax", low, part.low)
        if part.high < part.axis.size:
            high = number("smin", high, part.high)
        if part.step == 1:
            first, last = (number("sub", each, part.offset) for each in (low, high))
            yield part, first, last
            return
        high = number("smax", high, low)
        from_low, to_high = (number("sub", each, part.offset) for each in (low, high))
        first = number("sdiv", number("add", from_low, part.step - 1), part.step)
        last = number("sdiv", to_high, part.step)
        begin, end = (
            number("add", number("mul", each, part.step), part.offset) for each in (first, last)
        )
        begin = number("smin", begin, high)
        yield whole, low, begin
        yield part, first, last
        yield whole, number("smax", begin, end), high

    def _walk_blocks(
        self, steps: Sequence[LoopStep], part: Part, low: int, high: int, count: int
    ) -> None:
        """A piece of a sum's last axis, in blocks whose totals are kept."""
        together = self.together(part)
        vector = ONE_BY_ONE
        if together > 1:
            vector = VectorLoop(together // SIDE_BY_SIDE, False, SIDE_BY_SIDE)
        self.notes.loop(part.axis, vector.width)
        block = count * together
        blocks, rest = divmod(high - low, block)
        if is_expression(blocks) or blocks:
            with self.writer.loop("0", str(blocks)) as number:
                start = self.writer.op(f"mul nuw nsw i64 {number}, {block}")
                start = self.writer.integer("add", start, low)
                with self.writer.loop("0", str(block), vector) as at:
                    self._step_all(steps, part, self.writer.plus(start, at))
                self.storage.carry(part.stages[0])
        if is_expression(rest) or rest:
            with self.writer.unless_zero(rest):
                self._walk_piece(steps, part, str(high - rest), str(high))
                self.storage.carry(part.stages[0])

    def _scan_loops(self, body: StageBody, part: Part) -> tuple[Stage, ...]:
        """The loops of a part with scans, where one after another is faster than all in one."""
        is_own = part.axis in body.stage.axes and part.step == 1
        if not (is_own and self.is_large) or self.kernel.is_sequential:
            return ()
        found = scan_loops(part.stages[0], body.written, self.storage.rows)
        if found is None:
            return ()
        for dtype in found.rows:
            self.storage.add_row(dtype, CHUNK)
        return found.stages

    def _walk_chunks(
        self, steps: Sequence[LoopStep], part: Part, loops: Sequence[Stage], low: int, high: int
    ) -> None:
        """A piece of the last axis of a stage with scans, chunk by chunk."""
        self.notes.in_chunks = True
        chunks, rest = divmod(high - low, CHUNK)
        if chunks:
            with self.writer.loop("0", str(chunks)) as number:
                start = self.writer.op(f"mul nuw nsw i64 {number}, {CHUNK}")
                self._walk_chunk(steps, part, loops, self.writer.integer("add", start, low), CHUNK)
        if rest:
            self._walk_chunk(steps, part, loops, str(high - rest), rest)

    def _walk_chunk(
        self, steps: Sequence[LoopStep], part: Part, loops: Sequence[Stage], start: str, count: int
    ) -> None:
        for stage in loops:
            each = replace(part, stages=(stage,))
            for loop in self.vectors.loops(each, "0", str(count)):
                with self._piece_loop(part, loop) as at:
                    self.axes[CHUNK_AXIS] = at
                    self._step_all(steps, each, self.writer.integer("add", at, start))
        if part.axis in self.cut:
            self.storage.carry(part.stages[0])

    def _walk_piece(self, steps: Sequence[LoopStep], part: Part, low: str, high: str) -> None:
        loops = self.vectors.loops(part, low, high)
        for _, grouped in groupby(loops, lambda loop: id(loop.number)):
            group = list(grouped)
            if group[0].number is None:
                for loop in group:
                    self._walk_loop(steps, part, loop)
                continue
            with self.writer.cases(group[0].number) as begin:
                for loop in group:
                    begin(loop.value)
                    self._walk_loop(steps, part, loop)

    def _walk_loop(self, steps: Sequence[LoopStep], part: Part, loop: PieceLoop) -> None:
        with self._piece_loop(part, loop) as at:
            self._step_all(steps, part, at)

    @contextmanager
    def _piece_loop(self, part: Part, loop: PieceLoop) -> Iterator[str]:
        self.notes.loop(part.axis, loop.vector.width)
        writer, high = self.writer, loop.high
        if loop.number is not None or loop.most:
            writer.suppose(writer.op(f"icmp sgt i64 {high}, 0"))
        if loop.units > 1:
            high = writer.op(f"mul nuw nsw i64 {high}, {loop.units}")
        if loop.most:
            high = writer.least(high, loop.most)
        with writer.loop(loop.low, high, loop.vector) as at:
            yield writer.integer("add", at, loop.start)

    def _step_all(self, steps: Sequence[LoopStep], part: Part, at: str) -> None:
        """All phases of a part where its counter is `at`."""
        self.axes[part.counter] = at
        first = self.writer.integer("add", self.writer.integer("mul", at, part.step), part.offset)
        for phase, stage in enumerate(part.stages):
            if part.axis == self.schedule.lane:
                self.enter_lane(self.writer.integer("add", first, phase))
            for step in steps:
                self.axes.update(step.axes)
                self.storage.lane = step.lane or self.storage.lane
                step.body.within(stage).emit_all()


def rows_together(schedule: Schedule) -> int:
    """How many rows, each a task of its own, go through the loop of a scan side by side.

    A step of a scan waits for the one before it, but not for those of other rows.
    """
    kernel, stage = schedule.kernel, schedule.kernel.stages[0]
    ops = {instr.op for instr in stage.body}
    is_scan = "scan" in ops and ops.isdisjoint(("reduce", "check", "save", "saved"))
    are_rows = schedule.lane is None and all(each.tile == 1 for each in schedule.tasks)
    if not (is_scan and are_rows and is_large(schedule)) or kernel.is_sequential:
        return 1
    if len(kernel.stages) > 1 or len(stage.axes) > 1 or schedule.extent < 2 * ROWS:
        return 1
    is_cut = regions.boxes(stage, kernel.rows) or scan_loops(stage, set(), 0) is not None
    return 1 if is_cut else ROWS


def _known(low: str, high: str) -> tuple[int, int]:
    """Bounds that are known: those of the last axis of a stage."""
    first, last = known_number(low), known_number(high)
    assert first is not None and last is not None
    return first, last


def _checks_alone(stage: Stage) -> Stage:
    """A stage that only checks; its instructions keep their numbers."""
    nothing = Instr("const", value=0)
    left_out = ("store", "reduce", "save")
    body = (nothing if instr.op in left_out else instr for instr in stage.body)
    return replace(stage, body=tuple(body))
