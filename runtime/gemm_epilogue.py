"""Kernels that generated products run on each block of C while it lies in a cache.

A product with an epilogue computes C block by block (`Tiles.epilogue_block`) in a small matrix on
the stack, and calls the kernel for each as soon as its sums are complete. The kernel is one like
any other, `void kernel(ptr args, i64 lo, i64 hi)`, whose tasks are the rows of C, or what of them
lies in a block where these are narrower. (Tasks of whole blocks would have the number of rows in
the kernel's text.) To it, C is the last argument, which begins where element (0, 0) would lie.
"""

from __future__ import annotations

from .gemm_text import GemmText, Tiles

WORDS = 7
"""Of what a product is told of its epilogue: 0 the address of the kernel, 1 the number of its
arguments but for C, 2 where its parameters begin, 3 rows of C, 4 blocks across it, 5-6 rows and
columns of a block."""

MOST_ARGUMENTS = 24
"""A kernel's, but for C. A step has so many whatever the kernel takes, as its body finds its words
behind them."""


class Epilogue:
    """What the function that is being written knows of its epilogue.

    `%then` points at the words above, `%table` at the arguments of the kernel, which belong to the
    call; `%item` is the product's number in the batch.
    """

    def __init__(self, write: GemmText) -> None:
        self.write = write
        self.rows, self.columns = write.word("%then", 5), write.word("%then", 6)

    def run(self, row: str, column: str, rows: str) -> None:
        """Run the kernel on the block that begins at this row and column of the piece."""
        down, along = self.write.add("%row", row), self.write.add("%column", column)
        where = f"i64 %item, i64 {down}, i64 {along}, i64 {rows}"
        self.write.line(f"call void @epilogue(ptr %then, ptr %table, {where}, ptr %c)")


def epilogue(of: Tiles) -> str:
    """Run the kernel on the block of %rows rows at (%row, %column) of C, which lies at %c."""
    where = "i64 %item, i64 %row, i64 %column, i64 %rows"
    head = f"internal void @epilogue(ptr %then, ptr %table, {where}, ptr %c)"
    write = GemmText(of, head)
    height, across, columns = (write.word("%then", at) for at in (3, 4, 6))
    before = write.add(write.mul("%row", columns), "%column")
    place = write.op(f"getelementptr ptr, ptr %table, i64 {write.word('%then', 1)}")
    write.line(f"store ptr {write.at('%c', write.sub(0, before))}, ptr {place}")
    kernel = write.word("%then", 0, "ptr")
    whole = write.op(f"icmp eq i64 {across}, 1")
    count = write.choose(whole, "%rows", 1)
    first = write.add(write.mul("%item", height), "%row")
    block = write.op(f"udiv i64 %column, {columns}")
    with write.each("0", "%rows", count) as row:
        task = write.add(write.mul(write.add(first, row), across), block)
        write.line(f"call void {kernel}(ptr %table, i64 {task}, i64 {write.add(task, count)})")
    return write.finish()


def table(write: GemmText, words: str, then: str, first: int) -> str:
    """A call's own arguments of the kernel: those of the product from `first` on, and C."""
    pointers = write.op(f"alloca [{MOST_ARGUMENTS + 2} x ptr]")
    count = write.word(then, 1)
    with write.each("0", count) as number:
        source = write.op(f"getelementptr ptr, ptr %args, i64 {write.add(number, first)}")
        target = write.op(f"getelementptr ptr, ptr {pointers}, i64 {number}")
        write.line(f"store ptr {write.op(f'load ptr, ptr {source}')}, ptr {target}")
    parameters = write.op(f"getelementptr i64, ptr {words}, i64 {write.word(then, 2)}")
    behind = write.op(f"getelementptr ptr, ptr {pointers}, i64 {write.add(count, 1)}")
    write.line(f"store ptr {parameters}, ptr {behind}")
    return pointers
