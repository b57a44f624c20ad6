"""Exact values by mpmath, as two float64 numbers whose sum is off by 2**-100 of it at most."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

from .functions import Function
from .measure import Exact
from .references import REFERENCES

DIGITS = 90
"""Decimal digits of mpmath: twice what the values need, as some formulas cancel."""
_REFUSED = (ValueError, ZeroDivisionError, OverflowError, mp.libmp.NoConvergence)


def _parts(of: Callable[..., Any], numbers: tuple[float, ...]) -> tuple[float, float] | None:
    """The value as a sum, None where mpmath has none."""
    if not all(map(math.isfinite, numbers)):
        return None
    try:
        value = of(*map(mp.mpf, numbers))
    except _REFUSED:
        return None
    if isinstance(value, mp.mpc):
        if value.imag != 0:
            return None
        value = value.real
    if not mp.isfinite(value):
        return None
    high = float(value) if abs(value) < mp.mpf(2) ** 1024 else math.inf * float(mp.sign(value))
    return high, float(value - high) if math.isfinite(high) else 0.0


def _by_sign_of_zero(numbers: tuple[float, ...], value: float, told: float) -> bool:
    """Whether -0.0 has another value than 0.0, as in atan2(-0.0, -1)."""
    negative = any(each == 0 and math.copysign(1, each) < 0 for each in numbers)
    return negative and not math.isclose(value, told, rel_tol=1e-3)


def exact(function: Function, dtype: Any) -> Exact:
    """The exact values of a function at its points. PyTorch is needed."""
    import torch

    reference = REFERENCES[function.name]
    points = tuple(np.ascontiguousarray(each) for each in function.points(dtype))
    told = function.call(torch, *map(torch.from_numpy, points)).numpy().astype(np.float64)
    high, low = np.empty(told.size), np.zeros(told.size)
    size, conventional = np.zeros(told.size), np.zeros(told.size, bool)
    with mp.workdps(DIGITS):
        for place, numbers in enumerate(zip(*(each.tolist() for each in points), strict=True)):
            found = _parts(reference.exact, numbers)
            if reference.size is not None and all(map(math.isfinite, numbers)):
                size[place] = reference.size(*numbers)
            limit = reference.limit(*numbers) if reference.limit is not None else None
            if limit is not None:
                high[place], conventional[place] = limit, True
            elif found is None or _by_sign_of_zero(numbers, found[0], told[place]):
                high[place], conventional[place] = told[place], True
            else:
                high[place], low[place] = found
    return Exact(points, high, low, size, conventional)
