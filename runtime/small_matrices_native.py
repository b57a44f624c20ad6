"""Factors and triangular systems of small matrices, each of which is one lane of vectors.

LAPACK takes longer to be called than such a matrix takes, and its vectors lie along rows that do
not fill them. Here so many matrices are taken at a time as a vector has lanes: they are transposed
into a tile of vectors, which has an element of all of them, and results are transposed back. Loops
count to sizes that are parameters, so that one text does all sizes. What a matrix becomes does not
depend on those beside it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from . import jit, transpose_native
from .lapack_calls import Lanes, LibraryCall
from .lapack_native import ITEM, LLVM, Body
from .llvm_text import FunctionText

COLUMNS = 4
"""Of a right side that are solved at a time."""
SMALLEST = {32: 2.0**-126, 64: 2.0**-1022}
"""Numbers with all their bits, by the bits of an element."""
SCALE = {32: 2.0**64, 64: 2.0**512}
"""What numbers below are multiplied by."""

_loaded: dict[tuple[int, str], int] = {}


def load(call: LibraryCall, dtype: str) -> int:
    """The address of a function like those of `lapack_native.load`."""
    key = id(call), dtype
    if key not in _loaded:
        for item in _items(dtype):
            transpose_native.symbol(item)
        module = jit.compile_module(text(call, dtype, lanes(dtype)), opt=1)
        _loaded[key] = module.address("body")
    return _loaded[key]


def lanes(dtype: str) -> int:
    """How many matrices are done at a time."""
    return jit.vector_bytes() // ITEM[dtype]


def text(call: LibraryCall, dtype: str, lanes: int) -> str:
    """The module of one call for one type of elements."""
    items = _items(dtype)
    arguments = transpose_native.ARGUMENTS
    parts = [f"declare void @tgraph_transpose_{item}({arguments})" for item in items]
    parts += ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    routine = _ROUTINES[call.primitive](dtype, lanes)
    return "\n".join([*parts, routine.text(), _Groups(call, dtype, lanes).text()])


def _items(dtype: str) -> list[int]:
    """Bytes of what is transposed: elements, and numbers of rows."""
    return sorted({ITEM[dtype], 8})


class _Groups(Body):
    """Units [lo, hi) of matrices, each in groups of as many as there are lanes."""

    def __init__(self, call: LibraryCall, dtype: str, lanes: int) -> None:
        super().__init__(call, dtype, 4, group=lanes)

    def unit(self, low: str, high: str, bases: Mapping[str, str], status: str) -> None:
        (action,) = self.call.actions
        assert isinstance(action, Lanes)
        with self.each(low, high, self.group) as first:
            left = self.sub(high, first)
            count = self.choose(self.op(f"icmp slt i64 {left}, {self.group}"), left, self.group)
            for index, name in enumerate(self.call.operands):
                self._take(index, name, bases[name], first, count)
            tiles = [f"ptr {self.places[each.name]}" for each in self.call.work]
            numbers = [f"i64 {self.numbers[name]}" for name in action.numbers.split()]
            self.line(f"call void @{action.routine}({', '.join(tiles + numbers)})")
            for result in self.call.results:
                if result.name == "info":
                    self._note_failures(first, count, bases, status)
                else:
                    item = 8 if result.dtype else self.item
                    self._give(result.name, item, bases[result.name], first, count)

    def _take(self, index: int, name: str, base: str, first: str, count: str) -> None:
        """Matrices of an operand into its tile, in whose other lanes are zeros."""
        tile, numbers = self.places[self.call.work[index].name], self.numbers
        rows, columns = numbers["n"], numbers["columns" if name == "b" else "n"]
        row, column = numbers[f"{name}.row"], numbers[f"{name}.column"]
        size = self.mul(rows, columns)
        with self.when(self.op(f"icmp slt i64 {count}, {self.group}")):
            length = self.mul(size, self.group * self.item)
            self.line(f"call void @llvm.memset.p0.i64(ptr {tile}, i8 0, i64 {length}, i1 false)")
        even = self.op(f"icmp eq i64 {row}, {columns}")
        for one in (numbers["dims"], column):
            even = self.op(f"and i1 {even}, {self.op(f'icmp eq i64 {one}, 1')}")
        with self.when(even):
            step = self.word(self.words, len(self.place_of_word) + 1 + index)
            start = self.at(base, self.mul(first, step))
            step = self.op(f"sdiv i64 {step}, {self.item}")
            self._transposed(self.item, start, step, count, size, tile, self.group)
        with self.when(self.op(f"xor i1 {even}, true")), self.each("0", count) as lane:
            start = self.at(base, self.moves(self.add(first, lane))[index])
            with self.each("0", rows) as i, self.each("0", columns) as j:
                moved = self.add(self.mul(i, row), self.mul(j, column))
                value = self.op(f"load {LLVM[self.dtype]}, ptr {self.element(start, moved)}")
                at = self.mul(self.add(self.mul(i, columns), j), self.group)
                place = self.element(tile, self.add(at, lane))
                self.line(f"store {LLVM[self.dtype]} {value}, ptr {place}")

    def _give(self, name: str, item: int, base: str, first: str, count: str) -> None:
        """What matrices of a tile have become, to where results lie."""
        tile, size = self.places[f"{name}.tile"], self.numbers[f"{name}.bytes"]
        elements, start = self.op(f"sdiv i64 {size}, {item}"), self.at(base, self.mul(first, size))
        self._transposed(item, tile, self.group, elements, count, start, elements)

    def _transposed(
        self, item: int, source: str, step: str | int, lines: str, count: str, target: str,
        pitch: str | int,
    ) -> None:  # fmt: skip
        self.line(
            f"call void @tgraph_transpose_{item}(ptr {source}, i64 {step}, i64 {lines}, "
            f"i64 {count}, ptr {target}, i64 {pitch})"
        )

    def _note_failures(self, first: str, count: str, bases: Mapping[str, str], status: str) -> None:
        kind = f"i{8 * self.item}"
        with self.each("0", count) as lane:
            member = self.add(first, lane)
            place = self.op(f"getelementptr {kind}, ptr {self.places['info.tile']}, i64 {lane}")
            said = self.op(f"load {kind}, ptr {place}")
            if kind != "i32":
                said = self.op(f"trunc {kind} {said} to i32")
            place = self.op(f"getelementptr i32, ptr {bases['info']}, i64 {member}")
            self.line(f"store i32 {said}, ptr {place}")
            with self.when(self.is_told(said)):
                self.places["a"] = self.at(bases["a"], self.moves(member)[0])
                self.tell_failure(member, said, status)


class _Routine(FunctionText):
    """A routine on tiles, for one type of elements."""

    def __init__(self, head: str, dtype: str, lanes: int) -> None:
        super().__init__(f"internal void @{head}")
        self.lanes, bits = lanes, 8 * ITEM[dtype]
        self.element = LLVM[dtype]
        self.vector, self.integers = f"<{lanes} x {self.element}>", f"<{lanes} x i{bits}>"
        self.masks, self.bits, self.suffix = f"<{lanes} x i1>", bits, f"v{lanes}f{bits}"

    def at(self, tile: str, i: str | int, stride: str | int = 1, j: str | int = 0) -> str:
        """The place of a vector: element (i, j) of a matrix by rows of `stride`."""
        index = self.add(self.mul(i, stride), j)
        return self.op(f"getelementptr {self.vector}, ptr {tile}, i64 {index}")

    def load(self, place: str, type: str = "") -> str:
        return self.op(f"load {type or self.vector}, ptr {place}, align {self.bits // 8}")

    def store(self, value: str, place: str, type: str = "") -> None:
        self.line(f"store {type or self.vector} {value}, ptr {place}, align {self.bits // 8}")

    def splat(self, number: str) -> str:
        """A number in all lanes."""
        number = self.op(f"trunc i64 {number} to i{self.bits}") if self.bits < 64 else number
        one = self.op(f"insertelement {self.integers} poison, i{self.bits} {number}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.op(f"shufflevector {self.integers} {one}, {self.integers} poison, {zeros}")

    def select(self, mask: str, one: str, other: str, type: str = "") -> str:
        type = type or self.vector
        return self.op(f"select {self.masks} {mask}, {type} {one}, {type} {other}")

    def product(self, one: str, other: str) -> str:
        return self.op(f"fmul {self.vector} {one}, {other}")

    def subtract_product(self, place: str, one: str, other: str) -> None:
        """With two roundings: where rows are proportional, zeros are left, as LAPACK leaves them,
        and not what the first rounding took away."""
        product = self.product(one, other)
        self.store(self.op(f"fsub {self.vector} {self.load(place)}, {product}"), place)

    def note(self, failed: str, step: str) -> None:
        """The number of a step, from 1 on, where it failed and none before it did."""
        info = self.load("%info", self.integers)
        is_first = self.op(f"icmp eq {self.integers} {info}, zeroinitializer")
        is_first = self.op(f"and {self.masks} {is_first}, {failed}")
        number = self.splat(self.add(step, 1))
        self.store(self.select(is_first, number, info, self.integers), "%info", self.integers)

    def all(self, number: float) -> str:
        """A number of elements' type in all lanes."""
        word = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
        return f"<{', '.join([f'{self.element} {word}'] * self.lanes)}>"


