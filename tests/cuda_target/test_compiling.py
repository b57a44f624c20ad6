"""Every kernel of the table of operations and of typical programs compiles for real GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cuda_tools import nvrtc
from cuda_tools.programs import forward, gradient, program_of
from kernel_cases import CASES
from random_graphs.check import case_of, program_of_seed
from test_ops import COMPILED, SMOOTH
from tgraph.compiler.targets.cuda.device_library import library_text
from tgraph.compiler.targets.cuda.module_text import module_text
from tgraph.compiler.targets.cuda.program import CudaProgram, cuda_program

import tgraph as tg

pytestmark = pytest.mark.slow
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
CHUNKS = 16
DERIVED = [case for case in SMOOTH if case.compiles]
# Of a thread: with more, less than a quarter of a multiprocessor's threads would fit.
MOST_REGISTERS = 128
# Some keep two dozen float64 at a time, as rows of many operations do; shared rows bound more.
MOST_OF_RANDOM_GRAPHS = 168
# Bytes: what is alive around a call, as the slow path of a division is one, goes to the stack.
MOST_SPILLED = 128
# Kernels that hold more: the corners of a cell and their weights, the time steps of a row whose
# labels a whole block adds up, and complex products of vectors by two functions of a row.
LARGER = {
    "gradient of grid_sample bilinear reflection 3d": (192, 128),
    "ctc_loss": (128, 640),
    "gradient of linalg.eigvals,linalg.eig": (192, 128),
}


@pytest.fixture(autouse=True)
def needs_nvrtc():
    if reason := nvrtc.available():
        pytest.skip(reason)


def compiles(program: CudaProgram, arch: str, most: int = MOST_REGISTERS) -> nvrtc.Cubin:
    """The module's code, within the budget of every kernel."""
    cubin = nvrtc.compile_cubin(program.source, arch)
    assert set(cubin.kernels) == {launch.name for launch in program.launches}
    for launch in program.launches:
        assert (
            cubin.kernels[launch.name].shared_bytes == program.shared[launch.name] - launch.shared
        )
    for name, usage in cubin.kernels.items():
        within_budget(name, usage, arch, most)
    return cubin


def within_budget(
    name: str,
    usage: nvrtc.Usage,
    arch: str,
    most: int = MOST_REGISTERS,
    spilled: int = MOST_SPILLED,
) -> None:
    assert usage.spill_bytes <= spilled, f"{name} spills {usage.spill_bytes} on {arch}"
    assert usage.registers <= most, f"{name} has {usage.registers} registers on {arch}"


def budget(name: str) -> tuple[int, int]:
    """Registers and spilled bytes of the kernels of a program."""
    many = name.startswith("random") or "," in name
    return LARGER.get(name, (MOST_OF_RANDOM_GRAPHS if many else MOST_REGISTERS, MOST_SPILLED))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES)
def test_typical_kernels(name, arch):
    compiles(cuda_program(CASES[name](), arch), arch)


def sources(chunk: int, graphs: int, first: int) -> Iterator[tuple[str, CudaProgram]]:
    """The programs of a part of the table, of its gradients and of random graphs, by their names.

    Those that keep rows in shared memory differ by architecture, and are compiled at once.
    """
    for case in COMPILED[chunk::CHUNKS]:
        yield case.name, program_of(*forward(case))[0]
    for case in DERIVED[chunk::CHUNKS]:
        yield f"gradient of {case.name}", program_of(*gradient(case))[0]
    for seed in range(first + chunk, first + graphs // 6, CHUNKS):
        graph = case_of(program_of_seed(seed)).graph
        program = cuda_program(graph)
        if any(launch.shared for launch in program.launches):
            for arch in ARCHITECTURES:
                compiles(cuda_program(graph, arch), arch, MOST_OF_RANDOM_GRAPHS)
            continue
        yield f"random graph {seed}", program


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_operations_and_random_graphs(chunk, request):
    """As one module, for one of the architectures: the library in front is compiled once."""
    texts = {}
    graphs, first = request.config.getoption("graphs"), request.config.getoption("seed")
    for name, program in sources(chunk, graphs, first):
        if any(launch.shared for launch in program.launches):  # which differ by architecture
            compiles(program, "sm_90", budget(name)[0])
            continue
        kernels = program.source.removeprefix(library_text())
        texts[name] = re.sub(r"\b(k\d+_|copy\d|loop\d)", rf"p{len(texts)}_\1", kernels)
    names = list(texts)
    arch = ARCHITECTURES[chunk % len(ARCHITECTURES)]
    cubin = nvrtc.compile_cubin(module_text(texts.values()), arch)
    assert len(cubin.kernels) > CHUNKS
    for kernel, usage in cubin.kernels.items():
        name = names[int(kernel[1:].split("_")[0])]
        within_budget(f"{kernel} of {name}", usage, arch, *budget(name))


@pytest.mark.parametrize("dtype", [tg.float32, tg.bfloat16, tg.float64], ids=str)
@pytest.mark.parametrize("length", [1000, 8192, 16_384, 32_768, 50_257])
def test_rows_that_are_kept_do_not_spill(length, dtype):
    def gradient(x, g):
        return tg.vjp(lambda x: tg.softmax(x, -1), x)[1](g)

    x = tg.zeros(300, length, dtype=dtype)
    for usage in compiles(tg.cuda.program(gradient, x, x), "sm_90").kernels.values():
        assert usage.spill_bytes == 0


VECTORS = ("gelu", "softmax", "layer_norm", "half_precision", "dropout", "several_outputs")


@pytest.mark.parametrize("name", VECTORS)
def test_contiguous_rows_are_read_as_vectors(name):
    if reason := nvrtc.disassembler_available():
        pytest.skip(reason)
    program = cuda_program(CASES[name](), "sm_90")
    text = nvrtc.sass(compiles(program, "sm_90"))
    assert "LDG.E.128" in text and "STG.E.128" in text
