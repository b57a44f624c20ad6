"""How a convolution is spread over the threads of a GPU: as a matrix product in tiles.

y[m, j] = sum over k of w[m, k] x[k, j] for output channels m, positions j = (sample, place) and
k = (channel, tap), once per group. The elements x[k, j] are read from the input where they stand
(implicit GEMM): no matrix of windows is made. A block computes a tile of y from slices of both
operands in shared memory, a thread a small square of it in registers.

- Where y is small and k long, as in gradients of the weights, several blocks share the sum over k;
  each writes what it has, and a second kernel adds these up. How many depends on shapes alone.
- Where the input is spread by zeros, as in gradients of a strided convolution's input, places are
  taken by *phase*, their remainder by the spread: all places of a phase meet the same taps, so
  that none of the zeros is multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import gcd, prod

from ....runtime.dtypes import DType
from ....runtime.records import record
from ...ir import Node
from ...kernel.kernel import Kernel, Param, compute_dtype
from ...kernel.kernel_io import BufferLayout
from .template import TemplateSchedule, kernel_without_loops, parts

Ints = tuple[int, ...]

VECTOR_BYTES = 16
SUM_BLOCK = 256
_INT_LIMIT = 1 << 31
# What the choice of a tile reckons with: multiprocessors, multiply-adds of one in a microsecond,
# bytes moved in a microsecond by all, and what a further launch costs, in microseconds.
_PROCESSORS = 132
_RATE = 250_000.0
_BANDWIDTH = 3.0e6
_LAUNCH = 3.0
_MOST_SPLITS = 128
_SHORTEST_SPLIT = 128
# Registers of a thread for what `registers_suffice` counts.
_MOST_KEPT = 88
_MOST_ALONG_K = 100


@record()
class Tile:
    """A block computes `m` x `n` results from slices of `k`; a thread `each_m` x `each_n`.

    `share` is about what share of the peak the inner loop can reach.
    """

    m: int
    n: int
    k: int
    each_m: int
    each_n: int
    share: float

    @property
    def threads(self) -> int:
        return (self.m // self.each_m) * (self.n // self.each_n)


# A warp is 8 x 4 threads: along n a multiple of 8 threads is needed, along m of 4.
TILES = (
    Tile(128, 128, 8, 8, 8, 0.85),
    Tile(64, 128, 8, 8, 8, 0.75),
    Tile(128, 64, 8, 8, 8, 0.75),
    Tile(64, 128, 8, 4, 8, 0.7),
    Tile(64, 64, 16, 4, 4, 0.6),
    Tile(32, 128, 16, 4, 8, 0.6),
    Tile(64, 32, 16, 4, 4, 0.5),
    Tile(32, 32, 16, 4, 4, 0.4),
    Tile(16, 128, 16, 4, 4, 0.45),
)
# 8-byte elements: half as many fit into the same registers and shared memory.
DOUBLE_TILES = (
    Tile(64, 64, 8, 4, 4, 0.8),
    Tile(64, 32, 8, 4, 4, 0.7),
    Tile(32, 32, 16, 2, 4, 0.6),
    Tile(16, 64, 16, 2, 4, 0.5),
)


@record()
class Axis:
    """One spatial axis. Spread by zeros, it is taken in `phases`, or `zeros` are looked for."""

    size: int
    taps: int
    out: int
    stride: int
    low: int
    dilation: int
    spread: int

    @property
    def phases(self) -> int:
        return self.spread if gcd(self.spread, self.dilation) == 1 else 1

    @property
    def zeros(self) -> int:
        """Only every so-manyth place of the input is one; 1 where phases see to that."""
        return 1 if self.phases == self.spread else self.spread

    @property
    def places(self) -> int:
        """Places of a phase."""
        return parts(self.out, self.phases)

    @property
    def phase_taps(self) -> int:
        """Taps that the places of a phase meet at most."""
        return parts(self.taps, self.phases)

    @property
    def pairs(self) -> int:
        """Places times taps that meet an element of the input, or one beside it, not a zero."""
        if self.phases == 1:
            return self.out * parts(self.taps, self.spread)
        return sum(
            parts(self.out - phase, self.phases)
            * parts(max(self.taps - self.first_tap(phase), 0), self.phases)
            for phase in range(min(self.phases, self.out))
        )

    @property
    def extent(self) -> int:
        """The size that positions are checked against."""
        return (self.size - 1) * self.zeros + 1

    def first_tap(self, phase: int) -> int:
        """The first tap that meets an element of the input."""
        inverse = pow(self.dilation, -1, self.phases) if self.phases > 1 else 0
        return (self.low - phase * self.stride) * inverse % self.phases

    @property
    def first_tap_terms(self) -> tuple[int, int]:
        """(a, b), not negative, so that (a + b * phase) % phases is the first tap of a phase."""
        start = self.first_tap(0)
        return start, (self.first_tap(1) - start) % self.phases

    @property
    def is_inside(self) -> bool:
        """Whether every place meets elements of the input only."""
        reach = (self.out - 1) * self.stride + (self.taps - 1) * self.dilation - self.low
        return self.spread == 1 and self.low <= 0 and reach < self.size


@record()
class Operand:
    """A tensor by its element strides, behind `offset` in memory of `elements`."""

    strides: Ints
    offset: int
    elements: int


@record()
class Convolution:
    """The sizes of a convolution: `outputs` and `channels` are those of one group."""

    dtype: DType
    groups: int
    samples: int
    outputs: int
    channels: int
    axes: tuple[Axis, ...]
    x: Operand
    w: Operand

    @property
    def places(self) -> int:
        """Elements of a channel of the result."""
        return prod(axis.out for axis in self.axes)

    @property
    def phases(self) -> int:
        return prod(axis.phases for axis in self.axes)

    @property
    def n(self) -> int:
        """Columns of the product of one phase and group."""
        return self.samples * prod(axis.places for axis in self.axes)

    @property
    def taps(self) -> int:
        """Taps that the places of a phase meet at most."""
        return prod(axis.phase_taps for axis in self.axes)

    @property
    def k(self) -> int:
        return self.channels * self.taps

    @property
    def results(self) -> int:
        return self.samples * self.groups * self.outputs * self.places

    @property
    def flops(self) -> int:
        """Products and sums with elements of the input, not with zeros between them."""
        pairs = prod(axis.pairs for axis in self.axes)
        return 2 * self.samples * self.groups * self.outputs * self.channels * pairs


@record()
class ConvolutionSchedule(TemplateSchedule):
    """One launch computes all tiles; `splits` blocks share each tile's sum over k."""

    problem: Convolution
    tile: Tile
    splits: int

    @property
    def vector(self) -> int:
        """Neighbours that a thread reads from shared memory at once."""
        return VECTOR_BYTES // compute_dtype(self.problem.dtype).itemsize

    @property
    def tiles_m(self) -> int:
        return parts(self.problem.outputs, self.tile.m)

    @property
    def tiles_n(self) -> int:
        return parts(self.problem.n, self.tile.n)

    @property
    def chunk(self) -> int:
        """The part of k that a block sums, in whole slices."""
        return parts(parts(self.problem.k, self.splits), self.tile.k) * self.tile.k

    @property
    def w_along_k(self) -> bool:
        """Whether neighbouring threads read neighbours of w along k."""
        return abs(self.problem.w.strides[-1]) <= abs(self.problem.w.strides[0])

    @property
    def x_along_k(self) -> bool:
        """Whether neighbouring threads read neighbours of x along the taps, not the places."""
        last = self.problem.axes[-1]
        return last.phase_taps > last.places

    @property
    def stores_vectors(self) -> bool:
        """Whether a thread's neighbours along the last axis are stored at once."""
        if self.splits > 1:
            return self.problem.n % self.vector == 0
        return self.problem.phases == 1 and self.problem.places % self.vector == 0

    @property
    def fits_int(self) -> bool:
        problem = self.problem
        sizes = (problem.x.elements, problem.w.elements, problem.results, self.partials, problem.k)
        most = max(axis.extent + axis.taps * axis.dilation for axis in problem.axes)
        return max(*sizes, most * 2, self.grid, self.tiles_n * self.tile.n) < _INT_LIMIT

    @property
    def partials(self) -> int:
        """Elements of what the splits leave for the kernel that adds them up."""
        problem = self.problem
        if self.splits == 1:
            return 0
        return self.splits * problem.phases * problem.groups * problem.outputs * problem.n

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.problem
        dtype = compute_dtype(problem.dtype) if self.splits > 1 else problem.dtype
        params = (
            Param("x", problem.dtype, problem.x.elements),
            Param("w", problem.dtype, problem.w.elements),
            Param("y", dtype, self.partials or problem.results, written=True),
        )
        return kernel_without_loops("convolution", params)

    @property
    def grid(self) -> int:
        return self.tiles_m * self.tiles_n * self.problem.groups * self.problem.phases * self.splits

    @property
    def block(self) -> tuple[int, int]:
        return self.tile.threads, 1

    def summary(self) -> str:
        tile = self.tile
        shared = f", {self.splits} share a sum" if self.splits > 1 else ""
        return (
            f"convolution: tiles of {tile.m} x {tile.n}, {tile.each_m} x {tile.each_n} per thread"
            f"{shared}; {self.grid:,} blocks of {tile.threads} threads"
        )


