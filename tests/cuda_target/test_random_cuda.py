"""Random graphs as CUDA programs: their kernels, run on the CPU, must agree with eager evaluation.

`pytest tests/cuda_target/test_random_cuda.py --graphs 10000` checks more of them.
"""

from __future__ import annotations

from functools import lru_cache

import pytest
from cuda_tools import shim
from cuda_tools.run_program import interpret_program, run_program
from random_graphs import check
from random_graphs.check import Mismatch, case_of, program_of_seed, report
from random_graphs.enclose import enclosed, turns
from tgraph.compiler.targets.cuda.program import cuda_program

pytestmark = [pytest.mark.slow]
CHUNKS = 10
SHOWN = 3


@lru_cache(1)
def program_of(graph):
    return cuda_program(graph)


def engine(order):
    """Runs the program of a case on contiguous arrays."""
    return lambda case: run_program(program_of(case.graph), case.arrays, order, seed=7)


ENGINES = {
    "in order": engine("forward"),
    "shuffled": engine("shuffled"),
    "interpreted": lambda case: interpret_program(program_of(case.graph), case.arrays),
}
ENCLOSED = {
    "enclosed": lambda case: run_program(
        cuda_program(enclosed(case.graph)), (*case.arrays, turns()), "shuffled", seed=7
    )
}


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("engines, part", [(ENGINES, 4), (ENCLOSED, 20)], ids=["", "enclosed"])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_of_random_graphs(chunk, engines, part, request, monkeypatch):
    monkeypatch.setattr(check, "RUN", engines)
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    failures = []
    for seed in range(first + chunk, first + count // part, CHUNKS):
        case = case_of(program_of_seed(seed))
        try:
            check.check(case, list(engines))
        except Mismatch as mismatch:
            failures.append(report(seed, case, mismatch))
            if len(failures) == SHOWN:
                break
    assert not failures, "\n\n".join(failures)
