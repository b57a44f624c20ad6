"""How a Kernel is spread over the threads of a GPU.

A *point* is one value of all row axes. Where a kernel has no loops, a thread computes one point, or
a few neighbours along the last row axis that are loaded and stored as one vector. Where it loops, a
*group* of cooperating threads shares a point: each takes its part of a stage's loop and they join
what they have reduced. Members of a group are neighbours where neighbouring memory lies along the
loop ("row"), and stand apart where it lies along a row axis ("column"), so that neighbouring
threads always touch neighbouring memory. What must run in order (writes at positions that are data)
has groups of one. Kernels without loops that read some memory along another axis than they write
("transposed tile") read it in square tiles, along its own axis, and transpose them in shared
memory. Reductions whose elements are wanted by many points ("reuse tile") have a schedule of their
own, see `reuse_tile_schedule`.

Where sums of rows grow in scratch rows, a block *walks* over neighbouring points, those that have
their sums in common, one after another, and stores the sums behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from math import prod

from ....runtime.dtypes import DType
from ....runtime.records import record, replace
from ...kernel.index import Axis, Quotient, Remainder, data_atoms
from ...kernel.kernel import Instr, Kernel, Stage, adds_up_rows
from ...kernel.simplify_loops import mentions, simplify_loops
from .cached_rows import cached_rows
from .reuse_tile_schedule import ReuseTile, with_reuse_tile

WARP = 32
POINTWISE_BLOCK = 256
# A group of a row takes at least this many elements per thread, so that joining is worth it.
ROW_ELEMENTS = 8
ROW_BLOCK = 128
MAX_GROUP = 1024
# Columns that a block of a column reduction covers: a line of memory.
COLUMNS = 32
MAX_COLUMN_GROUP = 16
# Neighbours that a thread takes of a scanned row, where no vector says how many, and the largest
# group that scans one: a linear scan of eight neighbours takes more registers than threads of
# larger blocks have.
SCANNED = 4
MAX_SCAN_GROUP = 256
# Bytes that one access of a thread moves at most.
VECTOR_BYTES = 16
MAX_VECTOR = 8
# Registers, of four bytes, in which a thread may cache its part of rows from stage to stage.
# Threads of the largest blocks have 64 in all.
MAX_CACHED = 32
MAX_CACHED_OF_LARGEST = 16
# Threads of walking blocks have 64 registers, so that multiprocessors have several such blocks:
# of those a thread may have so many for sums of rows, and for these and cached rows together.
WALKING_THREADS = 1024
MAX_SUMS = 16
MAX_CACHED_WALKING = 48
# The side of a tile that is transposed in shared memory, the rows of threads that work on one, and
# the bytes of shared memory that any GPU gives a block.
TILE = 32
TILE_ROWS = 8
MAX_SHARED = 48 << 10
# Blocks of a launch whose threads load single elements: enough for any GPU several times over.
# Where there is more to do, a thread computes several points, so far apart as there are threads.
MAX_BLOCKS = 1 << 14


class Layout(Enum):
    """How the threads of a block share its points."""

    POINTWISE = "pointwise"
    ROW = "row"
    COLUMN = "column"
    TRANSPOSED_TILE = "transposed tile"
    REUSE_TILE = "reuse tile"


@record()
class CudaSchedule:
    """`kernel` with simplified loops, and the shape of its launch.

    `group` threads share a point, and `items_per_block` points share a block; `vector` neighbours
    are loaded at once: along the last row axis of pointwise kernels, along the loops of the others.
    In the layout TRANSPOSED_TILE, the two last row axes are those of the tiles. Rows that are
    cached from stage to stage lie in registers, or in shared memory that the launch asks for.
    `reuse_tile` belongs to the layout REUSE_TILE.
    """

    kernel: Kernel
    layout: Layout
    group: int
    items_per_block: int
    vector: int
    cached_in_shared: bool = False
    reuse_tile: ReuseTile | None = None

    @cached_property
    def walked(self) -> int:
        """The points over which a block walks, one after another."""
        sums = self.kernel.sums_of_rows
        size = 1
        for axis in reversed(self.kernel.rows if sums else ()):
            if any(each.index is not None and mentions(each.index, (axis,)) for each in sums):
                break
            size *= axis.size
        return size

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
        if self.reuse_tile is not None:
            return f"reuse tile: {self.reuse_tile.summary()}; {self.grid:,} blocks"
        threads = "a thread" if self.group == 1 else f"{self.group} threads"
        vector = f", {self.vector} elements at once" if self.vector > 1 else ""
        shape = f"{self.grid:,} blocks of {self.items_per_block * self.walked} points"
        cached = f"; rows in {self.shared:,} bytes of shared memory" if self.shared else ""
        return f"{self.layout.value}: {threads} per point{vector}; {shape}{cached}"

    @property
    def grid(self) -> int:
        if self.layout is Layout.TRANSPOSED_TILE:
            return prod(axis.size for axis in self.kernel.rows[:-2]) * prod(self.tiles)
        if self.reuse_tile is not None:
            others = prod(axis.size for axis in self.kernel.rows) // self.reuse_tile.results
            return others * prod(self.reuse_tile.tiles)
        blocks = -(-self.items // (self.items_per_block * self.walked))
        return min(blocks, MAX_BLOCKS) if self._may_stride else blocks

    @property
    def strides_over_grid(self) -> bool:
        """Whether a thread computes several points, a whole grid of threads apart."""
        return self._may_stride and self.items > MAX_BLOCKS * self.items_per_block

    @property
    def _may_stride(self) -> bool:
        return self.layout is Layout.POINTWISE and self.vector == 1

    @property
    def shared(self) -> int:
        """The bytes of shared memory that a block caches rows in, which the launch asks for."""
        if not self.cached_in_shared:
            return 0
        return sum(self.cached_bytes_of(dtype, elements) for dtype, elements in self.kernel.scratch)

    @property
    def joined(self) -> int:
        """The bytes of shared memory through which the threads of a block join results."""
        values = self.group // WARP if self.group > WARP else 0
        if self.reuse_tile is not None:
            values = self.reuse_tile.threads if self.group > 1 else 0
        elif self.layout is Layout.COLUMN:
            values = self.group * self.items_per_block if self.group > 1 else 0
        sizes = [self._joined_bytes(instr) for instr in self.kernel.instructions()]
        return values * max(sizes, default=0)

    def _joined_bytes(self, instr: Instr) -> int:
        """The bytes of one result that threads join; 0 for other instructions."""
        if instr.op == "scan":
            number, monoid = instr.value
            running: DType = self.kernel.results[number]
            return running.itemsize * (3 if monoid.keeps == "factor" else 1)
        if instr.op != "reduce":
            return 0
        return 16 if instr.value[1].is_position else instr.dtype.itemsize

    def cached_bytes_of(self, dtype: DType, elements: int) -> int:
        """What all threads of a block cache of a row, in bytes; a multiple of 16."""
        nbytes = cached_elements(self, elements) * prod(self.block) * dtype.itemsize
        return -(-nbytes // 16) * 16

    @property
    def block(self) -> tuple[int, int]:
        if self.layout is Layout.COLUMN:
            return self.items_per_block, self.group
        if self.layout is Layout.TRANSPOSED_TILE:
            return TILE, TILE_ROWS
        if self.reuse_tile is not None:
            return prod(self.reuse_tile.lanes), self.group
        return self.group * self.items_per_block, 1


def schedule_cuda(kernel: Kernel, shared: int = 0, aligned: bool = True) -> CudaSchedule:
    """The schedule for `kernel`.

    Rows that registers do not hold are cached in up to `shared` bytes of shared memory for a block.
    Unless all buffers are `aligned`, single elements are loaded and stored.
    """
    kernel = simplify_loops(kernel)
    if kernel.sums_of_rows:
        return _walking(kernel, aligned)
    looped = [stage for stage in kernel.stages if stage.axes]
    if not looped:
        return _pointwise(kernel, aligned)
    if kernel.is_sequential:
        return CudaSchedule(kernel, Layout.COLUMN, 1, _block_of_points(kernel), 1)
    if (reused := with_reuse_tile(kernel)) is not None:
        ordered, tile = reused
        return CudaSchedule(
            ordered, Layout.REUSE_TILE, tile.members, prod(tile.tile), 1, reuse_tile=tile
        )
    inner = max((stage.axes[-1] for stage in looped), key=lambda axis: axis.size)
    best = max(kernel.rows, key=lambda axis: _affinity(kernel, axis), default=None)
    if best is not None and _affinity(kernel, best) > _affinity(kernel, inner):
        return _column(_with_last(kernel, best), looped, shared)
    return _row(kernel, looped, shared, aligned)


# -- rows that are cached ----------------------------------------------------------------------


def rows_fit(schedule: CudaSchedule) -> bool:
    """Whether there is a place for all scratch rows."""
    return schedule.cached_in_shared or registers_suffice(schedule)


def registers_suffice(schedule: CudaSchedule) -> bool:
    """Whether a thread can cache its part of all scratch rows."""
    most = MAX_CACHED_OF_LARGEST if prod(schedule.block) == MAX_GROUP else MAX_CACHED
    if schedule.walked > 1:
        most = MAX_CACHED_WALKING
    return _registers(schedule, schedule.kernel.scratch) <= most


def _registers(schedule: CudaSchedule, scratch: Iterable[tuple[DType, int]]) -> int:
    """How many registers a thread needs for its part of scratch rows."""
    return sum(
        cached_elements(schedule, elements) * max(dtype.itemsize // 4, 1)
        for dtype, elements in scratch
    )


def cached_elements(schedule: CudaSchedule, elements: int) -> int:
    """How many elements of a row each thread of a group caches."""
    step = schedule.group * schedule.vector
    return -(-elements // step) * schedule.vector


# -- choosing --------------------------------------------------------------------------------


def _pointwise(kernel: Kernel, aligned: bool) -> CudaSchedule:
    across = _transposed_axis(kernel)
    if across is not None:
        others = [axis for axis in kernel.rows[:-1] if axis != across]
        transposed = replace(kernel, rows=(*others, across, kernel.rows[-1]))
        return CudaSchedule(transposed, Layout.TRANSPOSED_TILE, 1, TILE * TILE, 1)
    vector = 1
    if kernel.rows and aligned:
        vector = vector_width(kernel, kernel.stages, kernel.rows[-1])
    return CudaSchedule(kernel, Layout.POINTWISE, 1, POINTWISE_BLOCK, vector)


def _transposed_axis(kernel: Kernel) -> Axis | None:
    """An axis along which something is read contiguously that is strided along the last axis."""
    if len(kernel.rows) < 2 or len(kernel.stages) != 1 or kernel.rows[-1].size < TILE_ROWS:
        return None
    body = kernel.stages[0].body
    for axis in kernel.rows[:-1]:
        loads = [instr for instr in body if is_transposed(kernel, instr, axis, kernel.rows[-1])]
        sizes = [kernel.params[instr.param].dtype.itemsize for instr in loads]
        if axis.size >= TILE_ROWS and 0 < sum(sizes) * TILE * (TILE + 1) <= MAX_SHARED:
            return axis
    return None


def is_transposed(kernel: Kernel, instr: Instr, across: Axis, lane: Axis) -> bool:
    """Whether a load is read along `across` and transposed, since it is strided along `lane`."""
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


def _row(kernel: Kernel, looped: list[Stage], shared: int, aligned: bool) -> CudaSchedule:
    length = max(prod(axis.size for axis in stage.axes) for stage in looped)
    vector = 1
    if aligned:
        vector = min(vector_width(kernel, [stage], stage.axes[-1]) for stage in looped)
    if vector == 1 and aligned and any(map(scans, looped)) and _can_take_several(looped):
        vector = SCANNED
    most = MAX_SCAN_GROUP if any(map(scans, looped)) else MAX_GROUP
    group = 1
    while group < most and group * max(ROW_ELEMENTS, vector) < length:
        group *= 2
    if WARP < group < ROW_BLOCK:  # several warps of several points would share barriers
        group = WARP if length <= WARP * MAX_CACHED else ROW_BLOCK
    most = min(most, length // vector)
    groups = [group, *(more for more in (128, 256, 512, 1024) if group < more <= most)]
    return _caching(
        [CudaSchedule(kernel, Layout.ROW, each, max(1, ROW_BLOCK // each) if each <= WARP else 1,
                      vector) for each in groups],
        shared,
    )  # fmt: skip


def _walking(kernel: Kernel, aligned: bool) -> CudaSchedule:
    """Blocks, each for several neighbouring rows, that keep sums of these in registers."""
    looped = [stage for stage in kernel.stages if stage.axes]
    vector = 1
    if aligned:
        vector = min(vector_width(kernel, [stage], stage.axes[-1]) for stage in looped)
    sums = [kernel.scratch[each.value[1]] for each in kernel.sums_of_rows]
    groups = (ROW_BLOCK << doubled for doubled in range(4))
    schedules = [CudaSchedule(kernel, Layout.ROW, each, 1, vector) for each in groups]
    fitting = [each for each in schedules if _registers(each, sums) <= MAX_SUMS]
    return _caching(fitting or schedules[-1:], 0)


def _column(kernel: Kernel, looped: list[Stage], shared: int) -> CudaSchedule:
    length = min(prod(axis.size for axis in stage.axes) for stage in looped)
    count = max(prod(axis.size for axis in kernel.rows), 1)
    group = 1
    most = 1 if any(map(scans, looped)) else MAX_COLUMN_GROUP  # a thread scans a column
    while group < most and group * 2 * ROW_ELEMENTS <= length:
        group *= 2
    points = min(COLUMNS, count) if group > 1 else _block_of_points(kernel)
    groups = [group, MAX_GROUP // COLUMNS] if group == MAX_COLUMN_GROUP else [group]
    return _caching(
        [CudaSchedule(kernel, Layout.COLUMN, each, points, 1) for each in groups], shared
    )


def _caching(schedules: Sequence[CudaSchedule], shared: int) -> CudaSchedule:
    """One of these, by growing groups, that keeps as much of what is loaded again as there is room.

    In registers, or else in shared memory; the first as it is, where its own rows fit nowhere.
    """
    for kernel in cached_rows(schedules[0].kernel):
        cached = [replace(each, kernel=kernel) for each in schedules]
        for each in cached:
            if registers_suffice(each):
                return each
        for each in cached:
            in_shared = replace(each, cached_in_shared=True)
            if in_shared.shared + in_shared.joined <= shared:
                return in_shared
    return schedules[0]


def _block_of_points(kernel: Kernel) -> int:
    count = prod(axis.size for axis in kernel.rows)
    return min(ROW_BLOCK, max(count, 1))


def scans(stage: Stage) -> bool:
    """Whether a stage has a scan in its loop."""
    return bool(stage.axes) and any(instr.op == "scan" for instr in stage.body)


def _can_take_several(looped: Sequence[Stage]) -> bool:
    """Whether a thread can take several neighbours of a row that are no vectors in memory.

    In all stages the same ones, since it may keep them.
    """
    return len(looped) == 1 or all(stage.axes[-1].size % SCANNED == 0 for stage in looped)


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
    """Whether `width` neighbours of an access along `axis` are one aligned vector.

    In memory they may lie the other way round.
    """
    if instr.op not in ("load", "store") or instr.index is None or instr.mask:
        return False
    if instr.op == "store" and (instr.value == "add" or adds_up_rows(instr)):
        return False
    index = instr.index
    step = index.terms.get(axis)
    first = index.const if step == 1 else index.const - (width - 1)  # backwards, where it is -1
    if step not in (1, -1) or first % width:
        return False
    for atom, coefficient in index.terms.items():
        if atom != axis and coefficient % width:
            return False
        if isinstance(atom, (Quotient, Remainder)) and mentions(atom.index, (axis,)):
            return False
    return True
