"""How additions at positions that are data are spread over the threads of a GPU.

Additions at one place have no order on a GPU unless something gives them one. Here the positions
are sorted first, so that additions to one row stand together, in the order of the program:

1. the result *starts* as the base;
2. a radix sort of (row, number of the addition), some bits at a time: blocks *count* the digits of
   their parts, then *place* them, keeping the order of equal ones;
3. a group of threads *sums* each piece of equally many neighbours: runs of one row that lie inside
   of a piece are added to the result, the first and the last run may belong to several pieces and
   leave parts;
4. the parts of each run are *joined*, in order.

So the values are read once, however the positions lie, and results do not depend on which block
runs first. Where one block sorts everything, nobody counts; where one piece is all, nobody joins.

With `ATOMICS` set, types that a GPU can add to in memory skip the sort: fewer launches, but sums of
floats differ from run to run in their last bits, and many additions to one row wait for each other.
"""

from __future__ import annotations

from functools import cached_property
from math import gcd

from ....runtime.dtypes import DType, float32, float64, int32, int64
from ....runtime.records import record
from ...kernel.checks import Check
from ...kernel.kernel import Kernel, Param, compute_dtype
from .template import TemplateSchedule, kernel_without_loops, parts

# Whether additions may happen in any order; read when a plan is made.
ATOMICS = False
ATOMIC_TYPES = (int32, float32, float64)
ATOMIC_BLOCK = 256

VECTOR_BYTES = 16
START_BLOCK = 256
SORT_BLOCK = 256
# Below this many positions one block sorts them all, with up to so many threads.
ONE_BLOCK = 2048
ONE_BLOCK_THREADS = 512
MAX_DIGIT_BITS = 9
# Blocks that share a sort: each reads what all others have counted.
FEW_SORT_BLOCKS, MANY_SORT_BLOCKS = 64, 132
MANY_POSITIONS = 1 << 17
SUM_BLOCK = 256
SUM_COLUMNS = 128
SUM_BLOCKS = 132
SUM_UNROLLED = 8
JOIN_COLUMNS, JOIN_MEMBERS = 32, 8
JOIN_BLOCKS = 1056
# How many neighbours make a piece, by the number of positions.
PIECES = ((1 << 13, 32), (1 << 16, 64), (1 << 19, 128))
LARGEST_PIECE = 256


@record()
class Positions:
    """One tensor of positions along an axis of `size`; each step along it is `factor` rows.

    Position i stands at element `offset + i * stride` of memory of `elements`.
    """

    dtype: DType
    size: int
    factor: int
    stride: int
    offset: int
    elements: int


@record()
class Values:
    """What is added: element (lead, i, d) is `offset + lead * outer + i * step + d`."""

    outer: int
    step: int
    offset: int
    elements: int


@record()
class Digit:
    """A coordinate of addition i that is no position: i / below % size, times `factor` rows."""

    below: int
    size: int
    factor: int


