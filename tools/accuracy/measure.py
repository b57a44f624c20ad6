"""Errors in units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import tgraph as tg

from .functions import Function
from .points import Array


class Exact(NamedTuple):
    """Points of one function in one type, its values there, and which are conventions.

    mpmath has no value at infinities, NaN and -0.0, at poles and outside of a domain. There what
    PyTorch gives is wanted, unless the function has a limit that is told with it.
    """

    points: tuple[Array, ...]
    high: Array
    low: Array
    size: Array
    conventional: Array


class Error(NamedTuple):
    """Greatest and mean error over points, in ulp; where values are wrong altogether."""

    greatest: float
    mean: float
    worst: int
    wrong: Array


def errors(values: Array, exact: Exact) -> Array:
    """The error of each value in ulp of the exact one; infinite where one of both is not finite.

    What overflows may do so from just below the largest number on.
    """
    info = np.finfo(values.dtype)
    have, high = values.astype(np.float64), exact.high
    with np.errstate(all="ignore"):
        scale = np.clip(np.maximum(np.abs(high), exact.size), float(info.tiny), float(info.max))
        found = np.abs((have - high) - exact.low) / np.spacing(scale.astype(values.dtype))
        over = float(info.max) * (1 - 16 * float(info.eps))
        same = np.where(np.isnan(high), np.isnan(have), (have == high) & np.isinf(high))
        same |= (np.abs(high) >= over) & (np.abs(have) >= over) & (np.sign(high) == np.sign(have))
    return np.where(same, 0, np.where(np.isfinite(found), found, np.inf))


def summary(values: Array, exact: Exact) -> Error:
    found = errors(values, exact)
    wrong = ~np.isfinite(found) | (exact.conventional & (found > 4))
    measured = np.where(wrong, 0, found)
    return Error(
        float(measured.max()), float(measured[~wrong].mean()), int(measured.argmax()),
        np.flatnonzero(wrong),
    )  # fmt: skip


def eager(function: Function, points: tuple[Array, ...]) -> Array:
    found: Array = function.call(tg, *map(tg.from_numpy, points)).numpy()
    return found


def compiled(function: Function, points: tuple[Array, ...]) -> Array:
    call = tg.compile(lambda *tensors: function.call(tg, *tensors))
    found: Array = call(*map(tg.from_numpy, points)).numpy()
    return found


def of_pytorch(function: Function, points: tuple[Array, ...]) -> Array:
    import torch

    found: Array = function.call(torch, *map(torch.from_numpy, points)).numpy()
    return found


WAYS: dict[str, Callable[[Function, tuple[Array, ...]], Array]] = {
    "eager": eager, "compiled": compiled, "PyTorch": of_pytorch,
}  # fmt: skip
