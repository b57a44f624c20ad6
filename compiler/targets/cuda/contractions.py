"""Contractions on CUDA: reuse tiles in shared memory, whose results go through the epilogue.

As a loop program a contraction is a sum of products of which every element is wanted by many
results, which is what reuse tiles are for: tiles of both operands in shared memory, and up to 16
results of a thread in registers, from which the stages behind go on. They use no tensor cores, and
none has been measured on a GPU. So products stay cublasLt's, and kernels are asked for only by who
measures them (`CudaProgram`, `python -m benchmarks.gpu --only epilogues`).
"""

from __future__ import annotations

from ....runtime.records import replace
from ...ir.monoids import SUM
from ...kernel.kernel import Instr, Kernel, Stage
from ...kernel.kernel_io import CannotFuse
from .schedule import CudaSchedule, Layout, schedule_cuda


def schedule_contraction(kernel: Kernel) -> CudaSchedule:
    """The schedule of a kernel with a contraction; CannotFuse where its results make no tiles."""
    schedule = schedule_cuda(with_sums(kernel))
    if schedule.layout is not Layout.REUSE_TILE:
        raise CannotFuse("the results of the product make no tiles that would be worth it")
    return schedule


def with_sums(kernel: Kernel) -> Kernel:
    """The same kernel, whose contractions are reductions of products."""
    return replace(kernel, stages=tuple(map(_summed, kernel.stages)))


def _summed(stage: Stage) -> Stage:
    contract = stage.contraction
    if contract is None:
        return stage
    before = stage.body[:-1]
    assert stage.body[-1] is contract, "a stage ends with its contraction"
    product = Instr("mul", contract.args, contract.dtype)
    total = Instr("reduce", (len(before),), contract.dtype, value=(contract.value, SUM))
    return Stage(stage.axes, (*before, product, total))
