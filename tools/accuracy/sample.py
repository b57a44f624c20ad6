"""A few points of every function with their exact values, kept for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .measure import Exact
from .points import Array

POINTS = 36
"""Of one function in one type."""
_EDGES = 14
"""Most of those at which values are conventions."""


class Sample(NamedTuple):
    """What one function in one type is held to."""

    name: str
    dtype: str
    exact: Exact
    bound: float


def chosen(exact: Exact, worst: list[int]) -> Exact:
    """The points where errors are greatest, some special ones, and some in between."""
    special = np.flatnonzero(exact.conventional)
    special = special[:: -(-special.size // _EDGES) or 1]
    ordinary = np.flatnonzero(~exact.conventional)
    count = POINTS - special.size - len(worst)
    spread = ordinary[np.linspace(0, ordinary.size - 1, count).astype(int)]
    places = np.unique(np.concatenate([special, spread, np.array(worst)]))
    points = tuple(each[places] for each in exact.points)
    return Exact(points, *(getattr(exact, field)[places] for field in Exact._fields[1:]))


def bound(greatest: float) -> float:
    """What a test allows where `greatest` was measured: other processors round otherwise."""
    return float(np.ceil(10 * (1.5 * greatest + 0.5)) / 10)


def write(path: Path, samples: list[Sample]) -> None:
    """All samples as few long arrays, which npz files hold better than many short ones."""
    stored: dict[str, Array] = {}
    for dtype in ("float32", "float64"):
        own = [each for each in samples if each.dtype == dtype]
        stored[f"{dtype} names"] = np.array([each.name for each in own])
        stored[f"{dtype} counts"] = np.array([each.exact.high.size for each in own])
        stored[f"{dtype} bounds"] = np.array([each.bound for each in own])
        both = [each.exact.points for each in own]
        stored[f"{dtype} x"] = np.concatenate([each[0] for each in both])
        stored[f"{dtype} y"] = np.concatenate([each[1] for each in both if len(each) == 2])
        stored[f"{dtype} arity"] = np.array([len(each) for each in both])
        for field in Exact._fields[1:]:
            stored[f"{dtype} {field}"] = np.concatenate(
                [getattr(each.exact, field) for each in own]
            )
        if dtype == "float32":  # half of a unit of float64 is nothing there
            stored[f"{dtype} low"] = np.zeros(0)
    np.savez_compressed(path, **stored)


def read(path: Path) -> Iterator[Sample]:
    """The samples that `write` wrote."""
    with np.load(path) as stored:
        for dtype in ("float32", "float64"):
            get = {key.split()[1]: stored[key] for key in stored.files if key.startswith(dtype)}
            low = get["low"] if get["low"].size else np.zeros(get["high"].size)
            start = second = 0
            for name, count, arity, most in zip(
                get["names"].tolist(), get["counts"].tolist(), get["arity"].tolist(),
                get["bounds"].tolist(), strict=True,
            ):  # fmt: skip
                here = slice(start, start + count)
                points: tuple[Array, ...] = (get["x"][here],)
                if arity == 2:
                    points += (get["y"][second : second + count],)
                    second += count
                start += count
                exact = Exact(
                    points, get["high"][here], low[here], get["size"][here],
                    get["conventional"][here],
                )  # fmt: skip
                yield Sample(name, dtype, exact, most)
