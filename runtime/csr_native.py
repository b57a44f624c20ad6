"""A sparse matrix, listed by rows (CSR), times a dense one, in generated code.

A block of columns of a row of the result stays in registers while the elements of that row of the
matrix stream by, each of which is multiplied with a row of the dense matrix. Threads get rows with
about as many elements (the even split of D. Merrill and M. Garland, "Merge-based Parallel Sparse
Matrix-Vector Multiplication", 2016, at whole rows).

Of the transposed matrix each element adds to the row of the result that its column tells. Threads
get rows of the result, and each looks through the columns of all elements for those that are its
own. Either way a sum goes in the order in which the matrix lists its elements, on however many
threads.
"""

from __future__ import annotations

from collections.abc import Callable

from . import jit
from .llvm_text import FunctionText

BLOCK_BYTES = 256
"""Of a row of the result that stay in registers."""
PARAMETERS = 9
"""Words of a call's parameters: see `_Product`."""
_LOG_GROUP = 4
GROUP = 1 << _LOG_GROUP
"""Rows of the result side by side that one unit gets, of a transposed matrix."""
LISTED = 256
"""Elements that are found before they are added."""
BAD_COLUMN, BAD_ROWS = 1, 2
"""What the status tells: of a position, or of row pointers."""

_TYPES = {
    "bool": ("i8", 1), "int8": ("i8", 1), "uint8": ("i8", 1), "int16": ("i16", 2),
    "uint16": ("i16", 2), "int32": ("i32", 4), "uint32": ("i32", 4), "int64": ("i64", 8),
    "uint64": ("i64", 8), "float32": ("float", 4), "float64": ("double", 8),
}  # fmt: skip
_INDICES = {"int32": ("i32", 4), "int64": ("i64", 8)}

_loaded: dict[tuple[str, str, bool], int] = {}


def can_multiply(dtype: str) -> bool:
    """Whether there is a function for elements of this type."""
    return dtype in _TYPES


