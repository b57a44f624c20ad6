"""Plans for CUDA: kernels become one module of CUDA C, and steps its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.dtypes import uint8
from ..runtime.plan_steps import STATUS_SLOT, BufferRef, CopyStep, LaunchStep
from .codegen.cuda_kernel import (
    COPY_BLOCK,
    COPY_BYTES,
    guarded_copy_text,
    kernel_text,
    module_text,
)
from .fusion import Group
from .fusion_cuda import CudaFuser
from .ir import Node, TensorType, input_node
from .kernel.kernel import Check
from .kernel.lower import Lowering
from .kernel.schedule_cuda import CudaSchedule, Layout, registers_suffice, schedule_cuda
from .kernel.template import TemplateSchedule
from .plan_builder import PlanBuilder, StepInfo
from .plan_builder_templates import Workspace, template_launches

if TYPE_CHECKING:
    from .plan_builder import AnySchedule


class CudaPlanBuilder(PlanBuilder):
    """Builds the module and the steps of one fused graph."""

    products = ("float32", "float64", "float16", "bfloat16")
    alignment = 256
    fuser: CudaFuser

    def build(self) -> str:
        """The module's text; `steps`, `arena`, `slots` and `constants` are the rest of the plan.

        `checks` are those of all kernels: the status has the number of one of them.
        """
        self.texts: list[str] = []
        self.checks: list[Check] = []
        self.write()
        self._guard_copies()
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
        self,
        info: StepInfo,
        schedule: AnySchedule | TemplateSchedule,
        args: tuple[BufferRef, ...],
    ) -> None:
        assert isinstance(schedule, (CudaSchedule, TemplateSchedule))
        first_check = len(self.checks)
        guarded = bool(self.checks) and any(
            ref.slot in self._overwritten
            for ref, param in zip(args, schedule.kernel.params)
            if param.written
        )
        self.texts.append(kernel_text(schedule, info.name, _comments(info), first_check, guarded))
        self.checks += schedule.kernel.checks
        args = (*args, BufferRef(STATUS_SLOT)) if guarded else args
        self.steps.append(LaunchStep(info.name, args, schedule.grid, schedule.block))

    @property
    def _overwritten(self) -> set[int]:
        """The slots of inputs whose memory outputs take."""
        return {1 + source for source in self.donate.values()}

    def _reads_in_step(self, group: Group, node: Node, replaced: Node) -> bool:
        """One thread must read and write an element: others wait for nobody."""
        schedule = self._scheduled(group)[-1]
        pointwise = isinstance(schedule, CudaSchedule) and schedule.layout is Layout.POINTWISE
        return pointwise and super()._reads_in_step(group, node, replaced)

    def _guard_copies(self) -> None:
        """Where checks can fail, what overwrites inputs asks first whether one has."""
        for number, step in enumerate(self.steps):
            if not (isinstance(step, CopyStep) and self.checks):
                continue
            if step.dst.slot in self._overwritten:
                name = f"copy{number}_{step.nbytes}"
                self.texts.append(guarded_copy_text(name, step.nbytes))
                args = (step.src, step.dst, BufferRef(STATUS_SLOT))
                grid = -(-step.nbytes // (COPY_BLOCK * COPY_BYTES))
                self.steps[number] = LaunchStep(name, args, grid, (COPY_BLOCK, 1))

    def _write_step(self, node: Node) -> None:
        """A step that hand-written kernels make is some launches over memory of their own."""
        if not self.fuser.is_template(node):
            super()._write_step(node)
            return
        stem = f"k{self.position[self.fuser.group_of[node]]}_{node.primitive.name}"
        own: dict[Workspace, Node] = {}
        launches = template_launches(self.fuser, node)
        for launch in launches:
            name = "_".join(filter(None, (stem, launch.name)))
            schedule = launch.schedule
            outputs = (node,) if launch is launches[-1] else ()
            info = StepInfo(
                name, "kernel", (node,), outputs, launch.bytes, launch.flops,
                schedule.kernel, schedule,
            )  # fmt: skip
            self.infos.append(info)
            self.kernel_of_step[len(self.steps)] = info
            self.write_kernel(info, schedule, tuple(self._place_of(a, own) for a in launch.args))
        for key in own.values():
            self.arena.release(key)

    def _place_of(self, argument: Node | Workspace | None, own: dict[Workspace, Node]) -> BufferRef:
        if argument is None:
            return BufferRef(STATUS_SLOT)
        if isinstance(argument, Workspace):
            if argument not in own:
                key = own[argument] = input_node(
                    argument.name, TensorType((argument.nbytes,), uint8)
                )
                self.place[key] = self.arena.take(argument.nbytes, key)
            argument = own[argument]
        return self.place[argument]


def _comments(info: StepInfo) -> list[str]:
    """The operations of a kernel by the user's lines, in the order of the program."""
    lines: dict[str, dict[str, None]] = {}
    for node in info.nodes:
        lines.setdefault(_place(node), {})[node.primitive.name] = None
    return [f"{place}: {', '.join(names)}" if place else ", ".join(names)
            for place, names in lines.items()]  # fmt: skip


def _place(node: Node) -> str:
    return str(node.where) if node.where.file else ""
