"""Which loops of a kernel LLVM can vectorise, how wide, and in how many pieces it gets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....runtime.records import NamedTuple
from ...ir.size_number import computed, is_expression
from ...kernel.dependences import dependences
from ...kernel.index import Axis, Condition, InRange, data_atoms, loop_atoms
from ...kernel.kernel import Instr, Kernel, Stage, compute_dtype
from ...kernel.regions import Part
from .function_writer import ONE_BY_ONE, VectorLoop, known_number
from .storage import Storage

# With more of them LLVM gives up.
MAX_BRANCHES = 8
# A loop of fewer steps is no loop any more when LLVM comes to vectorise it.
MIN_LANES = 4
# In a loop of fewer steps LLVM asks nothing, and says that it has no vectors.
CHECKED_STEPS = 16
# A loop over fewer vectors is masked as a whole rather than cut in two; of more than MANY, four
# are taken together, though some are left for the masked loop.
FEW_VECTORS, MANY_VECTORS = 4, 16
# Vectors of so many bytes (AVX2) have masks, and of so many (AVX-512) at no cost.
MASKED_BYTES, MASKING_BYTES = 32, 64


class PieceLoop(NamedTuple):
    """An innermost loop over [low, high); with a `number`, only if that has a certain `value`.

    What is computed from open sizes LLVM knows little of. Where `high` counts `units` of more than
    one step, it sees that nothing is left behind whole vectors; and that one vector is enough where
    `high` is no more than `most`. The loop's counter is 0 at `start`.
    """

    low: str
    high: str
    vector: VectorLoop
    number: Any = None
    value: int = 0
    start: str = "0"
    units: int = 1
    most: int = 0


class Vectors:
    """What is known of the vectors of one kernel's loops; a register has `register_bytes`.

    Open sizes of a kernel that is not `is_large` get none, so that one loop is enough.
    """

    def __init__(
        self, kernel: Kernel, storage: Storage, register_bytes: int, is_large: bool
    ) -> None:
        self.is_large = is_large
        self.short = 0  # where rows of open length are no longer than that
        self.kernel = kernel
        self.storage = storage
        self.register_bytes = register_bytes

    def loops(self, part: Part, low: str, high: str) -> Iterator[PieceLoop]:
        """The innermost loops over a piece of a part, along the lanes or the last axis of a stage.

        Where the bounds are known these are whole vectors, several at a time, and then one loop
        that masks what is too much: single steps would take most of the time of short rows. Where
        they are open sizes there are all loops that may be needed, each of them in case it is: more
        of them where values are added up in the order of those loops.
        """
        start, end = known_number(low), known_number(high)
        are_known = start is not None and end is not None
        if are_known and not is_expression(end - start) and start >= end:  # type: ignore[operator]
            return
        width = self.width(part.counter, part.stages)
        is_open = are_known and is_expression(end - start)  # type: ignore[operator]
        is_small = is_open and not self.is_large
        if is_small or self.is_border(part) or not self.can_vectorise(part):
            yield PieceLoop(low, high, ONE_BY_ONE)
            return
        if start is None or end is None:
            yield PieceLoop(low, high, VectorLoop(width))
            return
        length = end - start
        folds = any(instr.op == "reduce" for stage in part.stages for instr in stage.body)
        if self._steps_by_sizes(part):
            is_short = not is_expression(length) and length < CHECKED_STEPS
            yield PieceLoop(low, high, ONE_BY_ONE if is_short else VectorLoop(width))
            return
        if is_expression(length):
            if self.short:
                masked = VectorLoop(min(width, self.short), True, 1)
                yield PieceLoop("0", str(length), masked, start=str(start), most=self.short)
                return
            if folds:
                yield from _open_folds(start, length, width, self.register_bytes >= MASKED_BYTES)
            else:
                yield from _open_loops(start, length, width)
            return
        together, rest = _together(length, width), _rest(length, width)
        if together:
            yield PieceLoop(low, str(end - rest), VectorLoop(width, False, together))
        if rest:
            yield PieceLoop(str(end - rest), high, _rest_loop(rest, width))

    def may_mask(self, part: Part) -> bool:
        """Whether one masked vector may stand for a part of few steps, however many they are."""
        if self.register_bytes < MASKING_BYTES or self._steps_by_sizes(part):
            return False
        return self.can_vectorise(part)

    def _steps_by_sizes(self, part: Part) -> bool:
        """Whether neighbours lie an open size apart: LLVM asks first whether it is 1."""
        body = [instr for stage in part.stages for instr in stage.body]
        indices = [instr.index for instr in body if instr.op in ("load", "store") and instr.index]
        return any(is_expression(each.terms.get(part.counter)) for each in indices)

    def is_border(self, part: Part) -> bool:
        """Whether a part of an axis is too short for vectors."""
        width = self.width(part.counter, part.stages)
        return part.size < min(part.axis.size, width * part.step)

    def takes_together(self, part: Part, count: int) -> bool:
        """Whether so many bodies in one loop are as good for vectors as one is."""
        if self.is_border(part):
            return False
        branches = [len(_branches(stage, part.counter)) for stage in part.stages]
        return max(branches) * count <= MAX_BRANCHES

    def width(self, axis: Axis, stages: Sequence[Stage]) -> int:
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
        return self.register_bytes // widest

    def can_vectorise(self, part: Part) -> bool:
        """Whether LLVM can vectorise the loop over a part of an axis.

        LLVM refuses the rest by itself, but not without a message on the error stream.
        """
        return all(self.has_vectors(stage, part.counter) for stage in part.stages)

    def has_vectors(self, stage: Stage, axis: Axis) -> bool:
        """Whether LLVM can vectorise a stage's loop along `axis`, one of its own or of the rows."""
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
                if instr.value[1].is_position:
                    return False
                folds = True
        # A sum is moved into branches, a test for a divisor makes two loops of one, and tests for
        # one value each become a switch.
        branches = _branches(stage, axis)
        ranges = [each for each in branches if isinstance(each, InRange)]
        points = [each for each in ranges if _is_equality(each)]
        if (folds and branches) or len(ranges) < len(branches):
            return False
        return len(points) < 2 and len(branches) <= MAX_BRANCHES


