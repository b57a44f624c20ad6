"""Hand-written kernels: a text with sizes to fill in, instead of a loop program.

Some nodes are computed by kernels that no loop program describes, because threads work together on
tiles in shared memory or sort. Their schedule knows the sizes, the launch and the buffers; the text
is written by `template_text`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ...kernel.checks import Check
from ...kernel.kernel import Kernel, Param


class TemplateSchedule(ABC):
    """One launch of a hand-written kernel; `kernel` has its parameters and checks, but no loops."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """What it takes, in order."""

    @property
    @abstractmethod
    def grid(self) -> int:
        """Blocks of the launch."""

    @property
    @abstractmethod
    def block(self) -> tuple[int, int]:
        """Threads of a block."""

    @property
    def shared(self) -> int:
        """Shared memory that the launch asks for, in bytes: none, for the texts declare theirs."""
        return 0

    @property
    def extent(self) -> int:
        return self.grid

    @abstractmethod
    def summary(self) -> str:
        """A line for people."""


def kernel_without_loops(
    name: str, params: Sequence[Param], checks: Sequence[Check] = ()
) -> Kernel:
    """A kernel of which only the parameters and checks are told."""
    return Kernel(name, tuple(params), (), (), checks=tuple(checks))


def parts(total: int, size: int) -> int:
    """How many pieces of `size` cover `total`."""
    return -(-total // size)
