"""What is made of many pieces: concatenations, and slices that are written in a loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sampling import rotating
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.plan.planning import planned_graph
from tgraph.compiler.targets.cpu.rules import CpuRules

import tgraph as tg
from tgraph.tracing import trace

Function = Callable[[tg.Tensor], tg.Tensor]


def rows(x: tg.Tensor) -> tg.Tensor:
    out = tg.zeros(40, 300)
    for at in range(40):
        out[at] = x[at] * at
    return out


def columns(x: tg.Tensor) -> tg.Tensor:
    out = tg.empty(300, 40)
    for at in range(40):
        out[:, at] = tg.tanh(x[at])
    return out


def some_rows(x: tg.Tensor) -> tg.Tensor:
    out = x * 2
    for at in range(37, 0, -3):
        out[at : at + 2] = x[at - 1]
    return out


def elements(x: tg.Tensor) -> tg.Tensor:
    out = tg.zeros(90, 100)
    for at in range(90):
        out[at, at] = x[0, at]
        out[at, 99 - at : 99] = 1
    return out


def written_twice(x: tg.Tensor) -> tg.Tensor:
    out = tg.zeros(40, 300)
    for at in range(39):
        out[at : at + 2] = x[at : at + 2] + at
    return out


def read_between(x: tg.Tensor) -> tg.Tensor:
    out = x.clone()
    for at in range(1, 8):
        out[at] = out[at - 1] * 0.5 + out.sum(0) * 1e-3
    return out


def every_other(x: tg.Tensor) -> tg.Tensor:
    out = tg.zeros(300, 40)
    for at in range(40):
        out[at::40, :] = x[:8, at : at + 40][: len(range(at, 300, 40))]
    return out


def recurrence(x: tg.Tensor) -> tg.Tensor:
    state, states = x[0], []
    for row in x.unbind():
        state = tg.tanh(state * 0.5 + row)
        states.append(state)
    return tg.stack(states, 1)


def sums_and_products(x: tg.Tensor) -> tg.Tensor:
    """Pieces that are reductions, products, views, equal, constant, and of other lengths."""
    found = [x.sum(1), x.amax(1), x[:, 3], x[:, 3], (x @ x.t())[0], tg.ones(40), x.t()[7].flip(0)]
    return tg.cat([*(each.repeat(at + 1) for at, each in enumerate(found)), x.reshape(-1)] * 2)


def short_rows(x: tg.Tensor) -> tg.Tensor:
    wide = x.reshape(2000, 6)
    return tg.cat([wide[:, at : at + 1 + at % 3] * at for at in range(4)] * 5, 1)


FUNCTIONS = (
    rows, columns, some_rows, elements, written_twice, read_between, every_other, recurrence,
    sums_and_products, short_rows,
)  # fmt: skip


@pytest.mark.parametrize("function", rotating(FUNCTIONS, 2))
def test_compiled_as_eager(function: Function) -> None:
    x = tg.randn(80, 600, dtype=tg.float64)
    for given in (x[:40, :300].clone(), x[:40, :300].t().clone().t(), x[::2, ::2]):
        found, expected = tg.compile(function)(given), function(given)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", rotating(FUNCTIONS, 2))
def test_gradients_as_eager(function: Function) -> None:
    found = []
    x, weight = tg.randn(40, 300), tg.randn(100_000)
    for each in (function, tg.compile(function)):
        leaf = x.clone().requires_grad_()
        out = each(leaf).reshape(-1)
        (out * weight[: out.numel()]).sum().backward()
        assert leaf.grad is not None
        found.append(leaf.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=2e-4, atol=2e-4)


def test_a_result_in_the_memory_of_an_input() -> None:
    @tg.compile
    def step(x: tg.Tensor) -> None:
        x.copy_(tg.cat([x[at : at + 4] * 2 for at in range(36, -4, -4)]))

    x = tg.randn(40, 300)
    expected = np.concatenate([x.numpy()[at : at + 4] * 2 for at in range(36, -4, -4)])
    step(x)
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("function", [rows, columns, some_rows, recurrence, short_rows])
def test_each_piece_is_a_kernel_of_its_own(function: Function) -> None:
    """Which writes where the piece lies, and in no order."""
    graph = planned_graph(optimize(trace(function, tg.randn(40, 300))), {}, CpuRules.machine)
    assert p.assemble in graph.primitives and p.slice_update not in graph.primitives
