"""Every operation as a CUDA program: run on the CPU, it agrees with eager evaluation.

So do the loop programs of its kernels, by the interpreter.
"""

from __future__ import annotations

import pytest
from cuda_tools import shim
from cuda_tools.programs import forward, gradient, program_of
from cuda_tools.run_program import interpret_program, run_program
from sampling import sampled
from test_ops import COMPILED, SMOOTH, check_values, ids

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shim.available() is not None, reason=str(shim.available())),
]
DERIVED = [case for case in SMOOTH if case.compiles]
# Units of the dtype's spacing: CUDA's float functions are allowed two more than ours.
SLACK = 16


def run_and_compare(case, function, inputs, tolerance):
    program, arrays, expected = program_of(function, inputs)
    runs = [run_program(program, arrays, order, seed=1) for order in ("forward", "shuffled")]
    for found in (*runs, interpret_program(program, arrays)):
        for have, want in zip(found, expected, strict=True):
            check_values(have, want, tolerance, case.name)


@pytest.mark.parametrize("case", sampled(COMPILED, 3), ids=ids)
def test_forward(case):
    function, inputs = forward(case)
    run_and_compare(case, function, inputs, case.tolerance + SLACK)


# Some rows: gradients are made of what other rows compute.
@pytest.mark.parametrize("case", sampled(DERIVED, 5), ids=ids)
def test_gradient(case):
    function, inputs = gradient(case)
    run_and_compare(case, function, inputs, 1e6)
