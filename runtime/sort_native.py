"""Rows of numbers in order, in generated code around NumPy's functions (`numpy_sort.py`).

A row is copied to where the result lies and put in order there. Zeros of both signs are equal and
keep their order: where there are negative ones, all zeros of the row are written once more.
"""

from __future__ import annotations

from . import jit
from .llvm_text import FunctionText
from .numpy_sort import sort_function

PARAMETERS = 4
"""Words of a call's parameters before those of its batch: see `_body`."""

_BITS = {
    "bool": 8, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32,
    "int64": 64, "float32": 32, "float64": 64,
}  # fmt: skip

_loaded: dict[tuple[str, bool], int] = {}


def can_sort(dtype: str) -> bool:
    """Whether there is a function for rows of this type."""
    return sort_function(dtype) != 0


def load(dtype: str, descending: bool) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which puts rows in order."""
    address = _loaded.get((dtype, descending))
    if address is None:
        address = jit.compile_module(text(dtype, descending)).address("sort")
        _loaded[dtype, descending] = address
    return address


def text(dtype: str, descending: bool) -> str:
    """The module for one type."""
    parts = [_body(dtype, descending), _copy(dtype)]
    parts += [_settle_zeros(dtype)] if dtype.startswith("float") else []
    parts += [_reverse(dtype)] if descending else []
    return "\n".join(parts)


class _Writer(FunctionText):
    """The body of a function on integers with the bits of one type."""

    def __init__(self, dtype: str, head: str) -> None:
        super().__init__(head)
        self.type = f"i{_BITS[dtype]}"

    def at(self, row: str, i: str) -> str:
        return self.op(f"getelementptr {self.type}, ptr {row}, i64 {i}")

    def load(self, at: str) -> str:
        return self.op(f"load {self.type}, ptr {at}, align {int(self.type[1:]) // 8}")

    def store(self, bits: str, at: str) -> None:
        self.line(f"store {self.type} {bits}, ptr {at}, align {int(self.type[1:]) // 8}")


def _copy(dtype: str) -> str:
    """A row side by side; returns whether there is a negative zero, where that means something."""
    head = "internal i1 @copy(ptr noalias %row, i64 %stride, i64 %n, ptr noalias %out)"
    write, negative = _Writer(dtype, head), -1 << _BITS[dtype] - 1
    found = write.memory("i1")
    write.line(f"store i1 false, ptr {found}")

    def element(i: str, place: str) -> None:
        bits = write.load(write.at("%row", place))
        write.store(bits, write.at("%out", i))
        if dtype.startswith("float"):
            here = write.op(f"icmp eq {write.type} {bits}, {negative}")
            before = write.op(f"load i1, ptr {found}")
            write.line(f"store i1 {write.op(f'or i1 {here}, {before}')}, ptr {found}")

    lined = write.op("icmp eq i64 %stride, 1")
    with write.when(lined), write.each("0", "%n") as i:
        element(i, i)
    with write.when(write.op(f"xor i1 {lined}, true")), write.each("0", "%n") as i:
        element(i, write.mul(i, "%stride"))
    return write.finish(f"i1 {write.op(f'load i1, ptr {found}')}")


def _reverse(dtype: str) -> str:
    write = _Writer(dtype, "internal void @reverse(ptr %row, i64 %n)")
    half, last = write.op("lshr i64 %n, 1"), write.sub("%n", 1)
    with write.each("0", half) as i:
        one, other = write.at("%row", i), write.at("%row", write.sub(last, i))
        first, second = write.load(one), write.load(other)
        write.store(second, one)
        write.store(first, other)
    return write.finish()


def _settle_zeros(dtype: str) -> str:
    """Zeros stand side by side in `%out`: those of `%row` in their own order."""
    head = "internal void @settle_zeros(ptr %row, i64 %stride, i64 %n, ptr %out)"
    write = _Writer(dtype, head)
    next_place = write.memory("i64")
    write.line(f"store i64 0, ptr {next_place}")

    def is_zero(bits: str) -> str:
        return write.op(f"icmp eq {write.type} {write.op(f'shl {write.type} {bits}, 1')}, 0")

    with write.each("0", "%n") as i:  # from the last one on, so that the first remains
        at = write.sub(write.sub("%n", i), 1)
        with write.when(is_zero(write.load(write.at("%out", at)))):
            write.line(f"store i64 {at}, ptr {next_place}")
    with write.each("0", "%n") as i:
        bits = write.load(write.at("%row", write.mul(i, "%stride")))
        with write.when(is_zero(bits)):
            place = write.op(f"load i64, ptr {next_place}")
            write.store(bits, write.at("%out", place))
            write.line(f"store i64 {write.add(place, 1)}, ptr {next_place}")
    return write.finish()


def _body(dtype: str, descending: bool) -> str:
    """Rows [lo, hi).

    Arguments: the elements and the result, whose rows are contiguous. Parameters: 0 elements of a
    row, 1 from one element to the next, 2 NumPy's function, 3 dimensions of the batch, then for
    each of them its size and how many elements rows go on.
    """
    write = _Writer(dtype, "void @sort(ptr %args, i64 %lo, i64 %hi)")
    x, out, words = (
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(3)
    )
    n, stride, function, dims = (
        write.word(words, i, "ptr" if i == 2 else "i64") for i in range(PARAMETERS)
    )
    with write.each("%lo", "%hi") as number:
        (move,) = write.along_batch(number, dims, words, PARAMETERS, 1)
        row, target = write.at(x, move), write.at(out, write.mul(number, n))
        operands = f"ptr {row}, i64 {stride}, i64 {n}, ptr {target}"
        has_negative_zeros = write.op(f"call i1 @copy({operands})")
        write.op(f"call i32 {function}(ptr {target}, i64 {n}, ptr null)")
        if descending:
            write.line(f"call void @reverse(ptr {target}, i64 {n})")
        if dtype.startswith("float"):
            with write.when(has_negative_zeros):
                write.line(f"call void @settle_zeros({operands})")
    return write.finish()
