"""Writes a scheduled Kernel as LLVM IR: here its loops, over tasks, rows and stages.

A kernel is `void name(ptr args, i64 lo, i64 hi)`: `args` are the parameters' addresses and
[lo, hi) the tasks to run. Loops are written plainly; LLVM's passes hoist what is invariant and
vectorise the innermost loop (`inner_loops`), which pointers without aliases and reassociable
sums allow. Inside the loops stand the instructions (`instructions`), made of scalar templates
(`scalar`); reductions keep their results in local memory (`storage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod

from ....runtime.records import replace
from ...ir.size_number import is_expression
from ...kernel import regions
from ...kernel.index import Axis
from ...kernel.kernel import Stage, long_sums
from ...kernel.regions import Box
from .function_writer import ONE_BY_ONE, VectorLoop
from .inner_loops import InnerLoops, LoopStep, is_large
from .instructions import StageBody
from .module_text import KernelText
from .schedule import Schedule, TaskAxis
from .schedule_notes import schedule_line

# Steps of a reduction loop that are taken together where lanes keep their accumulators in memory,
# and so many of all its loops, as of small windows, that none is left.
JAM = 4
MOST_JAMMED = 12
# So many additions, one after another, make a block of a sum: what rounding takes from the total of
# the blocks is kept, so that the error does not grow with the number of blocks.
BLOCK_STEPS = 16
COLUMN_STEPS = 32


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
        not is_large(schedule),
    )


def schedule_summary(schedule: Schedule, vector_bytes: int = 64) -> str:
    """A line for people on how the kernel of a schedule is written."""
    kernel = _KernelWriter(schedule, vector_bytes)
    kernel.write()
    return schedule_line(schedule, kernel.notes)


Range = tuple[str, str | None]
"""Names of the bounds of an axis within a task; without an end, it is one value."""
Lanes = tuple[str, str] | None
"""Names of the bounds of the lane axis, where that is a row axis."""


class _KernelWriter:
    """The loops of one kernel: over tasks, row axes, and the axes of its stages."""

    def __init__(self, schedule: Schedule, vector_bytes: int) -> None:
        self.schedule = schedule
        self.kernel = schedule.kernel
        self.inner = inner = InnerLoops(schedule, vector_bytes)
        self.writer, self.storage, self.notes = inner.writer, inner.storage, inner.notes
        self.vectors, self.axes = inner.vectors, inner.axes
        self.part = ("", "")  # of the targets of a scatter, the bounds that a task writes

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
        first = "%lo"
        if self.inner.rows_together > 1:
            first = self._rows_together(self.kernel.stages[0], self.inner.rows_together)
        short = self.inner.short_rows()
        if short is None:
            self._tasks(first)
            return
        halves, width = short
        with self.writer.cases(halves) as begin:
            for number, lanes in ((1, width // 2), (2, width), (0, 0)):
                begin(number)
                self.vectors.short = lanes
                self._tasks(first)

    def _tasks(self, first: str) -> None:
        with self.writer.loop(first, "%hi") as task:
            self._row_loops(list(self._decode(task).items()))

    def _rows_together(self, stage: Stage, count: int) -> str:
        """Tasks of one row each, so many at a time; gives the first that is left."""
        self.notes.rows_together = count
        tasks = self.writer.op("sub i64 %hi, %lo")
        groups = self.writer.op(f"sdiv i64 {tasks}, {count}")
        with self.writer.loop("0", groups) as group:
            first = self.writer.plus("%lo", self.writer.op(f"mul i64 {group}, {count}"))
            self._walk_rows(stage, [self.writer.integer("add", first, row) for row in range(count)])
        self.storage.lane = "0"
        return self.writer.plus("%lo", self.writer.op(f"mul i64 {groups}, {count}"))

    def _walk_rows(self, stage: Stage, tasks: Sequence[str]) -> None:
        steps = []
        for number, task in enumerate(tasks):
            at = {axis: low for axis, (low, _) in self._decode(task).items()}
            self.axes.update(at)
            self.storage.lane = str(number)
            self.storage.set_identities(stage)
            steps.append(LoopStep(self._body(stage), at, str(number)))
            steps[-1].body.emit_invariant(set(at))
        (axis,) = stage.axes
        self.inner.walk(steps, axis, "0", str(axis.size))

    def _direct(self) -> None:
        """Tasks are lanes: the given range of them is one vector loop."""
        lane, stages = self.schedule.lane, self.kernel.stages
        assert lane is not None
        if len(stages) == 1 and not _folds(stages[0]):
            body = self._body(stages[0])
            body.emit_invariant(set())
            self.inner.walk([LoopStep(body, {})], lane, "%lo", "%hi")
            return
        checks = any(instr.op == "check" for instr in self.kernel.instructions())
        plain = not checks and all(self.vectors.has_vectors(stage, lane) for stage in stages)
        vector = VectorLoop(self.vectors.width(lane, stages)) if plain else ONE_BY_ONE
        self.notes.loop(lane, vector.width)
        with self.writer.loop("%lo", "%hi", vector) as at:
            self.inner.enter_lane(at)
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
        end = self.writer.plus(start, str(size))
        if not is_expression(axis.size) and axis.size % size == 0:
            return start, end
        return start, self.writer.integer("smin", end, axis.size)

    # -- loops ---------------------------------------------------------------------------

    def _row_loops(self, ranges: list[tuple[Axis, Range]]) -> None:
        """Loops over the row axes of a task other than the lane axis, then the row's stages."""
        if not ranges:
            self._row(None)
            return
        (axis, (low, high)), rest = ranges[0], ranges[1:]
        if self.schedule.targets is not None and axis == self.schedule.targets.axis:
            self.part = (low, high or self.writer.plus(low, "1"))
            self._row_loops(rest)
        elif axis == self.schedule.lane:
            assert not rest, "the lane axis is the last task axis"
            self._row((low, high or self.writer.op(f"add i64 {low}, 1")))
        elif high is None:
            self.axes[axis] = low
            self._row_loops(rest)
        else:
            if axis == self.schedule.run and self.inner.tiles:
                self._fill_tiles((low, high), rest)
            with self.writer.loop(low, high) as at:
                self.axes[axis] = at
                self._row_loops(rest)

    def _fill_tiles(self, run: tuple[str, str], rest: list[tuple[Axis, Range]]) -> None:
        """Bring a transposing task's tile into its buffers."""
        self.notes.transposed = len(self.inner.tiles)
        ((lane, (low, high)),) = rest
        assert self.schedule.run is not None and high is not None
        axes = {**self.axes, self.schedule.run: run[0], lane: low}
        (stage,) = self.kernel.stages
        first = StageBody(self.writer, self.storage, axes, self.schedule, stage)
        self.inner.tiles.fill(first.address, run, (low, high))

    def _row(self, lanes: Lanes) -> None:
        """The stages of a row, or of a tile of rows, its lanes."""
        if lanes is not None:
            self.storage.lane_start = lanes[0]
        for stage in self.kernel.stages:
            self.inner.cut = self._blocks(stage, lanes)
            if self.inner.cut:
                self.storage.keep_totals(stage)
            self._start_results(stage, lanes)
            self._versions(stage, lanes)

    def _blocks(self, stage: Stage, lanes: Lanes) -> dict[Axis, int]:
        """The axis of a stage that its sums walk in blocks, and how many of its steps make one.

        Along lanes that are added up side by side, a step is as many values.
        """
        if not stage.axes or not long_sums(stage) or self.vectors.short:
            return {}
        *outer, last = stage.axes
        steps = COLUMN_STEPS if lanes else BLOCK_STEPS
        parts = [regions.whole(stage, last)] if lanes else self.inner.parts(stage, last)
        together = [1 if lanes else self.inner.together(part) for part in parts]
        if any(part.size > steps * count for part, count in zip(parts, together)):
            return {last: steps}
        length = sum(part.size if count == 1 else 1 for part, count in zip(parts, together))
        for axis in reversed(outer):
            if axis.size * length > steps:
                return {axis: max(1, steps // length)}
            length *= axis.size
        return {}

    def _carry(self, stage: Stage, lanes: Lanes) -> None:
        """A block of the sums of `stage` is over."""
        if lanes is None:
            self.storage.carry(stage)
            return
        assert self.schedule.lane is not None
        width = self.vectors.width(self.schedule.lane, [stage])
        with self.writer.loop(*lanes, VectorLoop(width)) as at:
            self.inner.enter_lane(at)
            self.storage.carry(stage)

    def _start_results(self, stage: Stage, lanes: Lanes) -> None:
        if lanes is None:
            self.storage.set_identities(stage)
        elif _folds(stage):
            assert self.schedule.lane is not None
            width = self.vectors.width(self.schedule.lane, [stage])
            with self.writer.loop(*lanes, VectorLoop(width)) as at:
                self.inner.enter_lane(at)
                self.storage.set_identities(stage)

    def _versions(self, stage: Stage, lanes: Lanes) -> None:
        """The loops of a stage, and apart from them those for rows where conditions are known."""
        rows = [axis for axis in self.kernel.rows if axis != self.schedule.lane]
        boxes = regions.boxes(stage, rows) if self.inner.is_large else []
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
            at = self.writer.integer("sub", self.axes[side.axis], side.low)
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
        steps, is_cut = _steps(stage), not self.inner.cut.keys().isdisjoint(stage.axes)
        if not is_cut and not is_expression(steps) and steps <= MOST_JAMMED:
            ranges = [[(axis, str(at)) for at in range(axis.size)] for axis in stage.axes]
            self._jammed(stage, rows, lanes, [dict(each) for each in product(*ranges)])
            return
        if outer:
            with self._loop(outer[0], stage, lanes):
                self._jam(replace(stage, axes=stage.axes[1:]), rows | {outer[0]}, lanes)
            return
        block = self.inner.cut.get(last)
        if block is None:
            self._jam_part(stage, rows, lanes, "0", last.size)
            return
        blocks, rest = divmod(last.size, block)
        with self.writer.loop("0", str(blocks)) as number:
            first = self.writer.op(f"mul nuw nsw i64 {number}, {block}")
            self._jam_part(stage, rows, lanes, first, block)
            self._carry(stage, lanes)
        if is_expression(rest) or rest:
            with self.writer.unless_zero(rest):
                self._jam_part(stage, rows, lanes, str(blocks * block), rest)
                self._carry(stage, lanes)

    def _jam_part(
        self, stage: Stage, rows: set[Axis], lanes: tuple[str, str], start: str, count: int
    ) -> None:
        """`count` steps of the innermost loop from `start` on."""
        groups, rest = divmod(count, JAM)
        with self.writer.loop("0", str(groups)) as at:
            first = self.writer.integer("add", self.writer.integer("mul", at, JAM), start)
            self._jam_steps(stage, rows, lanes, first, JAM)
        first = self.writer.integer("add", start, count - rest)
        if not is_expression(rest):
            if rest:
                self._jam_steps(stage, rows, lanes, first, rest)
            return
        with self.writer.cases(rest) as begin:
            for number in range(1, JAM):
                begin(number)
                self._jam_steps(stage, rows, lanes, first, number)

    def _jam_steps(
        self, stage: Stage, rows: set[Axis], lanes: tuple[str, str], first: str, count: int
    ) -> None:
        last, plus = stage.axes[-1], self.writer.integer
        steps = [{last: plus("add", first, step)} for step in range(count)]
        self._jammed(stage, rows, lanes, steps)

    @contextmanager
    def _loop(self, axis: Axis, stage: Stage, lanes: Lanes) -> Iterator[None]:
        """A loop over an outer axis of a stage, in blocks where it is cut."""
        block = self.inner.cut.get(axis)
        if block is None:
            with self.writer.loop("0", str(axis.size)) as self.axes[axis]:
                yield
            return
        with self.writer.loop("0", str(-(-axis.size // block))) as number:
            with self.writer.loop(*self._part(axis, block, number)) as self.axes[axis]:
                yield
            self._carry(stage, lanes)

    def _jammed(
        self,
        stage: Stage,
        rows: set[Axis],
        lanes: tuple[str, str],
        steps: Sequence[dict[Axis, str]],
    ) -> None:
        bodies = []
        for at in steps:
            self.axes.update(at)
            bodies.append(LoopStep(self._body(stage), at))
            bodies[-1].body.emit_invariant({*rows, *at})
        assert self.schedule.lane is not None
        self.inner.walk(bodies, self.schedule.lane, *lanes)

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
            with self._in_part(body):
                self.inner.walk([LoopStep(body, {})], self.schedule.lane, *lanes)
        else:
            self.inner.walk([LoopStep(body, {})], axes[0], "0", str(axes[0].size))

    @contextmanager
    def _in_part(self, body: StageBody) -> Iterator[None]:
        """What is done only for positions in the task's part of the targets, if it has one."""
        targets = self.schedule.targets
        if targets is None:
            yield
            return
        low, high = self.part
        size = self.writer.op(f"sub i64 {high}, {low}")
        offset = self.writer.op(f"sub i64 {body.value(targets.position)}, {low}")
        with self.writer.when(self.writer.op(f"icmp ult i64 {offset}, {size}")):
            yield

    def _body(self, stage: Stage) -> StageBody:
        return StageBody(self.writer, self.storage, self.axes, self.schedule, stage)


def _steps(stage: Stage) -> int:
    return prod(axis.size for axis in stage.axes)


def _folds(stage: Stage) -> bool:
    """Whether values are folded into results, which have to start from something."""
    return any(instr.op in ("reduce", "scan") for instr in stage.body)
