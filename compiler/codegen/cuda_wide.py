"""Several small kernels as one: the blocks of a launch are shared out among them.

A launch costs as long as a small kernel runs. Kernels that do not wait for each other become
functions, and one kernel calls the function that a block's number belongs to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from ..kernel.kernel import Kernel, Param
from ..kernel.template import TemplateSchedule, kernel_without_loops
from .cuda_scalar import memory_type

SHARED = "unsigned char* shared"


@dataclass(frozen=True, eq=False)
class Piece:
    """A kernel that can be launched alone or be a part of another.

    `write(True)` gives its text as a function that takes the number of its block as its last
    parameter, `write(False)` as a kernel. `shared` is the shared memory that it needs, in bytes: a
    kernel declares it, a function takes it before the number of the block. `kernel` is the loop
    program that it was made from; a copy has none.
    """

    name: str
    params: tuple[Param, ...]
    grid: int
    block: tuple[int, int]
    shared: int
    write: Callable[[bool], str]
    kernel: Kernel | None = None


@dataclass(frozen=True)
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


def wide_text(schedule: WideSchedule) -> str:
    """The functions of the pieces, and the kernel that calls them."""
    params = schedule.kernel.params
    lines = [
        f'extern "C" __global__ void __launch_bounds__({prod(schedule.block)}) {schedule.name}(',
        ",\n".join(f"    {declared(param)}" for param in params) + ") {",
    ]
    first, at = 0, 0
    if shared := max(piece.shared for piece in schedule.pieces):
        lines.append(f"  __shared__ __align__(16) unsigned char shared[{shared}];")
    for piece in schedule.pieces:
        names = [param.name for param in params[at : at + len(piece.params)]]
        block = f"blockIdx.x - {first}" if first else "blockIdx.x"
        given = [*names, "shared", block] if piece.shared else [*names, block]
        call = f"{piece.name}({', '.join(given)})"
        first += piece.grid
        at += len(piece.params)
        last = piece is schedule.pieces[-1]
        lines.append(f"  {call};" if last else f"  if (blockIdx.x < {first}) return {call};")
    kernel = "\n".join([*lines, "}", ""])
    return "\n".join([*(piece.write(True) for piece in schedule.pieces), kernel])


def declared(param: Param) -> str:
    """The declaration of a parameter."""
    const = "" if param.written else "const "
    return f"{const}{memory_type(param.dtype)}* __restrict__ {param.name}"
