"""Matrix products in generated code, for the vectors of the processor it runs on.

The scheme is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
Multiplication" (2008), with the tiles of BLIS (F. Van Zee and R. van de Geijn, 2015): a tile of C
stays in registers while a panel of A and a panel of B stream by, both packed in the order in which
they are read, in blocks that fit into the caches. Small operands are read where they lie.

An element of C is always the same sum, whatever else is computed beside it: from the first product
to the last by multiply-adds, restarted every `depth` products. So a row of a product does not
depend on the number of rows, nor any result on how the work is split.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property

from . import jit, locks
from .llvm_text import Text

TYPES = {"float32": ("float", 4), "float64": ("double", 8)}
VECTORS = 2
"""Vectors of C side by side in a tile."""
UNROLL = 4
SCRATCH = 64
"""Packing buffers that are kept, one for each thread that multiplies."""
PARAMETERS = 15
"""Words of a product's parameters before those of its batch: see `_body`."""


@dataclass(frozen=True)
class Tiles:
    """The sizes of one type: `rows` and `columns` of C in registers, and of blocks in caches."""

    type: str
    item: int
    lanes: int
    rows: int

    @property
    def columns(self) -> int:
        return VECTORS * self.lanes

    @property
    def depth(self) -> int:
        """Products that are added in registers before C is read: enough that this costs little."""
        return 384

    @property
    def block_rows(self) -> int:
        """Of A in the second-level cache; whole tiles."""
        return 240 * 4 // self.item

    @property
    def block_columns(self) -> int:
        return 1024 * 4 // self.item

    @property
    def direct_rows(self) -> int:
        """Up to so many rows of A, B is read where it lies: it is not worth packing."""
        return 10 * self.rows

    @property
    def direct_columns(self) -> int:
        """Up to so many columns of B, A is read where it lies."""
        return 4 * self.columns

    @property
    def masked(self) -> bool:
        """Whether a row of B may be read where it ends inside of a vector."""
        return self.lanes * self.item >= 32

    @property
    def parts(self) -> list[int]:
        """Rows of the smaller tiles that what remains of `rows` is made of."""
        return [size for size in (8, 4, 2, 1) if size < self.rows]

    @property
    def packed_a(self) -> int:
        """Bytes; transposed stores go past the end of a panel."""
        size = (self.block_rows + self.rows) * self.depth + self.lanes
        return -(-size * self.item // 64) * 64

    @property
    def packed_b(self) -> int:
        return (self.block_columns + self.columns) * self.depth * self.item

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.type}>"

    @cached_property
    def suffix(self) -> str:
        return f"v{self.lanes}{'f32' if self.item == 4 else 'f64'}"


