"""Every kernel of the table of operations and of typical programs compiles for real GPUs."""

from __future__ import annotations

import pytest
from cuda_tools import nvrtc
from cuda_tools.programs import forward, gradient, program_of
from kernel_cases import CASES
from test_ops import COMPILED, SMOOTH, ids
from tgraph.compiler.cuda_program import Program

pytestmark = pytest.mark.slow
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
DERIVED = [case for case in SMOOTH if case.compiles]
# Of a thread: with more, less than a quarter of a multiprocessor's threads would fit.
MOST_REGISTERS = 128
# Bytes: what is alive around a call, as the slow path of a division is one, goes to the stack.
MOST_SPILLED = 128


@pytest.fixture(autouse=True)
def needs_nvrtc():
    if reason := nvrtc.available():
        pytest.skip(reason)


def compiles(program: Program, arch: str) -> nvrtc.Cubin:
    """The module's code, within the budget of every kernel."""
    cubin = nvrtc.compile_cubin(program.source, arch)
    assert set(cubin.kernels) == {launch.name for launch in program.launches}
    for name, usage in cubin.kernels.items():
        assert usage.spill_bytes <= MOST_SPILLED, f"{name} spills {usage.spill_bytes} on {arch}"
        assert usage.registers <= MOST_REGISTERS, f"{name} has {usage.registers} registers"
    return cubin


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_typical_kernels(name, arch):
    compiles(Program(CASES[name](), arch), arch)


@pytest.mark.parametrize("case", COMPILED, ids=ids)
def test_operations(case):
    program, *_ = program_of(*forward(case))
    if program.launches:
        compiles(program, ARCHITECTURES[len(case.name) % 3])


@pytest.mark.parametrize("case", DERIVED, ids=ids)
def test_gradients(case):
    program, *_ = program_of(*gradient(case))
    if program.launches:
        compiles(program, ARCHITECTURES[len(case.name) % 3])


VECTORS = ("gelu", "softmax", "layer_norm", "half_precision", "dropout", "several_outputs")


@pytest.mark.parametrize("name", VECTORS)
def test_contiguous_rows_are_read_as_vectors(name):
    if reason := nvrtc.disassembler_available():
        pytest.skip(reason)
    program = Program(CASES[name](), "sm_90")
    text = nvrtc.sass(compiles(program, "sm_90"))
    assert "LDG.E.128" in text and "STG.E.128" in text
