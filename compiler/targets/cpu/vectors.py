"""Which loops of a kernel LLVM can vectorise, how wide, and in how many pieces it gets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...kernel.dependences import dependences
from ...kernel.index import Axis, Condition, InRange, data_atoms, loop_atoms
from ...kernel.kernel import Instr, Kernel, Stage, compute_dtype
from ...kernel.regions import Part
from .function_writer import ONE_BY_ONE, VectorLoop
from .storage import Storage

# With more of them LLVM gives up.
MAX_BRANCHES = 8
# A loop of fewer steps is no loop any more when LLVM comes to vectorise it.
MIN_LANES = 4
# A loop over fewer vectors is masked as a whole rather than cut in two; of more than MANY, four
# are taken together, though some are left for the masked loop.
FEW_VECTORS, MANY_VECTORS = 4, 16


class Vectors:
    """What is known of the vectors of one kernel's loops; a register has `register_bytes`."""

    def __init__(self, kernel: Kernel, storage: Storage, register_bytes: int) -> None:
        self.kernel = kernel
        self.storage = storage
        self.register_bytes = register_bytes

    def loops(self, part: Part, low: str, high: str) -> Iterator[tuple[str, str, VectorLoop]]:
        """The innermost loops over a piece of a part, along the lanes or the last axis of a stage.

        Where the bounds are known these are whole vectors, several at a time, and then one loop
        that masks what is too much: single steps would take most of the time of short rows.
        """
        is_known = low.isdigit() and high.isdigit()
        if is_known and int(low) >= int(high):
            return
        width = self.width(part.counter, part.stages)
        if self.is_border(part) or not self.can_vectorise(part):
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
            yield str(end - rest), high, _rest(rest, width)

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


def _rest(count: int, width: int) -> VectorLoop:
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
