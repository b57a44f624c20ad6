"""The positions that put rows in order, in generated code.

An element becomes an *entry*: its key, an unsigned integer in the order of the elements, above its
position. Entries are all different, so equal elements stay in place whatever the algorithm. Few
entries are inserted one by one. Many are put in order of one byte of their keys after the other,
the lowest first (D. Knuth, "The Art of Computer Programming" 3, section 5.2.5); bytes that all
have in common are skipped. Where few of many are wanted, the rest is compared with the last of
them, a vector at a time.
"""

from __future__ import annotations

from . import jit
from .llvm_text import FunctionText
from .records import record

INSERTED, SELECTED, BY_BYTES = range(3)
"""The ways to do it."""
PARAMETERS = 7
"""Words of a call's parameters before those of its batch: see `_body`."""
MOST_ELEMENTS = 1 << 31
"""A row has fewer."""

# Bits, and those of infinity.
_FLOATS = {
    "float16": (16, 0x7C00),
    "bfloat16": (16, 0x7F80),
    "float32": (32, 0x7F800000),
    "float64": (64, 0x7FF0000000000000),
}
_INTEGERS = {
    "bool": 8, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "int8": 8, "int16": 16, "int32": 32, "int64": 64,
}  # fmt: skip

_loaded: dict[tuple[str, bool], int] = {}


@record()
class Order:
    """How elements of one type are put in order: `infinity` is 0 for integers."""

    bits: int
    infinity: int
    signed: bool
    descending: bool
    lanes: int

    @property
    def type(self) -> str:
        return f"i{self.bits}"

    @property
    def key_bits(self) -> int:
        """Of the upper half of an entry, and as many of the position below."""
        return max(self.bits, 32)

    @property
    def entry(self) -> str:
        return f"i{2 * self.key_bits}"


def entry_bytes(dtype: str) -> int:
    """What an entry takes in memory."""
    return 16 if _bits(dtype) == 64 else 8


