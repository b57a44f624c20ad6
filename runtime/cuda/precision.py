"""How exactly products of float32 are computed on a GPU."""

from __future__ import annotations

from typing import Literal, get_args

Precision = Literal["highest", "high", "medium"]

_precision: Precision = "highest"


def set_precision(precision: Precision) -> None:
    """How products of float32 are computed that are prepared from now on.

    "highest" computes in float32; "high" and "medium" let tensor cores round the operands to
    TensorFloat32 (10 bits behind the point) and sum in float32. Prepared products stay as they are.
    """
    global _precision
    if precision not in get_args(Precision):
        expected = ", ".join(map(repr, get_args(Precision)))
        raise ValueError(f"float32 matmul precision: expected one of {expected}, got {precision!r}")
    _precision = precision


def get_precision() -> Precision:
    """What `set_precision` was last called with, at first "highest"."""
    return _precision
