"""A graph as it runs on a target, before it is loaded: to be read, saved and drawn.

A program has the text of all kernels, the steps in their order (kernels, library calls, copies,
Python functions), and the buffers that they work on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.plan_native import STATUS_WORDS
from ...runtime.plan_steps import ARENA_SLOT, STATUS_SLOT, BufferRef, CudaStep, Step
from ...runtime.records import record
from ..fusion.fused_graph import Refusal
from ..ir import Node
from .plan_builder import PlanBuilder
from .planning import Planning
from .step_info import StepInfo

if TYPE_CHECKING:
    import numpy.typing as npt


@record()
class ProgramBuffer:
    """Memory that a program works on: `kind` is input, output, constant, arena, status or pointer.

    A pointer is a place in another buffer, from step to step another one.

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


class Program(ABC):
    """The kernels and steps of one graph for a target.

    `steps` name memory by slots, and `buffers` tells what lies in each; `constants` are the values
    of those slots that have one from the start. `kernels` tells of each step what it computes, also
    of those with nothing to do, which are not in `steps`; `info_of_step` has the same by the number
    of a step. `refused` tells of each fusion that was not made.

    Outputs are the memory that it computes. A result that is an input, a view, or another one's
    equal has none of its own.
    """

    title: str
    """What it is for, such as "program for sm_90"."""
    ending: str
    """That of files with the text of kernels."""

    def __init__(
        self, planning: Planning, refused: Sequence[Refusal], builder: PlanBuilder
    ) -> None:
        self.planning, self.graph, self.donate = planning, planning.graph, planning.donate
        self.refused = tuple(refused)
        self.steps: Sequence[Step | CudaStep] = tuple(builder.steps)
        self.kernels: Sequence[StepInfo] = tuple(builder.infos)
        self.info_of_step: Mapping[int, StepInfo] = builder.info_of_step
        memory = builder.memory
        self.constants: Mapping[int, npt.NDArray[Any]] = memory.constants
        self.arena_bytes, self.num_slots = memory.space.size, memory.slots
        self.pointers = tuple(memory.pointers)
        self._output_slot = {
            number: target.slot
            for number, target in enumerate(builder.targets)
            if number not in builder.donate
        }

    @property
    @abstractmethod
    def source(self) -> str:
        """The text of its kernels."""

    @cached_property
    def buffers(self) -> Mapping[int, ProgramBuffer]:
        """What lies in each slot."""
        planned = self.planning.planned
        words = STATUS_WORDS
        found = {
            STATUS_SLOT: ProgramBuffer("status", "status", 8 * words, (words,), "int64"),
            ARENA_SLOT: ProgramBuffer("arena", "arena", self.arena_bytes),
        }
        for number, node in enumerate(planned.inputs):
            found[1 + number] = _buffer("input", str(node.attrs["name"]), node)
        for number, slot in self._output_slot.items():
            found[slot] = _buffer("output", f"result{number}", planned.outputs[number])
        for slot, value in self.constants.items():
            name = f"constant{slot}"
            found[slot] = ProgramBuffer(
                "constant", name, value.nbytes, value.shape, value.dtype.name
            )
        for slot in self.pointers:
            found[slot] = ProgramBuffer("pointer", f"pointer{slot}", 0)
        return found

    def __str__(self) -> str:
        """Buffers, then steps in order, as text."""
        lines = [self.title]
        lines += [f"  {buffer}" for buffer in self.buffers.values() if buffer.nbytes]
        for number, step in enumerate(self.steps):
            lines.append(f"{number:4d}  {self.step_line(number, step)}")
        return "\n".join(lines)

    def step_line(self, number: int, step: Step | CudaStep) -> str:
        """One of its steps as text."""
        return str(step)

    def arguments(self, info: StepInfo, places: Sequence[BufferRef]) -> str:
        """The parameters of a kernel with what is given for them."""
        params = info.schedule.kernel.params if info.schedule is not None else ()
        return ", ".join(
            f"{param.name} = {self.place(ref)} {param.dtype.name}[{param.elements}]"
            for param, ref in zip(params, places)
        )

    def place(self, ref: BufferRef) -> str:
        """A place in memory by the name of its buffer."""
        name = self.buffers[ref.slot].name
        return f"{name}+{ref.offset}" if ref.offset else name

    def save(self, folder: str | Path) -> Path:
        """Write the kernels and program.txt into `folder`, which is made if need be."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"kernels{self.ending}").write_text(self.source, encoding="utf-8")
        (folder / "program.txt").write_text(f"{self}\n", encoding="utf-8")
        return folder


def _buffer(kind: str, name: str, node: Node) -> ProgramBuffer:
    return ProgramBuffer(kind, name, node.type.nbytes, node.shape, node.type.dtype.name)
