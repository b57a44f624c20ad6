"""The same kernels on a CUDA device and on the shim: a sample of what is compiled to them.

`make gpu` runs these on a GPU; where there is none the device is the host too. Without a C++
compiler the results of eager evaluation are all that the device is held to.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from convolution_cases import convolution, random_shapes
from cuda_tools import shim
from cuda_tools.programs import forward, gradient, program_of
from cuda_tools.run_program import run_program
from kernel_cases import CASES, Make, inputs_of
from random_graphs import check
from random_graphs.enclose import enclosed, turns
from random_graphs.engines import run_eagerly
from scatter_cases import random_case
from test_ops import COMPILED, SMOOTH, check_values, ids
from tgraph.compiler.ir import Graph
from tgraph.compiler.plan.request import Request
from tgraph.compiler.targets.cuda.target import CudaTarget
from tgraph.runtime.cuda import segments
from tgraph.runtime.cuda.arrays import download, upload
from tgraph.runtime.dtypes import DType, bfloat16, bool_, float16, float32, float64, int32, int64

pytest_plugins = ["cuda_tools.device"]

Array = np.ndarray[Any, Any]
CALLS = 3  # launched, captured, replayed
# Units of the dtype's spacing: CUDA's float functions are allowed two more than the shim's.
SLACK = 16
# Of the largest result: order of summation, fused products, and the rounding of 16-bit floats.
TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "float16": 2e-2, "bfloat16": 2e-1}
DTYPES = (float32, float32, float64, float16, bfloat16, int32, int64, bool_)
SPARSE = 9


def run_everywhere(graph: Graph, arrays: Sequence[Array], device: Any) -> list[list[Array]]:
    """The results of each call on the device, and of the shim where kernels can run on it."""
    executable = CudaTarget(device).compile(Request(graph))
    there = [upload(np.asarray(each, order="C"), device) for each in arrays]
    found = []
    for _ in range(CALLS):
        # Nothing is kept on the device, so that the next call gets the same addresses.
        found.append([download(each) for each in executable.run(there)])
    if shim.available() is None:
        found.append(run_program(executable.program, arrays, "shuffled", seed=1))
    return found


def check_row(function: Any, inputs: list[Any], device: Any, tolerance: float, what: str) -> None:
    program, arrays, expected = program_of(function, inputs)
    for number, results in enumerate(run_everywhere(program.graph, arrays, device)):
        who = f"{what}, call {number + 1}" if number < CALLS else f"{what}, shim"
        for have, want in zip(results, expected, strict=True):
            check_values(have, want, tolerance, who)


def check_graph(graph: Graph, arrays: Sequence[Array], device: Any) -> None:
    values = run_eagerly(graph, arrays)
    wanted = [values[node] for node in graph.outputs]
    calls = run_everywhere(graph, arrays, device)
    for results in calls:
        for have, want, node in zip(results, wanted, graph.outputs, strict=True):
            close(have, want, node.type.dtype)
    for again in calls[1:CALLS]:
        for have, first in zip(again, calls[0], strict=True):
            np.testing.assert_array_equal(have, first, err_msg="two calls differ")


def close(have: Array, want: Array, dtype: DType) -> None:
    if dtype.kind != "float":
        np.testing.assert_array_equal(have, want)
        return
    wide = want.astype(np.float64)
    limit = TOLERANCE[dtype.name] * (1 + np.abs(wide).max(initial=0))
    np.testing.assert_allclose(have.astype(np.float64), wide, rtol=0, atol=limit)


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED[::SPARSE], ids=ids)
def test_rows(cuda, case):
    function, inputs = forward(case)
    check_row(function, inputs, cuda, case.tolerance + SLACK, case.name)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in SMOOTH if case.compiles][::SPARSE], ids=ids)
def test_gradients(cuda, case):
    function, inputs = gradient(case)
    check_row(function, inputs, cuda, 1e6, case.name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 212))
def test_scatters(cuda, seed):
    check_graph(*random_case(seed, DTYPES), cuda)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 212))
def test_convolutions(cuda, seed):
    rng = random.Random(seed)
    make = Make()
    dtype, view = rng.choice((float32, float64, float16)), rng.choice(("", "swapped", "flipped"))
    graph = make.graph(convolution(make, random_shapes(rng), dtype, view))
    numbers = np.random.default_rng(seed)
    arrays = [
        numbers.standard_normal(each.shape).astype(each.type.dtype.numpy) for each in graph.inputs
    ]
    check_graph(graph, arrays, cuda)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 224))
def test_random_graphs_in_branches_and_loops(cuda, seed, monkeypatch):
    """Also in graphs of few turns."""

    def run(case):
        found = run_everywhere(enclosed(case.graph), (*case.arrays, turns()), cuda)
        for again in found[1:CALLS]:
            for have, first in zip(again, found[0], strict=True):
                np.testing.assert_array_equal(have, first, err_msg="two calls differ")
        return found[CALLS - 1]

    monkeypatch.setattr(segments, "MOST_STEPS", (4, 2048)[seed % 2])
    monkeypatch.setitem(check.RUN, "on the device", run)
    check.check(check.case_of(check.program_of_seed(seed)), ["on the device"])


@pytest.mark.parametrize("name", CASES)
def test_kernel_classes(cuda, name):
    graph = CASES[name]()
    check_graph(graph, inputs_of(graph), cuda)


def test_one_of_each(cuda):
    """What the slow tests do, for one row."""
    case = next(case for case in COMPILED if case.name.startswith("softmax"))
    function, inputs = forward(case)
    check_row(function, inputs, cuda, case.tolerance + SLACK, case.name)
