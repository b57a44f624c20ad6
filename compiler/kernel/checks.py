"""What kernels check while they run, and the errors that come of it."""

from __future__ import annotations

from typing import NamedTuple

from ..ir import Provenance


class Check(NamedTuple):
    """What a check looks at, for the user's line `where`: a position, or a divisor for zero."""

    where: Provenance
    divisor: bool = False

    def error(self, position: int, size: int) -> Exception:
        """What a failed check raises: as eager code does, with the line."""
        if self.divisor:
            return RuntimeError(f"ZeroDivisionError (divided at {self.where})")
        return IndexError(
            f"index {position} is out of bounds for dimension with size {size} "
            f"(indexed at {self.where})"
        )