def load(dtype: str, descending: bool) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which puts units of rows in order."""
    address = _loaded.get((dtype, descending))
    if address is None:
        module = jit.compile_module(text(dtype, descending, jit.vector_bytes()))
        address = _loaded[dtype, descending] = module.address("order")
    return address


def text(dtype: str, descending: bool, vector_bytes: int) -> str:
    """The module for one type."""
    of = order_of(dtype, descending, vector_bytes)
    parts = [
        INSERT,
        fill_text(of),
        insert_all_text(of),
        _select(of),
        _by_bytes(of),
        _finish(of),
        _body(of),
    ]
    parts += ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    return "\n".join(parts).replace("ENTRY", of.entry)


def order_of(dtype: str, descending: bool, vector_bytes: int) -> Order:
    """How elements of a type are put in order."""
    bits = _bits(dtype)
    infinity = _FLOATS[dtype][1] if dtype in _FLOATS else 0
    return Order(bits, infinity, dtype.startswith("int"), descending, 8 * vector_bytes // bits)


def _bits(dtype: str) -> int:
    return _FLOATS[dtype][0] if dtype in _FLOATS else _INTEGERS[dtype]


# Into the first `last` entries of a list, which are in order; the one behind them is dropped.
INSERT = """
define internal void @insert(ptr %list, i64 %last, ENTRY %new) {
entry:
  br label %look
look:
  %j = phi i64 [ %last, %entry ], [ %before, %move ]
  %some = icmp sgt i64 %j, 0
  br i1 %some, label %compare, label %done
compare:
  %before = add nsw i64 %j, -1
  %at = getelementptr ENTRY, ptr %list, i64 %before
  %other = load ENTRY, ptr %at
  %later = icmp ugt ENTRY %other, %new
  br i1 %later, label %move, label %done
move:
  %to = getelementptr ENTRY, ptr %list, i64 %j
  store ENTRY %other, ptr %to
  br label %look
done:
  %place = getelementptr ENTRY, ptr %list, i64 %j
  store ENTRY %new, ptr %place
  ret void
}
"""


class OrderWriter(FunctionText):
    """The body of a function on elements and entries of one type."""

    def __init__(self, of: Order, head: str) -> None:
        super().__init__(head)
        self.of = of

    def key(self, bits: str, lanes: int = 1) -> str:
        """Unsigned integers in the order of elements with these bits: NaN last, one zero."""
        of = self.of
        type = of.type if lanes == 1 else f"<{lanes} x {of.type}>"
        mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        sign, ones = 1 << of.bits - 1, (1 << of.bits) - 1

        def all_lanes(value: int) -> str:
            return str(value) if lanes == 1 else f"splat ({of.type} {value})"

        def op(name: str, one: str, other: int | str) -> str:
            other = other if isinstance(other, str) else all_lanes(other)
            return self.op(f"{name} {type} {one}, {other}")

        if of.infinity:
            size = op("and", bits, sign - 1)
            zero = op("icmp eq", size, 0)
            bits = self.op(f"select {mask} {zero}, {type} zeroinitializer, {type} {bits}")
            backwards = op("ashr", bits, of.bits - 1)
            bits = op("xor", bits, op("or", backwards, sign))
            unknown = op("icmp ugt", size, of.infinity)
            bits = self.op(f"select {mask} {unknown}, {type} {all_lanes(ones)}, {type} {bits}")
        elif of.signed:
            bits = op("xor", bits, sign)
        return op("xor", bits, ones) if of.descending else bits

    def element(self, row: str, stride: str | int, i: str) -> str:
        """The entry of element `i`."""
        of = self.of
        at = self.op(f"getelementptr {of.type}, ptr {row}, i64 {self.mul(i, stride)}")
        key = self.key(self.op(f"load {of.type}, ptr {at}, align {of.bits // 8}"))
        high = self.op(f"shl nuw ENTRY {self.op(f'zext {of.type} {key} to ENTRY')}, {of.key_bits}")
        return self.op(
            f"or ENTRY {high}, {self.op(f'zext i64 {i} to ENTRY') if self.is_wide else i}"
        )

    @property
    def is_wide(self) -> bool:
        return self.of.key_bits == 64

    def place(self, entries: str, i: str | int) -> str:
        return self.op(f"getelementptr ENTRY, ptr {entries}, i64 {i}")

    def load(self, entries: str, i: str | int) -> str:
        return self.op(f"load ENTRY, ptr {self.place(entries, i)}")

    def digit(self, entry: str, number: int) -> str:
        """A byte of the key, from the lowest on."""
        shifted = self.op(f"lshr ENTRY {entry}, {self.of.key_bits + 8 * number}")
        low = self.op(f"trunc ENTRY {shifted} to i64") if self.is_wide else shifted
        return self.op(f"and i64 {low}, 255")


def fill_text(of: Order) -> str:
    """The entries of a row."""
    write = OrderWriter(of, "internal void @fill(ptr %row, i64 %stride, i64 %n, ptr %list)")
    with write.choice(write.op("icmp eq i64 %stride, 1")), write.each("0", "%n") as i:
        write.line(f"store ENTRY {write.element('%row', 1, i)}, ptr {write.place('%list', i)}")
    with write.each("0", "%n") as i:
        entry = write.element("%row", "%stride", i)
        write.line(f"store ENTRY {entry}, ptr {write.place('%list', i)}")
    return write.finish()


def insert_all_text(of: Order) -> str:
    """A short list in order."""
    write = OrderWriter(of, "internal void @insert_all(ptr %list, i64 %n)")
    with write.each("1", "%n") as i:
        write.line(f"call void @insert(ptr %list, i64 {i}, ENTRY {write.load('%list', i)})")
    return write.finish()


def _select(of: Order) -> str:
    """The first `count` of a row, at least one, in order."""
    head = "internal void @select(ptr %row, i64 %stride, i64 %n, i64 %count, ptr %list)"
    write = OrderWriter(of, head)
    write.line("call void @fill(ptr %row, i64 %stride, i64 %count, ptr %list)")
    write.line("call void @insert_all(ptr %list, i64 %count)")
    last = write.sub("%count", 1)
    final = write.place("%list", last)

    def offer(i: str) -> None:
        entry = write.element("%row", "%stride", i)
        limit = write.op(f"load ENTRY, ptr {final}")
        with write.when(write.op(f"icmp ult ENTRY {entry}, {limit}")):
            write.line(f"call void @insert(ptr %list, i64 {last}, ENTRY {entry})")

    lined = write.op("icmp eq i64 %stride, 1")
    vectors = write.op(f"sdiv i64 {write.sub('%n', '%count')}, {of.lanes}")
    vectors = write.mul(write.choose(lined, vectors, 0), of.lanes)
    behind = write.add("%count", vectors)
    type = f"<{of.lanes} x {of.type}>"
    with write.each("%count", behind, of.lanes) as i:
        at = write.op(f"getelementptr {of.type}, ptr %row, i64 {i}")
        keys = write.key(write.op(f"load {type}, ptr {at}, align {of.bits // 8}"), of.lanes)
        limit = write.op(f"lshr ENTRY {write.op(f'load ENTRY, ptr {final}')}, {of.key_bits}")
        limit = write.op(f"trunc ENTRY {limit} to {of.type}")
        limits = write.op(f"insertelement {type} poison, {of.type} {limit}, i64 0")
        zeros = f"<{of.lanes} x i32> zeroinitializer"
        limits = write.op(f"shufflevector {type} {limits}, {type} poison, {zeros}")
        before = write.op(f"icmp ult {type} {keys}, {limits}")
        lanes = write.op(f"bitcast <{of.lanes} x i1> {before} to i{of.lanes}")
        some = write.op(f"icmp ne i{of.lanes} {lanes}, 0")
        with write.when(some), write.each("0", str(of.lanes)) as lane:
            offer(write.add(i, lane))
    with write.each(behind, "%n") as i:
        offer(i)
    return write.finish()


def _by_bytes(of: Order) -> str:
    """Sorts the entries of the one list with the help of the other; returns where they are."""
    write = OrderWriter(of, "internal ptr @by_bytes(ptr %first, ptr %second, i64 %n)")
    digits = of.key_bits // 8
    table = write.op(f"alloca [{256 * digits} x i32], align 64")
    source, target = write.op("alloca ptr"), write.op("alloca ptr")
    total = write.op("alloca i32")
    write.line(f"store ptr %first, ptr {source}")
    write.line(f"store ptr %second, ptr {target}")
    write.line(f"call void @llvm.memset.p0.i64(ptr {table}, i8 0, i64 {1024 * digits}, i1 false)")

    def counter(entry: str, number: int) -> str:
        at = write.add(write.digit(entry, number), 256 * number)
        return write.op(f"getelementptr i32, ptr {table}, i64 {at}")

    def increase(place: str) -> str:
        """What a counter says, and one more from now on."""
        old = write.op(f"load i32, ptr {place}")
        write.line(f"store i32 {write.op(f'add i32 {old}, 1')}, ptr {place}")
        return old

    with write.each("0", "%n") as i:
        entry = write.load("%first", i)
        for number in range(digits):
            increase(counter(entry, number))
    one = write.load("%first", 0)
    count = write.op("trunc i64 %n to i32")
    for number in range(digits):
        alike = write.op(f"load i32, ptr {counter(one, number)}")
        with write.when(write.op(f"icmp ne i32 {alike}, {count}")):
            write.line(f"store i32 0, ptr {total}")
            with write.each("0", "256") as i:
                at = write.add(i, 256 * number)
                place = write.op(f"getelementptr i32, ptr {table}, i64 {at}")
                size, start = (write.op(f"load i32, ptr {each}") for each in (place, total))
                write.line(f"store i32 {start}, ptr {place}")
                write.line(f"store i32 {write.op(f'add i32 {start}, {size}')}, ptr {total}")
            old, new = (write.op(f"load ptr, ptr {each}") for each in (source, target))
            with write.each("0", "%n") as i:
                entry = write.load(old, i)
                at = write.op(f"zext i32 {increase(counter(entry, number))} to i64")
                write.line(f"store ENTRY {entry}, ptr {write.place(new, at)}")
            write.line(f"store ptr {new}, ptr {source}")
            write.line(f"store ptr {old}, ptr {target}")
    return write.finish(f"ptr {write.op(f'load ptr, ptr {source}')}")


def _finish(of: Order) -> str:
    """The positions of entries."""
    write = OrderWriter(of, "internal void @finish(ptr %list, i64 %count, ptr %out)")
    with write.each("0", "%count") as i:
        entry = write.load("%list", i)
        low = write.op(f"trunc ENTRY {entry} to i{of.key_bits}")
        position = low if write.is_wide else write.op(f"zext i{of.key_bits} {low} to i64")
        write.line(f"store i64 {position}, ptr {write.op(f'getelementptr i64, ptr %out, i64 {i}')}")
    return write.finish()


def _body(of: Order) -> str:
    """Units [lo, hi) of rows.

    Arguments: the elements, the positions of the first ones of each row, and two lists of entries
    for each unit. Parameters: 0 elements of a row, 1 how many are wanted, 2 from one element to the
    next, 3 rows, 4 units, 5 the way, 6 dimensions of the batch, then for each of them its size and
    how many elements rows go on.
    """
    write = OrderWriter(of, "void @order(ptr %args, i64 %lo, i64 %hi)")
    x, out, lists, words = (
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(4)
    )
    n, count, stride, rows, units, way, dims = (write.word(words, i) for i in range(PARAMETERS))
    result = write.memory("ptr")
    with write.each("%lo", "%hi") as unit:
        first = write.place(lists, write.mul(write.mul(unit, 2), n))
        second = write.place(first, n)
        low = write.op(f"sdiv i64 {write.mul(unit, rows)}, {units}")
        high = write.op(f"sdiv i64 {write.mul(write.add(unit, 1), rows)}, {units}")
        with write.each(low, high) as row:
            (begin,) = write.along_batch(row, dims, words, PARAMETERS, 1)
            begin = write.op(f"getelementptr {of.type}, ptr {x}, i64 {begin}")
            operands = f"ptr {begin}, i64 {stride}, i64 {n}"
            write.line(f"store ptr {first}, ptr {result}")
            selects = write.op(f"icmp eq i64 {way}, {SELECTED}")
            with write.when(selects):
                write.line(f"call void @select({operands}, i64 {count}, ptr {first})")
            with write.when(write.op(f"xor i1 {selects}, true")):
                write.line(f"call void @fill({operands}, ptr {first})")
            with write.when(write.op(f"icmp eq i64 {way}, {INSERTED}")):
                write.line(f"call void @insert_all(ptr {first}, i64 {n})")
            with write.when(write.op(f"icmp eq i64 {way}, {BY_BYTES}")):
                found = write.op(f"call ptr @by_bytes(ptr {first}, ptr {second}, i64 {n})")
                write.line(f"store ptr {found}, ptr {result}")
            ordered = write.op(f"load ptr, ptr {result}")
            target = write.op(f"getelementptr i64, ptr {out}, i64 {write.mul(row, count)}")
            write.line(f"call void @finish(ptr {ordered}, i64 {count}, ptr {target})")
    return write.finish()
