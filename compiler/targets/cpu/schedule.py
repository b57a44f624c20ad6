"""How a Kernel is looped over on a CPU: which axis is vectorised, what one task is.

The loops come in their simplest form (`simplify_loops`). One axis becomes the lane axis, the
innermost loop that LLVM vectorises: the last axis of a stage ("row" schedules: a reduction ends in
registers), or a row axis ("column" schedules and pointwise kernels: reductions keep one
accumulator per lane in a tile). Tasks, over which threads share the work, are tiles of the row
axes; a task's result does not depend on which thread runs it, so neither do the numbers.
"""

from __future__ import annotations

from math import prod

from ....runtime.records import record, replace
from ...ir.shapes import at_least_one
from ...ir.size_number import is_expression
from ...kernel.cost import cost
from ...kernel.dependences import dependences
from ...kernel.index import Axis, Index, Quotient, Remainder, data_atoms
from ...kernel.kernel import Kernel, Stage
from ...kernel.simplify_loops import mentions, simplify_loops

# Work (rough machine operations) that pays for starting a thread on it.
GRAIN_OPERATIONS = 60_000
MIN_TASKS = 16
LANE_TILE = 256
# Sides of the tile of a transposing task: whole lines of a cache both ways, and small enough that
# some tiles stay in the first one.
TRANSPOSE_TILE = 64
# The stride along an axis of what lies anywhere.
FAR = 1 << 40
MIN_LANES = 8
# Of so few steps scans go many rows at a time, though accesses are strided then.
SHORT_SCAN = 16
# Where rows of a scatter are shorter, threads share its targets. Each part has to look at all
# positions, which so many lanes are worth.
NARROW_TARGETS = 1024
LANES_PER_PART = 16
MOST_PARTS = 16


