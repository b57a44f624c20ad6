"""Small blocks of arrays transposed, as squares of vectors in registers.

What is contiguous along another axis than that of a kernel's vectors goes through a buffer on the
way between memory and vectors: elements that are gathered one by one cost a load each.
"""

from __future__ import annotations

import functools

from . import jit
from .llvm_text import FunctionText, transposed

MOST_LANES = 16
ITEMSIZES = (1, 2, 4, 8)
ARGUMENTS = "ptr, i64, i64, i64, ptr, i64"


def symbol(itemsize: int) -> str:
    """The name by which other modules call `load`'s function for elements of so many bytes.

    It begins to be compiled, beside those modules.
    """
    name = f"tgraph_transpose_{itemsize}"
    jit.begin(_source(itemsize, jit.vector_bytes()))
    jit.add_symbol(name, lambda: load(itemsize))
    return name


@functools.cache
def load(itemsize: int) -> int:
    """The address of `void (ptr from, i64 step, i64 lines, i64 count, ptr to, i64 pitch)`.

    The first `count` elements of `lines` lines, which lie `step` elements apart, become columns:
    element k of line l goes to to[k * pitch + l]. The two places do not overlap.
    """
    source = _source(itemsize, jit.vector_bytes())
    return jit.compile_modules([source])[0].address("transpose")


def own_sources(vector_bytes: int) -> list[jit.Source]:
    """The modules for all sizes of elements, for processors with vectors of that size."""
    return [_source(itemsize, vector_bytes) for itemsize in ITEMSIZES]


@functools.cache
def _source(itemsize: int, vector_bytes: int) -> jit.Source:
    lanes = min(vector_bytes // itemsize, MOST_LANES)
    return jit.Source(text(itemsize, lanes), passes=False, own=True)


def text(itemsize: int, lanes: int) -> str:
    """The function as a module, with vectors of so many lanes."""
    element = f"i{8 * itemsize}"
    vector = f"<{lanes} x {element}>"
    head = "void @transpose(ptr %from, i64 %step, i64 %lines, i64 %count, ptr %to, i64 %pitch)"
    write = FunctionText(head)

    def at(base: str, line: str | int, step: str, move: str) -> str:
        offset = write.add(write.mul(line, step), move)
        return write.op(f"getelementptr {element}, ptr {base}, i64 {offset}")

    def square(line: str, first: str) -> None:
        places = [at("%from", write.add(line, k), "%step", first) for k in range(lanes)]
        vectors = [write.op(f"load {vector}, ptr {each}, align {itemsize}") for each in places]
        for k, column in enumerate(transposed(write, vectors, lanes, element)):
            place = at("%to", write.add(first, k), "%pitch", line)
            write.line(f"store {vector} {column}, ptr {place}, align {itemsize}")

    enough = [write.op(f"icmp sge i64 {size}, {lanes}") for size in ("%lines", "%count")]
    # The last square ends where the block does: what the one before has done is done once more.
    with (
        write.choice(write.op(f"and i1 {enough[0]}, {enough[1]}")),
        write.each("0", "%lines", lanes) as line,
        write.each("0", "%count", lanes) as first,
    ):
        square(
            _least(write, line, write.sub("%lines", lanes)),
            _least(write, first, write.sub("%count", lanes)),
        )
    with write.each("0", "%lines") as line, write.each("0", "%count") as k:
        value = write.op(f"load {element}, ptr {at('%from', line, '%step', k)}")
        write.line(f"store {element} {value}, ptr {at('%to', k, '%pitch', line)}")
    return write.finish()


def _least(write: FunctionText, one: str, other: str) -> str:
    return write.choose(write.op(f"icmp slt i64 {one}, {other}"), one, other)
