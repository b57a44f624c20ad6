"""Several small kernels as one: the blocks of a launch are shared out among them.

A launch costs as long as a small kernel runs. Kernels that do not wait for each other become
functions, and one kernel calls the function that a block's number belongs to. Those with the same
text, such as the updates of equally large parameters, are one function, called with what belongs to
the block's number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import prod

from ....runtime.records import NamedTuple, record, replace
from ...kernel.kernel import Kernel, Param
from .template import TemplateSchedule, kernel_without_loops
from .varying_numbers import TAKEN_HERE, Number, Written
from .writer import declared

SHARED = "unsigned char* shared"


@record(eq=False)
class Piece:
    """A kernel that can be launched alone or be a part of another.

    `write(name, True)` gives its text as a function that takes the number of its block as its last
    parameter, `write(name, False)` as a kernel; `comments` stand above it. `shared` is the shared
    memory that it needs, in bytes: a kernel declares it, a function takes it before the number of
    the block. `kernel` is the loop program that it was made from; a copy has none.
    """

    name: str
    params: tuple[Param, ...]
    grid: int
    block: tuple[int, int]
    shared: int
    write: Callable[[str, bool], str]
    comments: tuple[str, ...] = ()
    kernel: Kernel | None = None

    def as_kernel(self, name: str) -> str:
        return self.write(name, False)

    def as_function(self, name: str) -> str:
        return self.write(name, True)


@record()
class WideSchedule(TemplateSchedule):
    """The launch of several pieces of the same block."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def kernel(self) -> Kernel:
        params = [param for piece in self.pieces for param in piece.params]
        numbered = [replace(each, name=f"p{number}") for number, each in enumerate(params)]
        return kernel_without_loops(self.name, numbered)

    @property
    def grid(self) -> int:
        return sum(piece.grid for piece in self.pieces)

    @property
    def block(self) -> tuple[int, int]:
        return self.pieces[0].block

    def summary(self) -> str:
        return f"wide: {len(self.pieces)} kernels in {self.grid:,} blocks"


def wide_text(
    schedule: WideSchedule, functions: Sequence[Written], varying: bool, name: str
) -> str:
    """The kernel that calls the functions of the pieces, which are in their order.

    Numbers are marked where they are `varying`, see `varying_numbers`.
    """
    params = schedule.kernel.params
    end = TAKEN_HERE if varying else ""
    lines = [
        f'extern "C" __global__ void __launch_bounds__({prod(schedule.block)}) {name}(',
        ",\n".join(f"    {declared(param)}" for param in params) + f"{end}) {{",
    ]
    if shared := max(piece.shared for piece in schedule.pieces):
        lines.append(f"  __shared__ __align__(16) unsigned char shared[{shared}];")
    pieces = list(zip(functions, schedule.pieces, _slices(schedule.pieces)))
    first = 0
    # A text does not always tell how many blocks there are.
    for (function, _), run in groupby(pieces, lambda each: (each[0].name, each[1].grid)):
        same = [_Call(piece, params[at], written.numbers) for written, piece, at in run]
        is_last = same[-1].piece is schedule.pieces[-1]
        lines += _calls(function, same, _Blocks(first, same[0].piece.grid, varying), is_last)
        first += sum(call.piece.grid for call in same)
    return "\n".join([*lines, "}", ""])


def _slices(pieces: Sequence[Piece]) -> Iterator[slice]:
    """Where the parameters of each piece are among those of the kernel."""
    at = 0
    for piece in pieces:
        yield slice(at, at := at + len(piece.params))


class _Call(NamedTuple):
    """A piece with what its function is given."""

    piece: Piece
    params: tuple[Param, ...]
    numbers: tuple[Number, ...]


class _Blocks(NamedTuple):
    """The blocks of a launch from `first` on, of which each piece has `grid`."""

    first: int
    grid: int
    varying: bool

    def number(self, value: int, free: bool = False) -> str:
        return Number("unsigned int", value, free).marked() if self.varying else str(value)


def _calls(function: str, same: Sequence[_Call], blocks: _Blocks, last: bool) -> Iterator[str]:
    """The call of the function that pieces have in common, for their blocks."""
    piece, given, numbers = same[0]
    first = blocks.first
    block = f"blockIdx.x - {blocks.number(first, free=True)}" if first else "blockIdx.x"
    end = blocks.number(first + piece.grid * len(same), free=True)
    shared = ["shared"] if piece.shared else []
    if len(same) == 1:
        words = [*(param.name for param in given), *shared, block, *map(Number.marked, numbers)]
        call = f"{function}({', '.join(words)})"
        yield f"  {call};" if last else f"  if (blockIdx.x < {end}) return {call};"
        return
    yield "  {" if last else f"  if (blockIdx.x < {end}) {{"
    names = [f"a{number}" for number in range(len(given))]
    given_numbers = [f"n{number}" for number in range(len(numbers))]
    for name, param in zip(names, given):
        yield f"    {declared(replace(param, name=name))};"
    for name, number in zip(given_numbers, numbers):
        yield f"    {number.type} {name};"
    grid = blocks.number(piece.grid)
    yield f"    const unsigned int block = {block};"
    yield f"    switch (block / {grid}) {{"
    for at, (_, params, own) in enumerate(same):
        label = "default" if at == len(same) - 1 else f"case {at}"
        values = [*(param.name for param in params), *map(Number.marked, own)]
        pairs = zip((*names, *given_numbers), values, strict=True)
        taken = " ".join(f"{name} = {value};" for name, value in pairs)
        yield f"      {label}: {taken} break;"
    yield "    }"
    words = [*names, *shared, f"block % {grid}", *given_numbers]
    call = f"{function}({', '.join(words)})"
    yield f"    {call};" if last else f"    return {call};"
    yield "  }"
