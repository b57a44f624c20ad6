"""Reuse tiles: reductions of which every element that the loop loads is wanted by many results.

Distances between two sets of points, sums over all other particles, the nearest of many centres: a
result along one row axis and one along another read the same elements. A block computes a tile of
results. What the loop loads for them comes piece by piece into shared memory, once for all results
that want it, and a thread holds a few results, so that what it reads there serves several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod

from ....runtime.records import record, replace
from ...kernel.index import Axis, data_atoms, loop_atoms
from ...kernel.kernel import Instr, Kernel, Stage

# Fewer steps of the loop over all results are not worth tiles.
MIN_STEPS = 1 << 18
# How many results have to want each loaded element, on average.
MIN_REUSE = 8
# The most results along an axis that a tile is taken to have when axes are chosen.
SIDE = 64
THREADS = 256
MAX_THREADS = 1024
MAX_MEMBERS = 32
WARP = 32
# Threads that keep a large GPU busy.
BUSY = 1 << 16
# Elements of the loop that a member of a group takes at least.
MIN_SHARE = 32
# Results that a thread holds, and bytes of shared memory for the tiles of a block.
MAX_HELD = 16
TILE_BYTES = 24 << 10
MIN_DEPTH, MAX_DEPTH = 8, 1024
MAX_DEPTH_OF_SQUARE = 32


@record()
class ReuseTile:
    """How the results of a kernel are shared out: along `down`, if it is there, and `along`.

    A block has `lanes` threads along these axes and each thread `held` results, `lanes` apart.
    `members` threads share the loop of a result, `depth` elements of the loop are in shared memory
    at once.
    """

    down: Axis | None
    along: Axis
    lanes: tuple[int, int]
    held: tuple[int, int]
    members: int
    depth: int

    @property
    def tile(self) -> tuple[int, int]:
        """The results of a block along each axis."""
        return self.lanes[0] * self.held[0], self.lanes[1] * self.held[1]

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles the results make along each axis."""
        down = self.results // self.along.size
        return -(-down // self.tile[0]), -(-self.along.size // self.tile[1])

    @property
    def results(self) -> int:
        """The results along both axes."""
        return (self.down.size if self.down is not None else 1) * self.along.size

    @property
    def threads(self) -> int:
        return prod(self.lanes) * self.members

    def side(self, axes: frozenset[Axis]) -> Axis | None:
        """The axis of the two that something which depends on `axes` differs along."""
        return next((axis for axis in (self.down, self.along) if axis in axes), None)

    def width(self, axes: frozenset[Axis]) -> int:
        """How many elements of such a thing a tile wants."""
        down, along = self.tile
        return (down if self.down in axes else 1) * (along if self.along in axes else 1)

    def element_bytes(self, kernel: Kernel) -> int:
        """Shared memory for one element of the loop; rows have one more, for the banks' sake."""
        (loop, *_) = kernel.stages
        return sum(
            (width + 1 if (width := self.width(depends_on(instr))) > 1 else 1)
            * instr.dtype.itemsize
            for instr in tiled_loads(loop)
        )

    def summary(self) -> str:
        """A line for people."""
        down, along = self.tile
        held = "{} x {}".format(*self.held)
        group = f", {self.members} threads each" if self.members > 1 else ""
        return (
            f"{down} x {along} results per block, {held} per thread{group}, "
            f"{self.depth} elements at once"
        )


def with_reuse_tile(kernel: Kernel) -> tuple[Kernel, ReuseTile] | None:
    """The kernel with its two axes last, and how they are shared out; None where that is no use.

    `kernel` has simplified loops.
    """
    if not _is_one_loop(kernel):
        return None
    loop = kernel.stages[0]
    steps = prod(axis.size for axis in (*kernel.rows, *loop.axes))
    loads = [depends_on(instr) for instr in tiled_loads(loop)]
    if steps < MIN_STEPS or not loads:
        return None
    best = min(
        _axis_pairs(kernel), key=lambda pair: (_cost(loads, pair), _stores_apart(kernel, pair))
    )
    if (cost := _cost(loads, best)) == inf or cost * MIN_REUSE > len(loads):
        return None
    others = [axis for axis in kernel.rows if axis not in best]
    last = [axis for axis in best if axis is not None]
    found = _sized(kernel, best, prod(axis.size for axis in others))
    if found is None or _cost(loads, best, found.tile) * MIN_REUSE > 2 * len(loads):
        return None
    return replace(kernel, rows=(*others, *last)), found


def tiled_loads(loop: Stage) -> list[Instr]:
    """The loads that are different at each step of the loop."""
    return [
        instr
        for instr in loop.body
        if instr.op == "load" and not depends_on(instr).isdisjoint(loop.axes)
    ]


def depends_on(instr: Instr) -> frozenset[Axis]:
    """The axes that an access differs along."""
    return frozenset(axis for index in instr.indices for axis in loop_atoms(index))


AxisPair = tuple[Axis | None, Axis]


def _is_one_loop(kernel: Kernel) -> bool:
    """Whether the kernel is one loop that only loads and reduces, and what follows it."""
    if not kernel.rows or not kernel.stages or kernel.scratch:
        return False
    loop, *others = kernel.stages
    if not loop.axes or any(stage.axes for stage in others):
        return False
    if any(instr.op in ("store", "save", "check") for instr in loop.body):
        return False
    if any(instr.op in ("reduce", "save", "check") for stage in others for instr in stage.body):
        return False
    return not any(
        kernel.params[instr.param].written or any(map(data_atoms, instr.indices))
        for instr in loop.body
        if instr.op == "load"
    )


def _axis_pairs(kernel: Kernel) -> Iterator[AxisPair]:
    for along in kernel.rows:
        yield None, along
        for down in kernel.rows:
            if down is not along:
                yield down, along


def _cost(
    loads: Sequence[frozenset[Axis]], pair: AxisPair, tile: tuple[int, int] = (SIDE, SIDE)
) -> float:
    """Loads per step and result; infinitely many where something differs along both axes."""
    total = 0.0
    for axes in loads:
        fixed = [
            min(axis.size, side)
            for axis, side in zip(pair, tile)
            if axis is not None and axis not in axes
        ]
        if not fixed:
            return inf
        total += 1 / prod(fixed)
    return total


def _stores_apart(kernel: Kernel, pair: AxisPair) -> int:
    """How many stores do not run along the second axis."""
    return sum(
        instr.index.terms.get(pair[1]) != 1
        for instr in kernel.instructions()
        if instr.op == "store" and instr.index is not None
    )


def _sized(kernel: Kernel, pair: AxisPair, others: int) -> ReuseTile | None:
    """Tiles as large as keep a GPU busy."""
    down, along = pair
    loop = kernel.stages[0]
    length = prod(axis.size for axis in loop.axes)
    results = sum(instr.op == "reduce" for instr in loop.body)
    found = ReuseTile(down, along, *_largest(pair), 1, MIN_DEPTH)
    while prod(found.held) > 1 and (
        prod(found.held) * results > MAX_HELD
        or found.element_bytes(kernel) * MIN_DEPTH > TILE_BYTES
    ):
        found = _fewer_held(found)
    while _busy(found, others) < BUSY:
        more = found.members * 2
        if prod(found.held) > 1:
            found = _fewer_held(found)
        elif more > MAX_MEMBERS or length < more * MIN_SHARE:
            break
        elif prod(found.lanes) > WARP:
            found = replace(found, lanes=_halved(found.lanes), members=more)
        elif found.threads * 2 <= MAX_THREADS:
            found = replace(found, members=more)
        else:
            break
    each = found.element_bytes(kernel)
    depth = MAX_DEPTH if down is None else MAX_DEPTH_OF_SQUARE
    while depth > MIN_DEPTH and (depth * each > TILE_BYTES or depth >= 2 * length):
        depth //= 2
    return replace(found, depth=depth) if depth * each <= TILE_BYTES else None


def _largest(pair: AxisPair) -> tuple[tuple[int, int], tuple[int, int]]:
    """Lanes and results of a thread that cover the axes, at most 64 x 64 results or 1 x 1024."""
    down, along = pair
    if down is None:
        lanes = min(THREADS, max(WARP, _power(along.size)))
        return (1, lanes), (1, _held(along.size, lanes))
    lanes_down = min(16, _power(down.size))
    lanes_along = min(THREADS // lanes_down, max(16, _power(along.size)))
    lanes_down = THREADS // lanes_along
    held = _held(down.size, lanes_down), _held(along.size, lanes_along)
    return (lanes_down, lanes_along), held


def _held(size: int, lanes: int) -> int:
    """Results along an axis of a thread that is one of `lanes`."""
    return next(held for held in (4, 2, 1) if held == 1 or size > lanes * held // 2)


def _fewer_held(found: ReuseTile) -> ReuseTile:
    down, along = found.held
    held = (down // 2, along) if down >= along else (down, along // 2)
    return replace(found, held=held)


def _halved(lanes: tuple[int, int]) -> tuple[int, int]:
    down, along = lanes
    return (down // 2, along) if down > 1 and along <= WARP else (down, along // 2)


def _busy(found: ReuseTile, others: int) -> int:
    """The threads of the launch."""
    return others * prod(found.tiles) * found.threads


def _power(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()
