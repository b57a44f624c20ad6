"""Plans for CUDA: kernels become one module of CUDA C, and steps its launches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from functools import partial
from math import prod
from typing import TypeGuard

from ....runtime.cuda import segments
from ....runtime.dtypes import uint8
from ....runtime.plan_gemm import sizes
from ....runtime.plan_steps import (
    STATUS_SLOT,
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    LaunchStep,
    RoutineStep,
    Step,
)
from ....runtime.records import replace
from ...fusion.fused_graph import FusedGraph, Group
from ...fusion.fusion import fuse
from ...ir import Family, Graph, Node, TensorType, input_node
from ...ir import primitives as p
from ...ir.turns import known_turns
from ...kernel.checks import Check, RoutineCheck
from ...kernel.kernel_io import Root
from ...kernel.kernel_work import moved_bytes, operations
from ...kernel.lower import Lowering
from ...kernel.scatter_parts import copies_base, scatter_parts
from ...kernel.scheduled_kernel import KernelSchedule, ScheduledKernel
from ...plan.control_flow import Surroundings
from ...plan.library_steps import routine_check, routine_step
from ...plan.pattern import Piece as GroupPiece
from ...plan.planning import Planning
from ...plan.step_info import LibraryStep, StepInfo
from .biases import Bias, with_biases
from .contractions import schedule_contraction
from .joined_steps import JoinedSteps
from .kernel_writer import (
    GUARD,
    NEEDED_BY_ALL,
    kernel_text,
)
from .module_text import CudaModule
from .rules import CudaRules
from .schedule import CudaSchedule, Layout, rows_fit, schedule_cuda
from .template import TemplateSchedule
from .template_launches import Workspace, template_launches
from .wide_kernels import Piece, WideSchedule


class CudaPlanBuilder(JoinedSteps):
    """Builds the module and the steps of one fused graph.

    A block may ask for `shared` bytes of shared memory. `varying` says that numbers in the texts
    may be parameters (`varying_numbers.py`). Unless arrays are `aligned`, they may begin at any
    element. `by_value` are inputs of the graph that kernels get in their launches. Without `biases`
    products add none. The builder of a graph inside a branch or a loop is one of `around`, whose
    module and checks it adds to.
    """

    products = ("float32", "float64", "float16", "bfloat16")
    alignment = 256
    never_reused = 4096  # else small kernels wait for others whose memory they take over
    counts_turns = True

    def __init__(
        self,
        fused: FusedGraph,
        biases: Mapping[Node, Bias] | None,
        donate: Mapping[int, int],
        shared: int,
        varying: bool = False,
        aligned: bool = True,
        by_value: Sequence[Node] = (),
        within: Surroundings | None = None,
        around: CudaPlanBuilder | None = None,
    ) -> None:
        module = CudaModule() if around is None else around.module
        checks: list[Check | RoutineCheck] = [] if around is None else around.checks
        super().__init__(fused, donate, within, module, checks, varying)
        self.biases, self.has_biases = biases or {}, biases is not None
        self.shared, self.aligned = shared, aligned
        self.by_value = {self.place[node].slot for node in by_value}

    def build(self) -> str:
        """The module's text; `steps`, `arena`, `slots` and `constants` are the rest of the plan.

        `checks` are those of all steps: the status has the number of one of them.
        """
        self.place_outputs()
        self.write()
        return self.module.text()

    def inner(
        self, node: Node, graph: Graph, donate: Mapping[int, int], within: Surroundings
    ) -> CudaPlanBuilder:
        planning = Planning(graph, donate, machine=CudaRules.machine)
        contractions = self.fused.rules.contractions
        planned = planning.planned, planning.inputs, planning.overwriting
        fused, biases = fuse(CudaRules(*planned, contractions)), None
        if self.has_biases:
            fused, biases = with_biases(fused)
        kept = replace(within, outputs=tuple(within.outputs[at] for at in planning.kept))
        return CudaPlanBuilder(
            fused, biases, planning.places, self.shared, self.varying, self.aligned, (), kept, self
        )

    def turns_at_once(self, turns: int, steps: Sequence[Step | CudaStep]) -> int:
        """As many as fit into one graph, and bring the state back to where it was."""
        stops, count = segments.weighed(steps)
        fitting = segments.MOST_STEPS // max(count, 1) // 2 * 2
        return turns if stops or not fitting else min(turns, fitting)

    def tell_control(self, node: Node) -> str:
        if node.primitive is p.branch:
            return "Python launches what is chosen, and waits for the number that decides"
        turns = known_turns(node)
        if turns is None:
            return "Python launches each turn, and waits for the condition"
        return f"{turns:,} turns, for which nobody waits"

    def _write_control(self, node: Node) -> None:
        first = len(self.steps)
        super()._write_control(node)
        while isinstance(self.steps[first], CopyStep):  # of state, which others may join
            del self.info_of_step[first]
            first += 1
        self.inside.append(range(first, len(self.steps)))

    @property
    def variant(self) -> Hashable:
        return CudaPlanBuilder, self.shared, self.aligned

    def schedule(self, group: Group) -> tuple[Lowering, KernelSchedule]:
        """The kernel of a group; rows are saved between stages where registers suffice."""
        if group.kind == "contraction":
            lowering = self.fused.lowering(group, save_rows=False)
            return lowering, schedule_contraction(lowering.run())
        lowering = self.fused.lowering(group, save_rows=True)
        kernel = lowering.run()
        schedule = schedule_cuda(kernel, 0 if kernel.scratch else self.shared, self.aligned)
        if not rows_fit(schedule):
            lowering = self.fused.lowering(group, save_rows=False)
            schedule = schedule_cuda(lowering.run(), self.shared, self.aligned)
        return lowering, schedule

    def write_kernel(
        self,
        info: StepInfo,
        schedule: ScheduledKernel,
        args: tuple[BufferRef, ...],
    ) -> None:
        assert isinstance(schedule, (CudaSchedule, TemplateSchedule))
        if isinstance(schedule, CudaSchedule) and any(ref.slot in self.by_value for ref in args):
            schedule = self._with_values(schedule, args)
            info = self.info_of_step[len(self.steps)] = self._changed(info, schedule=schedule)
        first_check = len(self.checks)
        guarded = bool(self.checks) and any(
            ref.slot in self._overwritten
            for ref, param in zip(args, schedule.kernel.params)
            if param.written
        )
        comments = tuple(_comments(info))

        def write(name: str, as_function: bool) -> str:
            return kernel_text(schedule, name, first_check, guarded, as_function, self.varying)

        self.checks += schedule.kernel.checks
        params = (*schedule.kernel.params, GUARD) if guarded else schedule.kernel.params
        self.params[len(self.steps)] = params
        name, numbers = info.name, tuple[int, ...]()
        if _can_be_joined(schedule):
            self.pieces[len(self.steps)] = Piece(
                info.name,
                params,
                schedule.grid,
                schedule.block,
                schedule.joined,
                write,
                comments,
                schedule.kernel,
            )
        else:
            written = self.module.add(name, comments, partial(write, as_function=False))
            name, numbers = written.name, written.values
            self.info_of_step[len(self.steps)] = self._renamed(info, name)
        args = (*args, BufferRef(STATUS_SLOT)) if guarded else args
        self.steps.append(
            LaunchStep(name, args, schedule.grid, schedule.block, schedule.shared, numbers)
        )

    def _with_values(self, schedule: CudaSchedule, args: Sequence[BufferRef]) -> CudaSchedule:
        """A schedule whose kernel gets some of its parameters by value."""
        pairs = zip(schedule.kernel.params, args, strict=True)
        params = tuple(replace(each, by_value=ref.slot in self.by_value) for each, ref in pairs)
        return replace(schedule, kernel=replace(schedule.kernel, params=params))

    def tell_kernel(self, schedule: ScheduledKernel) -> str:
        assert isinstance(schedule, (CudaSchedule, TemplateSchedule, WideSchedule))
        return schedule.summary()

    def tell_product(self, step: GemmStep) -> str:
        return f"cuBLAS {sizes(step)}"

    def library_step(self, node: Node) -> LibraryStep:
        if node.primitive.family is not Family.LIBRARY:
            return super().library_step(node)
        check = routine_check(node)
        if check is not None:
            self.checks.append(check)
        site = 0 if check is None else len(self.checks)
        step = routine_step(self.operands, node, self.results(node), site)
        return LibraryStep(step, "library", 0, partial(_routine_summary, step))

    # A scatter inside a loop writes where its base is: what it leaves when a check fails is lost.

    def scatters_into(self, group: Group, node: Node, replaced: Node) -> bool:
        if self.within is None:
            return False
        pattern, nodes, _ = self.scheduled(group)
        if replaced not in nodes:
            return replaced not in group.reads
        return copies_base(pattern.kernel, nodes.index(replaced), nodes.index(node))

    def kernels_of(self, group: Group) -> list[GroupPiece]:
        pattern, nodes, _ = self.scheduled(group)
        replaced = self.in_place.get(group.roots[0].node)
        if group.kind != "scatter" or replaced is None or replaced not in nodes:
            return super().kernels_of(group)
        if "on base" not in pattern.parts:
            (part,) = scatter_parts(pattern.kernel, on_base=True, is_checked=False)
            schedule = schedule_cuda(part.kernel, 0, self.aligned)
            pattern.parts["on base"] = part, schedule, moved_bytes(part.kernel)
        part, schedule, moved = pattern.parts["on base"]
        given = [nodes[at] for at in part.params]
        return [GroupPiece("", part.kernel, schedule, given, moved, operations(part.kernel))]

    def _reads_in_step(self, group: Group, node: Node, replaced: Node) -> bool:
        """The thread that writes an element must be the only one that reads it."""
        if not super()._reads_in_step(group, node, replaced):
            return False
        pattern, nodes, _ = self.scheduled(group)
        schedule = pattern.schedule
        if not isinstance(schedule, CudaSchedule) or replaced not in nodes:
            return False
        both = {nodes.index(node), nodes.index(replaced)}
        return schedule.layout is Layout.POINTWISE or _is_private(schedule, both)

    def _write_step(self, node: Node) -> None:
        """A step that hand-written kernels make is some launches over memory of their own."""
        if node in self.biases:
            self._write_biased(node)
            return
        rules = self.fused.rules
        if not isinstance(rules, CudaRules) or not rules.is_template(node):
            super()._write_step(node)
            return
        prefix = self.within.name if self.within else ""
        stem = f"{prefix}k{self.position[self.fused.group_of[node]]}_{node.primitive.name}"
        own: dict[Workspace, Node] = {}
        launches = template_launches(self.fused, node)
        for launch in launches:
            name = "_".join(filter(None, (stem, launch.name)))
            schedule = launch.schedule
            outputs = (node,) if launch is launches[-1] else ()
            info = StepInfo(
                name, "kernel", (node,), outputs, launch.bytes, launch.flops,
                schedule.kernel, schedule, tell=schedule.summary,
            )  # fmt: skip
            self.infos.append(info)
            self.info_of_step[len(self.steps)] = info
            self.write_kernel(info, schedule, tuple(self._place_of(a, own) for a in launch.args))
        self.written.add(node)
        for key in own.values():
            self.arena.release(key)

    def _write_biased(self, product: Node) -> None:
        """A matrix product that adds a bias to its rows: what it stores is their sum."""
        total, base, offset = self.biases[product]
        self.place[product] = self.place[total]
        super()._write_step(product)
        step, info, place = self.steps[-1], self.infos[-1], self.place[self.in_memory(base)]
        assert isinstance(step, GemmStep)
        bias = BufferRef(place.slot, place.offset + offset)
        self.steps[-1] = replace(step, epilogue="bias", bias=bias)
        moved = info.bytes + step.n * total.type.dtype.itemsize
        nodes = (product, *self.fused.structure(Group((Root(total, ()),), "kernel", ())).inside)
        self.infos[-1] = replace(info, nodes=nodes, outputs=(total,), bytes=moved)
        self.info_of_step[len(self.steps) - 1] = self.infos[-1]
        self.written.add(total)

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


def _routine_summary(step: RoutineStep) -> str:
    """A line for people."""
    *batch, rows, columns = step.operands[0].shape
    matrices = f"{prod(batch):,} matrices" if batch else "1 matrix"
    library = "cuBLAS" if step.primitive == p.triangular_solve.name else "cuSOLVER"
    return f"{library}: {matrices} {rows} x {columns}"


def _can_be_joined(schedule: CudaSchedule | TemplateSchedule) -> TypeGuard[CudaSchedule]:
    """Whether the kernel can be a part of a wider launch, whose shared memory is for joins.

    Blocks that walk are few, and want the registers of threads bounded.
    """
    if not isinstance(schedule, CudaSchedule) or schedule.shared or schedule.walked > 1:
        return False
    return schedule.layout not in (Layout.TRANSPOSED_TILE, Layout.REUSE_TILE)


def _is_private(schedule: CudaSchedule, params: Set[int]) -> bool:
    """Whether every element of these parameters is accessed by one thread, in one stage."""
    touching = [
        stage
        for stage in schedule.kernel.stages
        if any(instr.op in ("load", "store") and instr.param in params for instr in stage.body)
    ]
    if len(touching) != 1 or schedule.layout is Layout.TRANSPOSED_TILE:
        return False
    (stage,) = touching
    if not stage.axes:  # then one thread of a point does it
        return not any(instr.op in NEEDED_BY_ALL for instr in stage.body)
    return all(
        axis in instr.index.terms
        for instr in stage.body
        if instr.op in ("load", "store") and instr.param in params and instr.index is not None
        for axis in stage.axes
    )


def _comments(info: StepInfo) -> list[str]:
    """The operations of a kernel by the user's lines, in the order of the program."""
    lines: dict[str, dict[str, None]] = {}
    for node in info.nodes:
        lines.setdefault(_place(node), {})[node.primitive.name] = None
    return [f"{place}: {', '.join(names)}" if place else ", ".join(names)
            for place, names in lines.items()]  # fmt: skip


def _place(node: Node) -> str:
    return str(node.where) if node.where.file else ""
