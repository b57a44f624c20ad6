"""The table of cases, and their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CASES: dict[str, Callable[[], tuple[Any, list[Any]]]] = {}


def case(function: Callable[[], tuple[Any, list[Any]]]) -> Callable[[], tuple[Any, list[Any]]]:
    """Enter a case by its name: package, two underscores, what of it."""
    CASES[function.__name__] = function
    return function


def floats(*shape: int, seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tokens(*shape: int, below: int = 20) -> Any:
    """Integers from 0."""
    return np.random.default_rng(1).integers(0, below, shape)
