"""Writes a scheduled Kernel as LLVM IR: here its loops, over tasks, rows and stages.

A kernel is `void name(ptr args, i64 lo, i64 hi)`: `args` are the parameters' addresses and
[lo, hi) the tasks to run. Loops are written plainly; LLVM's passes hoist what is invariant and
vectorise the innermost loop, which pointers without aliases and reassociable sums allow. Inside
the loops stand the instructions (`llvm_instructions`), made of scalar templates (`llvm_scalar`);
reductions keep their results in local memory (`llvm_storage`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from ...runtime.records import record
from ..kernel import regions
from ..kernel.dependences import dependences
from ..kernel.index import Axis, Condition, InRange, data_atoms, loop_atoms
from ..kernel.kernel import POSITIONS, Instr, Stage, compute_dtype, long_sums
from ..kernel.regions import Box, Part
from ..kernel.scan_loops import CHUNK, CHUNK_AXIS, scan_loops
from ..kernel.schedule_cpu import Schedule, TaskAxis
from .llvm_instructions import StageBody
from .llvm_math import definitions
from .llvm_notes import Notes, schedule_line
from .llvm_storage import Storage
from .llvm_writer import ONE_BY_ONE, VectorLoop, Writer

# Steps of a reduction loop that are taken together where lanes keep their accumulators in memory.
JAM = 4
# So many additions, one after another, make a block of a sum: what rounding takes from the total of
# the blocks is kept, so that the error does not grow with the number of blocks.
BLOCK_STEPS = 16
COLUMN_STEPS = 32
# Vectors that are added up side by side in a block.
SIDE_BY_SIDE = 4
# How many steps of its run a transposing task looks ahead: some hundred nanoseconds.
STEPS_AHEAD = 8
# With more of them LLVM gives up.
MAX_BRANCHES = 8
# A loop of fewer steps is no loop any more when LLVM comes to vectorise it.
MIN_LANES = 4
# A loop over fewer vectors is masked as a whole rather than cut in two; of more than MANY, four
# are taken together, though some are left for the masked loop.
FEW_VECTORS, MANY_VECTORS = 4, 16
# Rough operations below which vectorising a kernel costs more than it will ever save.
SMALL_WORK = 20_000
# A call of memset, made of constants that are stored side by side, would keep a loop from being
# vectorised.
_FUNCTION_ATTRIBUTES = (
    'nounwind "prefer-vector-width"="512" "no-trapping-math"="true" "no-builtin-memset"'
)


@record()
class KernelText:
    """The LLVM text of one kernel, in which NAME stands for its name, and what it calls.

    Equal kernels have equal texts whatever they are called, so that each is compiled once.
    `loops` are its innermost ones, !LOOPN in the text. `small` says that there is too little work
    to be worth the optimiser's time.
    """

    text: str
    functions: frozenset[str]
    declarations: frozenset[str]
    loops: tuple[VectorLoop, ...]
    small: bool = False


def kernel_text(schedule: Schedule, vector_bytes: int = 64) -> KernelText:
    """The text of `void NAME(ptr args, i64 lo, i64 hi)` for one scheduled kernel.

    `vector_bytes` is the size of a vector register.
    """
    kernel = _KernelWriter(schedule, vector_bytes)
    kernel.write()
    writer = kernel.writer
    return KernelText(
        kernel.text(),
        frozenset(writer.functions),
        frozenset(writer.declarations),
        tuple(writer.loops),
        schedule.work < SMALL_WORK,
    )


def schedule_summary(schedule: Schedule, vector_bytes: int = 64) -> str:
    """A line for people on how the kernel of a schedule is written."""
    kernel = _KernelWriter(schedule, vector_bytes)
    kernel.write()
    return schedule_line(schedule, kernel.notes)


def kernels_module(kernels: Mapping[str, KernelText]) -> str:
    """The text of an LLVM module that defines the named kernels."""
    library = definitions(sorted({name for each in kernels.values() for name in each.functions}))
    known = {line for line in library.splitlines() if line.startswith("declare")}
    wanted = {line for each in kernels.values() for line in each.declarations}
    texts: list[str] = []
    loops: list[VectorLoop] = []
    for name, each in kernels.items():
        texts.append(_numbered(each.text.replace("NAME", name), len(loops)))
        loops += each.loops
    attributes = f"attributes #0 = {{ {_FUNCTION_ATTRIBUTES} }}"
    return "\n".join([*sorted(wanted - known), library, *texts, attributes, *_metadata(loops)])


def _numbered(text: str, first: int) -> str:
    """A kernel's text with its loops numbered from `first`."""
    return re.sub(r"!LOOP(\d+)", lambda match: f"!{first + int(match[1])}", text)


