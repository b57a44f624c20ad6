"""`sym_int` and the like: functions of numbers, that sizes of a trace remain sizes in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..compiler.ir.dim import SymInt


def sym_int(a: Any) -> Any:
    """The whole part of a number.

    >>> sym_int(-2.7)
    -2
    """
    return a if isinstance(a, SymInt) else int(a)


def sym_float(a: Any) -> Any:
    """A number as a float: a size that a trace leaves open is asked for."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether something does not hold."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if one of the two is.

    >>> sym_max(3, 2.0)
    3.0
    """
    return _alike(a if a >= b else b, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if one of the two is."""
    return _alike(a if a <= b else b, a, b)


def _alike(found: Any, *numbers: Any) -> Any:
    return float(found) if any(isinstance(each, float) for each in numbers) else found


def sym_sqrt(a: Any) -> float:
    """The square root, a float."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum of numbers.

    >>> sym_sum([1, 2, 3])
    6
    """
    return sum(args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """One of two numbers of a type: the first if `b` holds."""
    if type(t) is not type(f):
        raise AssertionError(f"t type ({type(t)}) must equal f type ({type(f)})")
    return t if b else f
