"""Writes the instructions of one stage of a kernel as CUDA C.

Every instruction is written once, as far out of the loops as it is asked for. Values are named
after what computes them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....runtime.dtypes import DType
from ....runtime.records import NamedTuple
from ...ir.monoids import ALL, ANY, ARGMAX, ARGMIN, LINEAR, MAX, MIN, PROD, SUM, Monoid
from ...kernel.dependences import dependences
from ...kernel.index import (
    Axis,
    Condition,
    Divides,
    Index,
    Loaded,
    Mask,
    Quotient,
    Remainder,
    data_atoms,
)
from ...kernel.kernel import Instr, Kernel, Stage, adds_up_rows
from .scalar import TEMPLATES, bitcast, c_type, convert, literal, memory_type, narrow, widen
from .schedule import is_packable
from .varying_numbers import Number
from .writer import CudaWriter, begin

JOIN = {
    SUM: "Sum",
    PROD: "Product",
    MAX: "Maximum",
    MIN: "Minimum",
    ANY: "Any",
    ALL: "All",
    ARGMAX: "Best<true>",
    ARGMIN: "Best<false>",
    LINEAR: "Chain",
}
"""How the device library calls what joins two results."""
# So many additions of a thread, one after another, make a block of a sum: what rounding takes from
# the total of the blocks is kept, so that the error does not grow with the number of blocks.
BLOCK_STEPS = 32
_BITS: dict[str, tuple[Any, Any]] = {
    "float": (np.float32, np.int32), "double": (np.float64, np.int64)
}  # fmt: skip


class KernelWriter(CudaWriter, ABC):
    """A kernel on its way out, as the instructions of its stages know it.

    `integer` is the type of positions, `active` what holds in threads that have a point of their
    own ("" where all do), `first_check` the number of its first check in the module. `varying`
    says that other texts with other numbers may come.
    """

    def __init__(
        self, kernel: Kernel, integer: str, first_check: int, varying: bool = False
    ) -> None:
        super().__init__()
        self.indent = 1
        self.varying = varying
        self.kernel = kernel
        self.integer = integer
        self.active = ""
        self.first_check = first_check

    def number(self, value: int, free: bool = False) -> str:
        """A number of positions, as it stands in the text; see `varying_numbers`."""
        return Number(self.integer, value, free).marked() if self.varying else str(value)

    def constant(self, value: Any, dtype: DType) -> str:
        """A number that is computed with."""
        text, type_ = literal(value, dtype), c_type(dtype)
        if not self.varying or type_ not in _BITS or not math.isfinite(value):
            return text
        floats, bits = _BITS[type_]
        return Number(type_, int(floats(value).view(bits)), False, text).marked()

    @abstractmethod
    def decode(self, number: str, axes: Sequence[Axis], vector: int = 1) -> None:
        """Declare the values of row-major axes at a number; of the last in steps of `vector`."""

    @abstractmethod
    def save(self, number: int, slot: str, value: str) -> None:
        """Keep an element of scratch row `number`."""

    @abstractmethod
    def saved(self, number: int, slot: str) -> str:
        """What was kept."""


class Packed(NamedTuple):
    """A vector of neighbours: its name, its address, and the element of neighbour `v`."""

    name: str
    address: str
    element: str


class StageBody:
    """The instructions of one stage: each is written once, as early as asked."""

    def __init__(self, writer: KernelWriter, stage: Stage) -> None:
        self.writer = writer
        self.kernel = writer.kernel
        self.stage = stage
        self.values: dict[int, str] = {}
        self.depends = dependences(self.kernel, stage)
        self.slot = ""
        self.guard = ""
        self.packs: dict[int, Packed] = {}
        self.given: dict[int, str] = {}  # what loads have read already
        self.names: Mapping[Axis, str] = {}

    def write_all(self, guard: str) -> None:
        """Write everything; stores only where `guard` holds."""
        self.guard = guard
        for number, instr in enumerate(self.stage.body):
            if number not in self.values:
                self.values[number] = self._instr(number, instr)

    def write_invariant(self, axes: Sequence[Axis]) -> None:
        """Write what depends on none of `axes`."""
        for number, instr in enumerate(self.stage.body):
            depends = self.depends[number]
            if number not in self.values and depends is not None and depends.isdisjoint(axes):
                self.values[number] = self._instr(number, instr)

    def write_vector(
        self, axis: Axis | None, vector: int, step: str | None, guard: str = ""
    ) -> None:
        """Write the rest for `vector` neighbours along `axis`; `step` counts a thread's vectors."""
        self.slot = step or ""
        if axis is None or vector == 1:
            self.write_all(guard)
            return
        writer = self.writer
        self.write_invariant([axis])
        packed = [
            number
            for number, instr in enumerate(self.stage.body)
            if is_packable(instr, axis, vector)
            and self._is_ready(number)
            and not self.kernel.params[instr.param].by_value
        ]
        for number in packed:
            self._open_pack(number, axis, vector)
        if step is not None:
            self.slot = f"{step} * {vector} + v"
        writer.line("#pragma unroll")
        with writer.block(f"for (int v = 0; v < {vector}; ++v)"):
            self.names = {axis: f"({axis} + v)"}
            self.write_all(guard)
            self.names = {}
        for number in packed:
            if self.stage.body[number].op == "store":
                self._close_pack(number, guard)

    def _is_ready(self, number: int) -> bool:
        """Whether the address of an access is known before the neighbours are looped over."""
        instr = self.stage.body[number]
        assert instr.index is not None
        return all(atom.key in self.values for atom in data_atoms(instr.index))

    def _open_pack(self, number: int, axis: Axis, vector: int) -> None:
        """Load a vector of neighbours, or make room for one to be stored."""
        instr = self.stage.body[number]
        assert instr.index is not None
        param = self.kernel.params[instr.param]
        backwards = instr.index.terms[axis] < 0
        first = instr.index - (vector - 1) if backwards else instr.index
        type_ = f"Pack<{memory_type(param.dtype)}, {vector}>"
        name = f"{param.name}_{number}x{vector}"
        element = f"{name}.at[{vector - 1} - v]" if backwards else f"{name}.at[v]"
        address = f"{param.name} + {self._index(first)}"
        self.packs[number] = Packed(name, address, element)
        if instr.op == "store":
            self.writer.line(f"{type_} {name};")
            return
        self.writer.line(f"const {type_} {name} = *(const {type_}*)({address});")

    def _close_pack(self, number: int, guard: str) -> None:
        name, address, _ = self.packs[number]
        store = f"*(decltype({name})*)({address}) = {name};"
        self.writer.line(f"if ({guard}) {store}" if guard else store)

    # -- instructions --------------------------------------------------------------------

    def _instr(self, number: int, instr: Instr) -> str:
        """Write one instruction; gives what later ones call its value."""
        args = [self.values[arg] for arg in instr.args]
        match instr.op:
            case "const":
                return self.writer.constant(instr.value, instr.dtype)
            case "store":
                return self._store(number, instr, args[0])
            case "scan":
                return self._scan(number, instr, args)
            case "reduce":
                return self._reduce(instr, args)
            case "result":
                kept = ".position" if self._monoid(instr.value).is_position else ""
                return f"r{instr.value}{kept}"
            case "save":
                self.writer.save(instr.value, self.slot, args[0])
                return args[0]
        name = f"{_stem(self.kernel, instr)}_{number}"
        self.writer.line(
            f"const {c_type(instr.dtype)} {name} = {self._value(number, instr, args)};"
        )
        return name

    def _value(self, number: int, instr: Instr, args: Sequence[str]) -> str:
        match instr.op:
            case "index":
                return f"({c_type(instr.dtype)})({self._index(instr.index)})"
            case "condition":
                return self._conditions(instr.mask)
            case "load":
                return self._load(number, instr)
            case "check":
                size, site, status = instr.value
                active = self.writer.active or "true"
                where = self.kernel.params[status].name
                number = self.writer.first_check + site + 1
                size = self.writer.number(size, free=True)
                return f"tg_check({args[0]}, {size}, {number}, {active}, {where})"
            case "saved":
                return self.writer.saved(instr.value, self.slot)
            case "cast":
                return convert(args[0], self._dtype(instr.args[0]), instr.value)
            case "bitcast":
                return bitcast(args[0], *instr.value)
            case "random_bits":
                return f"tg_random_bits({', '.join(args)}, {self._index(instr.index)})"
        return TEMPLATES[instr.op](args, self._dtype(instr.args[-1]))

    def _dtype(self, number: int) -> DType:
        return self.stage.body[number].dtype

    def _monoid(self, result: int) -> Monoid:
        for instr in self.kernel.instructions():
            if instr.op == "reduce" and instr.value[0] == result:
                monoid: Monoid = instr.value[1]
                return monoid
        raise AssertionError(f"nobody computes r{result}")

    def _reduce(self, instr: Instr, args: Sequence[str]) -> str:
        number, monoid = instr.value
        if monoid.is_position:
            value = f"{result_type(instr)}{{{args[0]}, {args[1]}}}"
            joined = f"{JOIN[monoid]}::join<{c_type(instr.dtype)}>(r{number}, {value})"
        elif monoid is SUM and instr.dtype.kind == "float":
            joined = f"r{number} + {args[0]}"  # with a product it may be one fma
        else:
            joined = TEMPLATES[monoid.combine.name]([f"r{number}", args[0]], instr.dtype)
        self.writer.line(f"r{number} = {joined};")
        return f"r{number}"

    def _scan(self, number: int, instr: Instr, args: Sequence[str]) -> str:
        """A scan without a loop, of one element, which is the first."""
        running = self._running(number)
        value = convert(args[0], instr.dtype, running)
        if instr.value[1] is LINEAR:
            value = f"{convert(args[1], instr.dtype, running)} * 0 + {value}"
        elif instr.value[1] is SUM:
            value = f"{value} + 0"  # sums begin with a positive zero
        return self._scanned(number, instr, f"({value})")

    def _scanned(self, number: int, instr: Instr, running: str) -> str:
        """What is made of the running value of a scan: with what the elements start with."""
        _, monoid = instr.value
        dtype = self._running(number)
        if monoid is not LINEAR and len(instr.args) > 1:
            running = TEMPLATES[monoid.combine.name]([running, self.values[instr.args[1]]], dtype)
        name = f"scan_{number}"
        value = convert(running, dtype, instr.dtype)
        self.writer.line(f"const {c_type(instr.dtype)} {name} = {value};")
        return name

    def _running(self, number: int) -> DType:
        """The type in which a scan folds."""
        running: DType = self.kernel.results[self.stage.body[number].value[0]]
        return running

    # -- memory --------------------------------------------------------------------------

    def raw_load(self, number: int) -> str:
        """The element in memory that a load reads, as it is stored there."""
        instr = self.stage.body[number]
        return f"{begin(self.kernel.params[instr.param])}[{self._index(instr.index)}]"

    def load(self, number: int) -> str:
        """The value of a load, whatever surrounds it."""
        return self._load(number, self.stage.body[number])

    def _load(self, number: int, instr: Instr) -> str:
        param = self.kernel.params[instr.param]
        if number in self.given:
            return self.given[number]
        if number in self.packs:
            return widen(self.packs[number].element, param.dtype)
        value = widen(f"{begin(param)}[{self._index(instr.index)}]", param.dtype)
        if not instr.mask:
            return value
        return f"{self._conditions(instr.mask)} ? {value} : {literal(0, instr.dtype)}"

    def _store(self, number: int, instr: Instr, value: str) -> str:
        param = self.kernel.params[instr.param]
        if number in self.packs:
            self.writer.line(f"{self.packs[number].element} = {narrow(value, param.dtype)};")
            return value
        place = f"{param.name}[{self._index(instr.index)}]"
        if adds_up_rows(instr):
            sum_ = self.writer.saved(instr.value[1], self.slot)
            self.writer.save(instr.value[1], self.slot, f"{sum_} + {value}")
            return value
        if instr.value == "add":
            name = "logical_or" if param.dtype.kind == "bool" else "add"
            value = f"({TEMPLATES[name]([widen(place, param.dtype), value], param.dtype)})"
        store = f"{place} = {narrow(value, param.dtype)};"
        self.writer.line(f"if ({self.guard}) {store}" if self.guard else store)
        return value

    # -- index expressions ---------------------------------------------------------------

    def _index(self, index: Index | None) -> str:
        assert index is not None
        parts, number = [], self.writer.number
        for atom, coefficient in index.terms.items():
            value = self._atom(atom)
            parts.append(value if coefficient == 1 else f"{value} * {number(coefficient, True)}")
        if index.const or not parts:
            parts.append(number(index.const, True))
        return " + ".join(parts).replace("+ -", "- ")

    def _atom(self, atom: object) -> str:
        if isinstance(atom, Axis):
            return self.names.get(atom, atom.name)
        if isinstance(atom, Loaded):
            return f"({self.writer.integer}){self.values[atom.key]}"
        assert isinstance(atom, (Quotient, Remainder))
        low = atom.index.bounds[0]
        inner = atom.index
        lift = -(low // atom.divisor) if low < 0 else 0
        if lift:  # by a multiple of the divisor, so that truncation is floor
            inner = inner + lift * atom.divisor
        number = self.writer.number
        if isinstance(atom, Remainder):
            return f"(({self._index(inner)}) % {number(atom.divisor)})"
        quotient = f"({self._index(inner)}) / {number(atom.divisor)}"
        return f"({quotient} - {number(lift, True)})" if lift else f"({quotient})"

    def _conditions(self, mask: Mask) -> str:
        return " && ".join(test for condition in mask for test in self._tests(condition)) or "true"

    def _tests(self, condition: Condition) -> Iterator[str]:
        if isinstance(condition, Divides):
            rest = Index({Remainder(condition.index, condition.divisor): 1})
            yield f"{self._index(rest)} == 0"
            return
        low, high = condition.index.bounds
        number = self.writer.number
        if low < condition.low:
            yield f"{self._index(condition.index)} >= {number(condition.low, True)}"
        if high >= condition.high:
            yield f"{self._index(condition.index)} < {number(condition.high, True)}"


def _stem(kernel: Kernel, instr: Instr) -> str:
    """What a value is named after."""
    return kernel.params[instr.param].name if instr.op == "load" else instr.op


def result_type(instr: Instr) -> str:
    """The type of what a `reduce` computes."""
    type_ = c_type(instr.dtype)
    return f"Place<{type_}>" if instr.value[1].is_position else type_


def result_start(instr: Instr) -> str:
    """What a `reduce` starts from, as C."""
    _, monoid = instr.value
    start = literal(monoid.identity(instr.dtype), instr.dtype)
    return f"{{{start}, 0x7fffffffffffffffLL}}" if monoid.is_position else start


def declare_totals(writer: CudaWriter, instr: Instr, sizes: str = "") -> None:
    """The total of a long sum, and what rounding took from it; of `sizes` such sums."""
    number, type_ = instr.value[0], result_type(instr)
    start = " = {}" if sizes else " = 0"
    writer.line(f"{type_} total{number}{sizes}{start}, lost{number}{sizes}{start};")


def carry(instr: Instr, of: str = "") -> str:
    """A block of a long sum is over; `of` is the index among such sums."""
    number = instr.value[0]
    return f"tg_carry(r{number}, total{number}{of}, lost{number}{of});"


def total(instr: Instr, of: str = "") -> str:
    """A long sum is over."""
    number = instr.value[0]
    return f"r{number} = tg_total(total{number}{of}, lost{number}{of});"
