"""Which rows of a long table a test takes, where rows beside each other show much the same."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def sampled(rows: Iterable[T], step: int) -> list[T]:
    """Every `step`-th row, or each where the environment has `TGRAPH_ALL_ROWS`."""
    return list(rows)[:: 1 if os.environ.get("TGRAPH_ALL_ROWS") else step]
