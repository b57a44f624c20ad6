"""Classes and functions that users allow files to name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

SAFE: dict[Any, str] = {}
"""What users allow, with the name by which files know it."""


def _named(given: Iterable[Any]) -> dict[Any, str]:
    found = {}
    for each in given:
        if isinstance(each, tuple):
            value, name = each
        else:
            value, name = each, f"{each.__module__}.{each.__qualname__}"
        found[value] = name
    return found


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow files to name these classes and functions, and to call them with any arguments.

    Each is an object, or a pair of it and the full name by which files know it.

    >>> import argparse
    >>> add_safe_globals([argparse.Namespace])
    >>> get_safe_globals()
    [<class 'argparse.Namespace'>]
    >>> clear_safe_globals()
    """
    SAFE.update(_named(safe_globals))


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` was given."""
    return list(SAFE)


def clear_safe_globals() -> None:
    """Forget all that `add_safe_globals` was given."""
    SAFE.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """`add_safe_globals` for the length of a `with` block."""
    added = {key: name for key, name in _named(safe_globals).items() if key not in SAFE}
    SAFE.update(added)
    try:
        yield
    finally:
        for key in added:
            SAFE.pop(key, None)
