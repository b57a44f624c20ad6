"""Which loops the value of an instruction depends on, and so how far out it can be computed."""

from __future__ import annotations

from collections.abc import Collection

from .index import Axis, data_atoms, loop_atoms
from .kernel import Instr, Kernel, Stage


def sources(instr: Instr) -> list[int]:
    """The instructions whose values an instruction uses."""
    return [*instr.args, *(atom.key for index in instr.indices for atom in data_atoms(index))]


def dependences(
    kernel: Kernel, stage: Stage, result_axes: Collection[Axis] = ()
) -> list[frozenset[Axis] | None]:
    """For each instruction the axes that its value depends on; None where it must stay inside.

    `result_axes` are those along which results of reductions differ though the kernel does not
    say so: the lanes of a tile.
    """
    found: list[frozenset[Axis] | None] = []
    for instr in stage.body:
        axes: set[Axis] = set()
        stays = instr.op in ("store", "reduce", "contract", "scan", "save", "saved")
        stays |= instr.op == "load" and kernel.params[instr.param].written
        if instr.op == "result":
            axes.update(result_axes)
        for index in instr.indices:
            axes |= loop_atoms(index)
        for source in sources(instr):
            inner = found[source]
            stays |= inner is None
            axes |= inner or frozenset()
        found.append(None if stays else frozenset(axes))
    return found