@record()
class TaskAxis:
    """A row axis as part of the task number: a task covers `tile` neighbouring values."""

    axis: Axis
    tile: int

    @property
    def count(self) -> int:
        return -(-self.axis.size // max(self.tile, 1))


@record()
class Targets:
    """The places of a scatter along `axis`: its positions are the values of `position`."""

    axis: Axis
    position: int


@record()
class Schedule:
    """`kernel` with simplified loops, its tasks (the last varies fastest) and the lane axis.

    `lane` is a row axis, or None where each stage's last axis is its lane axis. `direct` says
    that a task is one value of the lane axis, so that a range of tasks is one vector loop. `run`
    is the other axis of a transposing task's tile, along which some accesses are contiguous.
    `targets` is the task axis of a scatter whose tasks take those positions that lie in their tile.
    """

    kernel: Kernel
    tasks: tuple[TaskAxis, ...]
    lane: Axis | None
    direct: bool
    grain: int
    work: int  # rough operations of the whole kernel
    run: Axis | None = None
    targets: Targets | None = None

    @property
    def extent(self) -> int:
        return prod(task.count for task in self.tasks)


def schedule_cpu(kernel: Kernel) -> Schedule:
    """The schedule for `kernel`."""
    kernel = simplify_loops(kernel)
    lane, run = _lane_axis(kernel), None
    targets = _targets(kernel, lane)
    if targets is not None:
        assert lane is not None
        parts = min(MOST_PARTS, lane.size // LANES_PER_PART, targets.axis.size)
        tasks: tuple[TaskAxis, ...] = (
            TaskAxis(targets.axis, -(-targets.axis.size // parts)),
            TaskAxis(lane, lane.size),
        )
    elif lane is None:
        tasks = _prefix_tasks(kernel.rows)
    else:
        others = tuple(axis for axis in kernel.rows if axis is not lane)
        kernel = replace(kernel, rows=(*others, lane))
        run = _transposed_axis(kernel, others, lane)
        tasks = _lane_tasks(kernel, others, lane, run)
    direct = lane is not None and len(tasks) == 1 and tasks[0].tile == 1
    work = _row_work(kernel) * prod(axis.size for axis in kernel.rows)
    grain = _grain(kernel, tasks) if targets is None else grain_of(work // tasks[0].count)
    return Schedule(kernel, tasks, lane, direct, grain, work, run, targets)


# -- choosing loops --------------------------------------------------------------------------


def _strides(kernel: Kernel, axis: Axis, inner_only: bool) -> list[int]:
    """The stride of every access along `axis`; 0 for none."""
    found = []
    for stage in kernel.stages:
        if not stage.axes and inner_only:
            continue
        depends = dependences(kernel, stage)
        for instr in stage.body:
            if instr.op in ("load", "store") and instr.index is not None:
                chosen = [depends[atom.key] or () for atom in data_atoms(instr.index)]
                is_far = _hidden(instr.index, axis) or any(axis in axes for axes in chosen)
                found.append(FAR if is_far else instr.index.terms.get(axis, 0))
    return found


def _hidden(index: Index, axis: Axis) -> bool:
    return any(
        isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (axis,))
        for atom in index.terms
    )


def _affinity(strides: list[int]) -> tuple[int, float]:
    """How well an axis suits as lane axis: few elements are brought together one by one."""
    return -sum(abs(stride) > 1 for stride in strides), sum(map(_ease, strides))


def _ease(stride: int) -> float:
    """The share of a cache line that is used, halved where elements have to be brought together.

    Unit strides are best, broadcasts fine.
    """
    if stride == 0:
        return 0.5
    return 1.0 if abs(stride) == 1 else 0.5 / abs(stride)


def _lane_axis(kernel: Kernel) -> Axis | None:
    if not kernel.rows:
        return None
    looped = [stage for stage in kernel.stages if stage.axes]
    if not looped:
        return kernel.rows[-1]
    if kernel.scratch or kernel.is_sequential:
        return _sequential_lane(kernel)
    last = max((stage.axes[-1] for stage in looped), key=lambda axis: axis.size)
    along_stage = _affinity(_strides(kernel, last, True))
    best = max(kernel.rows, key=lambda axis: (_affinity(_strides(kernel, axis, True)), axis.size))
    along_rows = _affinity(_strides(kernel, best, True))
    scans = any(instr.op == "scan" for stage in looped for instr in stage.body)
    small_stage = (not is_expression(last.size) and last.size < MIN_LANES) or (
        scans and last.size <= SHORT_SCAN
    )
    if best.size >= MIN_LANES and (along_rows > along_stage or small_stage):
        return best
    return None


def _is_short(size: int) -> bool:
    """Whether rows are so short that lanes along them would be too few.

    Not those of open length, which lie an open size apart: elements of several would be brought
    together one by one.
    """
    return not is_expression(size) and size < MIN_LANES


def _sequential_lane(kernel: Kernel) -> Axis | None:
    lane = kernel.rows[-1]
    if kernel.scratch or lane.size < MIN_LANES:
        return None
    copied = next((stage.axes[-1] for stage in kernel.stages if stage.axes), lane)
    along_stage, along_rows = (_affinity(_strides(kernel, axis, True)) for axis in (copied, lane))
    return lane if along_rows >= along_stage else None


def _prefix_tasks(rows: tuple[Axis, ...]) -> tuple[TaskAxis, ...]:
    """Single values of the leading axes until there are tasks enough, whole axes after that."""
    tasks, count = [], 1
    for axis in rows:
        tasks.append(TaskAxis(axis, 1 if count < MIN_TASKS else axis.size))
        count *= tasks[-1].count
    return tuple(tasks)


def _lane_tasks(
    kernel: Kernel, others: tuple[Axis, ...], lane: Axis, run: Axis | None
) -> tuple[TaskAxis, ...]:
    looped = any(stage.axes for stage in kernel.stages)
    if not others and not looped:
        return (TaskAxis(lane, 1),)
    if run is not None:
        rest = tuple(TaskAxis(axis, 1) for axis in others if axis is not run)
        return (*rest, TaskAxis(run, TRANSPOSE_TILE), TaskAxis(lane, TRANSPOSE_TILE))
    tasks = _prefix_tasks(others)
    if looped:
        return (*tasks, TaskAxis(lane, _column_tile(kernel, lane, tasks)))
    whole = prod(task.count for task in tasks) >= MIN_TASKS or lane.size <= 4096
    return (*tasks, TaskAxis(lane, lane.size if whole else 4096))


def _column_tile(kernel: Kernel, lane: Axis, tasks: tuple[TaskAxis, ...]) -> int:
    """Wide enough to stream, narrow enough that several threads have work."""
    count = prod(task.count for task in tasks)
    tile = LANE_TILE
    while tile > 32 and count * -(-lane.size // tile) < 4:
        tile //= 2
    return min(tile, lane.size)


def _transposed_axis(kernel: Kernel, others: tuple[Axis, ...], lane: Axis) -> Axis | None:
    """An axis along which some access is contiguous that is strided along the lane axis."""
    if any(stage.axes for stage in kernel.stages):
        return None
    for instr in kernel.instructions():
        if instr.op not in ("load", "store") or instr.index is None:
            continue
        if abs(instr.index.terms.get(lane, 0)) <= 1:
            continue
        for axis in others:
            if abs(instr.index.terms.get(axis, 0)) == 1 and axis.size >= MIN_LANES:
                return axis
    return None


def _targets(kernel: Kernel, lane: Axis | None) -> Targets | None:
    """What threads share of a scatter into narrow rows.

    By columns they would write to the same lines of a cache, one after the other for each row.
    """
    if lane is None or kernel.rows != (lane,) or len(kernel.stages) != 1:
        return None
    if not 2 * LANES_PER_PART < lane.size < NARROW_TARGETS:
        return None
    (stage,) = kernel.stages
    stores = [instr for instr in stage.body if instr.op == "store"]
    if not stage.axes or len(stores) != 1 or stores[0].index is None:
        return None
    depends = dependences(kernel, stage, [lane])
    outer = [
        atom
        for atom in data_atoms(stores[0].index)
        if atom.size > 1 and lane not in (depends[atom.key] or (lane,))
    ]
    if not outer or _reads(stage, stores[0].param):
        return None
    widest = max(outer, key=lambda atom: atom.size)
    return Targets(Axis("target", widest.size), widest.key)


def _reads(stage: Stage, param: int) -> bool:
    return any(instr.op == "load" and instr.param == param for instr in stage.body)


def _row_work(kernel: Kernel) -> int:
    """Rough operations for one point of the rows."""
    return sum(
        prod(axis.size for axis in stage.axes) * sum(map(cost, stage.body))
        for stage in kernel.stages
    )


def _grain(kernel: Kernel, tasks: tuple[TaskAxis, ...]) -> int:
    rows = prod(min(task.tile, task.axis.size) for task in tasks)
    return grain_of(_row_work(kernel) * rows)


def grain_of(work: int) -> int:
    """How many tasks of so much work are worth a thread."""
    return at_least_one(GRAIN_OPERATIONS // at_least_one(work))