class _Lu(_Routine):
    """LAPACK's `getrf` by rows: the pivot is the first of the largest elements of its column.

    A pivot that is zero divides nothing; `info` is then the number of the first one, from 1 on.
    """

    def __init__(self, dtype: str, lanes: int) -> None:
        head = "lu(ptr %a, ptr %rows, ptr %sign, ptr %info, i64 %n)"
        super().__init__(head, dtype, lanes)

    def text(self) -> str:
        self.store(self.all(1.0), "%sign")
        self.store("zeroinitializer", "%info", self.integers)
        with self.each("0", "%n") as i, self.each("0", str(self.lanes)) as lane:
            place = self.add(self.mul(i, self.lanes), lane)
            self.line(f"store i64 {i}, ptr {self.op(f'getelementptr i64, ptr %rows, i64 {place}')}")
        with self.each("0", "%n") as k:
            below = self.add(k, 1)
            self._exchange(k, below, self._pivot(k, below))
            self._eliminate(k, below)
        return self.finish()

    def _pivot(self, k: str, below: str) -> str:
        """The row of each matrix that becomes row k."""
        largest, row = self.memory(self.vector), self.memory(self.integers)
        self.store(self._size(k, k), largest)
        self.store(self.splat(k), row, self.integers)
        with self.each(below, "%n") as i:
            size, before = self._size(i, k), self.load(largest)
            larger = self.op(f"fcmp ogt {self.vector} {size}, {before}")
            self.store(self.select(larger, size, before), largest)
            old = self.load(row, self.integers)
            self.store(self.select(larger, self.splat(i), old, self.integers), row, self.integers)
        return self.load(row, self.integers)

    def _size(self, i: str, k: str) -> str:
        value = self.load(self.at("%a", i, "%n", k))
        return self.op(f"call {self.vector} @llvm.fabs.{self.suffix}({self.vector} {value})")

    def _exchange(self, k: str, below: str, pivot: str) -> None:
        moved = self.op(f"icmp ne {self.integers} {pivot}, {self.splat(k)}")
        sign = self.load("%sign")
        turned = self.op(f"fneg {self.vector} {sign}")
        self.store(self.select(moved, turned, sign), "%sign")
        with self.each(below, "%n") as i:
            chosen = self.op(f"icmp eq {self.integers} {pivot}, {self.splat(i)}")
            word = self.op(f"bitcast {self.masks} {chosen} to i{self.lanes}")
            with self.when(self.op(f"icmp ne i{self.lanes} {word}, 0")):
                with self.each("0", "%n") as j:
                    one, other = (self.at("%a", row, "%n", j) for row in (k, i))
                    self._swap(chosen, one, other, self.vector)
                one, other = (
                    self.op(f"getelementptr <{self.lanes} x i64>, ptr %rows, i64 {row}")
                    for row in (k, i)
                )
                self._swap(chosen, one, other, f"<{self.lanes} x i64>")

    def _swap(self, mask: str, one: str, other: str, type: str) -> None:
        first, second = self.load(one, type), self.load(other, type)
        self.store(self.select(mask, second, first, type), one, type)
        self.store(self.select(mask, first, second, type), other, type)

    def _eliminate(self, k: str, below: str) -> None:
        pivot = self.load(self.at("%a", k, "%n", k))
        is_zero = self.op(f"fcmp oeq {self.vector} {pivot}, zeroinitializer")
        self.note(is_zero, k)
        # A power of two keeps the reciprocal of the smallest numbers finite.
        size = self._size(k, k)
        is_tiny = self.op(f"fcmp olt {self.vector} {size}, {self.all(SMALLEST[self.bits])}")
        scale = self.select(is_tiny, self.all(SCALE[self.bits]), self.all(1.0))
        divisor = self.select(is_zero, self.all(1.0), self.product(pivot, scale))
        reciprocal = self.op(f"fdiv {self.vector} {self.all(1.0)}, {divisor}")
        with self.each(below, "%n") as i:
            place = self.at("%a", i, "%n", k)
            factor = self.product(self.product(self.load(place), scale), reciprocal)
            self.store(factor, place)
            with self.each(below, "%n") as j:
                above = self.load(self.at("%a", k, "%n", j))
                self.subtract_product(self.at("%a", i, "%n", j), factor, above)


