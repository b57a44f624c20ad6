"""Plans for CUDA: kernels become one module of CUDA C, and steps its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.plan_steps import BufferRef, LaunchStep
from .codegen.cuda_kernel import kernel_text, module_text
from .fusion import Group
from .ir import Node
from .kernel.kernel import Check
from .kernel.lower import Lowering
from .kernel.schedule_cuda import CudaSchedule, registers_suffice, schedule_cuda
from .plan_builder import PlanBuilder, StepInfo

if TYPE_CHECKING:
    from .plan_builder import AnySchedule


class CudaPlanBuilder(PlanBuilder):
    """Builds the module and the steps of one fused graph."""

    alignment = 256

    def build(self) -> str:
        """The module's text; `steps`, `arena`, `slots` and `constants` are the rest of the plan.

        `checks` are those of all kernels: the status has the number of one of them.
        """
        self.texts: list[str] = []
        self.checks: list[Check] = []
        self.write()
        return module_text(self.texts)

    def schedule(self, group: Group) -> tuple[Lowering, AnySchedule]:
        """The kernel of a group; rows are saved between stages where registers suffice."""
        lowering = self.fuser.lowering(group, save_rows=True)
        schedule = schedule_cuda(lowering.run())
        if not registers_suffice(schedule):
            lowering = self.fuser.lowering(group, save_rows=False)
            schedule = schedule_cuda(lowering.run())
        return lowering, schedule

    def write_kernel(
        self, info: StepInfo, schedule: AnySchedule, args: tuple[BufferRef, ...]
    ) -> None:
        assert isinstance(schedule, CudaSchedule)
        first_check = len(self.checks)
        self.texts.append(kernel_text(schedule, info.name, _comments(info), first_check))
        self.checks += schedule.kernel.checks
        self.steps.append(LaunchStep(info.name, args, schedule.grid, schedule.block))


def _comments(info: StepInfo) -> list[str]:
    """The operations of a kernel by the user's lines, in the order of the program."""
    lines: dict[str, dict[str, None]] = {}
    for node in info.nodes:
        lines.setdefault(_place(node), {})[node.primitive.name] = None
    return [f"{place}: {', '.join(names)}" if place else ", ".join(names)
            for place, names in lines.items()]  # fmt: skip


def _place(node: Node) -> str:
    return str(node.where) if node.where.file else ""
