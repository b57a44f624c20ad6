"""What plans know of the schedules that targets choose for kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from .kernel import Kernel


class ScheduledKernel(Protocol):
    """A kernel, and how its target runs it: its loops, or a text written by hand."""

    @property
    def kernel(self) -> Kernel:
        """The loop program, or only its parameters and checks."""

    @property
    def extent(self) -> int:
        """How many items of work there are for threads or blocks; 0: nothing is done."""


class KernelSchedule(ScheduledKernel, Protocol):
    """How a target runs the loops of a kernel; `dataclasses.replace` gives it other parameters."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
