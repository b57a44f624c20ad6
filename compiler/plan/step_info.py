"""What is told of a step of a plan: what it computes, moves and costs."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.plan_steps import GemmStep, RoutineStep, Step
from ...runtime.records import NamedTuple, record
from ..ir import Node
from ..kernel.kernel import Kernel
from ..kernel.scheduled_kernel import ScheduledKernel


@record()
class StepInfo:
    """What `explain` and pictures tell of one step: the nodes it computes and what it moves.

    `kernel` and `schedule` are None for products, copies and Python functions, `product` for all
    but products. `price` and `apart` are those of its group, 0 for other steps. `tell` makes the
    line of `summary`. `inside` are the steps of the graphs of a branch or a loop.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    bytes: int
    flops: int
    kernel: Kernel | None = None
    schedule: ScheduledKernel | None = None
    product: GemmStep | None = None
    price: float = 0.0
    apart: float = 0.0
    tell: Callable[[], str] | None = None
    inside: tuple[StepInfo, ...] = ()

    def summary(self) -> str:
        """How the step runs, in a line for people; "" where there is nothing to tell."""
        return "" if self.tell is None else self.tell()

    @property
    def whole(self) -> list[StepInfo]:
        """This and all steps inside, each before those inside it."""
        found, pending = [], [self]
        while pending:
            found.append(pending.pop())
            pending += found[-1].inside[::-1]
        return found


class LibraryStep(NamedTuple):
    """A step that is no kernel, its kind and operations, and what tells of it."""

    step: Step | RoutineStep
    kind: str
    flops: int = 0
    tell: Callable[[], str] | None = None
