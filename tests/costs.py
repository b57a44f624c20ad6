"""Measures what each test function costs, and writes rotating.txt: which of them rotate.

python tests/costs.py          # all fast tests, with all their rows: an hour of one core

As a plugin of pytest (`-p costs`) it writes, for each process of a run, the seconds of processor
time that each test function took, its processes and threads included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil, sqrt
from pathlib import Path

import pytest
import sampling

SECONDS = 0.1
"""So long a test function may take and run whole; one that takes 100 times as long has 10 parts."""


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before, asked = _processor_time(), sampling.asked
    yield
    if sampling.asked == asked and not sampling.has_part(item):
        _costs[sampling.function_of(item)] += _processor_time() - before


def pytest_sessionfinish() -> None:
    if _costs:
        Path(os.environ["TGRAPH_COSTS"], str(os.getpid())).write_text(json.dumps(_costs))


_costs: Counter[str] = Counter()


def _processor_time() -> float:
    return sum(os.times()[:4])


def lines(costs: Mapping[str, float]) -> list[str]:
    """The lines of rotating.txt."""
    parts = {name: ceil(sqrt(cost / SECONDS)) for name, cost in costs.items()}
    found = {name: min(each, sampling.MOST_PARTS) for name, each in parts.items()}
    return [f"{parts:2} {name}" for name, parts in sorted(found.items()) if parts > 1]


def main() -> int:
    tests = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "TGRAPH_ALL_ROWS": "1", "TGRAPH_COSTS": folder}
        environ["PYTHONPATH"] = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-p", "costs", "-n", "2", "--dist", "worksteal"]
        result = subprocess.run([*command, *sys.argv[1:]], env=environ, cwd=tests.parent)
        costs: Counter[str] = Counter()
        for each in Path(folder).iterdir():
            costs.update(json.loads(each.read_text()))
    if result.returncode == 0:
        sampling.write(lines(costs))
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
