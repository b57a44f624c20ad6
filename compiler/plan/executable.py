"""What runs a graph once its program has been loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ir import Graph

if TYPE_CHECKING:  # who finds a plan on disk imports no more than this
    from ..fusion.fused_graph import Refusal
    from .program import Program
    from .step_info import StepInfo


class Executable(ABC):
    """A program that has been loaded: arrays in, arrays out."""

    donate: Mapping[int, int]
    """Outputs that are written into the memory of inputs."""
    is_straight = True
    """Whether all is computed on one device, and Python moves nothing there or back."""
    seconds: tuple[float, float] = (0.0, 0.0)
    """How long optimising, and fusing and generating, took."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """What was loaded."""

    @property
    def graph(self) -> Graph:
        """The graph as it was planned."""
        return self.program.graph

    @property
    def kernels(self) -> Sequence[StepInfo]:
        """What is told of each step."""
        return self.program.kernels

    @property
    def refused(self) -> Sequence[Refusal]:
        """The fusions that were not made."""
        return self.program.refused

    @abstractmethod
    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """One array for each output of the graph; `inputs` are one for each of its inputs."""

    @abstractmethod
    def wait_for_checks(self) -> None:
        """Raise the error of a check of an earlier call that failed, once all are done."""
