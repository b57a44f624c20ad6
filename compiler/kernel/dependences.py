"""Which loops the value of an instruction depends on, and so how far out it can be computed."""

from __future__ import annotations

from collections.abc import Collection

from .index import Axis, loop_atoms
from .kernel import Kernel, Stage

_STAY = frozenset(("store", "reduce", "contract", "scan", "save", "saved"))


def dependences(
    kernel: Kernel, stage: Stage, result_axes: Collection[Axis] = ()
) -> list[frozenset[Axis] | None]:
    """For each instruction the axes that its value depends on; None where it must stay inside.

    `result_axes` are those along which results of reductions differ though the kernel does not
    say so: the lanes of a tile.
    """
    found: list[frozenset[Axis] | None] = []
    for instr in stage.body:
        axes: frozenset[Axis] = frozenset()
        stays = instr.op in _STAY or (instr.op == "load" and kernel.params[instr.param].written)
        if instr.op == "result":
            axes = axes.union(result_axes)
        for index in instr.indices:
            axes |= loop_atoms(index)
        for source in instr.sources:
            inner = found[source]
            if inner is None:
                stays = True
            elif not inner <= axes:
                axes |= inner
        found.append(None if stays else axes)
    return found