def tiles(dtype: str, vector_bytes: int) -> Tiles:
    """What suits vectors of so many bytes."""
    type_, item = TYPES[dtype]
    registers = 32 if vector_bytes == 64 or platform.machine() in ("aarch64", "arm64") else 16
    return Tiles(type_, item, vector_bytes // item, 12 if registers == 32 else 6)


_loaded: dict[str, int] = {}


def load(dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which does pieces of a product."""
    address = _loaded.get(dtype)
    if address is None:
        module = jit.compile_module(text(tiles(dtype, jit.vector_bytes())), passes=False)
        address = _loaded[dtype] = module.address("gemm")
    return address


def prepare(dtype: str) -> None:
    """Begin to `load` in another thread: the first time on a machine that takes a tenth second."""
    if dtype in TYPES and dtype not in _loaded and not locks.ending():
        with suppress(RuntimeError):  # no more threads
            threading.Thread(target=_load_early, args=(dtype,), name="tgraph-prepare").start()


def _load_early(dtype: str) -> None:
    with suppress(Exception):  # whoever multiplies will meet the same error
        load(dtype)


def text(of: Tiles) -> str:
    """The module for one type."""
    parts = [_bulk(of)]
    for vectors in range(1, VECTORS + 1):
        parts += [_micro(of, rows, vectors) for rows in (of.rows, *sorted(set(of.parts)))]
    parts += [_tile(of), _turn(of), _pack_a(of), _pack_b(of), _plain(of), _block(of), _body(of)]
    return "\n".join([_HEAD.replace("SCRATCH", str(SCRATCH)), *parts, *_declarations(of)])


def _declarations(of: Tiles) -> list[str]:
    v, suffix, mask = of.vector, of.suffix, f"<{of.lanes} x i1>"
    return [
        f"declare {v} @llvm.fmuladd.{suffix}({v}, {v}, {v})",
        f"declare {of.type} @llvm.fmuladd.{suffix.lstrip('v0123456789')}"
        f"({of.type}, {of.type}, {of.type})",
        f"declare {v} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {v})",
        f"declare void @llvm.masked.store.{suffix}.p0({v}, ptr, i32, {mask})",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare ptr @calloc(i64, i64)",
    ]


# Buffers belong to whoever set their flag; one that is made stays.
_HEAD = """
@flags = internal global [SCRATCH x i64] zeroinitializer
@buffers = internal global [SCRATCH x ptr] zeroinitializer

; The number of a buffer whose memory is there, or -1. Lanes that nothing was packed into are 0 or
; old, which costs nothing, as numbers that are subnormal by chance would.
define internal i64 @acquire(i64 %bytes) {
entry:
  br label %look
look:
  %i = phi i64 [0, %entry], [%i1, %taken]
  %some = icmp slt i64 %i, SCRATCH
  br i1 %some, label %try, label %none
try:
  %flag = getelementptr i64, ptr @flags, i64 %i
  %pair = cmpxchg ptr %flag, i64 0, i64 1 acquire monotonic
  %got = extractvalue {i64, i1} %pair, 1
  br i1 %got, label %mine, label %taken
taken:
  %i1 = add i64 %i, 1
  br label %look
mine:
  %at = getelementptr ptr, ptr @buffers, i64 %i
  %old = load ptr, ptr %at
  %has = icmp ne ptr %old, null
  br i1 %has, label %done, label %make
make:
  %more = add i64 %bytes, 64
  %new = call ptr @calloc(i64 %more, i64 1)
  %made = icmp ne ptr %new, null
  br i1 %made, label %keep, label %empty
keep:
  %start = ptrtoint ptr %new to i64
  %before = and i64 %start, 63
  %skip = sub i64 64, %before
  %aligned = getelementptr i8, ptr %new, i64 %skip
  store ptr %aligned, ptr %at
  br label %done
empty:
  store atomic i64 0, ptr %flag release, align 8
  br label %none
done:
  ret i64 %i
none:
  ret i64 -1
}
"""


class _Function(Text):
    """The body of a function on one type; operands and results of address arithmetic by name."""

    def __init__(self, of: Tiles, head: str) -> None:
        super().__init__()
        self.of, self.head = of, head

    def at(self, base: str, *moves: str | int) -> str:
        """`base` moved by elements, each a number or a value."""
        for move in moves:
            if move != 0:
                base = self.op(f"getelementptr {self.of.type}, ptr {base}, i64 {move}")
        return base

    def mul(self, one: str | int, other: str | int) -> str:
        return self.op(f"mul i64 {one}, {other}")

    def add(self, one: str | int, other: str | int) -> str:
        return self.op(f"add i64 {one}, {other}")

    def sub(self, one: str | int, other: str | int) -> str:
        return self.op(f"sub i64 {one}, {other}")

    def least(self, one: str | int, other: str | int) -> str:
        return self.op(f"call i64 @llvm.smin.i64(i64 {one}, i64 {other})")

    def most(self, one: str | int, other: str | int) -> str:
        return self.op(f"call i64 @llvm.smax.i64(i64 {one}, i64 {other})")

    def choose(self, condition: str, one: str | int, other: str | int, type: str = "i64") -> str:
        return self.op(f"select i1 {condition}, {type} {one}, {type} {other}")

    def load(self, at: str, type: str = "") -> str:
        return self.op(f"load {type or self.of.type}, ptr {at}, align {self.of.item}")

    def load_some(self, at: str, mask: str) -> str:
        """A vector, with 0 for the elements that are not read."""
        of = self.of
        return self.op(
            f"call {of.vector} @llvm.masked.load.{of.suffix}.p0(ptr {at}, i32 {of.item}, "
            f"<{of.lanes} x i1> {mask}, {of.vector} zeroinitializer)"
        )

    def store(self, value: str, at: str, type: str = "") -> None:
        self.line(f"store {type or self.of.type} {value}, ptr {at}, align {self.of.item}")

    def splat(self, scalar: str, type: str = "", lanes: int = 0) -> str:
        type, lanes = type or self.of.type, lanes or self.of.lanes
        one = self.op(f"insertelement <{lanes} x {type}> poison, {type} {scalar}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        vector = f"<{lanes} x {type}>"
        return self.op(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    def mask(self, count: str) -> str:
        """The first `count` lanes."""
        lanes = self.of.lanes
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return self.op(f"icmp sgt <{lanes} x i64> {self.splat(count, 'i64')}, <{numbers}>")

    @contextmanager
    def choice(self, condition: str) -> Iterator[None]:
        """What is written inside is all that is done where `condition` holds."""
        with self.when(condition):
            yield
            self.line("ret void")
            self.label(self.fresh("unreachable"))  # LLVM drops it

    def finish(self) -> str:
        return "\n".join([f"define {self.head} {{", "entry:", *self.lines, "  ret void", "}"])


_MICRO = "ptr %b, i64 %brs, ptr %c, i64 %crs, i64 %k, i64 %w, i1 %adds"


def _bulk(of: Tiles) -> str:
    """A whole tile from packed panels."""
    write = _Function(of, "internal void @bulk(ptr %a, ptr %b, ptr %c, i64 %crs, i64 %k, i1 %adds)")
    whole = write.op(f"and i64 %k, {-UNROLL}")
    zeros = ["zeroinitializer"] * (of.rows * VECTORS)
    sums = zeros
    for low, high, unroll in (("0", whole, UNROLL), (whole, "%k", 1)):

        def step(at: str, sums: list[str], unroll: int = unroll) -> list[str]:
            for offset in range(unroll):
                a = write.at("%a", write.mul(at, of.rows), offset * of.rows)
                b = write.at("%b", write.mul(at, of.columns), offset * of.columns)
                rows = [write.at(a, row) for row in range(of.rows)]
                sums = _products(write, rows, b, VECTORS, sums)
            return sums

        sums = _accumulate(write, low, high, unroll, sums, step)
    _write_whole_tile(write, sums, VECTORS)
    return write.finish()


def _micro(of: Tiles, rows: int, vectors: int) -> str:
    """A tile of fewer rows or columns, from operands with any strides."""
    name = f"@micro_{rows}_{vectors}"
    write = _Function(of, f"internal void {name}(ptr %a, i64 %ars, i64 %acs, {_MICRO})")
    # Rows in groups of three: two of them are addressed from the first by a scaled register.
    twice = write.mul("%ars", 2)
    bases = [write.at("%a", write.mul("%ars", row)) for row in range(0, rows, 3)]

    masks = [write.mask(write.sub("%w", i * of.lanes)) for i in range(vectors)]

    def step(at: str, sums: list[str]) -> list[str]:
        along = write.mul(at, "%acs")
        firsts = [write.at(base, along) for base in bases]
        moves: tuple[str | int, ...] = (0, "%ars", twice)
        places = [write.at(firsts[row // 3], moves[row % 3]) for row in range(rows)]
        b = write.at("%b", write.mul(at, "%brs"))
        return _products(write, places, b, vectors, sums, masks if of.masked else None)

    sums = _accumulate(write, "0", "%k", 1, ["zeroinitializer"] * (rows * vectors), step)
    _write_tile(write, sums, vectors)
    return write.finish()


_Step = Callable[[str, list[str]], list[str]]


def _accumulate(
    write: _Function, low: str, high: str, by: int, sums: list[str], step: _Step
) -> list[str]:
    """A loop that carries the tile in registers; the sums behind it."""
    head, body, done = (write.fresh(stem) for stem in ("head", "loop", "done"))
    entry, vector = write.block, write.of.vector
    write.line(f"br label %{head}")
    write.label(head)
    at, carried = write.fresh("%p"), [write.fresh("%s") for _ in sums]
    place = len(write.lines)
    more = write.op(f"icmp slt i64 {at}, {high}")
    write.line(f"br i1 {more}, label %{body}, label %{done}")
    write.label(body)
    after = step(at, carried)
    following = write.add(at, by)
    write.line(f"br label %{head}")
    phis = [f"  {at} = phi i64 [{low}, %{entry}], [{following}, %{body}]"]
    for name, before, new in zip(carried, sums, after, strict=True):
        phis.append(f"  {name} = phi {vector} [{before}, %{entry}], [{new}, %{body}]")
    write.lines[place:place] = phis
    write.label(done)
    return carried


def _products(
    write: _Function,
    rows: Sequence[str],
    b: str,
    vectors: int,
    sums: list[str],
    masks: list[str] | None = None,
) -> list[str]:
    """The tile after one more column of A and row of B."""
    of = write.of
    places = [write.at(b, i * of.lanes) for i in range(vectors)]
    if masks is None:
        rights = [write.load(place, of.vector) for place in places]
    else:
        rights = [write.load_some(place, mask) for place, mask in zip(places, masks)]
    new = []
    for row, place in enumerate(rows):
        left = write.splat(write.load(place))
        for i, right in enumerate(rights):
            v, before = of.vector, sums[row * vectors + i]
            call = f"call {v} @llvm.fmuladd.{of.suffix}({v} {left}, {v} {right}, {v} {before})"
            new.append(write.op(call))
    return new


def _write_tile(write: _Function, sums: list[str], vectors: int) -> None:
    """Store %w columns of the sums, added to what is there if %adds.

    Where nothing is to be added 0 is: no sum is -0, as they begin with 0.
    """
    of, rows = write.of, len(sums) // vectors
    places = [write.at("%c", write.mul("%crs", row)) for row in range(rows)]
    masks = [write.mask(write.sub("%w", i * of.lanes)) for i in range(vectors)]
    adds = write.splat("%adds", "i1")
    reads = [write.op(f"and <{of.lanes} x i1> {mask}, {adds}") for mask in masks]
    for number, value in enumerate(sums):
        row, i = divmod(number, vectors)
        at = write.at(places[row], i * of.lanes)
        value = write.op(f"fadd {of.vector} {write.load_some(at, reads[i])}, {value}")
        write.line(
            f"call void @llvm.masked.store.{of.suffix}.p0({of.vector} {value}, ptr {at}, "
            f"i32 {of.item}, <{of.lanes} x i1> {masks[i]})"
        )


def _write_whole_tile(write: _Function, sums: list[str], vectors: int) -> None:
    """The same for all columns, without masks."""
    of, rows = write.of, len(sums) // vectors
    places = [write.at("%c", write.mul("%crs", row)) for row in range(rows)]
    for adds in (True, False):
        with write.choice("%adds") if adds else nullcontext():
            for number, value in enumerate(sums):
                row, i = divmod(number, vectors)
                at = write.at(places[row], i * of.lanes)
                if adds:
                    value = write.op(f"fadd {of.vector} {write.load(at, of.vector)}, {value}")
                write.store(value, at, of.vector)


def _tile(of: Tiles) -> str:
    """Up to `rows` x `columns` of C: the kernels that fit."""
    write = _Function(of, f"internal void @tile(i64 %h, ptr %a, i64 %ars, i64 %acs, {_MICRO})")
    wide = write.op(f"icmp sgt i64 %w, {of.lanes}")
    whole = write.op(f"icmp eq i64 %w, {of.columns}")
    full = write.op(f"icmp eq i64 %h, {of.rows}")
    packed = [
        write.op(f"icmp eq i64 {value}, {wanted}")
        for value, wanted in (("%ars", 1), ("%acs", of.rows), ("%brs", of.columns))
    ]
    bulk = whole
    for each in (full, *packed):
        bulk = write.op(f"and i1 {bulk}, {each}")
    with write.choice(bulk):
        write.line("call void @bulk(ptr %a, ptr %b, ptr %c, i64 %crs, i64 %k, i1 %adds)")
    operands = "ptr %b, i64 %brs"
    for vectors, suits in ((2, wide), (1, "true")):
        with write.choice(suits):
            with write.choice(full):
                write.line(
                    f"call void @micro_{of.rows}_{vectors}(ptr %a, i64 %ars, i64 %acs, {operands}, "
                    "ptr %c, i64 %crs, i64 %k, i64 %w, i1 %adds)"
                )
            done: str | int = 0
            for part in of.parts:
                rows = write.sub("%h", done)
                a = write.at("%a", write.mul("%ars", done))
                c = write.at("%c", write.mul("%crs", done))
                fits = write.op(f"icmp sge i64 {rows}, {part}")
                with write.when(fits):
                    write.line(
                        f"call void @micro_{part}_{vectors}(ptr {a}, i64 %ars, i64 %acs, "
                        f"{operands}, ptr {c}, i64 %crs, i64 %k, i64 %w, i1 %adds)"
                    )
                done = write.add(done, write.choose(fits, part, 0))
    return write.finish()


def _transposed(write: _Function, vectors: list[str]) -> list[str]:
    """Lanes and vectors change places: blocks are exchanged at doubling distances (Eklundh)."""
    of = write.of
    distance = 1
    while distance < of.lanes:
        for i in range(of.lanes):
            if i & distance:
                continue
            one, other = vectors[i], vectors[i + distance]
            for at, lanes in (
                (i, [x - distance + of.lanes if x & distance else x for x in range(of.lanes)]),
                (
                    i + distance,
                    [x + of.lanes if x & distance else x + distance for x in range(of.lanes)],
                ),
            ):
                mask = ", ".join(f"i32 {lane}" for lane in lanes)
                vectors[at] = write.op(
                    f"shufflevector {of.vector} {one}, {of.vector} {other}, "
                    f"<{of.lanes} x i32> <{mask}>"
                )
        distance *= 2
    return vectors


def _turn(of: Tiles) -> str:
    """Bring contiguous lines of %k elements side by side, scaled, as many as a vector has lanes.

    They lie %stride apart, and those behind %last are that one again. Each vector of their
    elements goes %width behind the one before; its own end may be overwritten by that.
    """
    head = "internal void @turn(ptr %base, i64 %stride, i64 %last, i64 %k, ptr %out, i64 %width, "
    write = _Function(of, head + f"{of.type} %scale)")
    lines = [
        write.at("%base", write.mul(write.least(line, "%last"), "%stride"))
        for line in range(of.lanes)
    ]
    whole = write.op(f"and i64 %k, {-of.lanes}")
    factor = write.splat("%scale")
    with write.each("0", whole, of.lanes) as p:
        vectors = [write.load(write.at(line, p), of.vector) for line in lines]
        place = write.at("%out", write.mul(p, "%width"))
        for vector in _transposed(write, vectors):
            scaled = write.op(f"fmul {of.vector} {vector}, {factor}")
            write.store(scaled, place, of.vector)
            place = write.at(place, "%width")
    with write.each(whole, "%k") as p:
        place = write.at("%out", write.mul(p, "%width"))
        for number, line in enumerate(lines):
            scaled = write.op(f"fmul {of.type} {write.load(write.at(line, p))}, %scale")
            write.store(scaled, write.at(place, number))
    return write.finish()


def _call_turn(write: _Function, base: str, stride: str, count: str, out: str, scale: str) -> None:
    """Turn the lines of a panel, the last group first: its end is overwritten by the others."""
    of = write.of
    width = of.columns if scale == "%alpha" else of.rows
    for first in reversed(range(0, width, of.lanes)):
        # A group without lines of its own begins with the last one.
        start = write.least(first, write.sub(count, 1))
        last = write.sub(write.sub(count, 1), start)
        line = write.at(base, write.mul(start, stride))
        target = write.at(out, first)
        write.line(
            f"call void @turn(ptr {line}, i64 {stride}, i64 {last}, i64 %k, ptr {target}, "
            f"i64 {width}, {of.type} {scale})"
        )


def _pack_a(of: Tiles) -> str:
    """Rows of A as panels of `rows`, the elements of a column side by side."""
    head = "internal void @pack_a(ptr %a, i64 %ars, i64 %acs, ptr %out, i64 %m, i64 %k)"
    write = _Function(of, head)
    vector = f"<{of.rows} x {of.type}>"
    dense = write.op("icmp eq i64 %ars, 1")
    lined = write.op("icmp eq i64 %acs, 1")
    with write.each("0", "%m", of.rows) as i:
        rows = write.least(write.sub("%m", i), of.rows)
        out = write.at("%out", write.mul(i, "%k"))
        first = write.at("%a", write.mul(i, "%ars"))
        full = write.op(f"icmp eq i64 {rows}, {of.rows}")
        copied = write.op(f"and i1 {full}, {dense}")
        with write.when(copied), write.each("0", "%k") as p:
            value = write.load(write.at(first, write.mul(p, "%acs")), vector)
            write.store(value, write.at(out, write.mul(p, of.rows)), vector)
        left = write.op(f"xor i1 {copied}, true")
        with write.when(write.op(f"and i1 {left}, {lined}")):
            _call_turn(write, first, "%ars", rows, out, "1.0")
        spread = write.op(f"xor i1 {lined}, true")
        others = write.op(f"and i1 {left}, {spread}")
        with write.when(others), write.each("0", "%k") as p, write.each("0", rows) as r:
            value = write.load(write.at(first, write.mul(p, "%acs"), write.mul(r, "%ars")))
            write.store(value, write.at(out, write.mul(p, of.rows), r))
    return write.finish()


def _pack_b(of: Tiles) -> str:
    """Up to `columns` columns of B as a panel, the elements of a row side by side, scaled."""
    head = (
        "internal void @pack_b(ptr %b, i64 %brs, i64 %bcs, ptr %out, i64 %k, i64 %w, "
        f"{of.type} %alpha)"
    )
    write = _Function(of, head)
    dense = write.op("icmp eq i64 %bcs, 1")
    full = write.op(f"icmp eq i64 %w, {of.columns}")
    factor = write.splat("%alpha")
    with write.choice(write.op(f"and i1 {dense}, {full}")), write.each("0", "%k") as p:
        source = write.at("%b", write.mul(p, "%brs"))
        target = write.at("%out", write.mul(p, of.columns))
        for i in range(VECTORS):
            value = write.load(write.at(source, i * of.lanes), of.vector)
            value = write.op(f"fmul {of.vector} {value}, {factor}")
            write.store(value, write.at(target, i * of.lanes), of.vector)
    spread = write.op(f"xor i1 {dense}, true")
    lined = write.op("icmp eq i64 %brs, 1")
    with write.choice(write.op(f"and i1 {lined}, {spread}")):
        _call_turn(write, "%b", "%bcs", "%w", "%out", "%alpha")
    with write.each("0", "%k") as p:
        source = write.at("%b", write.mul(p, "%brs"))
        target = write.at("%out", write.mul(p, of.columns))
        with write.each("0", "%w") as j:
            value = write.load(write.at(source, write.mul(j, "%bcs")))
            write.store(write.op(f"fmul {of.type} {value}, %alpha"), write.at(target, j))
    return write.finish()


_OPERANDS = (
    "i64 %m, i64 %n, i64 %k, ptr %a, i64 %ars, i64 %acs, ptr %b, i64 %brs, i64 %bcs, "
    "ptr %c, i64 %crs"
)


def _plain(of: Tiles) -> str:
    """The same sums one by one, where there is no memory to pack anything."""
    head = f"internal void @plain({_OPERANDS}, {of.type} %alpha, i1 %adds)"
    write = _Function(of, head)
    zero, total = f"{of.type} 0.0", write.op(f"alloca {of.type}")
    with write.each("0", "%k", of.depth) as pc:
        depth = write.least(write.sub("%k", pc), of.depth)
        later = write.op(f"icmp sgt i64 {pc}, 0")
        adds = write.op(f"or i1 {later}, %adds")
        with write.each("0", "%m") as i, write.each("0", "%n") as j:
            a = write.at("%a", write.mul(i, "%ars"), write.mul(pc, "%acs"))
            b = write.at("%b", write.mul(j, "%bcs"), write.mul(pc, "%brs"))
            c = write.at("%c", write.mul(i, "%crs"), j)
            write.store("0.0", total)
            with write.each("0", depth) as p:
                left = write.load(write.at(a, write.mul(p, "%acs")))
                right = write.load(write.at(b, write.mul(p, "%brs")))
                right = write.op(f"fmul {of.type} {right}, %alpha")
                scalar = of.suffix.lstrip("v0123456789")
                operands = f"{of.type} {left}, {of.type} {right}, {of.type} {write.load(total)}"
                write.store(write.op(f"call {of.type} @llvm.fmuladd.{scalar}({operands})"), total)
            old = write.op(f"select i1 {adds}, {of.type} {write.load(c)}, {zero}")
            found = write.load(total)
            both = write.op(f"fadd {of.type} {old}, {found}")
            write.store(write.choose(adds, both, found, of.type), c)
    return write.finish()


def _block(of: Tiles) -> str:
    """C = alpha A B + beta C for one piece of C."""
    head = f"internal void @block({_OPERANDS}, {of.type} %alpha, {of.type} %beta)"
    write = _Function(of, head)
    fresh = write.op(f"fcmp oeq {of.type} %beta, 0.0")
    kept = write.op(f"fcmp oeq {of.type} %beta, 1.0")
    some = write.op("icmp sgt i64 %k, 0")
    stores = write.op(f"and i1 {fresh}, {some}")
    adds = write.op(f"xor i1 {stores}, true")
    settled = write.op(f"or i1 {stores}, {kept}")
    unsettled = write.op(f"xor i1 {settled}, true")
    with write.when(unsettled), write.each("0", "%m") as i, write.each("0", "%n") as j:
        at = write.at("%c", write.mul(i, "%crs"), j)
        scaled = write.op(f"fmul {of.type} {write.load(at)}, %beta")
        write.store(write.choose(fresh, "0.0", scaled, of.type), at)
    none = write.op(f"xor i1 {some}, true")
    with write.choice(none):
        pass
    tall = write.op(f"icmp sgt i64 %m, {of.direct_rows}")
    strided = write.op("icmp ne i64 %bcs, 1")
    scaled = write.op(f"fcmp une {of.type} %alpha, 1.0")
    packs_b = write.op(f"or i1 {write.op(f'or i1 {tall}, {strided}')}, {scaled}")
    packs_a = write.op(f"icmp sgt i64 %n, {of.direct_columns}")
    borrows = write.op(f"or i1 {packs_a}, {packs_b}") if of.masked else "true"
    number = write.op("alloca i64")
    write.line(f"store i64 0, ptr {number}")
    with write.when(borrows):
        found = write.op(f"call i64 @acquire(i64 {of.packed_a + of.packed_b})")
        with write.choice(write.op(f"icmp slt i64 {found}, 0")):
            write.line(f"call void @plain({_OPERANDS}, {of.type} %alpha, i1 {adds})")
        write.line(f"store i64 {found}, ptr {number}")
    held = write.op(f"load i64, ptr {number}")
    pa = write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr @buffers, i64 {held}')}")
    pb = write.op(f"getelementptr i8, ptr {pa}, i64 {of.packed_a}")
    ars = write.choose(packs_a, 1, "%ars")
    acs = write.choose(packs_a, of.rows, "%acs")
    with write.each("0", "%k", of.depth) as pc:
        kc = write.least(write.sub("%k", pc), of.depth)
        later = write.op(f"icmp sgt i64 {pc}, 0")
        more = write.op(f"or i1 {later}, {adds}")
        with write.each("0", "%n", of.block_columns) as jc:
            nc = write.least(write.sub("%n", jc), of.block_columns)
            b = write.at("%b", write.mul(pc, "%brs"), write.mul(jc, "%bcs"))
            with write.each("0", nc, of.columns) as jr:
                w, packs = _panel(write, nc, jr, packs_b)
                with write.when(packs):
                    source = write.at(b, write.mul(jr, "%bcs"))
                    target = write.at(pb, write.mul(jr, kc))
                    write.line(
                        f"call void @pack_b(ptr {source}, i64 %brs, i64 %bcs, ptr {target}, "
                        f"i64 {kc}, i64 {w}, {of.type} %alpha)"
                    )
            with write.each("0", "%m", of.block_rows) as ic:
                mc = write.least(write.sub("%m", ic), of.block_rows)
                a = write.at("%a", write.mul(ic, "%ars"), write.mul(pc, "%acs"))
                with write.when(packs_a):
                    write.line(
                        f"call void @pack_a(ptr {a}, i64 %ars, i64 %acs, ptr {pa}, i64 {mc}, "
                        f"i64 {kc})"
                    )
                with write.each("0", nc, of.columns) as jr:
                    w, packs = _panel(write, nc, jr, packs_b)
                    packed = write.at(pb, write.mul(jr, kc))
                    direct = write.at(b, write.mul(jr, "%bcs"))
                    right = write.choose(packs, packed, direct, "ptr")
                    brs = write.choose(packs, of.columns, "%brs")
                    with write.each("0", mc, of.rows) as ir:
                        h = write.least(write.sub(mc, ir), of.rows)
                        left = write.choose(
                            packs_a,
                            write.at(pa, write.mul(ir, kc)),
                            write.at(a, write.mul(ir, "%ars")),
                            "ptr",
                        )
                        row = write.mul(write.add(ic, ir), "%crs")
                        c = write.at("%c", row, jc, jr)
                        write.line(
                            f"call void @tile(i64 {h}, ptr {left}, i64 {ars}, i64 {acs}, "
                            f"ptr {right}, i64 {brs}, ptr {c}, i64 %crs, i64 {kc}, i64 {w}, "
                            f"i1 {more})"
                        )
    with write.when(borrows):
        flag = write.op(f"getelementptr i64, ptr @flags, i64 {held}")
        write.line(f"store atomic i64 0, ptr {flag} release, align 8")
    return write.finish()


def _panel(write: _Function, nc: str, jr: str, packs_b: str) -> tuple[str, str]:
    """The columns of the panel of B that begins at `jr`, and whether it is packed."""
    w = write.least(write.sub(nc, jr), write.of.columns)
    if write.of.masked:
        return w, packs_b
    narrow = write.op(f"icmp slt i64 {w}, {write.of.columns}")
    return w, write.op(f"or i1 {packs_b}, {narrow}")


def _body(of: Tiles) -> str:
    """Pieces [lo, hi) of all products of a batch.

    Arguments: a, b, c. Parameters: 0-2 m, n, k, 3-4 elements from row to row and from column to
    column of A, 5-6 of B, 7 from row to row of C, 8 alpha, 9 beta, 10-11 rows and columns of a
    piece, 12-13 pieces down and across, of which one is 1, 14 batch dimensions, then for each of
    them its size and the elements that a, b and c go on. Neighbouring pieces are done as one.
    """
    write = _Function(of, "void @gemm(ptr %args, i64 %lo, i64 %hi)")
    bases = [
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(4)
    ]
    words = bases.pop()

    def word(at: str | int, type: str = "i64") -> str:
        return write.op(f"load {type}, ptr {write.op(f'getelementptr i64, ptr {words}, i64 {at}')}")

    m, n, k, ars, acs, brs, bcs, crs = (word(at) for at in range(8))
    alpha, beta = word(8, of.type), word(9, of.type)
    height, width, down, across, dims = (word(at) for at in range(10, PARAMETERS))
    pieces = write.mul(down, across)
    by_rows = write.op(f"icmp eq i64 {across}, 1")
    first_item = write.op(f"sdiv i64 %lo, {pieces}")
    end_item = write.op(f"sdiv i64 {write.sub(write.add('%hi', pieces), 1)}, {pieces}")
    offsets = [write.op("alloca i64") for _ in range(3)]
    item = write.op("alloca i64")
    with write.each(first_item, end_item) as product:
        begin = write.mul(product, pieces)
        low = write.most(write.sub("%lo", begin), 0)
        high = write.least(write.sub("%hi", begin), pieces)
        row = write.choose(by_rows, write.mul(low, height), 0)
        below = write.choose(by_rows, write.least(write.mul(high, height), m), m)
        column = write.choose(by_rows, 0, write.mul(low, width))
        behind = write.choose(by_rows, n, write.least(write.mul(high, width), n))
        firsts = (
            write.mul(row, ars),
            write.mul(column, bcs),
            write.add(write.mul(row, crs), column),
        )
        for place, first in zip(offsets, firsts):
            write.line(f"store i64 {first}, ptr {place}")
        write.line(f"store i64 {product}, ptr {item}")
        with write.each("0", dims) as d:
            entry = write.mul(write.sub(write.sub(dims, d), 1), 4)
            size = word(write.add(entry, PARAMETERS))
            index = write.op(f"load i64, ptr {item}")
            write.line(f"store i64 {write.op(f'sdiv i64 {index}, {size}')}, ptr {item}")
            rest = write.op(f"srem i64 {index}, {size}")
            for number, place in enumerate(offsets, PARAMETERS + 1):
                move = write.mul(rest, word(write.add(entry, number)))
                moved = write.add(write.op(f"load i64, ptr {place}"), move)
                write.line(f"store i64 {moved}, ptr {place}")
        a, b, c = (
            write.at(base, write.op(f"load i64, ptr {place}"))
            for base, place in zip(bases, offsets)
        )
        rows, columns = write.sub(below, row), write.sub(behind, column)
        write.line(
            f"call void @block(i64 {rows}, i64 {columns}, i64 {k}, ptr {a}, i64 {ars}, i64 {acs}, "
            f"ptr {b}, i64 {brs}, i64 {bcs}, ptr {c}, i64 {crs}, {of.type} {alpha}, "
            f"{of.type} {beta})"
        )
    return write.finish()
