"""Factorizations of batches in generated code, which calls LAPACK on one matrix after another.

The text of a step is made of a declaration (`lapack_calls.py`). Matrices are shared by units, each
of which has workspace of its own in the plan's arena, of the size for which LAPACK was asked when
the plan was made. A failure is noted in `info`, or ends the plan through its status, which then
names the first matrix that failed, whichever thread met it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from . import jit, lapack, transpose_native
from .lapack_calls import Call, Clear, Copy, Lanes, LibraryCall, Permutation, Transpose, View
from .linalg_error import STATUS_BASE
from .llvm_text import FunctionText

HEAD = ("members", "units", "unit.bytes", "checks", "dims")
"""Words before those of a call's numbers; behind them are the words of its batch."""

LLVM = {"float32": "float", "float64": "double"}
ITEM = {"float32": 4, "float64": 8}
_INFINITY = {"float32": 0x7F800000, "float64": 0x7FF0000000000000}

_loaded: dict[tuple[int, str], int] = {}


def load(call: LibraryCall, dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which does units of matrices.

    Arguments: operands, results, workspace, status. Parameters: `HEAD`, the numbers of
    `number_names`, and for each dimension of the batch its size and the strides of the operands in
    bytes.
    """
    key = id(call), dtype
    address = _loaded.get(key)
    if address is None:
        library = lapack.load()
        for each in call.actions:
            if isinstance(each, Call):
                address = library.address(lapack.PREFIXES[dtype] + each.routine)
                jit.add_symbol(_symbol(each, dtype, library.integer_bytes), address)
        transpose_native.symbol(ITEM[dtype])
        module = jit.compile_module(text(call, dtype, library.integer_bytes), opt=1)
        address = _loaded[key] = module.address("body")
    return address


# -- sizes -----------------------------------------------------------------------------------


def numbers_of(
    call: LibraryCall,
    dtype: str,
    shapes: Sequence[tuple[int, ...]],
    strides: Sequence[tuple[int, int]],
    attrs: Mapping[str, Any],
) -> dict[str, int]:
    """What actions name, for matrices with these shapes and strides in elements.

    With the bytes of results, where workspace lies in that of a unit, and the bytes of that.
    """
    found = call.numbers(shapes, strides, attrs)
    found |= {"a.rows": shapes[0][-2], "a.columns": shapes[0][-1]}
    found["lanes"] = jit.vector_bytes() // ITEM[dtype]
    for name, (row, column) in zip(call.operands, strides, strict=True):
        found |= {f"{name}.row": row, f"{name}.column": column}
    for action in call.actions:
        if isinstance(action, Call) and "lwork" in action.arguments.split():
            _ask(action, dtype, found)
    for result in call.results:
        item = np.dtype(result.dtype or dtype).itemsize
        found[f"{result.name}.bytes"] = item * prod(found[each] for each in result.sizes)
    size, integer = 0, lapack.load().integer_bytes
    for place in call.work:
        found[f"{place.name}.offset"] = size
        item = integer if place.integers else ITEM[dtype]
        size += -(-place.elements(found) * item // 64) * 64
    found["unit.bytes"] = size
    return found


def _ask(call: Call, dtype: str, numbers: dict[str, int]) -> None:
    """Ask LAPACK how much workspace is best: what a routine says to lengths of -1."""
    names = call.arguments.split()
    words = {name: (ctypes.c_int64 * 1)() for name in names}
    for name, word in words.items():
        asks = name in ("lwork", "liwork")
        if asks or name in numbers or name.startswith("'"):
            word[0] = -1 if asks else number_value(name, numbers, dtype)
    routine = lapack.load().address(lapack.PREFIXES[dtype] + call.routine)
    characters = sum(name.startswith("'") for name in names)
    lapack.call(routine, [ctypes.addressof(words[name]) for name in names], characters)
    kind = ctypes.c_float if dtype == "float32" else ctypes.c_double
    best = kind.from_buffer(words["work"]).value
    rounded = int(best * (1 + 2.0**-22)) + 1  # float32 may have lost what does not fit
    numbers["lwork"] = max(numbers.get("lwork", 0), rounded)
    if "liwork" in names:
        numbers["liwork"] = max(ctypes.c_int32.from_buffer(words["iwork"]).value, 1)


def number_value(name: str, numbers: Mapping[str, int], dtype: str) -> int:
    """The word of a number: one by name or by itself, or a character."""
    name, is_character = name.strip("'"), name.startswith("'")
    if name in numbers:
        return numbers[name]
    if is_character:
        return ord(name)
    if "." not in name:
        return int(name)
    bits = struct.pack("<f4x" if dtype == "float32" else "<d", float(name))
    return int(struct.unpack("<q", bits)[0])


def number_names(call: LibraryCall) -> list[str]:
    """What has a word of its own in the parameters of a call, in their order."""
    work = [each.name for each in call.work]
    results = [each.name for each in call.results]
    places = {*call.operands, *results, *work, "info"}
    found = ["a.rows", "a.columns"]
    found += [f"{name}.{way}" for name in call.operands for way in ("row", "column")]
    found += [f"{name}.bytes" for name in results]
    found += [f"{name}.offset" for name in work]
    for action in call.actions:
        found += [name for name in _names_in(action) if name not in places]
    return list(dict.fromkeys(found))


def _names_in(action: Any) -> list[str]:
    match action:
        case Call(_, arguments):
            return arguments.split()
        case Copy(source, target, rows, columns):
            return [source.row, source.column, target.row, target.column, rows, columns]
        case Clear(_, rows, columns, _):
            return [rows, columns]
        case Transpose(_, size) | Permutation(_, _, _, size):
            return [size]
        case Lanes(_, numbers):
            return numbers.split()
    raise AssertionError(action)


# -- text ------------------------------------------------------------------------------------


def text(call: LibraryCall, dtype: str, integer_bytes: int) -> str:
    """The module of one call for one type of elements, and LAPACK's integers."""
    routines = {each for each in call.actions if isinstance(each, Call)}
    declared = {
        f"declare void @{_symbol(each, dtype, integer_bytes)}({_kinds(each)})" for each in routines
    }
    transpose = f"tgraph_transpose_{ITEM[dtype]}"
    parts = [
        *sorted(declared),
        f"declare void @{transpose}({transpose_native.ARGUMENTS})",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        _copy(dtype),
        Body(call, dtype, integer_bytes).text(),
    ]
    return "\n".join(parts)


def _symbol(call: Call, dtype: str, integer_bytes: int) -> str:
    """The name of a routine, of a library with such integers, for modules."""
    return f"tgraph_{lapack.PREFIXES[dtype]}{call.routine}_{8 * integer_bytes}"


def _kinds(call: Call) -> str:
    names = call.arguments.split()
    return ", ".join(["ptr"] * len(names) + ["i64"] * sum(name[0] == "'" for name in names))


def _copy(dtype: str) -> str:
    """Elements of a matrix to another place, with other strides, which are in elements."""
    operands = [f"i64 %{name}" for name in ("row", "column", "to_row", "to_column")]
    head = f"ptr %from, ptr %to, {', '.join(operands)}, i64 %rows, i64 %columns"
    write, item = FunctionText(f"internal void @copy({head})"), ITEM[dtype]

    def is_one(name: str) -> str:
        return write.op(f"icmp eq i64 {name}, 1")

    def at(base: str, i: str, stride: str) -> str:
        return write.op(f"getelementptr i{8 * item}, ptr {base}, i64 {write.mul(i, stride)}")

    def lines(first: str, step: str, to_step: str, count: str) -> None:
        """Lines that lie side by side in both places."""
        length = write.mul(count, item)
        with write.each("0", first) as i:
            places = f"ptr {at('%to', i, to_step)}, ptr {at('%from', i, step)}"
            write.line(f"call void @llvm.memcpy.p0.p0.i64({places}, i64 {length}, i1 false)")

    def transposed(lines: str, step: str, count: str, pitch: str) -> None:
        arguments = f"ptr %from, i64 {step}, i64 {lines}, i64 {count}, ptr %to, i64 {pitch}"
        write.line(f"call void @tgraph_transpose_{item}({arguments})")

    row, column = is_one("%row"), is_one("%column")
    to_row, to_column = is_one("%to_row"), is_one("%to_column")
    with write.choice(write.op(f"and i1 {column}, {to_column}")):
        lines("%rows", "%row", "%to_row", "%columns")
    with write.choice(write.op(f"and i1 {row}, {to_row}")):
        lines("%columns", "%column", "%to_column", "%rows")
    with write.choice(write.op(f"and i1 {column}, {to_row}")):
        transposed("%rows", "%row", "%columns", "%to_column")
    with write.choice(write.op(f"and i1 {row}, {to_column}")):
        transposed("%columns", "%column", "%rows", "%to_row")
    with write.each("0", "%rows") as i:
        source, target = at("%from", i, "%row"), at("%to", i, "%to_row")
        with write.each("0", "%columns") as j:
            bits = write.op(f"load i{8 * item}, ptr {at(source, j, '%column')}")
            write.line(f"store i{8 * item} {bits}, ptr {at(target, j, '%to_column')}")
    return write.finish()


class Body(FunctionText):
    """Units [lo, hi) of matrices, with whole groups of `group` matrices but for the last one."""

    def __init__(self, call: LibraryCall, dtype: str, integer_bytes: int, group: int = 1) -> None:
        super().__init__("void @body(ptr %args, i64 %lo, i64 %hi)")
        self.group = group
        self.call, self.dtype, self.item = call, dtype, ITEM[dtype]
        self.integer = f"i{8 * integer_bytes}"
        names = number_names(call)
        self.place_of_word = {name: at for at, name in enumerate((*HEAD, *names))}
        self.words, self.places = "", dict[str, str]()
        self.numbers: dict[str, str] = {}
        self.failure = self.memory("i64")

    def text(self) -> str:
        """The function."""
        call = self.call
        names = [*call.operands, *(each.name for each in call.results)]
        bases = {name: self.word("%args", at, "ptr") for at, name in enumerate(names)}
        work, status, self.words = (self.word("%args", len(names) + at, "ptr") for at in range(3))
        self.numbers = {name: self.word(self.words, at) for name, at in self.place_of_word.items()}
        members, units = self.numbers["members"], self.numbers["units"]
        groups = self.op(f"sdiv i64 {self.add(members, self.group - 1)}, {self.group}")
        with self.each("%lo", "%hi") as unit:
            mine = self.at(work, self.mul(unit, self.numbers["unit.bytes"]))
            for each in call.work:
                self.places[each.name] = self.at(mine, self.numbers[f"{each.name}.offset"])
            low, end = (
                self.mul(self.op(f"sdiv i64 {self.mul(each, groups)}, {units}"), self.group)
                for each in (unit, self.add(unit, 1))
            )
            high = self.choose(self.op(f"icmp slt i64 {end}, {members}"), end, members)
            self.unit(low, high, bases, status)
        return self.finish()

    def unit(self, low: str, high: str, bases: Mapping[str, str], status: str) -> None:
        """Matrices [low, high), for which workspace is at `places`."""
        with self.each(low, high) as member:
            self._member(member, bases, status)

    def moves(self, member: str) -> list[str]:
        """How far each operand goes on to a matrix."""
        dims, first = self.numbers["dims"], len(self.place_of_word)
        return self.along_batch(member, dims, self.words, first, len(self.call.operands))

    def _member(self, member: str, bases: Mapping[str, str], status: str) -> None:
        call = self.call
        for name, move in zip(call.operands, self.moves(member), strict=True):
            self.places[name] = self.at(bases[name], move)
        for name, *_ in call.results:
            move = self.mul(member, self.numbers[f"{name}.bytes"])
            self.places[name] = self.at(bases[name], move)
        self.line(f"store i64 0, ptr {self.failure}")
        for action in call.actions:
            self._write(action)
        if any(each.name == "info" for each in call.results):
            self._note_failure(member, status)

    def _write(self, action: Any) -> None:
        match action:
            case Copy(source, target, rows, columns):
                self._copy(source, target, rows, columns)
            case Clear(place, rows, columns, upper):
                self._clear(place, rows, columns, upper)
            case Transpose(place, size):
                self._transpose(place, size)
            case Call():
                self._call(action)
            case Permutation():
                self._permutation(action)

    def _call(self, call: Call) -> None:
        arguments = []
        names = call.arguments.split()
        for name in names:
            place = self.failure if name == "info" else self.places.get(name)
            if place is None:
                at = self.place_of_word[name]
                place = self.op(f"getelementptr i64, ptr {self.words}, i64 {at}")
            arguments.append(f"ptr {place}")
        arguments += ["i64 1" for name in names if name[0] == "'"]
        self.line(f"call void @{self.symbol(call)}({', '.join(arguments)})")

    def _copy(self, source: View, target: View, rows: str, columns: str) -> None:
        strides = (source.row, source.column, target.row, target.column)
        sizes = ", ".join(f"i64 {self.numbers[name]}" for name in (*strides, rows, columns))
        places = f"ptr {self.places[source.place]}, ptr {self.places[target.place]}"
        self.line(f"call void @copy({places}, {sizes})")

    def _clear(self, place: str, rows: str, columns: str, upper: bool) -> None:
        height, width = self.numbers[rows], self.numbers[columns]
        with self.each("0", height) as i:
            behind = self.op(f"icmp slt i64 {i}, {width}")
            low, high = (self.add(i, 1), width) if upper else ("0", self.choose(behind, i, width))
            row = self.element(self.places[place], self.mul(i, width))
            with self.each(low, high) as j:
                self.line(f"store {LLVM[self.dtype]} 0.0, ptr {self.element(row, j)}")

    def _transpose(self, place: str, size: str) -> None:
        n, kind = self.numbers[size], f"i{8 * self.item}"
        with self.each("0", n) as i, self.each("0", i) as j:
            one = self.element(self.places[place], self.add(self.mul(i, n), j))
            other = self.element(self.places[place], self.add(self.mul(j, n), i))
            first, second = self.op(f"load {kind}, ptr {one}"), self.op(f"load {kind}, ptr {other}")
            self.line(f"store {kind} {second}, ptr {one}")
            self.line(f"store {kind} {first}, ptr {other}")

    def _permutation(self, of: Permutation) -> None:
        """Row i was exchanged with row `exchanges[i] - 1`, one after another."""
        n, rows, sign = self.numbers[of.size], self.places[of.rows], self.places[of.sign]
        kind = LLVM[self.dtype]
        self.line(f"store {kind} 1.0, ptr {sign}")
        with self.each("0", n) as i:
            self.line(f"store i64 {i}, ptr {self.op(f'getelementptr i64, ptr {rows}, i64 {i}')}")
        with self.each("0", n) as i:
            at = self.op(f"getelementptr {self.integer}, ptr {self.places[of.exchanges]}, i64 {i}")
            other = self.op(f"load {self.integer}, ptr {at}")
            other = other if self.integer == "i64" else self.op(f"sext i32 {other} to i64")
            other = self.sub(other, 1)
            with self.when(self.op(f"icmp ne i64 {i}, {other}")):
                one, two = (
                    self.op(f"getelementptr i64, ptr {rows}, i64 {each}") for each in (i, other)
                )
                first, second = self.op(f"load i64, ptr {one}"), self.op(f"load i64, ptr {two}")
                self.line(f"store i64 {second}, ptr {one}")
                self.line(f"store i64 {first}, ptr {two}")
                old = self.op(f"load {kind}, ptr {sign}")
                self.line(f"store {kind} {self.op(f'fneg {kind} {old}')}, ptr {sign}")

    def _note_failure(self, member: str, status: str) -> None:
        """What LAPACK said in `info`; in the status, where it is checked, the first that failed."""
        said = self.op(f"load i32, ptr {self.failure}")
        if not self.call.tells_order:
            said = self.op(f"zext i1 {self.op(f'icmp ne i32 {said}, 0')} to i32")
        self.line(f"store i32 {said}, ptr {self.places['info']}")
        with self.when(self.is_told(said)):
            self.tell_failure(member, said, status)

    def is_told(self, said: str) -> str:
        """Whether what was said of a matrix is a failure that ends the plan."""
        failed = self.op(f"icmp ne i32 {said}, 0")
        checks = self.op(f"icmp ne i64 {self.numbers['checks']}, 0")
        return self.op(f"and i1 {failed}, {checks}")

    def tell_failure(self, member: str, said: str, status: str) -> None:
        """Into the status, where no matrix before this one failed."""
        unknown = self._has_infinite()
        low = self.op(f"or i64 {self.op(f'zext i32 {said} to i64')}, {unknown}")
        word = self.op(f"or i64 {low}, {self.op(f'shl i64 {member}, 32')}")
        word = self.sub(STATUS_BASE, word)
        self.line(f"{self.fresh('%before')} = atomicrmw umax ptr {status}, i64 {word} release")

    def _has_infinite(self) -> str:
        """Bit 31 where the first operand has elements that are not finite."""
        numbers, kind, infinity = self.numbers, f"i{8 * self.item}", _INFINITY[self.dtype]
        found = self.memory("i64")
        self.line(f"store i64 0, ptr {found}")
        with self.each("0", numbers["a.rows"]) as i, self.each("0", numbers["a.columns"]) as j:
            moved = self.add(self.mul(i, numbers["a.row"]), self.mul(j, numbers["a.column"]))
            bits = self.op(f"load {kind}, ptr {self.element(self.places['a'], moved)}")
            exponent = self.op(f"and {kind} {bits}, {infinity}")
            with self.when(self.op(f"icmp eq {kind} {exponent}, {infinity}")):
                self.line(f"store i64 {1 << 31}, ptr {found}")
        return self.op(f"load i64, ptr {found}")

    def symbol(self, call: Call) -> str:
        return _symbol(call, self.dtype, int(self.integer[1:]) // 8)

    def at(self, base: str, move: str) -> str:
        return self.op(f"getelementptr i8, ptr {base}, i64 {move}")

    def element(self, base: str, move: str) -> str:
        return self.op(f"getelementptr {LLVM[self.dtype]}, ptr {base}, i64 {move}")
