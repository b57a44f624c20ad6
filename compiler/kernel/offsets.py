"""Kernels that read or write a part of a buffer, as if the buffer began where the part does.

The steps of a loop over time differ in where they read alone. Without that number their kernels are
one text, and are compiled once.
"""

from __future__ import annotations

from ...runtime.records import replace
from .kernel import Instr, Kernel, Stage


def without_offsets(kernel: Kernel) -> tuple[Kernel, tuple[int, ...]]:
    """A kernel whose parameters begin so many elements later."""
    lowest: dict[int, int] = {}
    for instr in kernel.instructions():
        if instr.op in ("load", "store"):
            assert instr.index is not None
            at = instr.index.const
            lowest[instr.param] = min(at, lowest.get(instr.param, at))
    offsets = tuple(
        low if 0 < (low := lowest.get(number, 0)) < param.elements else 0
        for number, param in enumerate(kernel.params)
    )
    if not any(offsets):
        return kernel, offsets
    return replace(kernel, stages=tuple(_moved(each, offsets) for each in kernel.stages)), offsets


def _moved(stage: Stage, offsets: tuple[int, ...]) -> Stage:
    def moved(instr: Instr) -> Instr:
        if instr.op not in ("load", "store") or not offsets[instr.param]:
            return instr
        assert instr.index is not None
        return replace(instr, index=instr.index - offsets[instr.param])

    return replace(stage, body=tuple(map(moved, stage.body)))
