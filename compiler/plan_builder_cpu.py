"""Plans for the CPU: kernels are scheduled for vectors and threads, and compiled by LLVM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..runtime import jit
from ..runtime.plan import Plan
from ..runtime.plan_steps import BufferRef, KernelStep, LaunchStep, Step
from .codegen.llvm_kernel import KernelText, kernel_text
from .codegen.loader import load_kernels
from .fusion import Group
from .kernel.lower import Lowering
from .kernel.schedule_cpu import Schedule, schedule_cpu
from .plan_builder import PlanBuilder, StepInfo

if TYPE_CHECKING:
    from .plan_builder import AnySchedule


class CpuPlanBuilder(PlanBuilder):
    """Builds the Plan of one fused graph."""

    def build(self, overwritten: Iterable[int] = ()) -> Plan:
        """The plan; its arrays are the graph's inputs, then one array per fresh output.

        Calls may overwrite the inputs `overwritten`: the plan refuses read-only ones.
        """
        self.texts: dict[int, KernelText] = {}
        self.text_of: dict[int, KernelText] = {}  # by id of a schedule, which `patterns` holds
        self.write()
        addresses = load_kernels(self.texts.values())
        steps: list[Step] = []
        for position, step in enumerate(self.steps):
            assert not isinstance(step, LaunchStep)
            if isinstance(step, KernelStep):
                step = replace(step, address=addresses[self.texts[position]])
            steps.append(step)
        written = [self.place[self.graph.inputs[number]].slot for number in overwritten]
        return Plan(steps, self.arena.size, self.slots, self.constants, written)

    def schedule(self, group: Group) -> tuple[Lowering, AnySchedule]:
        """The kernel of a group; rows are saved between stages only in row schedules."""
        lowering = self.fuser.lowering(group, save_rows=False)
        schedule = schedule_cpu(lowering.run())
        if schedule.lane is None and len(lowering.kernel.stages) > 1:
            saving = self.fuser.lowering(group, save_rows=True)
            if saving.run().scratch:
                return saving, schedule_cpu(saving.kernel)
        return lowering, schedule

    def write_kernel(
        self, info: StepInfo, schedule: AnySchedule, args: tuple[BufferRef, ...]
    ) -> None:
        assert isinstance(schedule, Schedule)
        text = self.text_of.get(id(schedule))
        if text is None:
            text = self.text_of[id(schedule)] = kernel_text(schedule, jit.vector_bytes())
        self.texts[len(self.steps)] = text
        self.steps.append(KernelStep(info.name, 0, args, schedule.extent, schedule.grain))
