"""Steps of plans for CUDA become launches that do as much as may be at once.

Small kernels that do not wait for each other are one launch, and so are larger ones that are equal.
Small copies are kernels. Nothing passes a branch or a loop, whose own steps were joined by the
builders of the graphs inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ....runtime.plan_steps import (
    STATUS_SLOT,
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    LaunchStep,
    RoutineStep,
    Step,
    references,
)
from ....runtime.records import replace
from ...fusion.fused_graph import FusedGraph
from ...kernel.checks import Check, RoutineCheck
from ...kernel.kernel import Param
from ...plan.control_flow import Surroundings
from ...plan.plan_builder import PlanBuilder
from ...plan.step_info import StepInfo
from .kernel_writer import COPY_BLOCK, COPY_BYTES, copy_params, copy_text
from .launch_order import (
    Access,
    access,
    accesses_of_copy,
    accesses_of_product,
    accesses_of_routine,
    levels,
)
from .module_text import CudaModule
from .varying_numbers import Written
from .wide_kernels import Piece, WideSchedule, wide_text

# Kernels of at most this many blocks leave room on a GPU for others beside them. Larger ones join
# their like, which need the same of threads: between launches a GPU runs empty, and fills again.
MAX_JOINED_BLOCKS = 1024
MAX_JOINED = 32
# A kernel copies as fast as the driver does, and can be a part of a wider launch.
MAX_COPIED = 1 << 20


class JoinedSteps(PlanBuilder):
    """Writes steps, and then joins them: those in `pieces` may be parts of wider launches.

    `checks` are those of all steps, `params` the parameters of launches by the numbers of steps.
    """

    def __init__(
        self,
        fused: FusedGraph,
        donate: Mapping[int, int],
        within: Surroundings | None,
        module: CudaModule,
        checks: list[Check | RoutineCheck],
        varying: bool,
    ) -> None:
        super().__init__(fused, donate, within)
        self.module, self.checks, self.varying = module, checks, varying
        self.pieces: dict[int, Piece] = {}  # by the number of a step
        self.params: dict[int, tuple[Param, ...]] = {}  # of every launch
        self.inside: list[range] = []  # the steps of branches and loops, which stay as they are
        self.number_of: dict[int, int] = {}  # by id, of the first `numbered` of `infos`
        self.numbered = 0

    def write(self) -> None:
        super().write()
        self._copy_by_kernels()
        self._launch_together()

    @property
    def _overwritten(self) -> set[int]:
        """The slots of inputs whose memory outputs take; the state of a loop is nobody's."""
        return set() if self.within else {1 + source for source in self.donate.values()}

    def _copy_by_kernels(self) -> None:
        """Small copies, which can then be parts of wider launches, and those with a guard.

        Where checks can fail, what overwrites inputs asks first whether one has.
        """
        overwritten, prefix = self._overwritten, self.within.name if self.within else ""
        inside = {number for steps in self.inside for number in steps}
        for number, step in enumerate(self.steps):
            if not isinstance(step, CopyStep) or number in inside:
                continue
            guarded = bool(self.checks) and step.dst.slot in overwritten
            if guarded or step.nbytes <= MAX_COPIED:
                name, block = f"{prefix}copy{number}", (COPY_BLOCK, 1)
                args = (step.src, step.dst, *([BufferRef(STATUS_SLOT)] if guarded else []))
                grid = -(-step.nbytes // (COPY_BLOCK * COPY_BYTES))
                write = partial(copy_text, step.nbytes, guarded, self.varying)
                params = copy_params(step.nbytes, guarded)
                self.params[number] = params
                self.pieces[number] = Piece(name, params, grid, block, 0, write)
                self.steps[number] = LaunchStep(name, args, grid, block)

    def _launch_together(self) -> None:
        """Order the steps by what they wait for; kernels that do not wait become one.

        Nothing passes a branch or a loop.
        """
        steps, infos, pieces = self.steps, self.info_of_step, self.pieces
        groups = [group for each in self._stretches(steps) for group in self._groups(each)]
        self.steps, self.info_of_step = [], {}
        for group in groups:
            first, *others = group
            step, info = steps[first], infos.get(first)
            if others:
                step, info = self._wide(group, steps, infos)
            elif first in pieces:
                step, info = self._alone(pieces[first], step, info)
            if info is not None:
                self.info_of_step[len(self.steps)] = info
            self.steps.append(step)

    def _stretches(self, steps: Sequence[Step | CudaStep]) -> Iterator[range]:
        """The steps between branches and loops, and each of those with all of its own."""
        end = 0
        for inside in self.inside:
            yield range(end, inside.start)
            yield inside
            end = inside.stop
        yield range(end, len(steps))

    def _groups(self, stretch: range) -> list[list[int]]:
        """The steps of a stretch in their order, those in a list that are launched as one."""
        if stretch in self.inside:
            return [[number] for number in stretch]
        level = levels([self._accesses(number) for number in stretch])
        return _joined(stretch, level, self.pieces)

    def _alone(
        self, piece: Piece, step: Step | CudaStep, info: StepInfo | None
    ) -> tuple[Step | CudaStep, StepInfo]:
        """The launch of one piece, by its own kernel or another's of the same text."""
        assert isinstance(step, LaunchStep)
        written = self.module.add(piece.name, piece.comments, piece.as_kernel)
        if info is None:  # a copy
            info = _wide_info(WideSchedule(written.name, (piece,)), [])
        else:
            info = self._renamed(info, written.name)
        return replace(step, name=written.name, numbers=written.values), info

    def _wide(
        self,
        group: Sequence[int],
        steps: Sequence[Step | CudaStep],
        infos: Mapping[int, StepInfo],
    ) -> tuple[LaunchStep, StepInfo]:
        """One launch for several pieces, those of the same text and grid beside each other."""
        functions: dict[int, Written] = {}
        alike: dict[tuple[str, int], list[int]] = {}
        for number in group:
            piece = self.pieces[number]
            functions[number] = self.module.add(piece.name, piece.comments, piece.as_function)
            alike.setdefault((functions[number].name, piece.grid), []).append(number)
        order = [number for numbers in alike.values() for number in numbers]
        written = [functions[number] for number in order]
        pieces = tuple(self.pieces[number] for number in order)
        name = f"{pieces[0].name[:40]}_and_{len(pieces) - 1}"
        schedule = WideSchedule(name, pieces)
        whole = self.module.add(name, (), partial(wide_text, schedule, written, self.varying))
        schedule = replace(schedule, name=whole.name)
        info = _wide_info(schedule, [infos.get(number) for number in order])
        args = tuple(ref for number in order for ref in references(steps[number]))
        step = LaunchStep(whole.name, args, schedule.grid, schedule.block, numbers=whole.values)
        return step, info

    def _renamed(self, info: StepInfo, name: str) -> StepInfo:
        """The same, told of by the name of its kernel, which others may have too."""
        return info if info.name == name else self._changed(info, name=name)

    def _changed(self, info: StepInfo, **fields: Any) -> StepInfo:
        """The same but for some fields, also in the list of all."""
        at = self._number_of(info)
        self.infos[at] = replace(info, **fields)
        self.number_of[id(self.infos[at])] = at
        return self.infos[at]

    def _number_of(self, info: StepInfo) -> int:
        """Where `info` stands among those of all steps."""
        for number in range(self.numbered, len(self.infos)):
            self.number_of[id(self.infos[number])] = number
        self.numbered = len(self.infos)
        return self.number_of[id(info)]

    def _accesses(self, number: int) -> list[Access] | None:
        """What a step reads and writes; None for a Python function, which may do anything."""
        step = self.steps[number]
        if isinstance(step, CopyStep):
            return accesses_of_copy(step)
        if isinstance(step, GemmStep):
            return accesses_of_product(step)
        if isinstance(step, RoutineStep):
            return accesses_of_routine(step)
        if not isinstance(step, LaunchStep):
            return None
        return [
            access(ref, param.elements * param.dtype.itemsize, param.written)
            for ref, param in zip(step.args, self.params[number], strict=True)
        ]


def _joined(steps: range, level: Sequence[int], pieces: Mapping[int, Piece]) -> list[list[int]]:
    """The steps in the order of their levels, those in a list that are launched as one."""
    found: list[list[int]] = []
    open_: dict[tuple[int, tuple[int, int], str], list[int]] = {}
    for at in sorted(range(len(level)), key=level.__getitem__):
        number = steps[at]
        piece = pieces.get(number)
        is_large = piece is not None and piece.grid > MAX_JOINED_BLOCKS
        if piece is None or (is_large and piece.kernel is None):
            found.append([number])
            continue
        like = str(piece.kernel.renamed("")) if is_large and piece.kernel else ""
        key = level[at], piece.block, like
        group = open_.get(key)
        if group is None or len(group) == MAX_JOINED:
            group = open_[key] = []
            found.append(group)
        group.append(number)
    return found


def _wide_info(schedule: WideSchedule, infos: Sequence[StepInfo | None]) -> StepInfo:
    """What is told of a launch that is several kernels."""
    known = [info for info in infos if info is not None]
    return StepInfo(
        schedule.name,
        "kernel",
        tuple(node for info in known for node in info.nodes),
        tuple(node for info in known for node in info.outputs),
        sum(info.bytes for info in known),
        sum(info.flops for info in known),
        schedule.kernel,
        schedule,
        tell=schedule.summary,
    )
