"""The benchmarks of sizes that vary, of sessions and of Python's loops run every case."""

import pytest
from tgraph.compiler.passes import roll_loops

from benchmarks import new_sizes, python_loops, sessions


@pytest.mark.parametrize("name", new_sizes.CASES)
def test_cases_run(name):
    for dynamic in (True, False):
        numbers = new_sizes.measure(name, dynamic, (4, 3), calls=2)
        assert len(numbers) == 3 and min(numbers) > 0


@pytest.mark.parametrize("name", sessions.CASES)
def test_sessions_are_measured(name):
    numbers = sessions.measure(name, rounds=1, seconds=0)
    assert len(numbers) == 4 and min(numbers.values()) > 0


@pytest.mark.parametrize("name", python_loops.CASES)
def test_loops_are_measured_rolled_and_written_out(name, monkeypatch):
    monkeypatch.setattr(roll_loops, "FEWEST_NODES", roll_loops.FEWEST_NODES)  # which it switches
    numbers = python_loops.steady_calls(name, turns=5, rounds=1)
    assert len(numbers) == 2 and min(numbers) > 0
