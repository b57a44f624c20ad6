"""Random graphs as CUDA programs: their kernels, run on the CPU, must agree with eager evaluation.

`pytest tests/cuda/test_random_cuda.py --graphs 10000` checks more of them.
"""

from __future__ import annotations

import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program
from random_graphs import check
from random_graphs.check import Mismatch, case_of, program_of_seed, report
from tgraph.compiler.cuda_program import Program

pytestmark = [pytest.mark.slow]
CHUNKS = 10
SHOWN = 3


def run_on_shim(case):
    """The engine: programs read contiguous arrays; every other graph runs in a shuffled order."""
    order = "shuffled" if len(case.graph.nodes) % 2 else "forward"
    return run_program(Program(case.graph), case.arrays, order, seed=len(case.graph.nodes))


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_of_random_graphs(chunk, request, monkeypatch):
    monkeypatch.setitem(check.RUN, "cuda", run_on_shim)
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    failures = []
    for seed in range(first + chunk, first + count, CHUNKS):
        case = case_of(program_of_seed(seed))
        try:
            check.check(case, ["cuda"])
        except Mismatch as mismatch:
            failures.append(report(seed, case, mismatch))
            if len(failures) == SHOWN:
                break
    assert not failures, "\n\n".join(failures)