@record()
class ConvolutionSumSchedule(TemplateSchedule):
    """A thread adds up what the splits of a convolution have for one result."""

    convolution: ConvolutionSchedule

    @property
    def items(self) -> int:
        """Results, with those that only fill up the last places of a phase."""
        return self.convolution.partials // self.convolution.splits

    @cached_property
    def kernel(self) -> Kernel:
        problem = self.convolution.problem
        params = (
            Param("part", compute_dtype(problem.dtype), self.convolution.partials),
            Param("y", problem.dtype, problem.results, written=True),
        )
        return kernel_without_loops("convolution_sum", params)

    @property
    def grid(self) -> int:
        return parts(self.items, SUM_BLOCK)

    @property
    def block(self) -> tuple[int, int]:
        return SUM_BLOCK, 1

    def summary(self) -> str:
        return f"convolution: sums of {self.convolution.splits}; {self.grid:,} blocks"


def convolution_of(node: Node, x: Operand, w: Operand) -> Convolution:
    """The sizes of a `convolution` node whose operands lie as told."""
    attrs = node.attrs
    data, weight = node.inputs
    axes = tuple(
        Axis(*each)
        for each in zip(
            data.shape[2:],
            weight.shape[2:],
            node.shape[2:],
            attrs["strides"],
            (low for low, _ in attrs["padding"]),
            attrs["dilation"],
            attrs["input_dilation"],
            strict=True,
        )
    )
    groups = attrs["groups"]
    return Convolution(
        node.type.dtype, groups, data.shape[0], weight.shape[0] // groups, weight.shape[1],
        axes, x, w,
    )  # fmt: skip