def load(dtype: str, index: str, transposed: bool) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``: units of rows, or column slices."""
    key = dtype, index, transposed
    address = _loaded.get(key)
    if address is None:
        module = jit.compile_module(text(dtype, index, transposed), opt=2)
        address = _loaded[key] = module.address("csr_product")
    return address


def text(dtype: str, index: str, transposed: bool) -> str:
    """The module for one type of elements and of positions."""
    product = _Product(dtype, index)
    parts = [product.of_transposed() if transposed else product.of_rows()]
    parts += [_add_listed(dtype) if transposed else _bound(index)]
    parts += ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    bits = dtype.removeprefix("float")
    if bits != dtype:
        element, size = _TYPES[dtype]
        for count in block_sizes(size):
            type = f"<{count} x {element}>"
            parts += [f"declare {type} @llvm.fmuladd.v{count}f{bits}({type}, {type}, {type})"]
    return "\n".join(parts)


def block_sizes(size: int) -> list[int]:
    """How many elements of so many bytes a block may have, the largest one first."""
    return [1 << log for log in reversed(range((BLOCK_BYTES // size).bit_length()))]


def _bound(index: str) -> str:
    """The first row of a unit: before it are as many rows and elements as come to its share."""
    head = "internal i64 @bound(ptr %rowptr, i64 %stride, i64 %rows, i64 %wanted)"
    type, size = _INDICES[index]
    write = FunctionText(head)
    low, high = write.memory("i64"), write.memory("i64")
    write.line(f"store i64 0, ptr {low}")
    write.line(f"store i64 %rows, ptr {high}")
    with write.each("0", "64"):  # halved so often, no range is left
        first, last = (write.op(f"load i64, ptr {each}") for each in (low, high))
        with write.when(write.op(f"icmp slt i64 {first}, {last}")):
            middle = write.op(f"lshr i64 {write.add(first, last)}, 1")
            at = write.op(f"getelementptr {type}, ptr %rowptr, i64 {write.mul(middle, '%stride')}")
            begin = write.op(f"load {type}, ptr {at}, align {size}")
            if size < 8:
                begin = write.op(f"sext {type} {begin} to i64")
            enough = write.op(f"icmp sge i64 {write.add(begin, middle)}, %wanted")
            new_low = write.choose(enough, first, write.add(middle, 1))
            write.line(f"store i64 {new_low}, ptr {low}")
            write.line(f"store i64 {write.choose(enough, middle, last)}, ptr {high}")
    return write.finish(f"i64 {write.op(f'load i64, ptr {low}')}")


class _Elements(FunctionText):
    """The body of a function on elements of one type."""

    def __init__(self, dtype: str, head: str) -> None:
        super().__init__(head)
        self.type, self.size = _TYPES[dtype]
        self.is_float, self.is_bool = dtype.startswith("float"), dtype == "bool"

    def at(self, place: str, i: str) -> str:
        return self.op(f"getelementptr {self.type}, ptr {place}, i64 {i}")

    def value(self, values: str, stride: str, k: str) -> str:
        """Of an element of the sparse matrix."""
        return self.op(
            f"load {self.type}, ptr {self.at(values, self.mul(k, stride))}, align {self.size}"
        )

    def blocks(self, width: str, write: Callable[[int, str], None]) -> None:
        """`write` the code of blocks of a row of so many elements, the largest blocks first."""
        most, *others = block_sizes(self.size)
        rest = self.op(f"srem i64 {width}, {most}")
        with self.each("0", self.sub(width, rest), most) as j:
            write(most, j)
        for count in others:
            below = self.op(f"and i64 {width}, {count}")
            with self.when(self.op(f"icmp ne i64 {below}, 0")):
                write(count, self.op(f"and i64 {width}, {-2 * count}"))

    def multiplied(self, count: int, value: str, row: str, before: str) -> str:
        """`before` and a value times a block of a row."""
        type = f"<{count} x {self.type}>"
        one = self.op(f"insertelement {type} poison, {self.type} {value}, i64 0")
        one = self.op(f"shufflevector {type} {one}, {type} poison, <{count} x i32> zeroinitializer")
        other = self.op(f"load {type}, ptr {row}, align {self.size}")
        if self.is_float:
            operands = f"{type} {one}, {type} {other}, {type} {before}"
            return self.op(f"call {type} @llvm.fmuladd.v{count}f{8 * self.size}({operands})")
        times, plus = ("and", "or") if self.is_bool else ("mul", "add")
        return self.op(f"{plus} {type} {before}, {self.op(f'{times} {type} {one}, {other}')}")


def _add_listed(dtype: str) -> str:
    """Add listed elements to the result: column, number, and where their row of `%dense` begins."""
    head = (
        "internal void @add_listed(ptr %values, ptr %dense, ptr %out, ptr %listed, i64 %count, "
        "i64 %width, i64 %stride)"
    )
    write = _Elements(dtype, head)

    def block(count: int, j: str) -> None:
        type = f"<{count} x {write.type}>"
        dense, out = write.at("%dense", j), write.at("%out", j)
        with write.each("0", "%count") as i:
            first = write.op(f"getelementptr i64, ptr %listed, i64 {write.mul(i, 3)}")
            column, k, begin = (write.word(first, slot) for slot in range(3))
            place = write.at(out, write.mul(column, "%width"))
            before = write.op(f"load {type}, ptr {place}, align {write.size}")
            value = write.value("%values", "%stride", k)
            after = write.multiplied(count, value, write.at(dense, begin), before)
            write.line(f"store {type} {after}, ptr {place}, align {write.size}")

    write.blocks("%width", block)
    return write.finish()


class _Product(_Elements):
    """The body of a product.

    Arguments: where rows begin, columns, elements, the dense matrix, the result, the status.
    Parameters: 0 rows of the matrix, 1 its elements, 2 its columns, 3 columns of the result, 4
    units, of a transposed matrix a power of two, 5 to 7 from one row pointer, column and element to
    the next, 8 from row to row of the dense matrix.
    """

    def __init__(self, dtype: str, index: str) -> None:
        super().__init__(dtype, "void @csr_product(ptr %args, i64 %lo, i64 %hi)")
        self.index, self.index_size = _INDICES[index]
        args = [
            self.op(f"load ptr, ptr {self.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
            for i in range(7)
        ]
        self.rowptr, self.columns, self.values, self.dense, self.out, self.status, words = args
        numbers = [self.word(words, i) for i in range(PARAMETERS)]
        self.rows, self.count, self.wide, self.width, self.units, *strides = numbers
        self.row_stride, self.column_stride, self.value_stride, self.dense_stride = strides

    def of_rows(self) -> str:
        """Units [lo, hi) of rows."""
        total = self.add(self.rows, self.count)
        with self.each("%lo", "%hi") as unit:
            behind = self.add(unit, 1)
            first, last = (
                self.op(
                    f"call i64 @bound(ptr {self.rowptr}, i64 {self.row_stride}, i64 {self.rows}, "
                    f"i64 {self.op(f'sdiv i64 {self.mul(each, total)}, {self.units}')})"
                )
                for each in (unit, behind)
            )
            is_last = self.op(f"icmp eq i64 {behind}, {self.units}")
            first = self.choose(self.op(f"icmp eq i64 {unit}, 0"), 0, first)
            last = self.choose(is_last, self.rows, last)
            with self.each(first, last) as row:
                begin, end = self._row(row)
                target = self.at(self.out, self.mul(row, self.width))
                self.blocks(self.width, lambda n, j: self._sum(n, j, target, begin, end))
        return self.finish()

    def _sum(self, count: int, j: str, target: str, begin: str, end: str) -> None:
        """A block of a row of the result."""
        type = f"<{count} x {self.type}>"
        total = self.memory(type)
        self.line(f"store {type} zeroinitializer, ptr {total}")
        dense = self.at(self.dense, j)
        with self.each(begin, end) as k:
            column, value = self._column(k), self.value(self.values, self.value_stride, k)
            source = self.at(dense, self.mul(column, self.dense_stride))
            before = self.op(f"load {type}, ptr {total}")
            after = self.multiplied(count, value, source, before)
            self.line(f"store {type} {after}, ptr {total}")
        found = self.op(f"load {type}, ptr {total}")
        self.line(f"store {type} {found}, ptr {self.at(target, j)}, align {self.size}")

    def of_transposed(self) -> str:
        """Units [lo, hi) of rows of the result, which are dealt out in groups.

        The elements that are theirs are listed, many at a time, and added from the list.
        """
        groups = self.op(f"lshr i64 {self.add(self.wide, GROUP - 1)}, {_LOG_GROUP}")
        mask = self.sub(self.units, 1)
        span = self.sub("%hi", "%lo")

        def is_mine(group: str) -> str:
            unit = self.op(f"and i64 {group}, {mask}")
            return self.op(f"icmp ult i64 {self.sub(unit, '%lo')}, {span}")

        with self.each("0", groups) as group, self.when(is_mine(group)):
            first, last = self.mul(group, GROUP), self.mul(self.add(group, 1), GROUP)
            last = self.choose(self.op(f"icmp slt i64 {last}, {self.wide}"), last, self.wide)
            place = self.at(self.out, self.mul(first, self.width))
            nbytes = self.mul(self.mul(self.sub(last, first), self.width), self.size)
            self.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {nbytes}, i1 false)")
        listed, size = self.memory(f"[{3 * LISTED} x i64]"), self.memory("i64")
        self.line(f"store i64 0, ptr {size}")
        with self.each("0", self.rows) as row:
            begin, end = self._row(row)
            source = self.mul(row, self.dense_stride)
            with self.each(begin, end) as k:
                column = self._column(k)
                count = self.op(f"load i64, ptr {size}")
                self._list(listed, count, (column, k, source))
                mine = is_mine(self.op(f"lshr i64 {column}, {_LOG_GROUP}"))
                count = self.add(count, self.op(f"zext i1 {mine} to i64"))
                self.line(f"store i64 {count}, ptr {size}")
                with self.when(self.op(f"icmp eq i64 {count}, {LISTED}")):
                    self._add_listed(listed, count)
                    self.line(f"store i64 0, ptr {size}")
        self._add_listed(listed, self.op(f"load i64, ptr {size}"))
        return self.finish()

    def _list(self, listed: str, at: str, words: tuple[str, ...]) -> None:
        first = self.op(f"getelementptr i64, ptr {listed}, i64 {self.mul(at, 3)}")
        for slot, word in enumerate(words):
            place = self.op(f"getelementptr i64, ptr {first}, i64 {slot}")
            self.line(f"store i64 {word}, ptr {place}")

    def _add_listed(self, listed: str, count: str) -> None:
        """By a function of its own, which is called in two places."""
        operands = (self.values, self.dense, self.out, listed)
        words = (count, self.width, self.value_stride)
        self.line(
            f"call void @add_listed({', '.join(f'ptr {each}' for each in operands)}, "
            f"{', '.join(f'i64 {each}' for each in words)})"
        )

    def _position(self, place: str, stride: str, i: str) -> str:
        at = self.op(f"getelementptr {self.index}, ptr {place}, i64 {self.mul(i, stride)}")
        found = self.op(f"load {self.index}, ptr {at}, align {self.index_size}")
        return found if self.index_size == 8 else self.op(f"sext {self.index} {found} to i64")

    def _row(self, row: str) -> tuple[str, str]:
        """The first element of a row and the one behind its last; none where that cannot be."""
        behind = self.add(row, 1)
        begin, end = (self._position(self.rowptr, self.row_stride, each) for each in (row, behind))
        wanted_begin = self.choose(self.op(f"icmp eq i64 {row}, 0"), 0, begin)
        is_last = self.op(f"icmp eq i64 {behind}, {self.rows}")
        wanted_end = self.choose(is_last, self.count, end)
        wrong = [
            self.op(f"icmp ugt i64 {begin}, {end}"),
            self.op(f"icmp ugt i64 {end}, {self.count}"),
            self.op(f"icmp ne i64 {begin}, {wanted_begin}"),
            self.op(f"icmp ne i64 {end}, {wanted_end}"),
        ]
        bad = wrong[0]
        for each in wrong[1:]:
            bad = self.op(f"or i1 {bad}, {each}")
        with self.when(bad):
            self._tell(BAD_ROWS, begin, self.count)
        return self.choose(bad, 0, begin), self.choose(bad, 0, end)

    def _column(self, k: str) -> str:
        """The column of an element; the first one where there is none of that number."""
        column = self._position(self.columns, self.column_stride, k)
        bad = self.op(f"icmp uge i64 {column}, {self.wide}")
        with self.when(bad):
            self._tell(BAD_COLUMN, column, self.wide)
        return self.choose(bad, 0, column)

    def _tell(self, code: int, position: str, size: str) -> None:
        for slot, value in enumerate((str(code), position, size)):
            at = self.op(f"getelementptr i64, ptr {self.status}, i64 {slot}")
            self.line(f"store i64 {value}, ptr {at}")
