"""What reductions and scans fold values with."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.dtypes import DType

# By the name of a fold, the primitive that takes one more value into a result.
COMBINE = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}
POSITIONS = ("argmax", "argmin")
"""The reductions that give the position of a value, not a value."""

LINEAR = "linear"
"""The fold of `linear_scan`, which takes two values at a time: result * a + b."""


def identity(fold: str, dtype: DType) -> Any:
    """The value that a fold starts from."""
    if fold in ("sum", "any", LINEAR):
        return 0
    if fold in ("prod", "all"):
        return 1
    highest = fold in ("min", "argmin")
    if dtype.kind == "float":
        return float("inf") if highest else float("-inf")
    if dtype.kind == "bool":
        return highest
    limits = np.iinfo(dtype.numpy)
    return int(limits.max if highest else limits.min)
