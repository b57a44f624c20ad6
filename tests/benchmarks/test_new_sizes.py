"""The benchmarks of sizes that vary, and of sessions, run every case."""

import pytest

from benchmarks import new_sizes, sessions


@pytest.mark.parametrize("name", new_sizes.CASES)
def test_cases_run(name):
    for dynamic in (True, False):
        numbers = new_sizes.measure(name, dynamic, (4, 3), calls=2)
        assert len(numbers) == 3 and min(numbers) > 0


@pytest.mark.parametrize("name", sessions.CASES)
def test_sessions_are_measured(name):
    numbers = sessions.measure(name, rounds=1, seconds=0)
    assert len(numbers) == 4 and min(numbers.values()) > 0
