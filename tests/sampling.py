"""Which part of long tables a run takes: another one with each commit, all of them in ten.

`rotating` takes a part of the rows of a table. Of the tests in `ROTATING`, parts are taken of the
rows that each test function is parametrized with.

A run's `TURN` is the number of its commit in the history, so that ten commits in a row take ten
different turns (the hashes of ten take six or seven). The environment's ``TGRAPH_TURN`` sets
another one; with ``TGRAPH_ALL_ROWS``, and where a run names its files or tests, tables are whole.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

MOST_PARTS = 10
"""Tables have no more parts, so that ten commits see every row."""

ROTATED = "rotated"
"""The marker of rows that run with another commit."""

ROTATING: dict[str, int] = {
    # Shapes by dtypes by directions, where neighbours take the same path through the compiler.
    "compile/test_scans.py": 3,
    "compile/test_windows.py": 3,
    "compile/test_row_lengths.py": 3,
    "compile/test_transposed.py": 3,
    "compile/test_half_types.py": 3,
    "compile/test_extreme_values.py": 3,
    "compile/test_attention_gradients.py": 3,
    "compile/test_prices.py": 3,
    "passes/test_one_pass_statistics.py": 3,
    "nn/test_sequences.py": 3,
    "runtime/test_plan_gemm.py": 4,
    "test_special_values.py": 2,
    # Seeds of random programs.
    "compile/test_random_programs.py": 3,
    "compile/test_random_state.py": 4,
}
"""Tests whose rows take long, and in how many commits all of them have run."""


def _turn() -> int:
    chosen = os.environ.get("TGRAPH_TURN")
    if chosen:
        return int(chosen)
    command = ["git", "-C", str(Path(__file__).parent), "rev-list", "--count", "HEAD"]
    try:
        counted = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or no repository
        return 0
    return int(counted.stdout)


TURN = _turn()
whole = bool(os.environ.get("TGRAPH_ALL_ROWS"))
"""Whether all rows are taken."""


def configure(config: pytest.Config) -> None:
    """Take tables whole in a run that names what it wants."""
    global whole
    named = bool(config.option.file_or_dir or config.option.keyword)
    whole = whole or (named and "TGRAPH_TURN" not in os.environ)


def rotating(rows: Iterable[T], parts: int) -> list[T]:
    """This turn's part of `rows`: every `parts`-th row, beginning with another one at each turn."""
    if not 1 <= parts <= MOST_PARTS:
        raise ValueError(f"rotating(): expected 1 to {MOST_PARTS} parts, got {parts}")
    return seldom(rows, parts)


def seldom(rows: Iterable[T], parts: int) -> list[T]:
    """`rotating` for any number of parts: of tables that another run has whole, as one on a GPU."""
    every = list(rows)
    parts = 1 if whole else min(parts, len(every))
    return every[TURN % parts :: parts] if every else every


def first_seed(count: int) -> int:
    """The first of `count` seeds of random programs: of twice as many, every other commit's."""
    return TURN % 2 * count


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The tests of `ROTATING` whose turn this is not."""
    if whole:
        return set()
    of_functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            of_functions[item.nodeid.split("[")[0]].append(item)
    found: set[pytest.Item] = set()
    for name, rows in of_functions.items():
        parts = ROTATING.get(name.split("::")[0].removeprefix("tests/"), 1)
        if len(rows) >= parts > 1:
            found.update(set(rows) - set(rotating(rows, parts)))
    return found