@record()
class Scatter:
    """`count` additions to `rows` rows of `width` elements, the same for each of `lead` slices.

    The row of addition i is the sum of its positions and of its `digits`. `base` is the number
    that the result starts from, None where it starts from memory.
    """

    dtype: DType
    count: int
    rows: int
    lead: int
    width: int
    positions: tuple[Positions, ...]
    digits: tuple[Digit, ...]
    values: Values
    base: float | int | bool | None

    @property
    def elements(self) -> int:
        return self.lead * self.rows * self.width

    @property
    def columns(self) -> int:
        """What each addition is wide, over all slices."""
        return self.lead * self.width

    @property
    def is_atomic(self) -> bool:
        return ATOMICS and self.dtype in ATOMIC_TYPES

    @property
    def bits(self) -> int:
        """Bits that tell the rows apart."""
        return max((self.rows - 1).bit_length(), 1)

    @property
    def passes(self) -> int:
        return parts(self.bits, MAX_DIGIT_BITS)

    @property
    def digit_bits(self) -> int:
        return parts(self.bits, self.passes)

    @property
    def sort_threads(self) -> int:
        if self.count <= ONE_BLOCK:
            return min(parts(self.count, 32) * 32, ONE_BLOCK_THREADS)
        return SORT_BLOCK

    @property
    def share(self) -> int:
        """The additions that one block sorts; every warp has a whole number of rounds."""
        threads = self.sort_threads
        if self.count <= ONE_BLOCK:
            return parts(self.count, threads) * threads
        blocks = FEW_SORT_BLOCKS if self.count < MANY_POSITIONS else MANY_SORT_BLOCKS
        return parts(self.count, blocks * threads) * threads

    @property
    def sort_blocks(self) -> int:
        return parts(self.count, self.share)

    @property
    def piece(self) -> int:
        """The neighbours in the sorted order that one group sums."""
        for most, size in PIECES:
            if self.count <= most:
                return min(size, self.count)
        return LARGEST_PIECE

    @property
    def pieces(self) -> int:
        return parts(self.count, self.piece)

    @property
    def vector(self) -> int:
        """Elements of a row that a thread moves at once."""
        values = self.values
        aligned = gcd(self.width, values.step, values.outer, values.offset)
        width = VECTOR_BYTES // self.dtype.itemsize
        while aligned % width:
            width //= 2
        return width

    @property
    def counted(self) -> int:
        """Numbers that the blocks of a sort count."""
        return self.sort_blocks << self.digit_bits

    @property
    def fits_int(self) -> bool:
        """Whether all elements have 32-bit positions."""
        added = self.count * self.columns
        return max(self.elements, self.values.elements, self.partials, added) < 1 << 31

    @property
    def partials(self) -> int:
        """Elements of the parts of runs that lie in several pieces."""
        return self.pieces * 2 * self.columns

    def position_params(self) -> list[Param]:
        return [
            Param(f"at{number}", each.dtype, each.elements)
            for number, each in enumerate(self.positions)
        ]


@record()
class ScatterSchedule(TemplateSchedule):
    """One of the launches. `checks` are those of the positions."""

    problem: Scatter

    @property
    def block(self) -> tuple[int, int]:
        return START_BLOCK, 1


