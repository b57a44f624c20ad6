"""How a Kernel is spread over the threads of a GPU.

A *point* is one value of all row axes. Where a kernel has no loops, a thread computes one point, or
a few neighbours along the last row axis that are loaded and stored as one vector. Where it loops, a
*team* of threads shares a point: each takes its part of a stage's loop and they join what they have
reduced. Members of a team are neighbours where neighbouring memory lies along the loop ("row"), and
stand apart where it lies along a row axis ("column"), so that neighbouring threads always touch
neighbouring memory. What must run in order (writes at positions that are data) has teams of one.
Kernels without loops that read some memory along another axis than they write ("tile") read it in
square tiles, along its own axis, and turn them in shared memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import NamedTuple

from ...runtime.dtypes import DType
from ..ir.shapes import contiguous_strides
from .body import renumber
from .index import Axis, Index, Quotient, Remainder, data_atoms, flatten, loop_atoms, of_axis
from .kernel import Instr, Kernel, Stage
from .simplify_loops import mentions, simplify_loops

WARP = 32
POINTWISE_BLOCK = 256
# A team of a row takes at least this many elements per thread, so that joining is worth it.
ROW_ELEMENTS = 8
ROW_BLOCK = 128
MAX_TEAM = 1024
# Columns that a block of a column reduction covers: a line of memory.
COLUMNS = 32
MAX_COLUMN_TEAM = 16
# Bytes that one access of a thread moves at most.
VECTOR_BYTES = 16
MAX_VECTOR = 8
# Elements of a row that a thread may keep in registers from one stage to the next.
MAX_KEPT = 32
# The side of a tile that is turned in shared memory, the rows of threads that work on one, and the
# bytes of shared memory that any GPU gives a block.
TILE = 32
TILE_ROWS = 8
MAX_SHARED = 48 << 10


class Layout(Enum):
    """How the threads of a block share its points."""

    POINTWISE = "pointwise"
    ROW = "row"
    COLUMN = "column"
    TILE = "tile"


@dataclass(frozen=True)
class CudaSchedule:
    """`kernel` with simplified loops, and the shape of its launch.

    `team` threads share a point and `points` points share a block; `vector` neighbours are loaded
    at once: along the last row axis of pointwise kernels, along the loops of the others. In the
    layout TILE, the two last row axes are those of the tiles.
    """

    kernel: Kernel
    layout: Layout
    team: int
    points: int
    vector: int

    @property
    def items(self) -> int:
        """Points of the kernel; of pointwise ones, vectors of points."""
        count = prod(axis.size for axis in self.kernel.rows)
        return count // self.vector if self.layout is Layout.POINTWISE else count

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles the two last row axes make."""
        down, along = self.kernel.rows[-2:]
        return -(-down.size // TILE), -(-along.size // TILE)

    @property
    def extent(self) -> int:
        """Blocks of the launch."""
        return self.grid

    def summary(self) -> str:
        """A line for people."""
        threads = "a thread" if self.team == 1 else f"{self.team} threads"
        vector = f", {self.vector} elements at once" if self.vector > 1 else ""
        shape = f"{self.grid:,} blocks of {self.points} points"
        return f"{self.layout.value}: {threads} per point{vector}; {shape}"

    @property
    def grid(self) -> int:
        if self.layout is Layout.TILE:
            return prod(axis.size for axis in self.kernel.rows[:-2]) * prod(self.tiles)
        return -(-self.items // self.points)

    @property
    def block(self) -> tuple[int, int]:
        if self.layout is Layout.COLUMN:
            return self.points, self.team
        if self.layout is Layout.TILE:
            return TILE, TILE_ROWS
        return self.team * self.points, 1


def schedule_cuda(kernel: Kernel) -> CudaSchedule:
    """The schedule for `kernel`."""
    kernel = simplify_loops(kernel)
    looped = [stage for stage in kernel.stages if stage.axes]
    if not looped:
        return _pointwise(kernel)
    if kernel.is_sequential:
        return CudaSchedule(kernel, Layout.COLUMN, 1, _block_of_points(kernel), 1)
    inner = max((stage.axes[-1] for stage in looped), key=lambda axis: axis.size)
    best = max(kernel.rows, key=lambda axis: _affinity(kernel, axis), default=None)
    if best is not None and _affinity(kernel, best) > _affinity(kernel, inner):
        return _column(_with_last(kernel, best), looped)
    return _row(kernel, looped)


# -- rows in registers -----------------------------------------------------------------------


def kept_rows(kernel: Kernel) -> Kernel:
    """`kernel` with each element that several stages over the same axes load loaded only once.

    The first stage saves it in a scratch row, whose elements stay with the thread that loaded them.
    """
    loaded: dict[_Element, list[int]] = {}
    for number, stage in enumerate(kernel.stages):
        for instr in stage.body:
            if (element := _loaded_element(kernel, stage, instr)) is not None:
                loaded.setdefault(element, []).append(number)
    again = [element for element, stages in loaded.items() if len(stages) > 1]
    row = {element: len(kernel.scratch) + number for number, element in enumerate(again)}
    stages = []
    for number, stage in enumerate(kernel.stages):
        loads = {element: row[element] for element in again if number in loaded[element]}
        firsts = {element for element in loads if loaded[element][0] == number}
        stages.append(_keep(kernel, stage, loads, firsts))
    sizes = [(element.dtype, prod(axis.size for axis in element.axes)) for element in again]
    return replace(kernel, stages=tuple(stages), scratch=(*kernel.scratch, *sizes))


class _Element(NamedTuple):
    """What a load reads."""

    param: int
    at: Index
    axes: tuple[Axis, ...]
    dtype: DType


def _loaded_element(kernel: Kernel, stage: Stage, instr: Instr) -> _Element | None:
    """What an instruction loads, if a thread can keep it for a later stage."""
    if instr.op != "load" or instr.mask or kernel.params[instr.param].written:
        return None
    assert instr.index is not None
    if data_atoms(instr.index) or loop_atoms(instr.index).isdisjoint(stage.axes):
        return None
    return _Element(instr.param, instr.index, stage.axes, instr.dtype)


def _keep(
    kernel: Kernel, stage: Stage, rows: Mapping[_Element, int], firsts: Collection[_Element]
) -> Stage:
    """A stage that saves the elements it is the first to load, and takes the others."""
    sizes = tuple(axis.size for axis in stage.axes)
    slot = flatten(list(map(of_axis, stage.axes)), contiguous_strides(sizes))
    body: list[Instr] = []
    new: dict[int, int] = {}
    for old, instr in enumerate(stage.body):
        element = _loaded_element(kernel, stage, instr)
        row = rows.get(element) if element is not None else None
        new[old] = len(body)
        if row is not None and element not in firsts:
            body.append(Instr("saved", (), instr.dtype, index=slot, value=row))
            continue
        body.append(renumber(instr, new))
        if row is not None:
            body.append(Instr("save", (new[old],), instr.dtype, index=slot, value=row))
    return Stage(stage.axes, tuple(body))


def registers_suffice(schedule: CudaSchedule) -> bool:
    """Whether a thread can keep its part of all scratch rows."""
    shares = sum(kept_elements(schedule, elements) for _, elements in schedule.kernel.scratch)
    return shares <= MAX_KEPT


def kept_elements(schedule: CudaSchedule, elements: int) -> int:
    """How many elements of a row each thread of a team keeps."""
    step = schedule.team * schedule.vector
    return -(-elements // step) * schedule.vector


# -- choosing --------------------------------------------------------------------------------


def _pointwise(kernel: Kernel) -> CudaSchedule:
    across = _turned_axis(kernel)
    if across is not None:
        others = [axis for axis in kernel.rows[:-1] if axis != across]
        turned = replace(kernel, rows=(*others, across, kernel.rows[-1]))
        return CudaSchedule(turned, Layout.TILE, 1, TILE * TILE, 1)
    vector = 1
    if kernel.rows:
        vector = vector_width(kernel, kernel.stages, kernel.rows[-1])
    return CudaSchedule(kernel, Layout.POINTWISE, 1, POINTWISE_BLOCK, vector)


def _turned_axis(kernel: Kernel) -> Axis | None:
    """An axis along which something is read contiguously that is strided along the last axis."""
    if len(kernel.rows) < 2 or len(kernel.stages) != 1 or kernel.rows[-1].size < TILE_ROWS:
        return None
    body = kernel.stages[0].body
    for axis in kernel.rows[:-1]:
        turned = [instr for instr in body if is_turned(kernel, instr, axis, kernel.rows[-1])]
        sizes = [kernel.params[instr.param].dtype.itemsize for instr in turned]
        if axis.size >= TILE_ROWS and 0 < sum(sizes) * TILE * (TILE + 1) <= MAX_SHARED:
            return axis
    return None


def is_turned(kernel: Kernel, instr: Instr, across: Axis, lane: Axis) -> bool:
    """Whether a load is read along `across` and turned, since it is strided along `lane`."""
    if instr.op != "load" or instr.index is None or instr.mask or data_atoms(instr.index):
        return False
    if kernel.params[instr.param].written:
        return False
    plain = not any(
        isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (across, lane))
        for atom in instr.index.terms
    )
    terms = instr.index.terms
    return plain and terms.get(across) == 1 and abs(terms.get(lane, 0)) > 1


def _row(kernel: Kernel, looped: list[Stage]) -> CudaSchedule:
    length = max(prod(axis.size for axis in stage.axes) for stage in looped)
    vector = min(vector_width(kernel, [stage], stage.axes[-1]) for stage in looped)
    team = 1
    while team < MAX_TEAM and team * max(ROW_ELEMENTS, vector) < length:
        team *= 2
    if WARP < team < ROW_BLOCK:  # several warps of several points would share barriers
        team = WARP if length <= WARP * MAX_KEPT else ROW_BLOCK
    points = max(1, ROW_BLOCK // team) if team <= WARP else 1
    return _keeping(CudaSchedule(kernel, Layout.ROW, team, points, vector))


def _column(kernel: Kernel, looped: list[Stage]) -> CudaSchedule:
    length = min(prod(axis.size for axis in stage.axes) for stage in looped)
    count = prod(axis.size for axis in kernel.rows)
    points = COLUMNS
    team = 1
    while team < MAX_COLUMN_TEAM and team * 2 * ROW_ELEMENTS <= length:
        team *= 2
    if team == 1:
        points = _block_of_points(kernel)
    return _keeping(CudaSchedule(kernel, Layout.COLUMN, team, min(points, max(count, 1)), 1))


def _keeping(schedule: CudaSchedule) -> CudaSchedule:
    """The same, with what is loaded again kept in registers, if they suffice."""
    kept = replace(schedule, kernel=kept_rows(schedule.kernel))
    return kept if registers_suffice(kept) else schedule


def _block_of_points(kernel: Kernel) -> int:
    count = prod(axis.size for axis in kernel.rows)
    return min(ROW_BLOCK, max(count, 1))


def _with_last(kernel: Kernel, axis: Axis) -> Kernel:
    others = tuple(each for each in kernel.rows if each is not axis)
    return replace(kernel, rows=(*others, axis))


def _affinity(kernel: Kernel, axis: Axis) -> tuple[float, int]:
    """How well neighbouring threads stand along `axis`: by accesses with stride 1, then by size."""
    total = 0.0
    for stage in kernel.stages:
        for instr in stage.body if stage.axes else ():
            if instr.op in ("load", "store") and instr.index is not None:
                stride = instr.index.terms.get(axis, 0)
                total += 1.0 if abs(stride) == 1 else 0.5 if stride == 0 else 0.0
    return total, axis.size


# -- vectors ---------------------------------------------------------------------------------


def vector_width(kernel: Kernel, stages: Sequence[Stage], axis: Axis) -> int:
    """How many neighbours along `axis` are loaded or stored at once; 1 where none can be."""
    sizes = [
        kernel.params[instr.param].dtype.itemsize
        for stage in stages
        for instr in stage.body
        if is_packable(instr, axis, 1)
    ]
    if not sizes:
        return 1
    width = min(VECTOR_BYTES // min(sizes), MAX_VECTOR)
    while width > 1 and not _fits(stages, axis, width):
        width //= 2
    return width


def _fits(stages: Sequence[Stage], axis: Axis, width: int) -> bool:
    """Whether the axis is whole vectors, and what walks along it can be accessed by them."""
    if axis.size % width:
        return False
    return all(
        is_packable(instr, axis, width)
        for stage in stages
        for instr in stage.body
        if is_packable(instr, axis, 1)
    )


def is_packable(instr: Instr, axis: Axis, width: int) -> bool:
    """Whether `width` neighbours of an access along `axis` are one aligned vector."""
    if instr.op not in ("load", "store") or instr.index is None or instr.mask:
        return False
    if instr.op == "store" and instr.value == "add":
        return False
    index = instr.index
    if index.terms.get(axis) != 1 or index.const % width:
        return False
    for atom, coefficient in index.terms.items():
        if atom != axis and coefficient % width:
            return False
        if isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (axis,)):
            return False
    return True
