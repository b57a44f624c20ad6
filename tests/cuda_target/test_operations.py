"""Every operation as a CUDA program: run on the CPU, it agrees with eager evaluation.

So do the loop programs of its kernels, by the interpreter.
"""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from cuda_tools import shim
from cuda_tools.programs import forward, gradient, program_of
from cuda_tools.run_program import interpret_program, run_program
from sampling import rotating
from test_ops import COMPILED, SMOOTH, check_values, ids

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shim.available() is not None, reason=str(shim.available())),
]
DERIVED = [case for case in SMOOTH if case.compiles]
# Units of the dtype's spacing: CUDA's float functions are allowed two more than ours.
SLACK = 16
TOGETHER = 16


def run_and_compare(rows, make, tolerance_of):
    """What `make` gives of each row, as a program; all of them are compiled together."""
    programs = {}
    for case in rows:
        with naming(case):
            programs[case.name] = program_of(*make(case))
    sources = [program.source for program, *_ in programs.values() if program.launches]
    shim.compile_together(sources)
    for case in rows:
        with naming(case):
            compare(*programs[case.name], tolerance_of(case))


@contextmanager
def naming(case):
    """Errors of a row tell its name."""
    try:
        yield
    except Exception as error:
        error.add_note(f"the row is {case.name}")
        raise


def compare(program, arrays, expected, tolerance):
    runs = [run_program(program, arrays, order, seed=1) for order in ("forward", "shuffled")]
    for found in (*runs, interpret_program(program, arrays)):
        for have, want in zip(found, expected, strict=True):
            if want.dtype.kind == "c":  # programs have them as pairs of real numbers
                have = have.view(want.dtype)[..., 0]
            check_values(have, want, tolerance, str(program))


def together(rows):
    """Rows whose kernels share the files of the compiler."""
    return [rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER)]


def names(rows):
    return f"{ids(rows[0])} to {ids(rows[-1])}"


@pytest.mark.parametrize("rows", rotating(together(COMPILED), 3), ids=names)
def test_forward(rows):
    run_and_compare(rows, forward, lambda case: case.tolerance + SLACK)


# Some rows: gradients are made of what other rows compute.
@pytest.mark.parametrize("rows", rotating(together(DERIVED), 5), ids=names)
def test_gradient(rows):
    run_and_compare(rows, gradient, lambda case: 1e6)
