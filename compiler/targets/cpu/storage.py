"""Local memory of a kernel: results of reductions while they are folded, and saved rows.

Where lanes are a tile of a row axis, each lane has an accumulator of its own; and so has each of
several rows that are walked together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....runtime.dtypes import DType
from ...ir.monoids import ARGMAX, LINEAR, PROD, SUM, Monoid
from ...kernel.kernel import Instr, Stage, long_sums
from .function_writer import Writer
from .scalar import TEMPLATES, convert, literal, llvm_type, memory_type, narrow, widen
from .schedule import Schedule
from .tiles import TileBuffers


class Storage:
    """The accumulators and saved rows of one kernel, declared as it is made.

    `%rN` are the results, `%bN` the best values so far of those that are positions, `%sN` the
    saved rows. `lane` and `lane_start` name the current lane and the first one of the tile.
    A long sum has its blocks in `%rN`, the total of those that are over in `%tN`, and in `%eN` what
    rounding took from it. An extreme of floats without lanes is the extreme of those that are
    numbers, and `%nN` the largest of all as bits without sign, which tells whether one is NaN: two
    folds that processors have instructions for. (Bits of masks would be as good in whole vectors,
    but are slow where lanes are masked.)
    """

    def __init__(
        self, writer: Writer, schedule: Schedule, tiles: TileBuffers, together: int = 1
    ) -> None:
        self.writer = writer
        self.kernel = schedule.kernel
        self.tiles = tiles
        self.lane = "0"
        self.lane_start = "0"
        lanes = [task.tile for task in schedule.tasks if task.axis == schedule.lane]
        self.lanes = lanes[0] if lanes else together
        self._long: set[int] = set()
        self._flagged: set[int] = set()
        self._rows: list[DType] = []
        self._has_notes = False
        self.notes = False  # whether failed checks are noted, to be reported later
        self._hidden: dict[tuple[str, str], str] = {}
        self._declare()

    def _declare(self) -> None:
        for number, dtype in enumerate(self.kernel.results):
            self._alloca(f"%r{number}", self._kept_type(dtype), self.lanes)
        for instr in self.kernel.instructions():
            if instr.op == "reduce" and instr.value[1].is_position:
                self._alloca(f"%b{instr.value[0]}", llvm_type(instr.dtype), self.lanes)
            elif instr.op == "reduce" and self.lanes == 1 and _is_extreme(instr):
                self._flagged.add(instr.value[0])
        for number in sorted(self._flagged):
            self._alloca(f"%n{number}", _BITS[llvm_type(self.kernel.results[number])][0], 1)
        for dtype, elements in self.kernel.scratch:
            self.add_row(dtype, elements)

    def _alloca(self, name: str, type_: str, lanes: int) -> None:
        whole = type_ if lanes == 1 else f"[{lanes} x {type_}]"
        self.writer.allocas.append(f"{name} = alloca {whole}, align 64")

    def _kept_type(self, dtype: DType) -> str:
        """How accumulators of `dtype` lie in memory: bits side by side would not be vectors."""
        return memory_type(dtype) if dtype.kind == "bool" and self.lanes > 1 else llvm_type(dtype)

    def _load(self, slot: str, dtype: DType) -> str:
        kept = self.writer.op(f"load {self._kept_type(dtype)}, ptr {slot}")
        return (
            kept if self._kept_type(dtype) == llvm_type(dtype) else widen(self.writer, kept, dtype)
        )

    def _store(self, value: str, slot: str, dtype: DType) -> None:
        type_ = self._kept_type(dtype)
        if type_ != llvm_type(dtype):
            value = narrow(self.writer, value, dtype)
        self.writer.line(f"store {type_} {value}, ptr {slot}")

    def _slot(self, name: str, type_: str) -> str:
        """Where the current lane's accumulator lies."""
        if self.lanes == 1:
            return name
        offset = self.writer.op(f"sub nsw i64 {self.lane}, {self.lane_start}")
        return self.writer.op(f"getelementptr inbounds {type_}, ptr {name}, i64 {offset}")

    def hidden(self, constant: str, dtype: DType) -> str:
        """A constant as a value that LLVM does not know."""
        type_ = llvm_type(dtype)
        if (type_, constant) not in self._hidden:
            place, value = self.writer.fresh("%h"), self.writer.fresh("%k")
            self.writer.allocas += [
                f"{place} = alloca {type_}",
                f"store volatile {type_} {constant}, ptr {place}",
                f"{value} = load volatile {type_}, ptr {place}",
            ]
            self._hidden[type_, constant] = value
        return self._hidden[type_, constant]

    # -- checks --------------------------------------------------------------------------

    def note(self, failed: str) -> None:
        """Remember whether a check failed."""
        wide = self.writer.op(f"zext i1 {failed} to i32")
        before = self.writer.op(f"load i32, ptr {self._failed()}")
        self.writer.line(
            f"store i32 {self.writer.op(f'or i32 {before}, {wide}')}, ptr {self._failed()}"
        )

    def noted(self) -> str:
        """Whether a check has failed."""
        return self.writer.op(f"icmp ne i32 {self.writer.op(f'load i32, ptr {self._failed()}')}, 0")

    def _failed(self) -> str:
        if not self._has_notes:
            self.writer.allocas += ["%failed = alloca i32", "store i32 0, ptr %failed"]
            self._has_notes = True
        return "%failed"

    # -- reductions ----------------------------------------------------------------------

    def set_identities(self, stage: Stage) -> None:
        """Start the current lane's accumulators of the reductions of `stage`."""
        for instr in stage.body:
            if instr.op not in ("reduce", "scan"):
                continue
            number, monoid = instr.value
            dtype = instr.dtype if instr.op == "reduce" else self.kernel.results[number]
            type_, start = llvm_type(dtype), literal(monoid.identity(dtype), dtype)
            if monoid.is_position:
                best = self._slot(f"%b{number}", type_)
                self.writer.line(f"store {type_} {start}, ptr {best}")
                position = self._slot(f"%r{number}", "i64")
                self.writer.line(f"store i64 0, ptr {position}")
            else:
                for name in self._accumulators(number):
                    self._store(start, self._slot(name, self._kept_type(dtype)), dtype)
            if number in self._flagged:
                self.writer.line(f"store {_BITS[type_][0]} 0, ptr %n{number}")

    def _accumulators(self, number: int) -> tuple[str, ...]:
        stems = "rte" if number in self._long else "r"
        return tuple(f"%{stem}{number}" for stem in stems)

    def result(self, number: int, dtype: DType) -> str:
        """The value of a result whose reduction is complete."""
        type_ = llvm_type(dtype)
        if number in self._flagged:
            return self._extreme(number, type_, literal(float("nan"), dtype))
        if number not in self._long:
            return self._load(self._slot(f"%r{number}", self._kept_type(dtype)), dtype)
        total, lost = self._read(f"%t{number}", type_), self._read(f"%e{number}", type_)
        # An infinite total has lost NaN.
        known = self.writer.op(f"fcmp ord {type_} {lost}, {lost}")
        kept = self.writer.op(f"select i1 {known}, {type_} {lost}, {type_} 0.0")
        return self.writer.op(f"fadd {type_} {total}, {kept}")

    def _read(self, name: str, type_: str) -> str:
        return self.writer.op(f"load {type_}, ptr {self._slot(name, type_)}")

    # -- long sums -----------------------------------------------------------------------

    def keep_totals(self, stage: Stage) -> None:
        """The sums of `stage` come in blocks from here on; `carry` is behind each of them."""
        for instr in long_sums(stage):
            number = instr.value[0]
            self._long.add(number)
            for stem in "te":
                self._alloca(f"%{stem}{number}", llvm_type(instr.dtype), self.lanes)

    def carry(self, stage: Stage) -> None:
        """Add the sums of the block that is over to their totals, without error.

        The sum of two floats and what rounding takes from it: Knuth, "The Art of Computer
        Programming", volume 2, 4.2.2, theorem B.
        """
        for instr in long_sums(stage):
            number, type_, op = instr.value[0], llvm_type(instr.dtype), self.writer.op
            block, total, error = (self._slot(f"%{stem}{number}", type_) for stem in "rte")
            a, b = op(f"load {type_}, ptr {total}"), op(f"load {type_}, ptr {block}")
            both = op(f"fadd {type_} {a}, {b}")
            of_b = op(f"fsub {type_} {both}, {a}")
            of_a = op(f"fsub {type_} {both}, {of_b}")
            lost_b = op(f"fsub {type_} {b}, {of_b}")
            lost_a = op(f"fsub {type_} {a}, {of_a}")
            lost = op(f"fadd {type_} {lost_a}, {lost_b}")
            before = op(f"load {type_}, ptr {error}")
            after = op(f"fadd {type_} {before}, {lost}")
            for value, slot in ((both, total), (after, error), ("0.0", block)):
                self.writer.line(f"store {type_} {value}, ptr {slot}")

    def reduce(self, instr: Instr, args: Sequence[str]) -> str:
        """Fold a value into a result."""
        number, monoid = instr.value
        if monoid.is_position:
            return self._reduce_position(number, monoid, instr.dtype, args)
        writer, type_ = self.writer, llvm_type(instr.dtype)
        slot = self._slot(f"%r{number}", self._kept_type(instr.dtype))
        old = self._load(slot, instr.dtype)
        if instr.dtype.kind == "float" and monoid in _REASSOCIATED:
            name = _REASSOCIATED[monoid]
            new = writer.op(f"{name} reassoc nsz contract {type_} {old}, {args[0]}")
        elif number in self._flagged:
            new = self._reduce_extreme(number, f"llvm.{monoid.name}num", type_, old, args[0])
        elif instr.dtype.kind == "float":  # the form that the vectoriser knows as a reduction
            new = writer.intrinsic(f"llvm.{monoid.combine.name}", type_, [old, args[0]])
        else:
            new = TEMPLATES[monoid.combine.name](writer, [old, args[0]], instr.dtype)
        self._store(new, slot, instr.dtype)
        return new

    def _reduce_extreme(self, number: int, name: str, type_: str, old: str, value: str) -> str:
        """The extreme of both, which is anything once there was NaN."""
        writer, (bits, infinity) = self.writer, _BITS[type_]
        size = writer.op(f"bitcast {type_} {value} to {bits}")
        size = writer.op(f"and {bits} {size}, {infinity | (infinity & -infinity) - 1}")
        before = self._read(f"%n{number}", bits)
        largest = writer.intrinsic("llvm.smax", bits, [before, size])
        writer.line(f"store {bits} {largest}, ptr %n{number}")
        return writer.intrinsic(name, type_, [old, value], "nnan nsz ")

    def _extreme(self, number: int, type_: str, nan: str) -> str:
        bits, infinity = _BITS[type_]
        extreme, largest = self._read(f"%r{number}", type_), self._read(f"%n{number}", bits)
        is_nan = self.writer.op(f"icmp sgt {bits} {largest}, {infinity}")
        return self.writer.op(f"select i1 {is_nan}, {type_} {nan}, {type_} {extreme}")

    def scan(self, instr: Instr, args: Sequence[str]) -> str:
        """Take a value into a running one; gives that, and what it starts with, in its own type."""
        (number, monoid), writer = instr.value, self.writer
        dtype = self.kernel.results[number]
        slot = self._slot(f"%r{number}", llvm_type(dtype))
        running = writer.op(f"load {llvm_type(dtype)}, ptr {slot}")
        value = convert(writer, args[0], instr.dtype, dtype)
        if monoid is LINEAR:
            factor = convert(writer, args[1], instr.dtype, dtype)
            running = TEMPLATES["mul"](writer, [running, factor], dtype)
        combine = TEMPLATES[monoid.combine.name]
        running = combine(writer, [running, value], dtype)
        writer.line(f"store {llvm_type(dtype)} {running}, ptr {slot}")
        if monoid is not LINEAR and len(args) > 1:
            running = combine(writer, [running, args[1]], dtype)
        return convert(writer, running, dtype, instr.dtype)

    def seal(self, stage: Stage) -> None:
        """Make results so far values that LLVM knows nothing of.

        It would join the last addition of a loop with one behind it, and then not know the loop as
        that of a sum.
        """
        for instr in stage.body:
            if instr.op != "reduce" or instr.value[1] not in _REASSOCIATED or self.lanes > 1:
                continue
            slot, type_ = f"%r{instr.value[0]}", f"i{instr.dtype.itemsize * 8}"
            value = self.writer.op(f"load {type_}, ptr {slot}")
            self.writer.line(f"store {type_} {self.writer.sealed(type_, value)}, ptr {slot}")

    def _reduce_position(
        self, number: int, monoid: Monoid, dtype: DType, args: Sequence[str]
    ) -> str:
        """Keep the first extreme; NaN counts as more extreme than any number."""
        writer, type_ = self.writer, llvm_type(dtype)
        best_slot, slot = self._slot(f"%b{number}", type_), self._slot(f"%r{number}", "i64")
        best = writer.op(f"load {type_}, ptr {best_slot}")
        position = writer.op(f"load i64, ptr {slot}")
        better = TEMPLATES["gt" if monoid is ARGMAX else "lt"](writer, [args[0], best], dtype)
        if dtype.kind == "float":
            nan = writer.op(f"fcmp uno {type_} {args[0]}, {args[0]}")
            number_before = writer.op(f"fcmp ord {type_} {best}, {best}")
            first_nan = writer.op(f"and i1 {nan}, {number_before}")
            better = writer.op(f"or i1 {better}, {first_nan}")
        value = writer.op(f"select i1 {better}, {type_} {args[0]}, {type_} {best}")
        at = writer.op(f"select i1 {better}, i64 {args[1]}, i64 {position}")
        writer.line(f"store {type_} {value}, ptr {best_slot}")
        writer.line(f"store i64 {at}, ptr {slot}")
        return at

    # -- saved rows ----------------------------------------------------------------------

    def add_row(self, dtype: DType, elements: int) -> int:
        """Room for one more row of saved values; gives its number."""
        number = len(self._rows)
        self._rows.append(dtype)
        self.writer.allocas.append(
            f"%s{number} = alloca [{elements} x {_row_type(dtype)}], align 64"
        )
        return number

    @property
    def rows(self) -> int:
        """How many rows of saved values there are."""
        return len(self._rows)

    def save(self, number: int, at: str, value: str) -> str:
        dtype = self._rows[number]
        kept = narrow(self.writer, value, dtype) if dtype.kind == "bool" else value
        address = self._element(number, at)
        self.writer.line(f"store {_row_type(dtype)} {kept}, ptr {address}")
        return value

    def saved(self, number: int, at: str) -> str:
        dtype = self._rows[number]
        kept = self.writer.op(f"load {_row_type(dtype)}, ptr {self._element(number, at)}")
        return widen(self.writer, kept, dtype) if dtype.kind == "bool" else kept

    def _element(self, number: int, at: str) -> str:
        type_ = _row_type(self._rows[number])
        return self.writer.op(f"getelementptr inbounds {type_}, ptr %s{number}, i64 {at}")


_BITS = {"float": ("i32", 0xFF << 23), "double": ("i64", 0x7FF << 52)}
"""The type of a float's bits, and those of infinity: without the sign, NaN has larger ones."""


_REASSOCIATED = {SUM: "fadd", PROD: "fmul"}
"""How floats are folded in any order, by lanes and by pieces."""


def _is_extreme(instr: Instr) -> bool:
    return instr.value[1].is_extreme and instr.dtype.kind == "float"


def _row_type(dtype: DType) -> str:
    """How values of a row lie in memory: 16-bit floats as they are computed."""
    return memory_type(dtype) if dtype.kind == "bool" else llvm_type(dtype)
