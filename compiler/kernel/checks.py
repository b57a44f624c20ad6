"""What steps check while they run, and the errors that come of it."""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.linalg_error import NOT_FINITE, decode, failure
from ...runtime.out_of_bounds_error import OutOfBoundsError
from ...runtime.records import NamedTuple
from ..ir import Provenance


class Check(NamedTuple):
    """A check for the user's line `where`: of a position, or of what the message tells."""

    where: Provenance
    message: str = ""

    def error(self, position: int, size: int) -> Exception:
        """What a failed check raises: as eager code does, with the line."""
        if self.message:
            return RuntimeError(f"{self.message} (at {self.where})")
        return OutOfBoundsError(
            f"index {position} is out of bounds for dimension with size {size} "
            f"(indexed at {self.where})"
        )


class RoutineCheck(NamedTuple):
    """What a factorization looks at: whether the library could do each of its matrices.

    `function` is the public one that asks, `is_batch` whether there are several matrices.
    """

    primitive: str
    function: str
    is_batch: bool
    where: Provenance

    def error(self, position: int, said: int) -> Exception:
        """As eager code, with the line, for the matrix at `position`."""
        element = position if self.is_batch else None
        is_finite = not said & NOT_FINITE
        error = failure(self.primitive, self.function, element, said & ~NOT_FINITE, is_finite)
        return type(error)(f"{error} (called at {self.where})")


Checks = Sequence[Check] | RoutineCheck
"""What one step checks."""


def error_of(checks: Checks, status: Sequence[int]) -> Exception:
    """What a step raises that has set the words of the status."""
    if isinstance(checks, RoutineCheck):
        member, said, is_finite = decode(int(status[0]))
        return checks.error(member, said if is_finite else said | NOT_FINITE)
    code, position, size = (int(word) for word in status[:3])
    return checks[code - 1].error(position, size)
