"""The instructions of a stage as LLVM IR, with the addresses and conditions that they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import copy
from typing import Any

from ....runtime.dtypes import DType
from ...kernel.dependences import dependences
from ...kernel.index import (
    Axis,
    Condition,
    Divides,
    Index,
    Loaded,
    Mask,
    Quotient,
    data_atoms,
    loop_atoms,
)
from ...kernel.kernel import Instr, Stage
from .function_writer import Writer
from .scalar import TEMPLATES, bitcast, convert, literal, memory_type, narrow, widen
from .schedule import Schedule
from .storage import Storage


class StageBody:
    """The instructions of one stage on their way out: each is written once, as early as asked.

    `axes` names the current values of the loops around it.
    """

    def __init__(
        self,
        writer: Writer,
        storage: Storage,
        axes: Mapping[Axis, str],
        schedule: Schedule,
        stage: Stage,
    ) -> None:
        self.writer = writer
        self.storage = storage
        self.axes = axes
        self.kernel = schedule.kernel
        self.stage = stage
        self._values: dict[int, str] = {}
        self._indices: dict[Index, str] = {}
        self._bound: set[Axis] = set()
        self._tested: dict[Mask, str] = {}
        lane = [] if schedule.lane is None else [schedule.lane]
        self._depends = dependences(schedule.kernel, stage, lane)
        self._hidden = _chosen_constants(stage)

    @property
    def written(self) -> Set[int]:
        """The instructions that are written already."""
        return self._values.keys()

    def value(self, number: int) -> str:
        """The name of an instruction's value, which is written already."""
        return self._values[number]

    def copy(self) -> StageBody:
        """The same body as far as it is written, to write the rest of it once more."""
        other = copy(self)
        other._values, other._indices = dict(self._values), dict(self._indices)
        other._tested = dict(self._tested)
        return other

    def within(self, stage: Stage) -> StageBody:
        """A copy whose rest is that of `stage`: the same instructions, in a part of the loops."""
        other = self.copy()
        other.stage = stage
        return other

    def emit_invariant(self, bound: set[Axis]) -> None:
        """Write what depends on no other loops than those of `bound`."""
        for number, instr in enumerate(self.stage.body):
            depends = self._depends[number]
            if number not in self._values and depends is not None and depends <= bound:
                self._values[number] = self._instr(number)
            elif number not in self._values:
                self._test_invariant(instr, bound)

    def _test_invariant(self, instr: Instr, bound: set[Axis]) -> None:
        """Write those conditions of an instruction that depend on no other loops, as one.

        LLVM makes switches and exits of tests that it can take apart, with which no loop is
        vectorised; so it is not told what they test.
        """
        outer = [each for each in instr.mask if _is_invariant(each, bound)]
        if not outer or tuple(outer) in self._tested:
            return
        wide = self.writer.op(f"zext i1 {self._all(outer)} to i32")
        test = self.writer.op(f"icmp ne i32 {self.writer.sealed('i32', wide)}, 0")
        self._tested[tuple(outer)] = test
        self._bound = bound

    def emit_all(self) -> None:
        """Write the rest."""
        for number in range(len(self.stage.body)):
            if number not in self._values:
                self._values[number] = self._instr(number)

    def _instr(self, number: int) -> str:
        """Write one instruction; gives the name of its value."""
        instr = self.stage.body[number]
        args = [self._values[arg] for arg in instr.args]
        match instr.op:
            case "const":
                return self._constant(instr)
            case "index":
                return self._index(instr.index)
            case "condition":
                return self._conditions(instr)
            case "load":
                return self._load(number, instr)
            case "store":
                return self._store(instr, args[0])
            case "check":
                return self._check(instr, args[0])
            case "reduce":
                return self.storage.reduce(instr, args)
            case "scan":
                return self.storage.scan(instr, args)
            case "result":
                return self.storage.result(instr.value, instr.dtype)
            case "save":
                return self.storage.save(instr.value, self._index(instr.index), args[0])
            case "saved":
                return self.storage.saved(instr.value, self._index(instr.index))
            case "cast":
                return convert(self.writer, args[0], self._dtype(instr.args[0]), instr.value)
            case "bitcast":
                return bitcast(self.writer, args[0], *instr.value)
            case "random_bits":
                return self._random_bits(instr, args)
        return TEMPLATES[instr.op](self.writer, args, self._dtype(instr.args[-1]))

    def _constant(self, instr: Instr) -> str:
        value = literal(instr.value, instr.dtype)
        return self.storage.hidden(value, instr.dtype) if instr in self._hidden else value

    def _dtype(self, number: int) -> DType:
        return self.stage.body[number].dtype

    def _random_bits(self, instr: Instr, args: list[str]) -> str:
        self.writer.functions.add("tg_philox_u32")
        at = self._index(instr.index)
        seed, counter = args
        return self.writer.op(f"call i32 @tg_philox_u32(i64 {seed}, i64 {counter}, i64 {at})")

    # -- index expressions ---------------------------------------------------------------

    def _index(self, index: Index | None) -> str:
        """The name of an index expression's value."""
        assert index is not None
        if index not in self._indices:
            self._indices[index] = self._sum(index)
        return self._indices[index]

    def _sum(self, index: Index) -> str:
        op = self.writer.op
        total = ""
        for atom, coefficient in index.terms.items():
            value = self._atom(atom)
            if coefficient != 1:
                value = op(f"mul nsw i64 {value}, {coefficient}")
            total = value if not total else op(f"add nsw i64 {total}, {value}")
        if not total:
            return str(index.const)
        return op(f"add nsw i64 {total}, {index.const}") if index.const else total

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, Axis):
            return self.axes[atom]
        if isinstance(atom, Loaded):
            return self._values[atom.key]
        op = self.writer.op
        inner = self._index(atom.index)
        low = atom.index.bounds[0]
        if low < 0:  # lift by a multiple of the divisor, so that truncation is floor
            lift = -(low // atom.divisor)
            inner = op(f"add nsw i64 {inner}, {lift * atom.divisor}")
        if not isinstance(atom, Quotient):
            return op(f"urem i64 {inner}, {atom.divisor}")
        quotient = op(f"udiv i64 {inner}, {atom.divisor}")
        return quotient if low >= 0 else op(f"sub nsw i64 {quotient}, {lift}")

    # -- conditions ----------------------------------------------------------------------

    def _conditions(self, instr: Instr) -> str:
        outer = tuple(each for each in instr.mask if _is_invariant(each, self._bound))
        if outer not in self._tested:
            return self._all(instr.mask)
        inner = [each for each in instr.mask if each not in outer]
        test = self._tested[outer]
        return self.writer.op(f"and i1 {test}, {self._all(inner)}") if inner else test

    def _all(self, conditions: Sequence[Condition]) -> str:
        total = ""
        for condition in conditions:
            test = self._test(condition)
            total = test if not total else self.writer.op(f"and i1 {total}, {test}")
        return total

    def _test(self, condition: Condition) -> str:
        op = self.writer.op
        at = self._index(condition.index)
        low, high = condition.index.bounds
        if isinstance(condition, Divides):
            lift = -(low // condition.divisor) * condition.divisor
            lifted = op(f"add nsw i64 {at}, {lift}") if low < 0 else at
            rest = op(f"urem i64 {lifted}, {condition.divisor}")
            return op(f"icmp eq i64 {rest}, 0")
        above = op(f"icmp sge i64 {at}, {condition.low}") if low < condition.low else ""
        below = op(f"icmp slt i64 {at}, {condition.high}") if high >= condition.high else ""
        return op(f"and i1 {above}, {below}") if above and below else above or below or "true"

    # -- memory --------------------------------------------------------------------------

    def address(self, instr: Instr) -> str:
        """Where a load or store finds its element in memory."""
        at = self._index(instr.index)
        type_ = memory_type(self.kernel.params[instr.param].dtype)
        return self.writer.op(f"getelementptr inbounds {type_}, ptr %p{instr.param}, i64 {at}")

    def _load(self, number: int, instr: Instr) -> str:
        writer, dtype = self.writer, self.kernel.params[instr.param].dtype
        type_ = memory_type(dtype)
        if not instr.mask:
            place = self.storage.tiles.place(number, self.axes) or self.address(instr)
            return widen(writer, writer.op(f"load {type_}, ptr {place}"), dtype)
        wanted = self._conditions(instr)
        # Where it is not wanted the address may lie outside the buffer; there, nothing uses it.
        address = self.address(instr)
        then, join, before = writer.fresh("then"), writer.fresh("join"), writer.block
        writer.line(f"br i1 {wanted}, label %{then}, label %{join}")
        writer.label(then)
        raw = writer.op(f"load {type_}, ptr {address}")
        writer.line(f"br label %{join}")
        writer.label(join)
        zero = "0.0" if type_ in ("half", "float", "double") else "0"
        merged = writer.op(f"phi {type_} [ {raw}, %{then} ], [ {zero}, %{before} ]")
        return widen(writer, merged, dtype)

    def _store(self, instr: Instr, value: str) -> str:
        writer, dtype = self.writer, self.kernel.params[instr.param].dtype
        type_ = memory_type(dtype)
        address = self.address(instr)
        if instr.value == "add":
            old = widen(writer, writer.op(f"load {type_}, ptr {address}"), dtype)
            name = "logical_or" if dtype.kind == "bool" else "add"
            value = TEMPLATES[name](writer, [old, value], dtype)
        writer.line(f"store {type_} {narrow(writer, value, dtype)}, ptr {address}")
        return value

    def _check(self, instr: Instr, position: str) -> str:
        """Report a position outside [0, size) and go on at 0, which is inside."""
        writer = self.writer
        size, site, status = instr.value
        bad = writer.op(f"icmp uge i64 {position}, {size}")
        if self.storage.notes:
            self.storage.note(bad)
            return writer.op(f"select i1 {bad}, i64 0, i64 {position}")
        fail, join = writer.fresh("fail"), writer.fresh("join")
        writer.line(f"br i1 {bad}, label %{fail}, label %{join}")
        writer.label(fail)
        for slot, value in enumerate((str(site + 1), position, str(size))):
            at = writer.op(f"getelementptr inbounds i64, ptr %p{status}, i64 {slot}")
            writer.line(f"store i64 {value}, ptr {at}")
        writer.line(f"br label %{join}")
        writer.label(join)
        return writer.op(f"select i1 {bad}, i64 0, i64 {position}")


def _is_invariant(condition: Condition, bound: set[Axis]) -> bool:
    return not data_atoms(condition.index) and loop_atoms(condition.index) <= bound


def _chosen_constants(stage: Stage) -> list[Instr]:
    """The constants that are chosen for elements which an extreme is to leave out.

    Where LLVM knows that a constant changes nothing, as minus infinity does not change a maximum,
    it makes of the fold one of the other elements only, in branches that it does not vectorise.
    """
    if not any(instr.op == "reduce" and instr.value[1].is_extreme for instr in stage.body):
        return []
    chosen = [stage.body[arg] for instr in stage.body if instr.op == "where" for arg in instr.args]
    return [instr for instr in chosen if instr.op == "const"]