@record()
class StartSchedule(ScatterSchedule):
    """The result becomes the base: a thread moves one vector."""

    @property
    def vector(self) -> int:
        """Elements that a thread writes at once."""
        return gcd(self.problem.elements, VECTOR_BYTES // self.problem.dtype.itemsize)

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        source = (
            [] if problem.base is not None else [Param("base", problem.dtype, problem.elements)]
        )
        target = Param("out", problem.dtype, problem.elements, written=True)
        return kernel_without_loops("scatter_start", [*source, target])

    @property
    def grid(self) -> int:
        return parts(self.problem.elements // self.vector, START_BLOCK)

    def summary(self) -> str:
        what = "a copy of the base" if self.problem.base is None else f"{self.problem.base}"
        return f"scatter: starts from {what}; {self.grid:,} blocks"


@record()
class AtomicSchedule(ScatterSchedule):
    """A thread adds one element to the result, in no order."""

    checks: tuple[Check, ...] = ()

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        params = (
            *problem.position_params(),
            Param("values", problem.dtype, problem.values.elements),
            Param("out", problem.dtype, problem.elements, written=True),
            Param("status", int64, 8, written=True),
        )
        return kernel_without_loops("scatter_atomic", params, self.checks)

    @property
    def grid(self) -> int:
        return parts(self.problem.count * self.problem.columns, ATOMIC_BLOCK)

    @property
    def block(self) -> tuple[int, int]:
        return ATOMIC_BLOCK, 1

    def summary(self) -> str:
        return f"scatter: adds in any order; {self.grid:,} blocks"


@record()
class CountSchedule(ScatterSchedule):
    """Each block counts the digits of its share, in pass `number` of the sort."""

    number: int
    checks: tuple[Check, ...] = ()

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        params = [
            *_sort_sources(problem, self.number),
            Param("counts", int32, problem.counted, written=True),
        ]
        if self.number == 0:
            params.append(Param("status", int64, 8, written=True))
        return kernel_without_loops("scatter_count", params, self.checks)

    @property
    def grid(self) -> int:
        return self.problem.sort_blocks

    @property
    def block(self) -> tuple[int, int]:
        return self.problem.sort_threads, 1

    def summary(self) -> str:
        return f"scatter: counts {self.problem.digit_bits} bits; {self.grid:,} blocks"


@record()
class PlaceSchedule(ScatterSchedule):
    """Each block places its share behind equal digits of the blocks before it."""

    number: int
    checks: tuple[Check, ...] = ()

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        order = [Param("order_in", int32, problem.count)] if self.number > 0 else []
        counts = [Param("counts", int32, problem.counted)] if problem.sort_blocks > 1 else []
        params = [
            *_sort_sources(problem, self.number),
            *order,
            *counts,
            Param("rows_out", int32, problem.count, written=True),
            Param("order_out", int32, problem.count, written=True),
        ]
        if self.number == 0:
            params.append(Param("status", int64, 8, written=True))
        return kernel_without_loops("scatter_place", params, self.checks)

    @property
    def grid(self) -> int:
        return self.problem.sort_blocks

    @property
    def block(self) -> tuple[int, int]:
        return self.problem.sort_threads, 1

    def summary(self) -> str:
        problem = self.problem
        return (
            f"scatter: sorts {problem.count:,} positions by {problem.digit_bits} of {problem.bits} "
            f"bits; {self.grid:,} blocks of {problem.sort_threads} threads"
        )


def _sort_sources(problem: Scatter, number: int) -> list[Param]:
    """What a pass of the sort finds digits in: the positions at first, rows later."""
    if number > 0:
        return [Param("rows_in", int32, problem.count)]
    return problem.position_params()


@record()
class SumSchedule(ScatterSchedule):
    """A thread sums a vector of columns of one piece of the sorted additions."""

    @property
    def across(self) -> int:
        """Threads of a block along the columns."""
        wanted = parts(self.problem.columns, self.problem.vector)
        across = 1
        while across < min(wanted, SUM_COLUMNS):
            across *= 2
        return across

    @property
    def column_blocks(self) -> int:
        return parts(parts(self.problem.columns, self.problem.vector), self.across)

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        params = [
            Param("values", problem.dtype, problem.values.elements),
            Param("rows_in", int32, problem.count),
            Param("order_in", int32, problem.count),
            Param("out", problem.dtype, problem.elements, written=True),
        ]
        if problem.pieces > 1:
            dtype = compute_dtype(problem.dtype)
            params.append(Param("part", dtype, problem.partials, written=True))
        return kernel_without_loops("scatter_sum", params)

    @property
    def block(self) -> tuple[int, int]:
        """Smaller where that keeps more multiprocessors busy."""
        across, down = self.across, SUM_BLOCK // self.across
        while down > 1 and across * down > 32 and parts(self.problem.pieces, down) < SUM_BLOCKS:
            down //= 2
        return across, down

    @property
    def grid(self) -> int:
        return parts(self.problem.pieces, self.block[1]) * self.column_blocks

    def summary(self) -> str:
        problem = self.problem
        return (
            f"scatter: sums pieces of {problem.piece}, {problem.vector} elements at once; "
            f"{self.grid:,} blocks of {self.block[0]} x {self.block[1]} threads"
        )


@record()
class JoinSchedule(ScatterSchedule):
    """A block joins the parts of the run that begins in one piece and ends in another."""

    @property
    def column_groups(self) -> int:
        return parts(self.problem.columns, JOIN_COLUMNS)

    @property
    def column_blocks(self) -> int:
        """Blocks that share the columns of a run; few, for most have nothing to do."""
        return min(self.column_groups, parts(JOIN_BLOCKS, self.problem.pieces - 1))

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        params = (
            Param("part", compute_dtype(problem.dtype), problem.partials),
            Param("rows_in", int32, problem.count),
            Param("out", problem.dtype, problem.elements, written=True),
        )
        return kernel_without_loops("scatter_join", params)

    @property
    def block(self) -> tuple[int, int]:
        return JOIN_COLUMNS, JOIN_MEMBERS

    @property
    def grid(self) -> int:
        return (self.problem.pieces - 1) * self.column_blocks

    def summary(self) -> str:
        return f"scatter: joins runs of several pieces; {self.grid:,} blocks"
