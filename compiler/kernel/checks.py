"""What kernels check while they run, and the errors that come of it."""

from __future__ import annotations

from typing import NamedTuple

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