def _metadata(loops: Sequence[VectorLoop]) -> Iterator[str]:
    """What LLVM is told of each loop.

    Without a width it would weigh all of them, which takes longer, and where its two cost models
    disagree a build with assertions ends the process.
    """
    number = {shape: len(loops) + 3 * at for at, shape in enumerate(dict.fromkeys(loops))}
    for loop, shape in enumerate(loops):
        at = number[shape]
        yield f"!{loop} = distinct !{{!{loop}, !{at}, !{at + 1}, !{at + 2}}}"
    for shape, at in number.items():
        yield f'!{at} = !{{!"llvm.loop.vectorize.width", i32 {shape.width}}}'
        yield f'!{at + 1} = !{{!"llvm.loop.vectorize.predicate.enable", i1 {int(shape.masked)}}}'
        yield f'!{at + 2} = !{{!"llvm.loop.interleave.count", i32 {shape.interleave}}}'


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "sdiv": operator.floordiv,
    "smin": min,
    "smax": max,
}
"""Of numbers that are not negative."""


class _Step(NamedTuple):
    """The body of a stage inside of an innermost loop, and names of axes around it alone."""

    body: StageBody
    axes: Mapping[Axis, str]


Range = tuple[str, str | None]
"""Names of the bounds of an axis within a task; without an end, it is one value."""
Lanes = tuple[str, str] | None
"""Names of the bounds of the lane axis, where that is a row axis."""


