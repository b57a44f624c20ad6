"""What a kernel does, counted from its instructions: operations, and bytes that must move."""

from __future__ import annotations

from math import prod

from ..ir.size_number import computed
from .cost import cost
from .dependences import dependences
from .kernel import Kernel


def operations(kernel: Kernel) -> int:
    """Operations with multiplicity: each stands in the outermost loop that it allows."""
    total = 0
    for stage in kernel.stages:
        loops = [*kernel.rows, *stage.axes]
        for instr, axes in zip(stage.body, dependences(kernel, stage, kernel.rows), strict=True):
            if instr.op in ("load", "store", "const", "index"):
                continue
            needed = [at + 1 for at, axis in enumerate(loops) if axes is None or axis in axes]
            total += cost(instr) * prod(axis.size for axis in loops[: max(needed, default=0)])
    return total


def moved_bytes(kernel: Kernel) -> int:
    """Bytes that must move at least: what is accessed of each buffer, every element once."""
    rows = prod(axis.size for axis in kernel.rows)
    accesses = [0] * len(kernel.params)
    for stage in kernel.stages:
        steps = rows * prod(axis.size for axis in stage.axes)
        for instr in stage.body:
            if instr.op in ("load", "store"):
                accesses[instr.param] += steps
    return sum(
        computed(min, count, param.elements) * param.dtype.itemsize
        for count, param in zip(accesses, kernel.params, strict=True)
    )
