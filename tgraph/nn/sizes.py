"""Sizes of windows and borders, as arguments of modules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Sizes = int | tuple[int, ...]
"""One number for all dimensions, or one for each."""


def as_sizes(value: Any, count: int) -> tuple[Any, ...]:
    """One number for each of `count` dimensions, or the numbers given."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def checked_sizes(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """As `as_sizes`; ValueError for another number of them.

    One number in a list stays so and goes for all dimensions, but of windows, as in PyTorch.
    """
    sizes = as_sizes(value, count)
    if len(sizes) != count and (len(sizes) != 1 or name == "kernel_size"):
        raise ValueError(f"{name} must be a number or {count} numbers, got {value}")
    return sizes
