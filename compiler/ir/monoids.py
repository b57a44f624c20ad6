"""What reductions and scans fold values with, in one table.

A monoid is an associative operation with an identity (Blelloch, "Prefix Sums and Their
Applications", 1990). Targets have the texts: what joins two results follows from `combine`, and
what is special to a monoid stands in one table of the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.dtypes import DType
from ...runtime.records import record
from . import elementwise as e
from .primitive import Primitive

LEAST, MOST = "least", "most"
"""What an extreme starts from: the least or the largest value of its type."""


@record(eq=False)
class Monoid:
    """An operation that takes one more value into a result, and what a result starts from.

    `combine` joins two results. Where a result is more than a value, it joins their values:

    - `keeps` is "position" where the position of the value is kept beside it, and is the result:
      the least one of equal values, and of NaN, which is more extreme than any number;
    - "factor" where a result is the function `x -> factor * x + value`, as in a linear recurrence.

    `rounds` says that the order in which floats are folded changes the result.
    """

    name: str
    combine: Primitive
    start: Any
    rounds: bool = False
    keeps: str = ""

    def identity(self, dtype: DType) -> Any:
        """What a fold of no values gives, in `dtype`."""
        if self.start not in (LEAST, MOST):
            return self.start
        highest = self.start == MOST
        if dtype.kind == "float":
            return float("inf") if highest else float("-inf")
        if dtype.kind == "bool":
            return highest
        limits = np.iinfo(dtype.numpy)
        return int(limits.max if highest else limits.min)

    @property
    def is_position(self) -> bool:
        """Whether the result is a position."""
        return self.keeps == "position"

    @property
    def is_extreme(self) -> bool:
        """Whether the result is the largest or the smallest value."""
        return self in (MAX, MIN)

    def __str__(self) -> str:
        return self.name


SUM = Monoid("sum", e.add, 0, rounds=True)
PROD = Monoid("prod", e.mul, 1, rounds=True)
MAX = Monoid("max", e.maximum, LEAST)
MIN = Monoid("min", e.minimum, MOST)
ANY = Monoid("any", e.logical_or, False)
ALL = Monoid("all", e.logical_and, True)
ARGMAX = Monoid("argmax", e.maximum, LEAST, keeps="position")
ARGMIN = Monoid("argmin", e.minimum, MOST, keeps="position")
LINEAR = Monoid("linear", e.add, 0, rounds=True, keeps="factor")

MONOID_OF: dict[Primitive, Monoid] = {}
"""What each reduction and each scan folds with."""
