"""The position of one element by its rank in rows, in generated code, without sorting them.

The keys of `order_native`, less the least one of the row, are looked at byte by byte from the
highest on that is not zero (MSD radix selection): a histogram of one byte of those elements whose
higher bytes are known tells the next byte of the wanted key, until few elements are left, which are
put in order. No memory is needed but for these, and each element is read as often as bytes are
looked at.
"""

from __future__ import annotations

from . import jit
from .order_native import INSERT, Order, OrderWriter, fill_text, insert_all_text, order_of

FEW = 40
"""Elements that are put in order by insertion."""
PARAMETERS = 4
"""Words of a call's parameters before those of its batch: see `_body`."""

_loaded: dict[str, int] = {}


def load(dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which selects in rows."""
    address = _loaded.get(dtype)
    if address is None:
        address = _loaded[dtype] = jit.compile_module(text(dtype)).address("select_nth")
    return address


def text(dtype: str) -> str:
    """The module for one type."""
    of = order_of(dtype, descending=False, vector_bytes=16)
    parts = [INSERT, fill_text(of), insert_all_text(of), _short(of), _few(of)]
    parts += [_extreme(of, "least"), _extreme(of, "greatest"), _count(of), _search(of)]
    parts += [_many(), _body(of)]
    parts += ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    parts += ["declare i64 @llvm.ctlz.i64(i64, i1)"]
    parts += [f"declare i64 @llvm.{each}.i64(i64, i64)" for each in ("umin", "umax")]
    return "\n".join(parts).replace("ENTRY", of.entry)


class _Writer(OrderWriter):
    """The body of a function on the keys of one type."""

    def key_at(self, row: str, stride: str, i: str) -> str:
        """The key of element `i`."""
        of = self.of
        at = self.op(f"getelementptr {of.type}, ptr {row}, i64 {self.mul(i, stride)}")
        return self.key(self.op(f"load {of.type}, ptr {at}, align {of.bits // 8}"))

    def number(self, stride: str, i: str) -> str:
        """The key of element `i` of a row as a word."""
        key = self.key_at("%row", stride, i)
        return key if self.of.bits == 64 else self.op(f"zext {self.of.type} {key} to i64")

    def distance(self, stride: str, i: str) -> str:
        """How far above the least key of the row it is."""
        return self.sub(self.number(stride, i), "%least")


_ROW = "ptr %row, i64 %stride, i64 %n"
_ABOVE = f"{_ROW}, i64 %least"


def _few(of: Order) -> str:
    """The position of rank `%rank` among the few elements that above `%shift` are `%prefix`."""
    head = f"internal i64 @few({_ABOVE}, i64 %shift, i64 %prefix, i64 %rank)"
    write = _Writer(of, head)
    list_, size = write.memory(f"[{FEW} x ENTRY]"), write.memory("i64")
    write.line(f"store i64 0, ptr {size}")
    with write.each("0", "%n") as i:
        shifted = write.op(f"lshr i64 {write.distance('%stride', i)}, %shift")
        with write.when(write.op(f"icmp eq i64 {shifted}, %prefix")):
            at = write.op(f"load i64, ptr {size}")
            entry = write.element("%row", "%stride", i)
            write.line(f"store ENTRY {entry}, ptr {write.place(list_, at)}")
            write.line(f"store i64 {write.add(at, 1)}, ptr {size}")
    found = write.op(f"load i64, ptr {size}")
    return _rank_in_list(write, list_, found)


def _short(of: Order) -> str:
    """The position of rank `%rank` in a short row."""
    write = _Writer(of, f"internal i64 @short({_ROW}, i64 %rank)")
    list_ = write.memory(f"[{FEW} x ENTRY]")
    write.line(f"call void @fill({_ROW}, ptr {list_})")
    return _rank_in_list(write, list_, "%n")


def _rank_in_list(write: _Writer, list_: str, size: str) -> str:
    write.line(f"call void @insert_all(ptr {list_}, i64 {size})")
    low = write.op(f"trunc ENTRY {write.load(list_, '%rank')} to i{write.of.key_bits}")
    return write.finish(f"i64 {low if write.is_wide else write.op(f'zext i32 {low} to i64')}")


def _extreme(of: Order, name: str) -> str:
    """The least key of a row, or the greatest."""
    write = _Writer(of, f"internal i64 @{name}({_ROW})")
    found, function = write.memory("i64"), {"least": "umin", "greatest": "umax"}[name]
    write.line(f"store i64 {write.number('%stride', '0')}, ptr {found}")
    with write.each("1", "%n") as i:
        operands = f"i64 {write.op(f'load i64, ptr {found}')}, i64 {write.number('%stride', i)}"
        new = write.op(f"call i64 @llvm.{function}.i64({operands})")
        write.line(f"store i64 {new}, ptr {found}")
    return write.finish(f"i64 {write.op(f'load i64, ptr {found}')}")


def _count(of: Order) -> str:
    """A histogram of the byte at `%shift` of keys that above it are `%prefix`."""
    head = f"internal void @count({_ABOVE}, i64 %shift, i64 %prefix, ptr %counts)"
    write = _Writer(of, head)
    write.line("call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 1024, i1 false)")

    def count(stride: str) -> None:
        with write.each("0", "%n") as i:
            shifted = write.op(f"lshr i64 {write.distance(stride, i)}, %shift")
            above = write.op(f"lshr i64 {shifted}, 8")
            with write.when(write.op(f"icmp eq i64 {above}, %prefix")):
                digit = write.op(f"and i64 {shifted}, 255")
                place = write.op(f"getelementptr i32, ptr %counts, i64 {digit}")
                more = write.op(f"add i32 {write.op(f'load i32, ptr {place}')}, 1")
                write.line(f"store i32 {more}, ptr {place}")

    with write.choice(write.op("icmp eq i64 %stride, 1")):
        count("1")
    count("%stride")
    return write.finish()


def _search(of: Order) -> str:
    """The position of rank `%rank` among the elements that are `%key`."""
    write = _Writer(of, f"internal i64 @search({_ABOVE}, i64 %key, i64 %rank)")
    left = write.memory("i64")
    write.line(f"store i64 %rank, ptr {left}")
    with write.each("0", "%n") as i:
        key = write.distance("%stride", i)
        with write.when(write.op(f"icmp eq i64 {key}, %key")):
            remains = write.op(f"load i64, ptr {left}")
            with write.when(write.op(f"icmp eq i64 {remains}, 0")):
                write.line(f"ret i64 {i}")
                write.label(write.fresh("unreachable"))
            write.line(f"store i64 {write.sub(remains, 1)}, ptr {left}")
    return write.finish("i64 -1")  # which the ranks of a row never come to


def _many() -> str:
    return _MANY.replace("ROW", _ROW).replace("ABOVE", _ABOVE).replace("FEW", str(FEW))


# The position of rank `%rank` in a row. From the highest byte on that is not zero for all,
# `%wanted` is the rank among the elements that above the byte at `%shift` are `%prefix`.
_MANY = """
define internal i64 @many(ROW, i64 %rank) {
  %counts = alloca [256 x i32]
  %least = call i64 @least(ROW)
  %greatest = call i64 @greatest(ROW)
  %differ = sub i64 %greatest, %least
  %same = icmp eq i64 %differ, 0
  br i1 %same, label %alike, label %begin
alike:
  ret i64 %rank
begin:
  %zeros = call i64 @llvm.ctlz.i64(i64 %differ, i1 true)
  %top = sub i64 63, %zeros
  %shift0 = and i64 %top, 56
  br label %byte
byte:
  %shift = phi i64 [ %shift0, %begin ], [ %shift1, %lower ]
  %prefix = phi i64 [ 0, %begin ], [ %known, %lower ]
  %wanted = phi i64 [ %rank, %begin ], [ %left, %lower ]
  call void @count(ABOVE, i64 %shift, i64 %prefix, ptr %counts)
  br label %look
look:
  %digit = phi i64 [ 0, %byte ], [ %digit1, %further ]
  %left = phi i64 [ %wanted, %byte ], [ %left1, %further ]
  %place = getelementptr i32, ptr %counts, i64 %digit
  %size32 = load i32, ptr %place
  %size = zext i32 %size32 to i64
  %here = icmp slt i64 %left, %size
  br i1 %here, label %found, label %further
further:
  %digit1 = add i64 %digit, 1
  %left1 = sub i64 %left, %size
  br label %look
found:
  %above = shl i64 %prefix, 8
  %known = or i64 %above, %digit
  %is_few = icmp sle i64 %size, FEW
  br i1 %is_few, label %few, label %more
few:
  %among = call i64 @few(ABOVE, i64 %shift, i64 %known, i64 %left)
  ret i64 %among
more:
  %last = icmp eq i64 %shift, 0
  br i1 %last, label %equal, label %lower
equal:
  %at = call i64 @search(ABOVE, i64 %known, i64 %left)
  ret i64 %at
lower:
  %shift1 = sub i64 %shift, 8
  br label %byte
}
"""


def _body(of: Order) -> str:
    """Rows [lo, hi).

    Arguments: the elements, and a position for each row. Parameters: 0 elements of a row, 1 the
    rank, 2 from one element to the next, 3 dimensions of the batch, then for each of them its size
    and how many elements rows go on.
    """
    write = _Writer(of, "void @select_nth(ptr %args, i64 %lo, i64 %hi)")
    x, out, words = (
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(3)
    )
    n, rank, stride, dims = (write.word(words, i) for i in range(PARAMETERS))
    is_short = write.op(f"icmp sle i64 {n}, {FEW}")
    with write.each("%lo", "%hi") as row:
        (begin,) = write.along_batch(row, dims, words, PARAMETERS, 1)
        begin = write.op(f"getelementptr {of.type}, ptr {x}, i64 {begin}")
        operands = f"ptr {begin}, i64 {stride}, i64 {n}, i64 {rank}"
        target = write.op(f"getelementptr i64, ptr {out}, i64 {row}")
        with write.when(is_short):
            found = write.op(f"call i64 @short({operands})")
            write.line(f"store i64 {found}, ptr {target}")
        with write.when(write.op(f"xor i1 {is_short}, true")):
            found = write.op(f"call i64 @many({operands})")
            write.line(f"store i64 {found}, ptr {target}")
    return write.finish()