class _Cholesky(_Routine):
    """LAPACK's `potrf` of the lower triangle by rows; the upper one becomes zeros.

    What is behind a pivot that is not positive is not the matrix's, as `info` says. One that is not
    a number goes on into the factor, as with OpenBLAS.
    """

    def __init__(self, dtype: str, lanes: int) -> None:
        super().__init__("cholesky(ptr %a, ptr %info, i64 %n)", dtype, lanes)

    def text(self) -> str:
        self.store("zeroinitializer", "%info", self.integers)
        with self.each("0", "%n") as k:
            below, diagonal = self.add(k, 1), self.at("%a", k, "%n", k)
            pivot = self.load(diagonal)
            self.note(self.op(f"fcmp ole {self.vector} {pivot}, zeroinitializer"), k)
            square = f"call {self.vector} @llvm.sqrt.{self.suffix}({self.vector} {pivot})"
            root = self.op(square)
            self.store(root, diagonal)
            reciprocal = self.op(f"fdiv {self.vector} {self.all(1.0)}, {root}")
            with self.each(below, "%n") as i:
                self.store("zeroinitializer", self.at("%a", k, "%n", i))
                place = self.at("%a", i, "%n", k)
                factor = self.product(self.load(place), reciprocal)
                self.store(factor, place)
                with self.each(below, self.add(i, 1)) as j:
                    other = self.load(self.at("%a", j, "%n", k))
                    self.subtract_product(self.at("%a", i, "%n", j), factor, other)
        return self.finish()


