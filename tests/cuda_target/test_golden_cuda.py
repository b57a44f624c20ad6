"""Golden texts: the CUDA C of typical kernels, one of each kind.

`pytest tests/cuda_target --update-golden` writes the texts anew; read the difference before
keeping it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import interpret_program, run_program
from kernel_cases import CASES, inputs_of
from tgraph.compiler.targets.cuda.program import cuda_program
from tgraph.compiler.targets.cuda.schedule import CudaSchedule, Layout

FOLDER = Path(__file__).parent / "golden"


def text_of(name: str) -> str:
    """The launches of a program, then its kernels without the library in front of them."""
    program = cuda_program(CASES[name]())
    kernels = program.source.split('extern "C"', 1)
    heads = [f"// {info.schedule.summary()}" for info in program.kernels if info.schedule]
    lines = [f"// {line}".rstrip() for line in str(program).splitlines()]
    return "\n".join([*lines, *heads, f'extern "C"{kernels[1]}'])


@pytest.mark.parametrize("name", CASES)
def test_golden(name, request):
    file = FOLDER / f"{name}.cu"
    found = text_of(name)
    if request.config.getoption("--update-golden"):
        file.write_text(found)
    assert found == file.read_text()


@pytest.fixture(scope="module")
def programs():
    """Of all cases, compiled together."""
    found = {name: cuda_program(make()) for name, make in CASES.items()}
    shim.compile_together(program.source for program in found.values())
    return found


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
@pytest.mark.parametrize("name", CASES)
def test_kernels_do_what_their_loop_programs_mean(name, programs):
    program, inputs = programs[name], inputs_of(CASES[name]())
    expected = interpret_program(program, inputs)
    for order in ("forward", "shuffled"):
        found = run_program(program, inputs, order, seed=1)
        for have, want in zip(found, expected, strict=True):
            tolerance = 2e-3 if want.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance)


def test_no_golden_text_is_left_over():
    assert {file.stem for file in FOLDER.glob("*.cu")} == set(CASES)


def test_the_texts_have_every_layout():
    layouts = {
        info.schedule.layout
        for make in CASES.values()
        for info in cuda_program(make()).kernels
        if isinstance(info.schedule, CudaSchedule)
    }
    assert layouts == set(Layout)


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_are_loaded_once(name):
    """Later stages take the row from registers."""
    (info,) = cuda_program(CASES[name]()).kernels
    loads = [
        instr
        for instr in info.schedule.kernel.instructions()
        if instr.op == "load" and instr.param == 0
    ]
    assert len(loads) == 1
