"""A compiled graph, with all that can be told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...fusion.fusion import fuse
from ...ir import Graph
from ...plan.planning import Planning
from ...plan.ready_plan import ReadyPlan
from ...plan.step_info import StepInfo
from .plan_builder import CpuPlanBuilder
from .rules import CpuRules


class Executable(ReadyPlan):
    """An optimised graph that has been fused and generated.

    `donate` maps outputs to the inputs that they replace; `overwritten` are the inputs that are
    written, by the plan or by who calls it. `kernels` tells of each step, also of those with
    nothing to do, which the plan does not have; `info_of_step` has what is told by the plan's
    steps. `refused` tells of each fusion that was not made.
    """

    def __init__(
        self,
        graph: Graph,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        overwritten: Iterable[int] = (),
    ) -> None:
        self.planning = Planning(graph, donate, strides, machine=CpuRules.machine)
        self.graph, self.donate = self.planning.graph, self.planning.donate
        fused = fuse(
            CpuRules(self.planning.planned, self.planning.inputs, self.planning.overwriting)
        )
        self.refused = fused.refusals
        builder = CpuPlanBuilder(fused, self.planning.places)
        numel = [node.type.numel for node in graph.inputs]
        written = {*overwritten, *self.donate.values()}
        plan = builder.build(number for number in written if numel[number])
        self.kernels: list[StepInfo] = builder.infos
        self.info_of_step = builder.info_of_step
        checks = {
            number: info.kernel.checks
            for number, info in self.info_of_step.items()
            if info.kernel is not None and info.kernel.checks
        }
        super().__init__(plan, self.planning, checks)

    @property
    def whole(self) -> Executable:
        return self
