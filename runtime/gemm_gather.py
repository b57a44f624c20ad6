"""Operands of generated products that are no matrices in memory, such as windows of images.

Their rows and columns have several axes each. Blocks of them are gathered, run by run, into memory
that stays in the caches: a convolution never has its column matrix as a whole (im2col a block at a
time, as in M. Dukhan, "The Indirect Convolution Algorithm", 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .gemm_text import GemmText, Tiles

HEAD = 3
"""Words in front of the axes; each axis has two, its size and its stride in elements."""

NO_AXES = f"@no_axes = internal constant [{HEAD} x i64] zeroinitializer"


class Operand:
    """The axes of an operand, as words that `address` points at; null if it is a matrix.

    They are: whether its elements lie side by side along k (else along its rows, or B's columns),
    the number of axes along these and along k, and the axes, those along k behind the others. The
    last axis of those along which elements lie side by side has stride 1.
    """

    def __init__(self, write: GemmText, address: str) -> None:
        self.write = write
        self.given = write.op(f"icmp ne ptr {address}, null")
        words = write.choose(self.given, address, "@no_axes", "ptr")
        self.along_k = write.op(f"icmp ne i64 {write.word(words, 0)}, 0")
        outer, inner = write.word(words, 1), write.word(words, 2)
        first = write.op(f"getelementptr i64, ptr {words}, i64 {HEAD}")
        second = write.op(f"getelementptr i64, ptr {first}, i64 {write.mul(outer, 2)}")
        self.sides = (first, outer), (second, inner)

    def offset(self, line: str, at: str) -> str:
        """Where the element of this row or column and place along k lies; 0 for a matrix."""
        parts = [
            self.write.op(f"call i64 @offset(ptr {axes}, i64 {count}, i64 {index})")
            for (axes, count), index in zip(self.sides, (line, at))
        ]
        return self.write.add(*parts)

    def gather(
        self, base: str, line: str, lines: str, pc: str, kc: str, out: str, pitch: int
    ) -> None:
        """Write a block to `out`, in which neighbours stay side by side.

        Lines along k are `depth` apart, others `pitch`.
        """
        write = self.write
        (outer, many), (inner, several) = self.sides
        here = [outer, many, inner, several, line, lines, pc, kc]
        transposed = [inner, several, outer, many, pc, kc, line, lines]
        types = ("ptr", "i64", "ptr", *("i64",) * 5)
        chosen = [
            f"{type} {write.choose(self.along_k, one, other, type)}"
            for type, one, other in zip(types, here, transposed)
        ]
        apart = write.choose(self.along_k, write.of.depth, pitch)
        write.line(f"call void @gather(ptr {base}, {', '.join(chosen)}, ptr {out}, i64 {apart})")


def offset(of: Tiles, keeps: bool = False) -> str:
    """How many elements an index of several axes, the last one fastest, is away from the first.

    `@start` also `keeps` the place along each axis, for `@step`.
    """
    head = "i64 @start(ptr %axes, i64 %count, i64 %index, ptr %places)"
    if not keeps:
        head = "i64 @offset(ptr %axes, i64 %count, i64 %index)"
    write = GemmText(of, f"internal {head}")
    left, total = write.op("alloca i64"), write.op("alloca i64")
    write.line(f"store i64 %index, ptr {left}")
    write.line(f"store i64 0, ptr {total}")
    with write.each("0", "%count") as number:
        which = write.sub(write.sub("%count", number), 1)
        axis = write.op(f"getelementptr i64, ptr %axes, i64 {write.mul(which, 2)}")
        size, stride = write.word(axis, 0), write.word(axis, 1)
        index = write.op(f"load i64, ptr {left}")
        quotient = write.op(f"udiv i64 {index}, {size}")
        rest = write.sub(index, write.mul(quotient, size))
        if keeps:
            place = write.op(f"getelementptr i64, ptr %places, i64 {which}")
            write.line(f"store i64 {rest}, ptr {place}")
        write.line(f"store i64 {quotient}, ptr {left}")
        moved = write.add(write.op(f"load i64, ptr {total}"), write.mul(rest, stride))
        write.line(f"store i64 {moved}, ptr {total}")
    return write.finish(f"i64 {write.op(f'load i64, ptr {total}')}")


STEP = """
; From an index to the one behind it, as a hand of a clock moves the next one: their offsets.
; Divisions, as those of @start, take longer than the copying of a short run.
define internal i64 @step(ptr %axes, i64 %count, ptr %places, i64 %offset) {
entry:
  br label %look
look:
  %left = phi i64 [ %count, %entry ], [ %axis, %carry ]
  %here = phi i64 [ %offset, %entry ], [ %back, %carry ]
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %move, label %end
move:
  %axis = sub i64 %left, 1
  %place = getelementptr i64, ptr %places, i64 %axis
  %old = load i64, ptr %place
  %new = add i64 %old, 1
  %words = shl i64 %axis, 1
  %first = getelementptr i64, ptr %axes, i64 %words
  %size = load i64, ptr %first
  %second = getelementptr i64, ptr %first, i64 1
  %stride = load i64, ptr %second
  %there = add i64 %here, %stride
  %fits = icmp slt i64 %new, %size
  br i1 %fits, label %stay, label %carry
stay:
  store i64 %new, ptr %place
  ret i64 %there
carry:
  store i64 0, ptr %place
  %whole = mul i64 %size, %stride
  %back = sub i64 %there, %whole
  br label %look
end:
  ret i64 %here
}
"""


def gather(of: Tiles) -> str:
    """%lines lines of %count elements, which lie side by side along the last of their axes."""
    head = (
        "internal void @gather(ptr %x, ptr %line_axes, i64 %many, ptr %axes, i64 %several, "
        "i64 %line, i64 %lines, i64 %first, i64 %count, ptr %out, i64 %pitch)"
    )
    write = GemmText(of, head)
    with (
        _runs(write, "%axes", "%several", "%first", "%count") as (start, along, elements, _),
        _runs(write, "%line_axes", "%many", "%line", "%lines") as (number, down, lines, stride),
    ):
        source = write.at("%x", along, down)
        target = write.at("%out", start, write.mul(number, "%pitch"))
        _copy(write, source, stride, target, lines, elements)
    return write.finish()


@contextmanager
def _runs(
    write: GemmText, axes: str, count: str, first: str, total: str
) -> Iterator[tuple[str, str, str, str]]:
    """The runs along the last axis that make up `total` indices from `first` on.

    Of each: its place behind `first`, its offset, its length and the stride of its elements.
    """
    outer = write.sub(count, 1)
    last = write.op(f"getelementptr i64, ptr {axes}, i64 {write.mul(outer, 2)}")
    size, stride = write.word(last, 0), write.word(last, 1)
    end = write.add(first, total)
    low = write.op(f"udiv i64 {first}, {size}")
    high = write.op(f"udiv i64 {write.sub(write.add(end, size), 1)}, {size}")
    places, current = write.memory("i64", count), write.memory("i64")
    outside = write.op(f"call i64 @start(ptr {axes}, i64 {outer}, i64 {low}, ptr {places})")
    write.line(f"store i64 {outside}, ptr {current}")
    with write.each(low, high) as run:
        begin = write.mul(run, size)
        start = write.most(begin, first)
        stop = write.least(write.add(begin, size), end)
        outside = write.op(f"load i64, ptr {current}")
        inside = write.mul(write.sub(start, begin), stride)
        yield write.sub(start, first), write.add(outside, inside), write.sub(stop, start), stride
        following = f"call i64 @step(ptr {axes}, i64 {outer}, ptr {places}, i64 {outside})"
        write.line(f"store i64 {write.op(following)}, ptr {current}")


def _copy(
    write: GemmText, source: str, stride: str, target: str, lines: str, elements: str
) -> None:
    """Lines of contiguous elements, `stride` apart, to where they are %pitch apart."""
    of = write.of
    whole = write.op(f"and i64 {elements}, {-of.lanes}")
    rest = write.sub(elements, whole)
    mask = write.mask(rest)
    some = write.op(f"icmp sgt i64 {rest}, 0")
    with write.each("0", lines) as line:
        start = write.at(source, write.mul(line, stride))
        out = write.at(target, write.mul(line, "%pitch"))
        with write.each("0", whole, of.lanes) as at:
            write.store(write.load(write.at(start, at), of.vector), write.at(out, at), of.vector)
        if of.masked:
            with write.when(some):
                value = write.load_some(write.at(start, whole), mask)
                write.line(
                    f"call void @llvm.masked.store.{of.suffix}.p0({of.vector} {value}, "
                    f"ptr {write.at(out, whole)}, i32 {of.item}, <{of.lanes} x i1> {mask})"
                )
        else:
            with write.each(whole, elements) as at:
                write.store(write.load(write.at(start, at)), write.at(out, at))
