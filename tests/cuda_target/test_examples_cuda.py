"""Every kernel that the examples would run on CUDA: compiled, run on the CPU, and interpreted."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_tools import nvrtc, shim
from cuda_tools.run_program import interpret_program, run_program
from random_graphs.engines import run_eagerly
from test_compiling import ARCHITECTURES, within_budget
from tgraph.compiler.ir import Graph
from tgraph.compiler.moved_graph import with_one_host
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.compiler.targets.cuda.program import cuda_program

from tgraph.compiled import graph_function

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shim.available() is not None, reason=str(shim.available())),
]
EXAMPLES = Path(__file__).parents[2] / "examples"
# Kernels run one thread after another here: not those of whole networks.
SMALL = (
    "compile_function", "control_flow", "gauss_newton", "gradients", "per_sample_gradients",
    "quickstart",
)  # fmt: skip


class Run(NamedTuple):
    graph: Graph
    arrays: list[np.ndarray[Any, Any]]


@pytest.fixture
def runs(monkeypatch) -> list[Run]:
    """The graphs that are compiled from now on, with the inputs of their first run."""
    graphs: dict[int, tuple[Any, Graph]] = {}
    found: dict[int, Run] = {}
    compile_graph, run = graph_function.compile_graph, CpuExecutable.run

    def compiled(graph: Graph, **options: Any) -> Any:
        executable = compile_graph(graph, **options)
        graphs[id(executable)] = executable, with_one_host(graph)
        return executable

    def recorded(self: CpuExecutable, inputs: Any) -> Any:
        if id(self) in graphs and id(self) not in found:
            copies = [np.array(each, order="C") for each in inputs]
            found[id(self)] = Run(graphs[id(self)][1], copies)
            everything.append(found[id(self)])
        return run(self, inputs)

    everything: list[Run] = []
    monkeypatch.setattr(graph_function, "compile_graph", compiled)
    monkeypatch.setattr(CpuExecutable, "run", recorded)
    return everything


def check(runs: list[Run]) -> int:
    """Compare all ways to run the kernels; gives how many launches there are."""
    launches = 0
    for run in runs:
        values = run_eagerly(run.graph, run.arrays)
        program = cuda_program(run.graph)
        launches += len(program.launches)
        found = [run_program(program, run.arrays, order) for order in ("forward", "shuffled")]
        for results in (*found, interpret_program(program, run.arrays)):
            for node, have in zip(run.graph.outputs, results, strict=True):
                want = values[node].astype(np.float64)
                scale = np.abs(want).max(initial=1e-30)
                np.testing.assert_allclose(have / scale, want / scale, atol=2e-5, rtol=1e-3)
        if nvrtc.available() is None and program.launches:
            for arch in ARCHITECTURES:
                cubin = nvrtc.compile_cubin(cuda_program(run.graph, arch).source, arch)
                for name, usage in cubin.kernels.items():
                    within_budget(name, usage, arch)
    return launches


@pytest.mark.parametrize("name", SMALL)
def test_small_examples(runs, monkeypatch, tmp_path, name):
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    launches = check(runs)  # eager mode compiles what it repeats
    assert launches or "compile" not in (EXAMPLES / f"{name}.py").read_text()


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_training_on_digits(runs, tmp_path, name):
    pytest.importorskip("sklearn")
    example = runpy.run_path(str(EXAMPLES / "digits.py"))
    example["train"].__globals__.update(OUT=tmp_path, BATCH=48)
    example["train"](name, example[name], True, 1, 0, "cpu")
    assert check(runs) > 3
