"""The CPU: vectors and threads, by machine code of LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from ....runtime import interrupts
from ... import pipeline
from ...ir import Graph
from ...plan.plan_sizes import PlanSizes
from ...plan.request import Request
from ...plan.sized_plan import SizedPlan
from ..target import Target
from .executable import CpuExecutable
from .loader import KernelLoader
from .program import CpuProgram


class CpuTarget(Target[CpuProgram]):
    """Graphs on the CPU, each of which has a target of its own.

    Kernels are compiled in threads, beginning while the program is still being written.
    """

    def __init__(self) -> None:
        self.loader = KernelLoader()

    @property
    def passes(self) -> Sequence[pipeline.Pass]:
        return pipeline.PASSES

    def program(self, optimized: Graph, request: Request) -> CpuProgram:
        self.loader = KernelLoader(request.varying)
        return CpuProgram(
            optimized,
            request.donate,
            request.real_strides,
            request.overwritten,
            self.loader.add,
            request.types,
        )

    def sized(self, request: Request, sizes: PlanSizes) -> SizedPlan:
        with interrupts.held():
            from .sized_program import sized_plan

        return sized_plan(pipeline.optimize(request.graph, passes=self.passes), request, sizes)

    def load(self, program: CpuProgram, request: Request) -> CpuExecutable:
        return CpuExecutable(program, self.loader)