def schedule_convolution(
    problem: Convolution,
) -> tuple[ConvolutionSchedule, ConvolutionSumSchedule | None]:
    """The launch of a convolution, and where sums over k are shared the one that adds them up."""
    tiles = DOUBLE_TILES if problem.dtype.itemsize == 8 else TILES
    choices = [
        ConvolutionSchedule(problem, tile, splits)
        for tile in tiles
        if registers_suffice(problem, tile)
        for splits in _splits(problem, tile)
    ]
    best = min(choices, key=estimate)
    return best, ConvolutionSumSchedule(best) if best.splits > 1 else None


def registers_suffice(problem: Convolution, tile: Tile) -> bool:
    """Whether nothing is spilled, as far as experience with the compiler tells.

    A thread keeps its sums, what it has fetched with its addresses, and where columns stand.
    """
    size = max(problem.dtype.itemsize // 4, 1)
    sums = tile.each_m * tile.each_n * size
    fetched = (tile.m + tile.n) * tile.k // tile.threads * size
    if ConvolutionSchedule(problem, tile, 1).x_along_k:
        columns = tile.n * tile.k // tile.threads * (1 + len(problem.axes))
        return sums + 2 * fetched + columns <= _MOST_ALONG_K
    plain = problem.groups == problem.phases == 1 and all(each.zeros == 1 for each in problem.axes)
    return sums + 2 * fetched + (0 if plain else 4) <= _MOST_KEPT


def estimate(schedule: ConvolutionSchedule) -> float:
    """About how many microseconds the launches take."""
    tile, problem = schedule.tile, schedule.problem
    rate = _RATE * tile.share * (0.5 if problem.dtype.itemsize == 8 else 1.0)
    # Blocks with few threads hide latency only where several stand on a multiprocessor.
    rounds = parts(schedule.grid, _PROCESSORS)
    filled = min(1.0, rounds * tile.threads / 256)
    # Of the products of a phase with the most taps, others need fewer.
    needed = problem.flops / (2 * problem.results * problem.k)
    time = rounds * tile.m * tile.n * (schedule.chunk * needed + 2 * tile.k) / (rate * filled)
    if schedule.splits > 1:
        size = compute_dtype(problem.dtype).itemsize
        time += _LAUNCH + 2 * schedule.partials * size / _BANDWIDTH
    return time


def _splits(problem: Convolution, tile: Tile) -> Sequence[int]:
    """Into how many parts the sum over k may be cut."""
    one = ConvolutionSchedule(problem, tile, 1)
    wanted = 2 * _PROCESSORS // one.grid
    found = {1}
    most = min(problem.k // _SHORTEST_SPLIT, _MOST_SPLITS)
    for splits in (2, 3, 4, wanted, wanted // 2, wanted // 4):
        if 1 < splits <= most:
            chunk = ConvolutionSchedule(problem, tile, splits).chunk
            found.add(parts(problem.k, chunk))  # none of them without work
    return sorted(found)


def operand_of(view: tuple[Ints, int], memory: BufferLayout) -> Operand:
    """An operand from its strides and offset in `memory`."""
    strides, offset = view
    return Operand(strides, offset, memory.elements)
