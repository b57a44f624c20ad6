"""What steps check while they run, and the errors that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...runtime.factorization import Factorization
from ..ir import Provenance


class Check(NamedTuple):
    """A check for the user's line `where`: of a position, or of what the message tells."""

    where: Provenance
    message: str = ""

    def error(self, position: int, size: int) -> Exception:
        """What a failed check raises: as eager code does, with the line."""
        if self.message:
            return RuntimeError(f"{self.message} (at {self.where})")
        return IndexError(
            f"index {position} is out of bounds for dimension with size {size} "
            f"(indexed at {self.where})"
        )


class RoutineCheck(NamedTuple):
    """What a factorization looks at: whether LAPACK could do each of its matrices."""

    routine: Factorization
    where: Provenance

    def error(self, status: int) -> Exception:
        """As eager code, with the line, for the matrix that failed first."""
        error = self.routine.error(status)
        return type(error)(f"{error} (called at {self.where})")


Checks = Sequence[Check] | RoutineCheck
"""What one step checks."""


def error_of(checks: Checks, status: Sequence[int]) -> Exception:
    """What a step raises that has set the words of the status."""
    if isinstance(checks, RoutineCheck):
        return checks.error(int(status[0]))
    code, position, size = (int(word) for word in status[:3])
    return checks[code - 1].error(position, size)