def _branches(stage: Stage, axis: Axis) -> set[Condition]:
    """What is asked for along `axis` before something is read."""
    loads = (instr for instr in stage.body if instr.op == "load")
    return {each for instr in loads for each in instr.mask if axis in loop_atoms(each.index)}


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


def _cut(length: int, width: int) -> tuple[int, int, int]:
    """A piece as so many vectors, so many of them at a time, and what is left."""
    vectors, rest = divmod(length, width)
    if vectors < FEW_VECTORS and rest:
        vectors, rest = 0, length
    if vectors >= MANY_VECTORS:
        return vectors - vectors % 4, 4, rest + vectors % 4 * width
    return vectors, next(count for count in (4, 2, 1) if vectors % count == 0), rest


def _together(length: int, width: int) -> int:
    vectors, together, _ = _cut(length, width)
    return together if vectors else 0


def _rest(length: int, width: int) -> int:
    return _cut(length, width)[2]


def _open_loops(start: int, length: int, width: int) -> Iterator[PieceLoop]:
    """Whole vectors, and for what is left the loop that takes least."""
    whole, rest = length // width, length % width
    first, last = str(start), str(start + whole * width)
    yield PieceLoop("0", str(whole), VectorLoop(width, False, 1), start=first, units=width)
    how = computed(_ways_of_few, length, width)
    few = PieceLoop("0", str(rest), ONE_BY_ONE, how, 1, last, most=width)
    yield few
    yield few._replace(vector=VectorLoop(width, True, 1), value=2)


def _open_folds(start: int, length: int, width: int, masks: bool) -> Iterator[PieceLoop]:
    """Loops as a known length has them, each in case that it does.

    Of a few steps there is a loop for each number of them, so that no step asks for the next.
    Without `masks` there are vectors and single steps, as LLVM would branch at each step.
    """
    together, rest = (computed(each, length, width) for each in (_together, _rest))
    for count in (4, 2, 1):
        units = computed(_units, length, width, count)
        vector = VectorLoop(width, False, count)
        yield PieceLoop("0", str(units), vector, together, count, str(start), width * count)
    known = _known_rests(width)
    which, last = computed(_number_of_rest, rest, width), str(start + length - rest)
    for number, count in enumerate(known, 1):
        yield PieceLoop("0", str(count), _rest_loop(count, width), which, number, last)
    masked = VectorLoop(width, masks, 1)
    number = len(known) + 1
    units = computed(_vectors, rest, width)
    yield PieceLoop("0", str(units), VectorLoop(width, False, 1), which, number, last, width)
    yield PieceLoop("0", str(rest), masked, which, number + 1, last, most=width)
    yield PieceLoop("0", str(rest), masked, which, number + 2, last)


def _units(length: int, width: int, count: int) -> int:
    return (length - _rest(length, width)) // (width * count)


def _vectors(length: int, width: int) -> int:
    return length // width


def _known_rests(width: int) -> list[int]:
    """Steps behind whole vectors for which there are loops: single ones, and narrower vectors."""
    return [*range(1, MIN_LANES), *(lanes for lanes in (4, 8, 16, 32) if lanes < width)]


def _ways_of_few(length: int, width: int) -> int:
    """How to go on behind whole vectors: 1 for single steps, 2 for a mask, 0 if nothing is left.

    Of half a vector and less masks take longer, as what was just stored with one is waited for.
    """
    rest = length % width
    if not rest:
        return 0
    return 1 if rest < MIN_LANES or 2 * length <= width else 2


def _number_of_rest(rest: int, width: int) -> int:
    """Which of the loops it is, from 1 on; 0 for none."""
    known = _known_rests(width)
    if not rest:
        return 0
    if rest in known:
        return 1 + known.index(rest)
    return len(known) + (1 if rest % width == 0 else 2 if rest < width else 3)


def _rest_loop(count: int, width: int) -> VectorLoop:
    """What is left is one narrower vector where there is such, else masked, or single steps."""
    if count < MIN_LANES:
        return ONE_BY_ONE
    if count < width and count.bit_count() == 1:
        return VectorLoop(count, False, 1)
    return VectorLoop(width, count % width != 0, 1)


def _moves(access: Instr, axis: Axis) -> bool:
    """Whether the address of a load or store may change along `axis`."""
    assert access.index is not None
    return axis in loop_atoms(access.index) or bool(data_atoms(access.index))
