"""Programs: what a function becomes on each target, without a device."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.compiler.ir import Builder, Graph, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.executable import CpuExecutable
from tgraph.compiler.targets.cpu.program import CpuProgram, cpu_program
from tgraph.runtime import jit
from tgraph.runtime.device import Device
from tgraph.runtime.dtypes import float32

import tgraph as tg


def layer(x, weight, bias):
    return tg.softmax(x @ weight + bias, -1), x.sum(0)


@pytest.fixture
def arguments():
    return tg.randn(32, 48), tg.randn(48, 64), tg.randn(64)


@pytest.mark.parametrize("make", [tg.tracing.program, tg.cuda.program])
def test_a_program_is_read_saved_and_drawn(make, arguments, tmp_path):
    program = make(layer, *arguments)
    lines = str(program).splitlines()
    assert lines[0] == program.title and any("gemm matmul" in line for line in lines)
    names = [info.name for info in program.kernels if info.kind == "kernel"]
    assert names and all(name in str(program) and name in program.source for name in names)
    assert [b.name for b in program.buffers.values() if b.kind == "input"] == [
        "x",
        "weight",
        "bias",
    ]
    saved = program.save(tmp_path / "program")
    assert (saved / f"kernels{program.ending}").read_text() == program.source
    assert (saved / "program.txt").read_text() == f"{program}\n"
    drawn = tg.draw(program)
    assert all(name in drawn for name in names)


def test_the_source_of_a_program_is_what_runs(arguments):
    """The text compiles as a whole, and the loaded program gives what eager code gives."""
    program = CpuProgram(optimize(tg.trace(layer, *arguments)))
    jit.compile_modules([jit.Source(program.source, 1)])
    found = CpuExecutable(program).run([each.numpy() for each in arguments])
    for have, want in zip(found, layer(*arguments), strict=True):
        np.testing.assert_allclose(have, want.numpy(), rtol=1e-5, atol=1e-6)


def test_making_a_program_compiles_nothing(arguments, monkeypatch):
    def refuse(*_):
        raise AssertionError("nothing is to be compiled")

    monkeypatch.setattr(jit, "begin", refuse)
    monkeypatch.setattr(jit, "compile_modules", refuse)
    assert tg.tracing.program(lambda x: (x.exp() * 3.25).sum(), arguments[0]).source


def test_work_of_other_devices_is_no_program_for_the_cpu():
    x = input_node("x", TensorType((4,), float32, Device("cuda", 0)))
    graph = Graph([x], [Builder().apply(p.exp, [x])])
    with pytest.raises(ValueError, match="on other devices than the CPU"):
        cpu_program(graph)
