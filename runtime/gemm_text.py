"""The sizes of generated matrix products, and the text that their functions are written with."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .llvm_text import FunctionText
from .records import record

TYPES = {"float32": ("float", 4), "float64": ("double", 8)}
EPILOGUE_BYTES = 48 << 10
"""Of a block of C that a kernel reads from the stack of a thread."""

FEWEST_SHARED = 16
"""Tiles of rows from which on threads share those of a product with an epilogue."""

MOST_PIECES = 64
"""That threads share."""

VECTORS = 2
"""Vectors of C side by side in a tile."""


@record()
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
    def near(self) -> int:
        """An operand whose elements span so many stays in the caches wherever it lies."""
        return (128 << 10) // self.item

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
    def gathered_rows(self) -> int:
        """Of A where it is gathered; whole tiles, so few that they stay in the caches."""
        return 4 * self.rows

    def packs_straight(self, m: int, k: int, leading: int) -> bool:
        """Whether a product packs B, whose rows are contiguous: see `gemm_native._block`."""
        return m > self.rows and k * leading > self.near

    def cuts_rows(self, m: int, n: int) -> bool:
        """Whether threads share the rows of C before an epilogue, not the columns."""
        return 2 * m >= n or m >= FEWEST_SHARED * self.rows

    def epilogue_block(self, m: int, n: int, items: int) -> tuple[int, int]:
        """Rows and columns of the blocks that an epilogue runs on, of `items` products.

        They are whole tiles; as wide as may be, since kernels walk along rows, and so does what
        fetches memory; and so many that all threads have some.
        """
        parts, columns = max(1, MOST_PIECES // items), self.block_columns
        if not self.cuts_rows(m, n):
            columns = min(
                columns, max(self.columns * 8, -(-n // (parts * self.columns)) * self.columns)
            )
        columns = min(-(-n // self.columns) * self.columns, columns)
        rows = EPILOGUE_BYTES // (self.item * columns) // self.rows * self.rows
        share = -(-m // (parts * self.rows)) * self.rows
        return min(rows, self.block_rows, share), columns

    @property
    def buffer(self) -> int:
        """Bytes that a thread needs at most."""
        lines = max(self.gathered_rows, self.columns)
        return self.packed_a + self.packed_b + lines * self.depth * self.item

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.type}>"

    @property
    def scalar(self) -> str:
        """How the names of LLVM's functions on one number end."""
        return "f32" if self.item == 4 else "f64"

    @property
    def suffix(self) -> str:
        """How they end on vectors."""
        return f"v{self.lanes}{self.scalar}"


def tiles(dtype: str, vector_bytes: int) -> Tiles:
    """What suits vectors of so many bytes."""
    type_, item = TYPES[dtype]
    registers = 32 if vector_bytes == 64 or platform.machine() in ("aarch64", "arm64") else 16
    return Tiles(type_, item, vector_bytes // item, 12 if registers == 32 else 6)


class GemmText(FunctionText):
    """The body of a function on one type; operands and results of address arithmetic by name."""

    def __init__(self, of: Tiles, head: str) -> None:
        super().__init__(head)
        self.of = of

    def at(self, base: str, *moves: str | int) -> str:
        """`base` moved by elements, each a number or a value."""
        for move in moves:
            if move != 0:
                base = self.op(f"getelementptr {self.of.type}, ptr {base}, i64 {move}")
        return base

    def least(self, one: str | int, other: str | int) -> str:
        return self.op(f"call i64 @llvm.smin.i64(i64 {one}, i64 {other})")

    def most(self, one: str | int, other: str | int) -> str:
        return self.op(f"call i64 @llvm.smax.i64(i64 {one}, i64 {other})")

    def far(self, count: str | int, stride: str) -> str:
        """Whether so many elements span more than what is near."""
        return self.op(f"icmp sgt i64 {self.mul(count, stride)}, {self.of.near}")

    def load(self, at: str, type: str = "") -> str:
        return self.op(f"load {type or self.of.type}, ptr {at}, align {self.of.item}")

    def load_some(self, at: str, mask: str, otherwise: str = "zeroinitializer") -> str:
        """A vector, with `otherwise` for the elements that are not read."""
        of = self.of
        return self.op(
            f"call {of.vector} @llvm.masked.load.{of.suffix}.p0(ptr {at}, i32 {of.item}, "
            f"<{of.lanes} x i1> {mask}, {of.vector} {otherwise})"
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
    def folding(
        self, starts: Sequence[str], low: str, high: str, by: int
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """A loop that carries vectors: its counter, them, and a list for what they become.

        Behind the loop that list holds their last values.
        """
        head, body, done = (self.fresh(stem) for stem in ("head", "loop", "done"))
        entry, vector = self.block, self.of.vector
        self.line(f"br label %{head}")
        self.label(head)
        at, carried = self.fresh("%p"), [self.fresh("%s") for _ in starts]
        place = len(self.lines)
        more = self.op(f"icmp slt i64 {at}, {high}")
        self.line(f"br i1 {more}, label %{body}, label %{done}")
        self.label(body)
        new: list[str] = []
        yield at, carried, new
        following, back = self.add(at, by), self.block
        self.line(f"br label %{head}")
        phis = [f"  {at} = phi i64 [{low}, %{entry}], [{following}, %{back}]"]
        for name, before, after in zip(carried, starts, new, strict=True):
            phis.append(f"  {name} = phi {vector} [{before}, %{entry}], [{after}, %{back}]")
        self.lines[place:place] = phis
        self.label(done)
        new[:] = carried
