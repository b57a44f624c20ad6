"""Which part of long tables a run takes: another one with each commit, all of them in ten.

Of the test functions in `LIST`, which `costs.py` writes, a part of the rows runs that each is
parametrized with; those that have no rows run in one of so many commits. Of tests marked slow,
which CI runs too, one of `SLOW_PARTS` runs. `rotating` takes a part of a table inside of a test.

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
from zlib import crc32

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

MOST_PARTS = 10
"""Tables have no more parts, so that ten commits see every row."""

ROTATED = "rotated"
"""The marker of rows that run with another commit."""

LIST = Path(__file__).parent / "rotating.txt"
"""Test functions that take long, and in how many commits all their rows have run."""

SLOW_PARTS = 10
"""In so many commits all slow tests have run, which take as long as all others."""


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
    named |= config.option.markexpr == "slow"
    whole = whole or (named and "TGRAPH_TURN" not in os.environ)


asked = 0
"""How often `rotating` was called: a test that does takes its part by itself."""


class Part(list[T]):
    """The rows of a table whose turn it is."""


def rotating(rows: Iterable[T], parts: int) -> Part[T]:
    """This turn's part of `rows`: every `parts`-th row, beginning with another one at each turn."""
    global asked
    asked += 1
    if not 1 <= parts <= MOST_PARTS:
        raise ValueError(f"rotating(): expected 1 to {MOST_PARTS} parts, got {parts}")
    every = Part(rows)
    parts = 1 if whole else min(parts, len(every))
    return Part(every[TURN % parts :: parts]) if every else every


def has_part(item: pytest.Item) -> bool:
    """Whether a test is one of the rows that `rotating` gave."""
    marks = item.iter_markers("parametrize")
    return any(isinstance(each, Part) for mark in marks for each in mark.args)


def first_seed(count: int) -> int:
    """The first of `count` seeds of random programs: of twice as many, every other commit's."""
    return TURN % 2 * count


def function_of(item: pytest.Item) -> str:
    """`compile/test_scans.py::test_values` for each of its rows."""
    return item.nodeid.split("[")[0].removeprefix("tests/")


def listed() -> dict[str, int]:
    """What `LIST` has."""
    rows = [line.split() for line in LIST.read_text().splitlines() if not line.startswith("#")]
    return {name: int(parts) for parts, name in rows}


def write(rows: Iterable[str]) -> None:
    """Write `LIST` anew."""
    head = "# In how many commits all rows of a test function have run. Written by costs.py.\n"
    LIST.write_text(head + "\n".join(rows) + "\n")


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The slow tests, and those of `LIST`, whose turn this is not."""
    if whole:
        return set()
    parts = listed()
    of_functions: dict[str, list[pytest.Item]] = defaultdict(list)
    slow: list[pytest.Item] = []
    for item in items:
        if has_part(item):
            continue  # parts of a part would never come all
        if item.get_closest_marker("slow"):
            slow.append(item)
        elif function_of(item) in parts:
            of_functions[function_of(item)].append(item)
    found = set(slow) - set(rotating(slow, SLOW_PARTS))
    for name, rows in of_functions.items():
        first = TURN + crc32(name.encode())  # other functions take other turns
        found.update(row for at, row in enumerate(rows) if (first + at) % parts[name])
    return found
