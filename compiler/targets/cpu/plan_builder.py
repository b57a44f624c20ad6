"""Plans for the CPU: kernels are scheduled for vectors and threads, and compiled by LLVM."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from ....runtime import interrupts, jit
from ....runtime.memo import Memo
from ....runtime.plan_gemm import product_summary
from ....runtime.plan_steps import (
    BufferRef,
    CopyStep,
    GemmStep,
    KernelStep,
)
from ....runtime.records import replace
from ...fusion.fused_graph import FusedGraph, Group
from ...fusion.fusion import fuse
from ...ir import Family, Graph, Node
from ...ir import primitives as p
from ...kernel.checks import Checks
from ...kernel.kernel_work import moved_bytes, operations
from ...kernel.lower import Lowering
from ...kernel.offsets import without_offsets
from ...kernel.scatter_parts import ScatterPart, checks_of, copies_base, scatter_parts
from ...kernel.scheduled_kernel import KernelSchedule, ScheduledKernel
from ...plan.arena import Space
from ...plan.control_flow import Surroundings
from ...plan.pattern import Piece
from ...plan.plan_builder import PlanBuilder
from ...plan.planning import Planning
from ...plan.step_info import LibraryStep, StepInfo
from .contraction_schedule import (
    ContractionSchedule,
    contraction_summary,
    schedule_contraction,
)
from .kernel_writer import kernel_text, schedule_summary
from .module_text import KernelText
from .packed_panels import (
    Operand,
    can_share,
    fixed_operands,
    operand_of,
    packing_step,
    panels_summary,
    shared_operands,
    with_panels,
)
from .rules import CpuRules
from .schedule import Schedule, schedule_cpu

# By the id of a schedule, which is held, and the size of vectors; with where parameters begin.
_texts: Memo[tuple[int, int], tuple[Schedule, KernelText, tuple[int, ...]]] = Memo(4_000)

_ATTENTION = frozenset((p.attention, p.attention_rows, p.attention_gradient))
# What native code computes that is no kernel, beside attention.
_NATIVE = (Family.SEVERAL, Family.SORT, Family.SPARSE, Family.LIBRARY)


class CpuPlanBuilder(PlanBuilder):
    """Builds the Plan of one fused graph."""

    def __init__(
        self,
        fused: FusedGraph,
        donate: Mapping[int, int],
        begin: Callable[[KernelText], None] | None = None,
        within: Surroundings | None = None,
        space: Space | None = None,
    ) -> None:
        super().__init__(fused, donate, within, space)
        self.begin = begin
        self.texts: dict[int, KernelText] = {}
        self.library_checks: dict[int, Checks] = {}
        self.sharers = shared_operands(self.graph)
        self.panels: dict[Operand, BufferRef] = {}
        self.fixed_panels: dict[Operand, BufferRef] = {}  # of what no turn of a loop changes

    def build(self) -> None:
        """Write all steps; `begin` is told of each kernel, and `texts` has them by their steps."""
        _begin_attention(self.graph)
        self.place_outputs()
        self.write()
        self._tell_of_copies()

    def inner(
        self, node: Node, graph: Graph, donate: Mapping[int, int], within: Surroundings
    ) -> CpuPlanBuilder:
        planning = Planning(graph, donate, machine=CpuRules.machine)
        rules = CpuRules(
            planning.planned, planning.inputs, planning.overwriting, self.fused.rules.contractions
        )
        fused = fuse(rules)
        _begin_attention(fused.graph)
        kept = replace(within, outputs=tuple(within.outputs[at] for at in planning.kept))
        return CpuPlanBuilder(fused, planning.places, self.begin, kept)

    def add_steps(self, inner: PlanBuilder) -> None:
        assert isinstance(inner, CpuPlanBuilder)
        first = len(self.steps)
        self.texts |= {first + at: text for at, text in inner.texts.items()}
        self.library_checks |= {first + at: each for at, each in inner.library_checks.items()}
        super().add_steps(inner)

    def _tell_of_copies(self) -> None:
        for number, step in enumerate(self.steps):
            if isinstance(step, CopyStep) and number not in self.info_of_step:
                info = StepInfo(step.name, "copy", (), (), 2 * step.nbytes, 0)
                self.info_of_step[number] = info
                self.infos.append(info)

    @property
    def variant(self) -> Hashable:
        return CpuPlanBuilder

    def schedule(self, group: Group) -> tuple[Lowering, KernelSchedule]:
        """The kernel of a group; rows are saved between stages only in row schedules."""
        lowering = self.fused.lowering(group, save_rows=False)
        if group.kind == "contraction":
            return lowering, schedule_contraction(lowering.run())
        schedule = schedule_cpu(lowering.run())
        if schedule.lane is None and lowering.can_save:
            saving = self.fused.lowering(group, save_rows=True)
            return saving, schedule_cpu(saving.run())
        return lowering, schedule

    def tell_kernel(self, schedule: ScheduledKernel) -> str:
        """The kernel is written once more, as what is told stands in no other place."""
        if isinstance(schedule, ContractionSchedule):
            return contraction_summary(schedule)
        assert isinstance(schedule, Schedule)
        return schedule_summary(schedule, jit.vector_bytes())

    def tell_product(self, step: GemmStep) -> str:
        return product_summary(step)

    def library_step(self, node: Node) -> LibraryStep:
        if node.primitive in _ATTENTION or node.primitive.family in _NATIVE:
            with interrupts.held():
                from .native_steps import step_of

            if (native := step_of(self, node)) is not None:
                return native
        found = super().library_step(node)
        if isinstance(found.step, GemmStep) and self._shares_panels(node, found.step):
            step = with_panels(found.step, self._panels(node, found.step))
            return found._replace(step=step, tell=partial(self.tell_product, step))
        return found

    def reserve(self, fixed: Sequence[Node], take: Callable[[int], BufferRef]) -> None:
        """Matrices that products of each turn multiply are packed once, before the loop."""
        for operand in fixed_operands(self.graph, fixed):
            self.fixed_panels[operand] = take(operand[0].type.nbytes)

    def _shares_panels(self, node: Node, step: GemmStep) -> bool:
        operand = operand_of(node)
        is_shared = operand in self.fixed_panels or self.sharers[operand] > 0
        return is_shared and can_share(node, step)

    def _panels(self, node: Node, step: GemmStep) -> BufferRef:
        """Where the second operand of a product lies packed, which is done for the first one.

        With the last one the memory is given back: what comes to lie there is written after it ran.
        """
        operand = operand_of(node)
        nbytes, tell = operand[0].type.nbytes, partial(panels_summary, operand[0])
        info = StepInfo("pack", "pack", operand[:1], (), 2 * nbytes, 0, tell=tell)
        fixed = self.fixed_panels.get(operand)
        if fixed is not None:
            if operand not in self.panels:
                self.panels[operand] = fixed
                self.early_steps.append(packing_step(step, fixed))
                self.early_infos.append(info)
            return fixed
        if operand not in self.panels:
            self.panels[operand] = self.arena.take(nbytes, operand)
            self.info_of_step[len(self.steps)] = info
            self.steps.append(packing_step(step, self.panels[operand]))
            self.infos.append(info)
        self.sharers[operand] -= 1
        if not self.sharers[operand]:
            self.arena.release(operand)
        return self.panels[operand]

    # -- scatters ------------------------------------------------------------------------

    def kernels_of(self, group: Group) -> list[Piece]:
        """A scatter may come in several kernels, without its base where it is in that's memory."""
        if group.kind != "scatter":
            return super().kernels_of(group)
        pattern, nodes, _ = self.scheduled(group)
        replaced = self.in_place.get(group.roots[0].node)
        on_base = replaced is not None and replaced in nodes
        is_checked = group in self.checked_early
        return self._of_scatter(
            group, (on_base, is_checked), lambda: scatter_parts(pattern.kernel, on_base, is_checked)
        )

    def early_checks(self, group: Group) -> list[Piece]:
        if group.kind != "scatter":
            return []
        checks = checks_of(self.scheduled(group).pattern.kernel)
        return [] if checks is None else self._of_scatter(group, "checks", lambda: [checks])

    def _of_scatter(
        self, group: Group, which: Any, parts: Callable[[], list[ScatterPart]]
    ) -> list[Piece]:
        """Some parts of a scatter, made once for each structure of groups."""
        pattern, nodes, _ = self.scheduled(group)
        found: list[tuple[ScatterPart, Schedule]] | None = pattern.parts.get(which)
        if found is None:
            found = [(part, schedule_cpu(part.kernel)) for part in parts()]
            pattern.parts[which] = found
        return [
            Piece(
                part.role, part.kernel, schedule, [nodes[at] for at in part.params],
                moved_bytes(part.kernel), operations(part.kernel),
            )
            for part, schedule in found
        ]  # fmt: skip

    def scatters_into(self, group: Group, node: Node, replaced: Node) -> bool:
        pattern, nodes, _ = self.scheduled(group)
        if replaced not in nodes:
            return replaced not in group.reads
        return copies_base(pattern.kernel, nodes.index(replaced), nodes.index(node))

    def write_kernel(
        self, info: StepInfo, schedule: ScheduledKernel, args: tuple[BufferRef, ...]
    ) -> None:
        if isinstance(schedule, ContractionSchedule):
            then = self._kernel_step(info, schedule.parts.epilogue, schedule.arguments(args))
            self.steps.append(schedule.step(info.name, args, then))
            return
        assert isinstance(schedule, Schedule)
        self.steps.append(self._kernel_step(info, schedule, args))

    def _kernel_step(
        self, info: StepInfo, schedule: Schedule, args: tuple[BufferRef, ...]
    ) -> KernelStep:
        """The step of a kernel, whose text is noted for the step that is written next."""
        key = id(schedule), jit.vector_bytes()
        found = _texts.get(key)
        if found is None:
            kernel, offsets = without_offsets(schedule.kernel)
            text = kernel_text(replace(schedule, kernel=kernel), key[1])
            found = _texts.keep(key, (schedule, text, offsets))
        _, text, offsets = found
        args = tuple(
            BufferRef(ref.slot, ref.offset + offset * param.dtype.itemsize) if offset else ref
            for ref, offset, param in zip(args, offsets, schedule.kernel.params)
        )
        if self.begin is not None:
            self.begin(text)
        self.texts[len(self.steps)] = text
        return KernelStep(info.name, 0, args, schedule.extent, schedule.grain)


def _begin_attention(graph: Graph) -> None:
    """Begin to compile what steps of attention call, if `graph` has any."""
    if graph.primitives.isdisjoint(_ATTENTION):
        return
    with interrupts.held():
        from .attention_step import begin_attention

    begin_attention(graph)
