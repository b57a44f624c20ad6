"""Writes a scheduled Kernel as LLVM IR: loops around the scalar templates.

A kernel is `void name(ptr args, i64 lo, i64 hi)`: `args` are the parameters' addresses and
[lo, hi) the tasks to run. Loops are written plainly; LLVM's passes hoist what is invariant and
vectorise the innermost loop, which pointers without aliases and reassociable sums allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...runtime.dtypes import DType
from ..kernel.index import (
    Axis,
    Divides,
    Index,
    InRange,
    Loaded,
    Quotient,
    data_atoms,
    loop_atoms,
)
from ..kernel.kernel import Instr, Kernel, Stage
from ..kernel.schedule_cpu import Schedule
from ..kernel.views import COMBINE
from .llvm_math import definitions, function_name
from .llvm_scalar import (
    TEMPLATES,
    convert,
    literal,
    llvm_type,
    memory_type,
    narrow,
    reduction_identity,
    widen,
)

_SUFFIX = {"float": "f32", "double": "f64"}
# Steps of a reduction loop that are taken together where lanes keep their accumulators in memory.
JAM = 4
# Rough operations below which vectorising a kernel costs more than it will ever save.
SMALL_WORK = 20_000
_FUNCTION_ATTRIBUTES = 'nounwind "prefer-vector-width"="512" "no-trapping-math"="true"'


@dataclass(frozen=True)
class KernelText:
    """The LLVM text of one kernel, in which NAME stands for its name, and what it calls.

    Equal kernels have equal texts whatever they are called, so that each is compiled once. `small`
    says that there is too little work to be worth the optimiser's time.
    """

    text: str
    functions: frozenset[str]
    declarations: frozenset[str]
    small: bool = False


def kernel_text(schedule: Schedule) -> KernelText:
    """The text of `void NAME(ptr args, i64 lo, i64 hi)` for one scheduled kernel."""
    writer = _KernelWriter(schedule)
    writer.write()
    functions, declarations = frozenset(writer.functions), frozenset(writer.declarations)
    return KernelText(writer.text(), functions, declarations, schedule.work < SMALL_WORK)


def kernels_module(kernels: Mapping[str, KernelText]) -> str:
    """The text of an LLVM module that defines the named kernels."""
    library = definitions(sorted({name for each in kernels.values() for name in each.functions}))
    known = {line for line in library.splitlines() if line.startswith("declare")}
    wanted = {line for each in kernels.values() for line in each.declarations}
    texts = [each.text.replace("NAME", name) for name, each in kernels.items()]
    attributes = f"attributes #0 = {{ {_FUNCTION_ATTRIBUTES} }}"
    return "\n".join([*sorted(wanted - known), library, *texts, attributes])


class _KernelWriter:
    """One function under construction; also what scalar templates write into."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.kernel: Kernel = schedule.kernel
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.functions: set[str] = set()
        self.declarations: set[str] = set()
        self.counter = 0
        self.block = "entry"
        self.axes: dict[Axis, str] = {}
        self.lane_start = "0"
        self.loops = 0

    # -- writing -------------------------------------------------------------------------

    def name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def op(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def label(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def call(self, op: str, dtype: DType, args: Sequence[str]) -> str:
        function = function_name(op, dtype.name if dtype.kind != "float" else _compute(dtype))
        self.functions.add(function)
        type_ = llvm_type(dtype)
        return self.op(f"call {type_} @{function}({', '.join(f'{type_} {a}' for a in args)})")

    def intrinsic(self, name: str, type: str, args: Sequence[str]) -> str:
        full = f"{name}.{_SUFFIX.get(type, type)}"
        self.declarations.add(f"declare {type} @{full}({', '.join([type] * len(args))})")
        return self.op(f"call {type} @{full}({', '.join(f'{type} {a}' for a in args)})")

    @contextmanager
    def loop(self, low: str, high: str) -> Iterator[str]:
        """A loop over [low, high) in steps of one; yields the counter."""
        head, body, done = (self.fresh(stem) for stem in ("head", "loop", "done"))
        self.line(f"br label %{head}")
        self.label(head)
        some = self.op(f"icmp slt i64 {low}, {high}")
        self.line(f"br i1 {some}, label %{body}, label %{done}")
        self.label(body)
        counter = self.name()
        at = len(self.lines)
        self.line("")
        yield counter
        following = self.op(f"add nuw nsw i64 {counter}, 1")
        again = self.op(f"icmp slt i64 {following}, {high}")
        self.line(f"br i1 {again}, label %{body}, label %{done}")
        self.lines[at] = f"  {counter} = phi i64 [ {low}, %{head} ], [ {following}, %{self.block} ]"
        self.label(done)

    def text(self) -> str:
        pointers = [f"%p{number}" for number in range(len(self.kernel.params))]
        noalias = ", ".join(f"ptr noalias {pointer}" for pointer in pointers)
        head = f"define internal void @NAME_body({noalias}, i64 %lo, i64 %hi) noinline #0 {{"
        wrapper = ["define void @NAME(ptr %args, i64 %lo, i64 %hi) #0 {"]
        for number, pointer in enumerate(pointers):
            wrapper.append(f"  %a{number} = getelementptr ptr, ptr %args, i64 {number}")
            wrapper.append(f"  {pointer} = load ptr, ptr %a{number}")
        passed = ", ".join(f"ptr {pointer}" for pointer in pointers)
        wrapper += [f"  call void @NAME_body({passed}, i64 %lo, i64 %hi)", "  ret void", "}"]
        allocas = [f"  {line}" for line in self.allocas]
        body = [head, "entry:", *allocas, *self.lines, "  ret void", "}"]
        return "\n".join([*body, *wrapper])

    # -- loops over tasks ----------------------------------------------------------------

    def write(self) -> None:
        self._declare_storage()
        schedule = self.schedule
        if schedule.direct:
            self._direct()
            return
        with self.loop("%lo", "%hi") as task:
            ranges = self._decode(task)
            self._row_loops(list(ranges.items()))

    def _direct(self) -> None:
        """Tasks are lanes: the given range of them is one vector loop."""
        lane = self.schedule.lane
        assert lane is not None
        with self.loop("%lo", "%hi") as at:
            self.axes[lane] = at
            for stage in self.kernel.stages:
                self._set_identities([instr for instr in stage.body if instr.op == "reduce"])
                _Body(self, stage).emit_all()

    def _decode(self, task: str) -> dict[Axis, tuple[str, str]]:
        """The range of every row axis that a task number stands for."""
        ranges: dict[Axis, tuple[str, str]] = {}
        rest = task
        tasks = [each for each in self.schedule.tasks if each.count > 1]
        for position in range(len(tasks) - 1, 0, -1):
            count = tasks[position].count
            ranges[tasks[position].axis] = self._tile(
                tasks[position], self.op(f"urem i64 {rest}, {count}")
            )
            rest = self.op(f"udiv i64 {rest}, {count}")
        if tasks:
            ranges[tasks[0].axis] = self._tile(tasks[0], rest)
        whole = {each.axis: ("0", str(each.axis.size)) for each in self.schedule.tasks}
        return {axis: ranges.get(axis, bounds) for axis, bounds in whole.items()}

    def _tile(self, task: Any, number: str) -> tuple[str, str]:
        if task.tile == 1:
            return number, ""
        start = self.op(f"mul nuw nsw i64 {number}, {task.tile}")
        end = self.op(f"add nuw nsw i64 {start}, {task.tile}")
        if task.axis.size % task.tile == 0:
            return start, end
        self.declarations.add("declare i64 @llvm.smin.i64(i64, i64)")
        return start, self.op(f"call i64 @llvm.smin.i64(i64 {end}, i64 {task.axis.size})")

    def _row_loops(self, ranges: list[tuple[Axis, tuple[str, str]]]) -> None:
        """Loops over the row axes of a task other than the lane axis, then the row's stages."""
        if not ranges:
            self._row(None)
            return
        (axis, (low, high)), rest = ranges[0], ranges[1:]
        if axis == self.schedule.lane:
            assert not rest, "the lane axis is the last task axis"
            self._row((low, high or self.op(f"add i64 {low}, 1")))
        elif not high:
            self.axes[axis] = low
            self._row_loops(rest)
        else:
            with self.loop(low, high) as at:
                self.axes[axis] = at
                self._row_loops(rest)

    def _row(self, lanes: tuple[str, str] | None) -> None:
        for stage in self.kernel.stages:
            if lanes is None:
                self._start_results(stage, None)
                self._stage_loops(stage, None)
                continue
            self.lane_start = lanes[0]
            self._start_results(stage, lanes)
            self._stage_loops(stage, lanes)

    def _stage_loops(self, stage: Stage, lanes: tuple[str, str] | None) -> None:
        """The loops of a stage; each instruction stands in the outermost loop that it can."""
        rows = {axis for axis in self.kernel.rows if axis != self.schedule.lane}
        ops = {instr.op for instr in stage.body}
        if stage.axes and lanes and "reduce" in ops and ops.isdisjoint(("store", "check")):
            self._jam(stage, rows, lanes)
        else:
            self._nest(_Body(self, stage), rows, list(stage.axes), lanes)

    def _jam(self, stage: Stage, rows: set[Axis], lanes: tuple[str, str]) -> None:
        """Several steps of the innermost loop per walk over the lanes.

        A lane's accumulator lies in memory: one load and store then serve JAM steps.
        """
        *outer, last = stage.axes
        if outer:
            with self.loop("0", str(outer[0].size)) as at:
                self.axes[outer[0]] = at
                self._jam(replace(stage, axes=stage.axes[1:]), rows | {outer[0]}, lanes)
            return
        whole = last.size // JAM
        with self.loop("0", str(whole)) as at:
            first = self.op(f"mul nuw nsw i64 {at}, {JAM}")
            self._jammed(stage, rows, lanes, first, JAM)
        with self.loop(str(whole * JAM), str(last.size)) as at:
            self._jammed(stage, rows, lanes, at, 1)

    def _jammed(
        self, stage: Stage, rows: set[Axis], lanes: tuple[str, str], first: str, count: int
    ) -> None:
        assert self.schedule.lane is not None
        last = stage.axes[-1]
        bodies = []
        for step in range(count):
            at = first if step == 0 else self.op(f"add nuw nsw i64 {first}, {step}")
            self.axes[last] = at
            bodies.append((at, _Body(self, stage)))
            bodies[-1][1].emit_invariant(rows | {last})
        with self.loop(*lanes) as lane:
            self.axes[self.schedule.lane] = lane
            for at, body in bodies:
                self.axes[last] = at
                body.emit_all()

    def _nest(
        self, body: _Body, bound: set[Axis], axes: list[Axis], lanes: tuple[str, str] | None
    ) -> None:
        if not axes and lanes is None:
            body.emit_all()
            return
        body.emit_invariant(bound)
        if axes:
            with self.loop("0", str(axes[0].size)) as at:
                self.axes[axes[0]] = at
                self._nest(body, bound | {axes[0]}, axes[1:], lanes)
            return
        assert lanes is not None and self.schedule.lane is not None
        with self.loop(*lanes) as at:
            self.axes[self.schedule.lane] = at
            body.emit_all()

    # -- results and scratch -------------------------------------------------------------

    def _declare_storage(self) -> None:
        lanes = self._tile_lanes()
        for number, dtype in enumerate(self.kernel.results):
            self._alloca(f"%r{number}", llvm_type(dtype), lanes)
        for instr in self.kernel.instructions():
            if instr.op == "reduce" and instr.value[1] in ("argmax", "argmin"):
                self._alloca(f"%b{instr.value[0]}", llvm_type(instr.dtype), lanes)
        for number, (dtype, elements) in enumerate(self.kernel.scratch):
            self.allocas.append(f"%s{number} = alloca [{elements} x {llvm_type(dtype)}], align 64")

    def _alloca(self, name: str, type_: str, lanes: int) -> None:
        whole = type_ if lanes == 1 else f"[{lanes} x {type_}]"
        self.allocas.append(f"{name} = alloca {whole}, align 64")

    def _tile_lanes(self) -> int:
        lane = self.schedule.lane
        if lane is None:
            return 1
        return next(task.tile for task in self.schedule.tasks if task.axis == lane)

    def _slot(self, name: str, type_: str) -> str:
        """Where the current lane's accumulator lies."""
        if self._tile_lanes() == 1:
            return name
        lane = self.schedule.lane
        assert lane is not None
        offset = self.op(f"sub nsw i64 {self.axes[lane]}, {self.lane_start}")
        return self.op(f"getelementptr inbounds {type_}, ptr {name}, i64 {offset}")

    def _start_results(self, stage: Stage, lanes: tuple[str, str] | None) -> None:
        reductions = [instr for instr in stage.body if instr.op == "reduce"]
        if not reductions:
            return
        if lanes is None:
            self._set_identities(reductions)
            return
        assert self.schedule.lane is not None
        with self.loop(*lanes) as at:
            self.axes[self.schedule.lane] = at
            self._set_identities(reductions)

    def _set_identities(self, reductions: list[Instr]) -> None:
        for instr in reductions:
            number, operation = instr.value
            type_ = llvm_type(instr.dtype)
            start = literal(reduction_identity(operation, instr.dtype), instr.dtype)
            if operation in ("argmax", "argmin"):
                best = self._slot(f"%b{number}", type_)
                self.line(f"store {type_} {start}, ptr {best}")
                position = self._slot(f"%r{number}", "i64")
                self.line(f"store i64 0, ptr {position}")
            else:
                self.line(f"store {type_} {start}, ptr {self._slot(f'%r{number}', type_)}")

    # -- bodies --------------------------------------------------------------------------

    def instr(
        self, stage: Stage, instr: Instr, values: dict[int, str], indices: dict[Index, str]
    ) -> str:
        """Write one instruction; gives the name of its value."""
        args = [values[arg] for arg in instr.args]
        type_ = llvm_type(instr.dtype)
        match instr.op:
            case "const":
                return literal(instr.value, instr.dtype)
            case "index":
                return self.index(instr.index, values, indices)
            case "condition":
                return self._conditions(instr, values, indices)
            case "load":
                return self._load(instr, values, indices)
            case "store":
                return self._store(instr, args[0], values, indices)
            case "check":
                return self._check(instr, args[0])
            case "reduce":
                return self._reduce(instr, args)
            case "result":
                return self.op(f"load {type_}, ptr {self._slot(f'%r{instr.value}', type_)}")
            case "save" | "saved":
                return self._scratch(instr, args, values, indices)
            case "cast":
                return convert(self, args[0], stage.body[instr.args[0]].dtype, instr.value)
            case "random_bits":
                self.functions.add("tg_philox_u32")
                at = self.index(instr.index, values, indices)
                return self.op(f"call i32 @tg_philox_u32(i64 {args[0]}, i64 {args[1]}, i64 {at})")
        return TEMPLATES[instr.op](self, args, stage.body[instr.args[-1]].dtype)

    def index(self, index: Index | None, values: Mapping[int, str], known: dict[Index, str]) -> str:
        """The name of an index expression's value."""
        assert index is not None
        if index not in known:
            known[index] = self._index(index, values, known)
        return known[index]

    def _index(self, index: Index, values: Mapping[int, str], known: dict[Index, str]) -> str:
        total = ""
        for atom, coefficient in index.terms.items():
            value = self._atom(atom, values, known)
            if coefficient != 1:
                value = self.op(f"mul nsw i64 {value}, {coefficient}")
            total = value if not total else self.op(f"add nsw i64 {total}, {value}")
        if not total:
            return str(index.const)
        return self.op(f"add nsw i64 {total}, {index.const}") if index.const else total

    def _atom(self, atom: Any, values: Mapping[int, str], known: dict[Index, str]) -> str:
        if isinstance(atom, Axis):
            return self.axes[atom]
        if isinstance(atom, Loaded):
            return values[atom.key]
        inner = self.index(atom.index, values, known)
        low = atom.index.bounds[0]
        if low < 0:  # lift by a multiple of the divisor, so that truncation is floor
            lift = -(low // atom.divisor)
            inner = self.op(f"add nsw i64 {inner}, {lift * atom.divisor}")
        if not isinstance(atom, Quotient):
            return self.op(f"urem i64 {inner}, {atom.divisor}")
        quotient = self.op(f"udiv i64 {inner}, {atom.divisor}")
        return quotient if low >= 0 else self.op(f"sub nsw i64 {quotient}, {lift}")

    def _conditions(self, instr: Instr, values: Mapping[int, str], known: dict[Index, str]) -> str:
        total = ""
        for condition in instr.mask:
            for test in self._tests(condition, values, known):
                total = test if not total else self.op(f"and i1 {total}, {test}")
        return total

    def _tests(
        self, condition: Any, values: Mapping[int, str], known: dict[Index, str]
    ) -> list[str]:
        at = self.index(condition.index, values, known)
        if isinstance(condition, Divides):
            low = condition.index.bounds[0]
            lift = -(low // condition.divisor) * condition.divisor
            lifted = self.op(f"add nsw i64 {at}, {lift}") if low < 0 else at
            rest = self.op(f"urem i64 {lifted}, {condition.divisor}")
            return [self.op(f"icmp eq i64 {rest}, 0")]
        assert isinstance(condition, InRange)
        low, high = condition.index.bounds
        tests = []
        if low < condition.low:
            tests.append(self.op(f"icmp sge i64 {at}, {condition.low}"))
        if high >= condition.high:
            tests.append(self.op(f"icmp slt i64 {at}, {condition.high}"))
        return tests or ["true"]

    def _address(self, instr: Instr, values: Mapping[int, str], known: dict[Index, str]) -> str:
        at = self.index(instr.index, values, known)
        type_ = memory_type(self.kernel.params[instr.param].dtype)
        return self.op(f"getelementptr inbounds {type_}, ptr %p{instr.param}, i64 {at}")

    def _load(self, instr: Instr, values: Mapping[int, str], known: dict[Index, str]) -> str:
        dtype = self.kernel.params[instr.param].dtype
        if not instr.mask:
            raw = self.op(f"load {memory_type(dtype)}, ptr {self._address(instr, values, known)}")
            return widen(self, raw, dtype)
        wanted = self._conditions(instr, values, known)
        address = self._address(instr, values, known).replace("inbounds ", "")
        then, join, before = self.fresh("then"), self.fresh("join"), self.block
        self.line(f"br i1 {wanted}, label %{then}, label %{join}")
        self.label(then)
        raw = self.op(f"load {memory_type(dtype)}, ptr {address}")
        self.line(f"br label %{join}")
        self.label(join)
        zero = "0.0" if memory_type(dtype) in ("half", "float", "double") else "0"
        merged = self.op(f"phi {memory_type(dtype)} [ {raw}, %{then} ], [ {zero}, %{before} ]")
        return widen(self, merged, dtype)

    def _store(
        self, instr: Instr, value: str, values: Mapping[int, str], known: dict[Index, str]
    ) -> str:
        dtype = self.kernel.params[instr.param].dtype
        address = self._address(instr, values, known)
        if instr.value == "add":
            old = widen(self, self.op(f"load {memory_type(dtype)}, ptr {address}"), dtype)
            name = "logical_or" if dtype.kind == "bool" else "add"
            value = TEMPLATES[name](self, [old, value], dtype)
        self.line(f"store {memory_type(dtype)} {narrow(self, value, dtype)}, ptr {address}")
        return value

    def _scratch(
        self, instr: Instr, args: list[str], values: Mapping[int, str], known: dict[Index, str]
    ) -> str:
        type_ = llvm_type(self.kernel.scratch[instr.value][0])
        at = self.index(instr.index, values, known)
        address = self.op(f"getelementptr inbounds {type_}, ptr %s{instr.value}, i64 {at}")
        if instr.op == "saved":
            return self.op(f"load {type_}, ptr {address}")
        self.line(f"store {type_} {args[0]}, ptr {address}")
        return args[0]

    def _check(self, instr: Instr, position: str) -> str:
        """Report a position outside [0, size) and go on at 0, which is inside."""
        size, site, status = instr.value
        wide = position
        bad = self.op(f"icmp uge i64 {wide}, {size}")
        fail, join = self.fresh("fail"), self.fresh("join")
        self.line(f"br i1 {bad}, label %{fail}, label %{join}")
        self.label(fail)
        for slot, value in enumerate((str(site + 1), wide, str(size))):
            at = self.op(f"getelementptr inbounds i64, ptr %p{status}, i64 {slot}")
            self.line(f"store i64 {value}, ptr {at}")
        self.line(f"br label %{join}")
        self.label(join)
        return self.op(f"select i1 {bad}, i64 0, i64 {wide}")

    def _reduce(self, instr: Instr, args: list[str]) -> str:
        number, operation = instr.value
        type_ = llvm_type(instr.dtype)
        if operation in ("argmax", "argmin"):
            return self._reduce_position(number, operation, type_, instr.dtype, args)
        slot = self._slot(f"%r{number}", type_)
        old = self.op(f"load {type_}, ptr {slot}")
        if instr.dtype.kind == "float" and operation in ("sum", "prod"):
            name = "fadd" if operation == "sum" else "fmul"
            new = self.op(f"{name} reassoc nsz contract {type_} {old}, {args[0]}")
        elif instr.dtype.kind == "float":  # the form that the vectoriser knows as a reduction
            name = f"llvm.{COMBINE[operation]}"
            new = self.intrinsic(name, type_, [old, args[0]])
        else:
            new = TEMPLATES[COMBINE[operation]](self, [old, args[0]], instr.dtype)
        self.line(f"store {type_} {new}, ptr {slot}")
        return new

    def _reduce_position(
        self, number: int, operation: str, type_: str, dtype: DType, args: list[str]
    ) -> str:
        """Keep the first extreme; NaN counts as more extreme than any number."""
        best_slot, slot = self._slot(f"%b{number}", type_), self._slot(f"%r{number}", "i64")
        best = self.op(f"load {type_}, ptr {best_slot}")
        position = self.op(f"load i64, ptr {slot}")
        better = TEMPLATES["gt" if operation == "argmax" else "lt"](self, [args[0], best], dtype)
        if dtype.kind == "float":
            nan = self.op(f"fcmp uno {type_} {args[0]}, {args[0]}")
            number_before = self.op(f"fcmp ord {type_} {best}, {best}")
            first_nan = self.op(f"and i1 {nan}, {number_before}")
            better = self.op(f"or i1 {better}, {first_nan}")
        value = self.op(f"select i1 {better}, {type_} {args[0]}, {type_} {best}")
        at = self.op(f"select i1 {better}, i64 {args[1]}, i64 {position}")
        self.line(f"store {type_} {value}, ptr {best_slot}")
        self.line(f"store i64 {at}, ptr {slot}")
        return at


def _compute(dtype: DType) -> str:
    return "float64" if dtype.itemsize == 8 else "float32"


class _Body:
    """The instructions of one stage on their way out: each is written once, as early as asked."""

    def __init__(self, writer: _KernelWriter, stage: Stage) -> None:
        self.writer = writer
        self.stage = stage
        self.values: dict[int, str] = {}
        self.indices: dict[Index, str] = {}
        self.depends = _dependences(writer, stage)

    def emit_invariant(self, bound: set[Axis]) -> None:
        """Write what depends on no other loops than those of `bound`."""
        for number, instr in enumerate(self.stage.body):
            depends = self.depends[number]
            if number not in self.values and depends is not None and depends <= bound:
                self._emit(number, instr)

    def emit_all(self) -> None:
        """Write the rest."""
        for number, instr in enumerate(self.stage.body):
            if number not in self.values:
                self._emit(number, instr)

    def _emit(self, number: int, instr: Instr) -> None:
        self.values[number] = self.writer.instr(self.stage, instr, self.values, self.indices)


def _dependences(writer: _KernelWriter, stage: Stage) -> list[frozenset[Axis] | None]:
    """For each instruction the axes that its value depends on; None where it must stay inside."""
    lane = writer.schedule.lane
    kernel = writer.kernel
    found: list[frozenset[Axis] | None] = []
    for instr in stage.body:
        axes: set[Axis] = set()
        stays = instr.op in ("store", "reduce", "save", "saved")
        stays |= instr.op == "load" and kernel.params[instr.param].written
        if instr.op == "result" and lane is not None:
            axes.add(lane)
        indices = [condition.index for condition in instr.mask]
        if instr.index is not None:
            indices.append(instr.index)
        for index in indices:
            axes |= loop_atoms(index)
        sources = [*instr.args, *(a.key for index in indices for a in data_atoms(index))]
        for source in sources:
            inner = found[source]
            stays |= inner is None
            axes |= inner or frozenset()
        found.append(None if stays else frozenset(axes))
    return found