class _TriangularSolve(_Routine):
    """op(A) @ X = B, with B where X will be: some columns at a time, which stay in registers while
    the products with rows that are known are subtracted."""

    def __init__(self, dtype: str, lanes: int) -> None:
        numbers = ("n", "columns", "lower", "transpose", "unit")
        words = ", ".join(f"i64 %{each}" for each in numbers)
        super().__init__(f"triangular_solve(ptr %a, ptr %x, {words})", dtype, lanes)

    def text(self) -> str:
        turned = self.op("icmp ne i64 %transpose, 0")
        strides = self.choose(turned, 1, "%n"), self.choose(turned, "%n", 1)
        wide = self.op(f"and i64 %columns, {-COLUMNS}")
        with self.each("0", wide, COLUMNS) as column:
            self._columns(column, COLUMNS, strides)
        with self.each(wide, "%columns") as column:
            self._columns(column, 1, strides)
        return self.finish()

    def _columns(self, column: str, count: int, strides: tuple[str, str]) -> None:
        downwards = self.op("icmp ne i64 %lower, %transpose")
        last, divides = self.sub("%n", 1), self.op("icmp eq i64 %unit, 0")
        sums = [self.memory(self.vector) for _ in range(count)]

        def row(step: str) -> tuple[str, list[str]]:
            """A row of A and X, and the places of X there."""
            i = self.choose(downwards, step, self.sub(last, step))
            return i, [self.at("%x", i, "%columns", self.add(column, c)) for c in range(count)]

        def of_a(i: str, j: str) -> str:
            return self.load(self.at("%a", self.mul(i, strides[0]), 1, self.mul(j, strides[1])))

        with self.each("0", "%n") as step:
            i, places = row(step)
            for total, place in zip(sums, places, strict=True):
                self.store(self.load(place), total)
            with self.each("0", step) as before:
                j, known = row(before)
                factor = of_a(i, j)
                for total, place in zip(sums, known, strict=True):
                    self.subtract_product(total, factor, self.load(place))
            with self.when(divides):
                diagonal = of_a(i, i)
                for total in sums:
                    found = self.op(f"fdiv {self.vector} {self.load(total)}, {diagonal}")
                    self.store(found, total)
            for total, place in zip(sums, places, strict=True):
                self.store(self.load(total), place)


_ROUTINES: dict[str, Callable[[str, int], _Cholesky | _Lu | _TriangularSolve]] = {
    "cholesky": _Cholesky,
    "lu": _Lu,
    "triangular_solve": _TriangularSolve,
}