class _KernelWriter:
    """The loops of one kernel: over tasks, row axes, and the axes of its stages."""

    def __init__(self, schedule: Schedule, vector_bytes: int) -> None:
        self.schedule = schedule
        self.vector_bytes = vector_bytes
        self.kernel = schedule.kernel
        self.writer = Writer()
        self.notes = Notes()
        self.storage = Storage(self.writer, schedule)
        self.axes: dict[Axis, str] = {}
        self.cut: dict[Axis, int] = {}  # the axis of the current stage that goes in blocks

    def text(self) -> str:
        """The function, and the wrapper that reads the parameters' addresses."""
        pointers = [f"%p{number}" for number in range(len(self.kernel.params))]
        noalias = ", ".join(f"ptr noalias {pointer}" for pointer in pointers)
        head = f"define internal void @NAME_body({noalias}, i64 %lo, i64 %hi) noinline #0 {{"
        wrapper = ["define void @NAME(ptr %args, i64 %lo, i64 %hi) #0 {"]
        for number, pointer in enumerate(pointers):
            wrapper.append(f"  %a{number} = getelementptr ptr, ptr %args, i64 {number}")
            wrapper.append(f"  {pointer} = load ptr, ptr %a{number}")
        passed = ", ".join(f"ptr {pointer}" for pointer in pointers)
        wrapper += [f"  call void @NAME_body({passed}, i64 %lo, i64 %hi)", "  ret void", "}"]
        allocas = [f"  {line}" for line in self.writer.allocas]
        body = [head, "entry:", *allocas, *self.writer.lines, "  ret void", "}"]
        return "\n".join([*body, *wrapper])

    # -- tasks ---------------------------------------------------------------------------

    def write(self) -> None:
        if self.schedule.direct:
            self._direct()
            return
        with self.writer.loop("%lo", "%hi") as task:
            self._row_loops(list(self._decode(task).items()))

    def _direct(self) -> None:
        """Tasks are lanes: the given range of them is one vector loop."""
        lane, stages = self.schedule.lane, self.kernel.stages
        assert lane is not None
        if len(stages) == 1 and not _folds(stages[0]):
            body = self._body(stages[0])
            body.emit_invariant(set())
            self._walk([_Step(body, {})], lane, "%lo", "%hi")
            return
        checks = any(instr.op == "check" for instr in self.kernel.instructions())
        plain = not checks and all(self._has_vectors(stage, lane) for stage in stages)
        vector = VectorLoop(self._width(lane, stages)) if plain else ONE_BY_ONE
        self.notes.loop(lane, vector.width)
        with self.writer.loop("%lo", "%hi", vector) as at:
            self._enter_lane(at)
            for stage in self.kernel.stages:
                self.storage.set_identities(stage)
                self._body(stage).emit_all()

    def _decode(self, task: str) -> dict[Axis, Range]:
        """The range of every row axis that a task number stands for."""
        tasks = [each for each in self.schedule.tasks if each.count > 1]
        ranges: dict[Axis, Range] = {
            each.axis: ("0", str(each.axis.size)) for each in self.schedule.tasks
        }
        rest = task
        for each in reversed(tasks[1:]):
            ranges[each.axis] = self._tile(each, self.writer.op(f"urem i64 {rest}, {each.count}"))
            rest = self.writer.op(f"udiv i64 {rest}, {each.count}")
        if tasks:
            ranges[tasks[0].axis] = self._tile(tasks[0], rest)
        return ranges

    def _tile(self, task: TaskAxis, number: str) -> Range:
        """The range of a task's axis in the tile of this number."""
        if task.tile == 1:
            return number, None
        return self._part(task.axis, task.tile, number)

    def _part(self, axis: Axis, size: int, number: str) -> tuple[str, str]:
        """The bounds of a part of an axis: `size` values, but for the last."""
        start = self.writer.op(f"mul nuw nsw i64 {number}, {size}")
        end = self._plus(start, str(size))
        return start, end if axis.size % size == 0 else self._number("smin", end, axis.size)

    # -- loops ---------------------------------------------------------------------------

    def _row_loops(self, ranges: list[tuple[Axis, Range]]) -> None:
        """Loops over the row axes of a task other than the lane axis, then the row's stages."""
        if not ranges:
            self._row(None)
            return
        (axis, (low, high)), rest = ranges[0], ranges[1:]
        if axis == self.schedule.lane:
            assert not rest, "the lane axis is the last task axis"
            self._row((low, high or self.writer.op(f"add i64 {low}, 1")))
        elif high is None:
            self.axes[axis] = low
            self._row_loops(rest)
        else:
            with self.writer.loop(low, high) as at:
                self.axes[axis] = at
                self._row_loops(rest)

    def _row(self, lanes: Lanes) -> None:
        """The stages of a row, or of a tile of rows, its lanes."""
        if lanes is not None:
            self.storage.lane_start = lanes[0]
            self._prefetch(lanes[0])
        for stage in self.kernel.stages:
            self.cut = self._blocks(stage, lanes)
            if self.cut:
                self.storage.keep_totals(stage)
            self._start_results(stage, lanes)
            self._versions(stage, lanes)

    def _blocks(self, stage: Stage, lanes: Lanes) -> dict[Axis, int]:
        """The axis of a stage that its sums walk in blocks, and how many of its steps make one.

        Along lanes that are added up side by side, a step is as many values.
        """
        if not stage.axes or not long_sums(stage):
            return {}
        *outer, last = stage.axes
        steps = COLUMN_STEPS if lanes else BLOCK_STEPS
        parts = [regions.whole(stage, last)] if lanes else self._parts(stage, last)
        together = [1 if lanes else self._together(part) for part in parts]
        if any(part.size > steps * count for part, count in zip(parts, together)):
            return {last: steps}
        length = sum(part.size if count == 1 else 1 for part, count in zip(parts, together))
        for axis in reversed(outer):
            if axis.size * length > steps:
                return {axis: max(1, steps // length)}
            length *= axis.size
        return {}

    def _parts(self, stage: Stage, axis: Axis) -> list[Part]:
        """An axis of a stage, cut where conditions change if there is work that pays for it."""
        return regions.parts(stage, axis) if self._is_large else [regions.whole(stage, axis)]

    @property
    def _is_large(self) -> bool:
        return self.schedule.work >= SMALL_WORK

    def _together(self, part: Part) -> int:
        """How many values of a sum are added up side by side."""
        if not (self._is_large and self._is_vectorisable(part)):
            return 1
        return SIDE_BY_SIDE * self._width(part.counter, part.stages)

    def _carry(self, stage: Stage, lanes: Lanes) -> None:
        """A block of the sums of `stage` is over."""
        if lanes is None:
            self.storage.carry(stage)
            return
        assert self.schedule.lane is not None
        width = self._width(self.schedule.lane, [stage])
        with self.writer.loop(*lanes, VectorLoop(width)) as at:
            self._enter_lane(at)
            self.storage.carry(stage)

    def _prefetch(self, lane: str) -> None:
        """Ask for what a transposing task accesses some steps of its run later.

        These lines are far apart, a pattern that the processor's own prefetching does not follow.
        """
        run = self.schedule.run
        if run is None or run not in self.axes:
            return
        assert self.schedule.lane is not None
        later = self.writer.op(f"add i64 {self.axes[run]}, {STEPS_AHEAD}")
        axes = {**self.axes, run: later, self.schedule.lane: lane}
        for stage in self.kernel.stages:
            StageBody(self.writer, self.storage, axes, self.schedule, stage).prefetch(run)

    def _start_results(self, stage: Stage, lanes: Lanes) -> None:
        if lanes is None:
            self.storage.set_identities(stage)
        elif _folds(stage):
            assert self.schedule.lane is not None
            width = self._width(self.schedule.lane, [stage])
            with self.writer.loop(*lanes, VectorLoop(width)) as at:
                self._enter_lane(at)
                self.storage.set_identities(stage)

    def _versions(self, stage: Stage, lanes: Lanes) -> None:
        """The loops of a stage, and apart from them those for rows where conditions are known."""
        rows = [axis for axis in self.kernel.rows if axis != self.schedule.lane]
        boxes = regions.boxes(stage, rows) if self._is_large else []
        self.notes.split(len(boxes), regions.fill(boxes))
        done = self.writer.fresh("done")
        for box in boxes:
            inside, outside = self.writer.fresh("inside"), self.writer.fresh("outside")
            self.writer.line(f"br i1 {self._enter_box(box)}, label %{inside}, label %{outside}")
            self.writer.label(inside)
            counters = {side.axis: side.counter for side in box.sides}
            self._stage_loops(box.stage, {counters.get(axis, axis) for axis in rows}, lanes)
            self.writer.line(f"br label %{done}")
            self.writer.label(outside)
        if regions.fill(boxes):
            self.writer.line("unreachable")
        else:
            self._stage_loops(stage, set(rows), lanes)
            self.writer.line(f"br label %{done}")
        self.writer.label(done)

    def _enter_box(self, box: Box) -> str:
        """Name what counts in the box; gives the name of whether the row lies in it."""
        op, total = self.writer.op, "true"
        for side in box.sides:
            at = self._number("sub", self.axes[side.axis], side.low)
            tests = [op(f"icmp ult i64 {at}, {side.high - side.low}")]
            if side.step > 1:
                rest = op(f"urem i64 {at}, {side.step}")
                tests.append(op(f"icmp eq i64 {rest}, {side.phase}"))
                at = op(f"udiv i64 {at}, {side.step}")
            self.axes[side.counter] = at
            for test in tests:
                total = op(f"and i1 {total}, {test}")
        return total

    def _stage_loops(self, stage: Stage, rows: set[Axis], lanes: Lanes) -> None:
        """The loops of a stage; each instruction stands in the outermost loop that it can."""
        ops = {instr.op for instr in stage.body}
        if stage.axes and lanes and "reduce" in ops and ops.isdisjoint(("store", "check")):
            self._jam(stage, rows, lanes)
        else:
            self._nest(self._body(stage), rows, list(stage.axes), lanes)

    def _jam(self, stage: Stage, rows: set[Axis], lanes: tuple[str, str]) -> None:
        """Several steps of the innermost loop per walk over the lanes.

        A lane's accumulator lies in memory: one load and store then serve JAM steps.
        """
        *outer, last = stage.axes
        if outer:
            with self._loop(outer[0], stage, lanes):
                self._jam(replace(stage, axes=stage.axes[1:]), rows | {outer[0]}, lanes)
            return
        block = self.cut.get(last)
        if block is None:
            self._jam_part(stage, rows, lanes, "0", last.size)
            return
        blocks, rest = divmod(last.size, block)
        with self.writer.loop("0", str(blocks)) as number:
            first = self.writer.op(f"mul nuw nsw i64 {number}, {block}")
            self._jam_part(stage, rows, lanes, first, block)
            self._carry(stage, lanes)
        if rest:
            self._jam_part(stage, rows, lanes, str(blocks * block), rest)
            self._carry(stage, lanes)

    def _jam_part(
        self, stage: Stage, rows: set[Axis], lanes: tuple[str, str], start: str, count: int
    ) -> None:
        """`count` steps of the innermost loop from `start` on."""
        for low, high, together in ((0, count // JAM, JAM), (count - count % JAM, count, 1)):
            if low == high:
                continue
            with self.writer.loop(str(low), str(high)) as at:
                step = at if together == 1 else self.writer.op(f"mul nuw nsw i64 {at}, {together}")
                first = step if start == "0" else self._plus(start, step)
                self._jammed(stage, rows, lanes, first, together)

    def _plus(self, a: str, b: str) -> str:
        return self.writer.op(f"add nuw nsw i64 {a}, {b}")

    @contextmanager
    def _loop(self, axis: Axis, stage: Stage, lanes: Lanes) -> Iterator[None]:
        """A loop over an outer axis of a stage, in blocks where it is cut."""
        block = self.cut.get(axis)
        if block is None:
            with self.writer.loop("0", str(axis.size)) as self.axes[axis]:
                yield
            return
        with self.writer.loop("0", str(-(-axis.size // block))) as number:
            with self.writer.loop(*self._part(axis, block, number)) as self.axes[axis]:
                yield
            self._carry(stage, lanes)

    def _jammed(
        self, stage: Stage, rows: set[Axis], lanes: tuple[str, str], first: str, count: int
    ) -> None:
        last = stage.axes[-1]
        bodies = []
        for step in range(count):
            at = first if step == 0 else self.writer.op(f"add nuw nsw i64 {first}, {step}")
            self.axes[last] = at
            bodies.append(_Step(self._body(stage), {last: at}))
            bodies[-1].body.emit_invariant(rows | {last})
        assert self.schedule.lane is not None
        self._walk(bodies, self.schedule.lane, *lanes)

    def _nest(self, body: StageBody, bound: set[Axis], axes: list[Axis], lanes: Lanes) -> None:
        if not axes and lanes is None:
            body.emit_all()
            return
        body.emit_invariant(bound)
        if len(axes) > 1 or (axes and lanes):
            with self._loop(axes[0], body.stage, lanes):
                self._nest(body, bound | {axes[0]}, axes[1:], lanes)
        elif lanes:
            assert self.schedule.lane is not None
            self._walk([_Step(body, {})], self.schedule.lane, *lanes)
        else:
            self._walk([_Step(body, {})], axes[0], "0", str(axes[0].size))

    # -- innermost loops -----------------------------------------------------------------

    def _walk(self, steps: Sequence[_Step], axis: Axis, low: str, high: str) -> None:
        """The innermost loop over [low, high) of `axis`, cut where conditions change.

        Along the last axis of a stage it also goes in blocks where that is cut.
        """
        with self._noted_checks(steps, axis, low, high):
            self._walk_parts(steps, axis, low, high)

    @contextmanager
    def _noted_checks(
        self, steps: Sequence[_Step], axis: Axis, low: str, high: str
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
        if not self._is_large or scattered or scans:
            return False
        inside = dependences(self.kernel, stage)
        checks = [at for at, instr in enumerate(stage.body) if instr.op == "check"]
        return any(axes is None or axis in axes for axes in map(inside.__getitem__, checks))

    def _walk_parts(self, steps: Sequence[_Step], axis: Axis, low: str, high: str) -> None:
        stage = steps[0].body.stage
        parts = self._parts(stage, axis)
        self.notes.cut(axis, len(parts), max(part.step for part in parts))
        for number, part in enumerate(parts):
            if number:
                self.storage.seal(stage)
            for piece, first, last in self._pieces(part, regions.whole(stage, axis), low, high):
                loops = self._scan_loops(steps[0].body, piece)
                if loops:
                    self._walk_chunks(steps, piece, loops, int(first), int(last))
                elif axis in self.cut:
                    self._walk_blocks(steps, piece, int(first), int(last), self.cut[axis])
                else:
                    self._walk_piece(steps, piece, first, last)

    def _pieces(
        self, part: Part, whole: Part, low: str, high: str
    ) -> Iterator[tuple[Part, str, str]]:
        """What of `part` lies in [low, high), with the bounds of its counter.

        At both ends there may be less than all phases; these are pieces of the `whole`.
        """
        if part.low > 0:
            low = self._number("smax", low, part.low)
        if part.high < part.axis.size:
            high = self._number("smin", high, part.high)
        if part.step == 1:
            first, last = (self._number("sub", each, part.offset) for each in (low, high))
            yield part, first, last
            return
        high = self._number("smax", high, low)
        from_low, to_high = (self._number("sub", each, part.offset) for each in (low, high))
        first = self._number("sdiv", self._number("add", from_low, part.step - 1), part.step)
        last = self._number("sdiv", to_high, part.step)
        begin, end = (
            self._number("add", self._number("mul", each, part.step), part.offset)
            for each in (first, last)
        )
        begin = self._number("smin", begin, high)
        yield whole, low, begin
        yield part, first, last
        yield whole, self._number("smax", begin, end), high

    def _number(self, name: str, a: str, b: str | int) -> str:
        """A sum or the like of two integers; known ones are computed here."""
        if (name, str(b)) in (("add", "0"), ("sub", "0"), ("mul", "1")):
            return a
        if a.isdigit() and str(b).isdigit():
            return str(_ARITHMETIC[name](int(a), int(b)))
        if name in ("smin", "smax"):
            self.writer.declarations.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
            return self.writer.op(f"call i64 @llvm.{name}.i64(i64 {a}, i64 {b})")
        return self.writer.op(f"{name} i64 {a}, {b}")

    def _walk_blocks(
        self, steps: Sequence[_Step], part: Part, low: int, high: int, count: int
    ) -> None:
        """A piece of a sum's last axis, in blocks whose totals are kept."""
        together = self._together(part)
        vector = ONE_BY_ONE
        if together > 1:
            vector = VectorLoop(together // SIDE_BY_SIDE, False, SIDE_BY_SIDE)
        self.notes.loop(part.axis, vector.width)
        block = count * together
        blocks, rest = divmod(high - low, block)
        if blocks:
            with self.writer.loop("0", str(blocks)) as number:
                start = self.writer.op(f"mul nuw nsw i64 {number}, {block}")
                start = self._number("add", start, low)
                with self.writer.loop("0", str(block), vector) as at:
                    self._step_all(steps, part, self._plus(start, at))
                self.storage.carry(part.stages[0])
        if rest:
            self._walk_piece(steps, part, str(high - rest), str(high))
            self.storage.carry(part.stages[0])

    def _scan_loops(self, body: StageBody, part: Part) -> tuple[Stage, ...]:
        """The loops of a part with scans, where one after another is faster than all in one."""
        is_own = part.axis in body.stage.axes and part.step == 1
        if not (is_own and self._is_large) or self.kernel.is_sequential:
            return ()
        found = scan_loops(part.stages[0], body.written, self.storage.rows)
        if found is None:
            return ()
        for dtype in found.rows:
            self.storage.add_row(dtype, CHUNK)
        return found.stages

    def _walk_chunks(
        self, steps: Sequence[_Step], part: Part, loops: Sequence[Stage], low: int, high: int
    ) -> None:
        """A piece of the last axis of a stage with scans, chunk by chunk."""
        self.notes.in_chunks = True
        chunks, rest = divmod(high - low, CHUNK)
        if chunks:
            with self.writer.loop("0", str(chunks)) as number:
                start = self.writer.op(f"mul nuw nsw i64 {number}, {CHUNK}")
                self._walk_chunk(steps, part, loops, self._number("add", start, low), CHUNK)
        if rest:
            self._walk_chunk(steps, part, loops, str(high - rest), rest)

    def _walk_chunk(
        self, steps: Sequence[_Step], part: Part, loops: Sequence[Stage], start: str, count: int
    ) -> None:
        for stage in loops:
            each = replace(part, stages=(stage,))
            for first, last, vector in self._vector_loops(each, "0", str(count)):
                self.notes.loop(part.axis, vector.width)
                with self.writer.loop(first, last, vector) as at:
                    self.axes[CHUNK_AXIS] = at
                    self._step_all(steps, each, self._number("add", at, start))
        if part.axis in self.cut:
            self.storage.carry(part.stages[0])

    def _walk_piece(self, steps: Sequence[_Step], part: Part, low: str, high: str) -> None:
        for first, last, vector in self._vector_loops(part, low, high):
            self.notes.loop(part.axis, vector.width)
            with self.writer.loop(first, last, vector) as at:
                self._step_all(steps, part, at)

    def _step_all(self, steps: Sequence[_Step], part: Part, at: str) -> None:
        """All phases of a part where its counter is `at`."""
        self.axes[part.counter] = at
        first = self._number("add", self._number("mul", at, part.step), part.offset)
        for phase, stage in enumerate(part.stages):
            if part.axis == self.schedule.lane:
                self._enter_lane(self._number("add", first, phase))
            for step in steps:
                self.axes.update(step.axes)
                step.body.within(stage).emit_all()

    def _vector_loops(
        self, part: Part, low: str, high: str
    ) -> Iterator[tuple[str, str, VectorLoop]]:
        """The innermost loops over a piece of a part, along the lanes or the last axis of a stage.

        Where the bounds are known these are whole vectors, several at a time, and then one loop
        that masks what is too much: single steps would take most of the time of short rows.
        """
        is_known = low.isdigit() and high.isdigit()
        if is_known and int(low) >= int(high):
            return
        width = self._width(part.counter, part.stages)
        is_border = part.size < min(part.axis.size, width * part.step)
        if is_border or not self._is_vectorisable(part):
            yield low, high, ONE_BY_ONE
            return
        if not is_known:
            yield low, high, VectorLoop(width)
            return
        start, end = int(low), int(high)
        vectors, rest = divmod(end - start, width)
        if vectors < FEW_VECTORS and rest:
            vectors, rest = 0, end - start
        together = next(count for count in (4, 2, 1) if vectors % count == 0)
        if vectors >= MANY_VECTORS:
            together, rest = 4, rest + vectors % 4 * width
        if rest < end - start:
            yield low, str(end - rest), VectorLoop(width, False, together)
        if rest:
            masked = VectorLoop(width, rest % width != 0, 1)
            yield str(end - rest), high, masked if rest >= MIN_LANES else ONE_BY_ONE

    def _width(self, axis: Axis, stages: Sequence[Stage]) -> int:
        """Lanes of a vector along `axis`: they fill it with the widest type that moves."""
        moved = [
            instr.dtype if instr.op == "reduce" else self.kernel.params[instr.param].dtype
            for stage in stages
            for instr in stage.body
            if instr.op == "reduce" or (instr.op in ("load", "store") and _moves(instr, axis))
        ]
        body = [instr for stage in stages for instr in stage.body]
        moved += [self.kernel.results[instr.value[0]] for instr in body if instr.op == "scan"]
        moved += [instr.dtype for instr in body if instr.op in ("save", "saved")]
        widest = max((compute_dtype(dtype).itemsize for dtype in moved), default=8)
        return self.vector_bytes // widest

    def _is_vectorisable(self, part: Part) -> bool:
        """Whether LLVM can vectorise the loop over a part of an axis.

        LLVM refuses the rest by itself, but not without a message on the error stream.
        """
        return all(self._has_vectors(stage, part.counter) for stage in part.stages)

    def _has_vectors(self, stage: Stage, axis: Axis) -> bool:
        """Whether LLVM can vectorise a stage's loop along `axis`, one of its own or of the rows."""
        branches: set[Condition] = set()
        folds = False
        depends = dependences(self.kernel, stage)
        for instr, axes in zip(stage.body, depends, strict=True):
            inside = axes is None or axis in axes
            if instr.op == "check" and inside and not self.storage.notes:
                return False
            if instr.op == "scan" and axis in stage.axes:  # each step waits for the one before
                return False
            if instr.op == "store" and not _moves(instr, axis):  # all into one element
                return False
            if instr.op == "store" and _is_scattered(instr, axis, depends):  # twice into one, maybe
                return False
            if instr.op == "reduce" and axis in stage.axes:
                if instr.value[1] in POSITIONS:
                    return False
                folds = True
            if instr.op == "load":
                branches.update(each for each in instr.mask if axis in loop_atoms(each.index))
        # A sum is moved into branches, a test for a divisor makes two loops of one, and tests for
        # one value each become a switch.
        ranges = [each for each in branches if isinstance(each, InRange)]
        points = [each for each in ranges if _is_equality(each)]
        if (folds and branches) or len(ranges) < len(branches):
            return False
        return len(points) < 2 and len(branches) <= MAX_BRANCHES

    def _body(self, stage: Stage) -> StageBody:
        return StageBody(self.writer, self.storage, self.axes, self.schedule, stage)

    def _enter_lane(self, at: str) -> None:
        assert self.schedule.lane is not None
        self.axes[self.schedule.lane] = self.storage.lane = at


def _checks_alone(stage: Stage) -> Stage:
    """A stage that only checks; its instructions keep their numbers."""
    nothing = Instr("const", value=0)
    left_out = ("store", "reduce", "save")
    body = (nothing if instr.op in left_out else instr for instr in stage.body)
    return replace(stage, body=tuple(body))


def _folds(stage: Stage) -> bool:
    """Whether values are folded into results, which have to start from something."""
    return any(instr.op in ("reduce", "scan") for instr in stage.body)


def _is_equality(condition: InRange) -> bool:
    """Whether a range holds or fails for one value alone of those that its index can have."""
    low, high = condition.index.bounds
    inside = min(condition.high, high + 1) - max(condition.low, low)
    return 1 in (inside, high + 1 - low - inside)


def _is_scattered(store: Instr, axis: Axis, depends: Sequence[frozenset[Axis] | None]) -> bool:
    """Whether data tell where neighbours along `axis` are stored."""
    assert store.index is not None
    sources = [depends[atom.key] for atom in data_atoms(store.index)]
    return any(axes is None or axis in axes for axes in sources)


def _moves(access: Instr, axis: Axis) -> bool:
    """Whether the address of a load or store may change along `axis`."""
    assert access.index is not None
    return axis in loop_atoms(access.index) or bool(data_atoms(access.index))
