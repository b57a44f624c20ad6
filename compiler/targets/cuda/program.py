"""A graph as it would run on CUDA, to be read, compiled and checked without a GPU.

The program has the text of one module with all kernels, the steps in their order (launches of
these kernels, library calls, copies), and the buffers that they work on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ....runtime.cuda.devices import ARCHITECTURES
from ....runtime.cuda.nvrtc import compile_cubin
from ....runtime.plan_steps import (
    ARENA_SLOT,
    STATUS_SLOT,
    BufferRef,
    CudaStep,
    KernelStep,
    LaunchStep,
    Step,
)
from ....runtime.records import record
from ... import pipeline
from ...fusion.fusion import fuse
from ...ir import Graph, Node
from ...placement import is_on_cpu, move_early, split
from ...plan.planning import Planning
from ...plan.step_info import StepInfo
from .biases import Bias, with_biases
from .plan_builder import CudaPlanBuilder
from .rules import CudaRules
from .writer import declared_shared

STATUS_BYTES = 64


@record()
class ProgramBuffer:
    """Memory that a program works on: `kind` is input, output, constant, arena or status.

    `shape` and `dtype` are those of the tensor, which is contiguous; the arena is plain bytes.
    """

    kind: str
    name: str
    nbytes: int
    shape: tuple[int, ...] = ()
    dtype: str = "bytes"

    def __str__(self) -> str:
        type_ = f" {self.dtype}[{', '.join(map(str, self.shape))}]" if self.shape else ""
        return f"{self.kind} {self.name}{type_} {self.nbytes} bytes"


class Program:
    """The kernels and steps of one graph for CUDA.

    `source` is CUDA C that needs no header; `steps` name memory by slots, and `buffers` tells what
    lies in each. `shared` is the shared memory of a block in bytes, by the names of kernels.
    `constants` are the values of those slots that have one from the start. `kernels` tells of each
    step what it computes, `checks` what the positions in the status mean that a failed check leaves
    there. `arch` is the architecture that it is meant for. Without `epilogues`, matrix products do
    nothing else.

    Outputs are the memory that it computes. A result that is an input, a view, or another one's
    equal has none of its own.
    """

    def __init__(
        self,
        graph: Graph,
        arch: str = "sm_90",
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        epilogues: bool = True,
    ) -> None:
        if arch not in ARCHITECTURES:
            raise ValueError(
                f"cuda.program: unknown architecture {arch!r}; expected one of "
                f"{', '.join(ARCHITECTURES)}"
            )
        self.arch = arch
        optimized = pipeline.optimize(graph, passes=pipeline.CUDA_PASSES)
        self.planning = Planning(optimized, donate, strides, machine=CudaRules.machine)
        self.graph, planned = self.planning.graph, self.planning.planned
        fused = fuse(CudaRules(planned, self.planning.inputs, self.planning.overwriting))
        biases: Mapping[Node, Bias] = {}
        if epilogues:
            fused, biases = with_biases(fused)
        self.refused = fused.refusals
        builder = CudaPlanBuilder(fused, biases, self.planning.places, ARCHITECTURES[arch])
        self.source: str = builder.build()
        self.steps: tuple[CudaStep, ...] = tuple(map(_cuda_step, builder.steps))
        self.kernels: tuple[StepInfo, ...] = tuple(builder.infos)
        declared = declared_shared(self.source)
        self.shared = {each.name: declared[each.name] + each.shared for each in self.launches}
        self.checks = tuple(builder.checks)
        self.kernel_of_step: Mapping[int, StepInfo] = builder.info_of_step
        self.constants: Mapping[int, npt.NDArray[np.generic]] = builder.constants
        self.arena_bytes, self.num_slots = builder.arena.size, builder.slots
        self.buffers = self._name_buffers(planned, builder)

    @property
    def launches(self) -> tuple[LaunchStep, ...]:
        """The launches of its kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, LaunchStep))

    def _name_buffers(
        self, planned: Graph, builder: CudaPlanBuilder
    ) -> Mapping[int, ProgramBuffer]:
        found = {
            STATUS_SLOT: ProgramBuffer(
                "status", "status", STATUS_BYTES, (STATUS_BYTES // 8,), "int64"
            ),
            ARENA_SLOT: ProgramBuffer("arena", "arena", builder.arena.size),
        }
        for number, node in enumerate(planned.inputs):
            found[1 + number] = _buffer("input", str(node.attrs["name"]), node)
        for number, slot in builder.output_slot.items():
            found[slot] = _buffer("output", f"result{number}", planned.outputs[number])
        for slot, value in self.constants.items():
            name = f"constant{slot}"
            found[slot] = ProgramBuffer(
                "constant", name, value.nbytes, value.shape, value.dtype.name
            )
        return found

    def __str__(self) -> str:
        """Buffers, then steps in order, as text."""
        lines = [f"program for {self.arch}"]
        lines += [f"  {buffer}" for buffer in self.buffers.values() if buffer.nbytes]
        for number, step in enumerate(self.steps):
            lines.append(f"{number:4d}  {self._step_line(number, step)}")
        return "\n".join(lines)

    def _step_line(self, number: int, step: Step | CudaStep) -> str:
        info = self.kernel_of_step.get(number)
        if not isinstance(step, LaunchStep) or info is None or info.schedule is None:
            return str(step)
        params = info.schedule.kernel.params
        args = ", ".join(
            f"{param.name} = {self._place(ref)} {param.dtype.name}[{param.elements}]"
            for param, ref in zip(params, step.args)
        )
        if len(step.args) > len(params):
            args += f", failed = {self._place(step.args[-1])}"
        sizes = f"{step.grid}, {step.block}{f', {step.shared}' if step.shared else ''}"
        shared = f" with {self.shared[step.name]:,} bytes of shared memory"
        shared = shared if self.shared[step.name] else ""
        return f"launch {step.name}<<<{sizes}>>>({args}){shared}"

    def _place(self, ref: BufferRef) -> str:
        name = self.buffers[ref.slot].name
        return f"{name}+{ref.offset}" if ref.offset else name

    def cubin(self) -> bytes:
        """The machine code of its kernels for `arch`, kept on disk between processes.

        Raises RuntimeError where NVRTC is needed and missing.
        """
        return compile_cubin(self.source, self.arch)

    def save(self, folder: str | Path) -> Path:
        """Write kernels.cu and program.txt into `folder`, which is made if need be."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernels.cu").write_text(self.source, encoding="utf-8")
        (folder / "program.txt").write_text(f"{self}\n", encoding="utf-8")
        return folder


def program_of(graph: Graph, arch: str) -> Program:
    """The program of a traced graph: of one whose values are the CPU's, as if they were not.

    Raises ValueError for a graph whose work lies on several devices.
    """
    if is_on_cpu(graph):
        return Program(graph, arch)
    segments = split(move_early(graph))
    if len(segments) != 1:
        found = ", ".join(str(segment.device) for segment in segments)
        raise ValueError(
            f"cuda.program: the function computes on several devices, one after another: {found}; "
            "ask for the program of one of its parts"
        )
    return Program(segments[0].graph, arch)


def _cuda_step(step: Step | CudaStep) -> CudaStep:
    assert not isinstance(step, KernelStep), f"{step} is the CPU's"
    return step


def _buffer(kind: str, name: str, node: Node) -> ProgramBuffer:
    return ProgramBuffer(kind, name, node.type.nbytes, node.shape, node.type.dtype.name)
