"""Which rows of a long table a test takes, where rows beside each other show much the same."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


ALL = bool(os.environ.get("TGRAPH_ALL_ROWS"))


def sampled(rows: Iterable[T], step: int, first: int = 0) -> list[T]:
    """Every `step`-th row from `first` on, or each where the environment has `TGRAPH_ALL_ROWS`."""
    return list(rows) if ALL else list(rows)[first::step]
