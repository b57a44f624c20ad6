"""A graph as it would run on CUDA, to be read, compiled and checked without a GPU.

The program has the text of one module with all kernels, the steps in their order (launches of
these kernels, library calls, copies), and the buffers that they work on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....runtime.cuda.devices import ARCHITECTURES
from ....runtime.cuda.nvrtc import compile_cubin
from ....runtime.plan_steps import (
    CudaStep,
    LaunchStep,
    Step,
)
from ... import pipeline
from ...fusion.fused_graph import FusedGraph
from ...fusion.fusion import fuse
from ...ir import Graph, Node, TensorType
from ...placement import is_on_cpu, move_early, split
from ...plan.planning import Planning
from ...plan.program import Program
from .biases import Bias, with_biases
from .passes import CUDA_PASSES
from .plan_builder import CudaPlanBuilder
from .rules import CudaRules
from .schedule import CudaSchedule
from .wide_kernels import WideSchedule
from .writer import declared_shared

BY_VALUE = (1, 2, 4, 8, 16)
"""The bytes of inputs that launches take along: a number, or the state of a generator."""


class CudaProgram(Program):
    """An optimised graph as the module and the steps of one plan for CUDA.

    `source` is CUDA C that needs no header. `shared` is the shared memory of a block in bytes, by
    the names of kernels; `checks` tells what the positions in the status mean that a failed check
    leaves there. `optimized` is the graph that it was made of, `arch` the architecture that it is
    meant for. Without `epilogues`, matrix products of cublasLt do nothing else. If it is `tiled`,
    products become kernels with those that read them, where these have tiles (`contractions.py`).
    `types` are those of results, where they are not the graph's (see `Planning`). `varying`,
    `eager`, `aligned` and `from_host` are those of the request; of an eager program, `by_value`
    are the inputs that kernels get in their launches.
    """

    ending = ".cu"

    def __init__(
        self,
        graph: Graph,
        arch: str = "sm_90",
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        epilogues: bool = True,
        types: Sequence[TensorType] | None = None,
        varying: bool = False,
        eager: bool = False,
        aligned: bool = True,
        from_host: Sequence[int] = (),
        tiled: bool = False,
    ) -> None:
        planning = Planning(graph, donate, strides, types, machine=CudaRules.machine)
        rules = CudaRules(planning.planned, planning.inputs, planning.overwriting, tiled)
        fused = fuse(rules)
        biases: Mapping[Node, Bias] | None = None
        if epilogues:
            fused, biases = with_biases(fused)
        by_value = _by_value(fused, from_host) if eager else []
        builder = CudaPlanBuilder(
            fused, biases, planning.places, shared_memory(arch), varying or eager, aligned,
            [fused.graph.inputs[number] for number in by_value],
        )  # fmt: skip
        self._source = builder.build()
        super().__init__(planning, fused.refusals, builder)
        self.arch, self.title = arch, f"program for {arch}"
        self.optimized, self.epilogues = graph, epilogues
        self.eager, self.by_value = eager, frozenset(by_value)
        self.needs_alignment = aligned or not all(map(self._is_written, range(len(self.steps))))
        declared = declared_shared(self.source)
        self.shared = {each.name: declared[each.name] + each.shared for each in self.launches}
        self.checks = tuple(builder.checks)

    @property
    def source(self) -> str:
        return self._source

    def _is_written(self, number: int) -> bool:
        """Whether a step launches what kernels of the graph were written as, and nothing else."""
        info = self.info_of_step.get(number)
        schedule = None if info is None else info.schedule
        if isinstance(schedule, WideSchedule):
            return all(piece.kernel is not None for piece in schedule.pieces)
        return isinstance(schedule, CudaSchedule)

    @property
    def cuda_steps(self) -> tuple[CudaStep, ...]:
        """Its steps, of which none is the CPU's."""
        return tuple(map(_cuda_step, self.steps))

    @property
    def launches(self) -> tuple[LaunchStep, ...]:
        """The launches of its kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, LaunchStep))

    def step_line(self, number: int, step: Step | CudaStep) -> str:
        info = self.info_of_step.get(number)
        if not isinstance(step, LaunchStep) or info is None or info.schedule is None:
            return super().step_line(number, step)
        args = self.arguments(info, step.args)
        if len(step.args) > len(info.schedule.kernel.params):
            args += f", failed = {self.place(step.args[-1])}"
        sizes = f"{step.grid}, {step.block}{f', {step.shared}' if step.shared else ''}"
        shared = f" with {self.shared[step.name]:,} bytes of shared memory"
        shared = shared if self.shared[step.name] else ""
        return f"launch {step.name}<<<{sizes}>>>({args}){shared}"

    def cubin(self) -> bytes:
        """The machine code of its kernels for `arch`, kept on disk between processes.

        Raises RuntimeError where NVRTC is needed and missing.
        """
        return compile_cubin(self.source, self.arch)


def _by_value(fused: FusedGraph, from_host: Sequence[int]) -> list[int]:
    """The small inputs of the host that nothing but generated kernels read."""
    graph = fused.graph
    in_memory = {read for group in fused.groups if group.kind != "kernel" for read in group.reads}
    found = []
    for number in from_host:
        node = graph.inputs[number]
        if node.type.nbytes in BY_VALUE and node not in in_memory:
            found.append(number)
    return found


def cuda_program(
    graph: Graph,
    arch: str = "sm_90",
    donate: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    epilogues: bool = True,
    tiled: bool = False,
) -> CudaProgram:
    """The program of a graph as it was traced."""
    optimized = pipeline.optimize(graph, passes=CUDA_PASSES)
    return CudaProgram(optimized, arch, donate, strides, epilogues, tiled=tiled)


def shared_memory(arch: str) -> int:
    """Bytes of shared memory that a block may ask for; ValueError for an unknown architecture."""
    if arch not in ARCHITECTURES:
        raise ValueError(
            f"cuda.program: unknown architecture {arch!r}; expected one of "
            f"{', '.join(ARCHITECTURES)}"
        )
    return ARCHITECTURES[arch]


def program_of(graph: Graph, arch: str) -> CudaProgram:
    """The program of a traced graph: of one whose values are the CPU's, as if they were not.

    Raises ValueError for a graph whose work lies on several devices.
    """
    if is_on_cpu(graph):
        return cuda_program(graph, arch)
    segments = split(move_early(graph))
    if len(segments) != 1:
        found = ", ".join(str(segment.device) for segment in segments)
        raise ValueError(
            f"cuda.program: the function computes on several devices, one after another: {found}; "
            "ask for the program of one of its parts"
        )
    return cuda_program(segments[0].graph, arch)


def _cuda_step(step: Step | CudaStep) -> CudaStep:
    assert isinstance(step, CudaStep), f"{step} is the CPU's"
    return step
