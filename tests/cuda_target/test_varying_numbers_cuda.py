"""Numbers in the texts of CUDA kernels as parameters: they mean what they meant in the text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import run_program
from kernel_cases import CASES
from random_graphs.check import case_of, program_of_seed
from tgraph.compiler import pipeline
from tgraph.compiler.ir import Graph
from tgraph.compiler.kernel.varying_texts import Families
from tgraph.compiler.targets.cuda import varying_numbers
from tgraph.compiler.targets.cuda.passes import CUDA_PASSES
from tgraph.compiler.targets.cuda.program import CudaProgram
from tgraph.compiler.targets.cuda.varying_numbers import TAKEN_HERE, Number, with_parameters

NEEDS_COMPILER = pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))


class All(Families):
    """Takes every number for one that varies."""

    def varying(self, form: Any, numbers: Sequence[Any], always: Collection[int] = ()) -> list[int]:
        return list(range(len(numbers)))


@pytest.fixture
def every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varying_numbers, "_families", All())
    monkeypatch.setattr(varying_numbers, "MOST_PARAMETERS", 1 << 20)


def program(graph: Graph, **ways: Any) -> CudaProgram:
    return CudaProgram(pipeline.optimize(graph, passes=CUDA_PASSES), **ways)


def inputs_of(graph: Graph) -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for node in graph.inputs:
        shape, dtype = node.type.shape, node.type.dtype.numpy
        small = node.type.dtype.kind in ("int", "uint", "bool")
        values = rng.integers(0, 2, shape) if small else rng.standard_normal(shape)
        found.append(values.astype(dtype))
    return found


def check(rows: Mapping[str, tuple[Graph, Sequence[Any]]]) -> None:
    """The same bits with numbers in the text and beside it, and with values in the launch."""
    pairs = {}
    for name, (graph, _) in rows.items():
        small = [at for at, node in enumerate(graph.inputs) if node.type.nbytes <= 16]
        pairs[name] = program(graph), program(graph, eager=True, from_host=small)
    shim.compile_together(each.source for pair in pairs.values() for each in pair)
    for name, pair in pairs.items():
        expected, found = (run_program(each, rows[name][1]) for each in pair)
        for have, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=name)


@NEEDS_COMPILER
def test_kernels_of_every_class(every_number: None) -> None:
    graphs = {name: make() for name, make in CASES.items()}
    check({name: (graph, inputs_of(graph)) for name, graph in graphs.items()})


@NEEDS_COMPILER
def test_random_graphs(every_number: None) -> None:
    cases = {f"seed {seed}": case_of(program_of_seed(seed)) for seed in range(16)}
    check({name: (case.graph, case.arrays) for name, case in cases.items()})


@NEEDS_COMPILER
def test_kernels_without_vectors(every_number: None) -> None:
    for name in ("gelu", "softmax", "layer_norm", "scan"):
        graph, inputs = CASES[name](), inputs_of(CASES[name]())
        found = program(graph, eager=True, aligned=False)
        assert not found.needs_alignment
        code = found.source.partition('extern "C"')[2]
        assert "Pack<" in program(graph).source.partition('extern "C"')[2]
        assert "Pack<" not in code
        for have, want in zip(run_program(found, inputs), run_program(program(graph), inputs)):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_they_compile(every_number: None, arch: str) -> None:
    if reason := nvrtc.available():
        pytest.skip(reason)
    for name in ("gelu", "softmax", "dropout", "transpose", "column_sum", "loss"):
        graph = CASES[name]()
        small = [at for at, node in enumerate(graph.inputs) if node.type.nbytes <= 16]
        found = program(graph, arch=arch, eager=True, from_host=small)
        cubin = nvrtc.compile_cubin(found.source, arch)
        assert all(usage.spill_bytes == 0 for usage in cubin.kernels.values())


# -- which are parameters --------------------------------------------------------------------


def text(items: int, divisor: int, step: int = 7) -> str:
    free, cut = (Number("int", items, free=True), Number("int", divisor, free=False))
    return f"f(int* x{TAKEN_HERE}) {{ x[i / {cut.marked()} * {step}] < {free.marked()}; }}"


def test_what_is_divided_by_stays_in_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varying_numbers, "_families", Families())

    def taken(*numbers: int) -> tuple[str, list[int]]:
        found, taken = with_parameters(text(*numbers))
        return found, [number.value for number in taken]

    first = "f(int* x, const int number0) { x[i / 4 * 7] < number0; }"
    other = "f(int* x, const int number0, const int number1) { x[i / number0 * 7] < number1; }"
    assert taken(100, 4) == (first, [100])
    assert taken(200, 4) == (first, [200])
    assert taken(200, 5) == (other, [5, 200])
    assert taken(9, 6) == (other, [6, 9])
    assert taken(9, 4) == (first, [9])
    assert taken(9, 4, 8)[0] == first.replace("7", "8")  # no number that varies
    assert with_parameters("no marks") == ("no marks", ())


def test_floats_are_told_apart_by_their_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varying_numbers, "_families", Families())

    def scaled(literal: str, bits: int) -> tuple[str, list[int]]:
        mark = Number("float", bits, False, literal).marked()
        found, taken = with_parameters(f"f(float x{TAKEN_HERE}) {{ return x * {mark}; }}")
        return found, [number.value for number in taken]

    assert scaled("0.0f", 0) == ("f(float x) { return x * 0.0f; }", [])
    other = "f(float x, const float number0) { return x * number0; }"
    assert scaled("(-0.0f)", -(2**31)) == (other, [-(2**31)])
    assert scaled("1.0f", 1065353216) == (other, [1065353216])
