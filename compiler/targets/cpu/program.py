"""A graph as it runs on the CPU, before its kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ....runtime.plan_steps import CudaStep, KernelStep, Step
from ... import pipeline
from ...fusion.fusion import fuse
from ...ir import Graph, TensorType
from ...kernel.checks import Checks
from ...moved_graph import with_one_host
from ...placement import is_on_cpu
from ...plan.arena import Space
from ...plan.planning import Planning
from ...plan.program import Program
from .module_text import KernelText, kernels_module
from .plan_builder import CpuPlanBuilder
from .rules import CpuRules


def cpu_program(graph: Graph) -> CpuProgram:
    """The program of a graph as it was traced; ValueError where other devices compute, too."""
    graph = with_one_host(graph)
    if not is_on_cpu(graph):
        raise ValueError("program: the function computes on other devices than the CPU, too")
    return CpuProgram(pipeline.optimize(graph))


class CpuProgram(Program):
    """An optimised graph as steps of a plan, with the LLVM text of its kernels.

    `donate` maps outputs to the inputs that they replace; `overwritten` are other inputs that are
    written by who calls the plan. `begin` is told of each kernel as soon as it is written. `texts`
    are the kernels by the numbers of their steps, which have no address yet, `library_checks` what
    steps of LAPACK check. `types` are those of results, where they are not the graph's (see
    `Planning`). Without `epilogues`, matrix products do nothing else. Calls refuse inputs in the
    slots `written` that are read-only, and those in `dense` that have gaps.
    """

    title = "program for a CPU"
    ending = ".ll"

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        overwritten: Iterable[int] = (),
        begin: Callable[[KernelText], None] | None = None,
        types: Sequence[TensorType] | None = None,
        epilogues: bool = True,
        space: Space | None = None,
    ) -> None:
        planning = Planning(graph, donate, strides, types, machine=CpuRules.machine)
        rules = CpuRules(planning.planned, planning.inputs, planning.overwriting, epilogues)
        fused = fuse(rules)
        builder = CpuPlanBuilder(fused, planning.places, begin, space=space)
        builder.build()
        super().__init__(planning, fused.refusals, builder)
        self.texts: Mapping[int, KernelText] = builder.texts
        self.library_checks: Mapping[int, Checks] = builder.library_checks
        elements = [node.type.numel for node in graph.inputs]
        written = {*overwritten, *planning.donate.values()}
        self.written = [1 + number for number in written if elements[number]]
        self.dense = [
            1 + number
            for number, node in enumerate(planning.planned.inputs)
            if node not in planning.inputs
        ]

    @property
    def checks(self) -> dict[int, Checks]:
        """What steps check, by their numbers."""
        found: dict[int, Checks] = {
            number: info.kernel.checks
            for number, info in self.info_of_step.items()
            if info.kernel is not None and info.kernel.checks
        }
        found.update(self.library_checks)
        return found

    @property
    def source(self) -> str:
        named = {text: self.info_of_step[number].name for number, text in self.texts.items()}
        return kernels_module({name: text for text, name in named.items()})

    def step_line(self, number: int, step: Step | CudaStep) -> str:
        info = self.info_of_step.get(number)
        if not isinstance(step, KernelStep) or info is None or info.schedule is None:
            return super().step_line(number, step)
        return f"kernel {step.name}({self.arguments(info, step.args)}) extent {step.extent}"
