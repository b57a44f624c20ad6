"""Branches and loops in users' functions, by the primitives themselves."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from control_graphs import Maker, below, graph, types_of, up
from tgraph.compiler.ir import Node, TensorType
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.targets.cpu.executable import cpu_executable
from tgraph.runtime.dtypes import float32, int64

import tgraph as tg
from tgraph.core.dispatch import apply_several
from tgraph.drawing.graph_picture import executable_picture


def halved(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    """x / 2**n by a loop."""

    def body(m: Maker, i: Node, x: Node, n: Node) -> list[Node]:
        return [up(m, i), m("mul", x, m.number(0.5, float32))]

    types = [TensorType((), int64), TensorType(tuple(x.shape), float32), TensorType((), int64)]
    attrs = {"condition": graph(types, below), "body": graph(types, body), "carried": 2}
    found: tg.Tensor = apply_several(p.loop, tg.tensor(0), x, n, **attrs)[1]
    return found


def test_eager_and_compiled_functions_run_loops() -> None:
    x, compiled = tg.arange(4).to(tg.float32), tg.compile(halved)
    for turns in (0, 1, 3):
        n = tg.tensor(turns)
        eager = halved(x, n)
        assert tg.equal(eager, x / 2**turns) and tg.equal(compiled(x, n), eager)
        eager += 1
        assert x[0] == 0, "results own their memory"
    text = str(compiled.explain(x, n))
    assert "loop [loop]" in text and "loop1_body_k0_add [kernel]" in text
    assert "loop1_body" in str(compiled.explain(x, n, measure=True))


def test_loops_over_sizes_that_vary() -> None:
    """Whatever a size does to the graphs inside: each call has the numbers of eager code."""
    compiled = tg.compile(halved, dynamic={"x": 0})
    for size in (4, 6, 1, 0, 4):
        x, n = tg.randn(size), tg.tensor(3)
        assert tg.equal(compiled(x, n), halved(x, n))


def test_compiled_functions_with_loops_are_drawn() -> None:
    def make(m: Maker, x: Node, n: Node) -> list[Node]:
        def body(m: Maker, i: Node, x: Node, n: Node) -> list[Node]:
            return [up(m, i), m("mul", x, x)]

        return m.loop([m.number(0), x, n], 2, below, body)

    made = graph(types_of([np.ones(3), np.array(2)]), make)
    picture = executable_picture(cpu_executable(made))
    (box,) = [each for each in picture.boxes if each.kind == "control"]
    assert box.title == "loop" and "body, condition" in box.detail
    assert "1 loop" in picture.summary and "mul(" in box.tooltip


def test_a_gradient_of_a_loop_is_an_error() -> None:
    x = tg.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="no gradients of graphs inside a loop"):
        halved(x, tg.tensor(2)).sum().backward()
    with pytest.raises(RuntimeError, match="no gradients of graphs inside a loop"):
        tg.compile(halved)(x, tg.tensor(2)).sum().backward()
    assert tg.equal(tg.compile(halved)(x.detach(), tg.tensor(1)), x.detach() / 2)


@pytest.mark.usefixtures("python_handler")
def test_ctrl_c_where_the_call_would_write_leaves_all_as_it_was() -> None:
    """Calls with effects hold Ctrl-C back until they are done, which an endless one never is."""
    state, types = tg.zeros(3), [TensorType((), int64)]
    attrs = {
        "condition": graph(types, lambda m, i: [m("ge", i, m.number(0))]),
        "body": graph(types, lambda m, i: [m("mul", i, m.number(3))]),
        "carried": 1,
    }

    @tg.compile
    def step(i: tg.Tensor) -> tg.Tensor:
        state.add_(1)
        return apply_several(p.loop, i, **attrs)[0]

    assert step(tg.tensor(-1)) == -1
    before = state.clone()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        step(tg.tensor(0))
    assert tg.equal(state, before)
