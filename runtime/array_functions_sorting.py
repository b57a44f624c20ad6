"""The order of elements along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import order
from .array_functions_elementwise import Array, Function
from .cuda import order as cuda_order


def _argsort(xp: Any, x: Array, count: int, descending: bool) -> Array:
    if xp is np:
        return order.first_in_order(x, count, descending)
    return cuda_order.first_in_order(xp, x, count, descending)


def _sort(xp: Any, x: Array, descending: bool) -> Array:
    if xp is np:
        return order.in_order(x, descending)
    return cuda_order.in_order(xp, x, descending)


def _select_nth(xp: Any, x: Array, rank: int) -> Array:
    if xp is np:
        return order.nth_in_order(x, rank)
    return cuda_order.first_in_order(xp, x, rank + 1, False)[..., rank:]


FUNCTIONS: dict[str, Function] = {"argsort": _argsort, "select_nth": _select_nth, "sort": _sort}
