"""What the compiler asks of a target: how graphs become programs for it, and programs run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from .. import pipeline
from ..ir import Graph
from ..pipeline import Pass
from ..plan.executable import Executable
from ..plan.plan_sizes import NotSizedError, PlanSizes
from ..plan.program import Program
from ..plan.request import Request
from ..plan.sized_plan import SizedPlan

P = TypeVar("P", bound=Program)


class Target(ABC, Generic[P]):
    """A kind of device that graphs are compiled for.

    It has `passes`, in their order, and makes programs by its rules of fusion, at the prices of its
    machine, its schedules and texts of kernels, and calls of its libraries.
    """

    @property
    @abstractmethod
    def passes(self) -> Sequence[Pass]:
        """What graphs go through, in order."""

    @abstractmethod
    def program(self, optimized: Graph, request: Request) -> P:
        """The program of a graph behind the passes; no device is needed."""

    @abstractmethod
    def load(self, program: P, request: Request) -> Executable:
        """Make a program ready to run, as it was asked for."""

    def sized(self, request: Request, sizes: PlanSizes) -> SizedPlan:
        """One plan for a graph whose sizes are open; NotSizedError where there is none."""
        raise NotSizedError("plans for this device are made for each size")

    def compile(self, request: Request) -> Executable:
        """A graph ready to run."""
        start = time.perf_counter()
        optimized = pipeline.optimize(request.graph, passes=self.passes)
        half = time.perf_counter()
        executable = self.load(self.program(optimized, request), request)
        executable.seconds = (half - start, time.perf_counter() - half)
        return executable
