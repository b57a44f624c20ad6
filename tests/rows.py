"""Tests that run all rows of a table: an item for each row costs more than most rows do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def check_rows(
    rows: Iterable[T], check: Callable[[T], object], name: Callable[[T], object] = str
) -> None:
    """Call `check` with each row; fails at the end, with the rows that failed and their messages.

    `name(row)` is what messages call a row.
    """
    failed: list[tuple[T, Exception]] = []
    for row in rows:
        try:
            check(row)
        except Exception as error:
            failed.append((row, error))
    if failed:
        lines = [f"{name(row)}: {type(error).__name__}: {error}" for row, error in failed]
        raise AssertionError(f"{len(failed)} rows fail\n" + "\n".join(lines)) from failed[0][1]
