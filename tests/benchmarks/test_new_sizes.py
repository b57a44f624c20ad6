"""The benchmark of sizes that vary runs every case."""

import pytest

from benchmarks import new_sizes


@pytest.mark.parametrize("name", new_sizes.CASES)
def test_cases_run(name):
    for dynamic in (True, False):
        numbers = new_sizes.measure(name, dynamic, (4, 3), calls=2)
        assert len(numbers) == 3 and min(numbers) > 0
