"""Loops of Python that a trace left turn by turn: what is rolled, what is not, and the numbers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.graph_interpreter import interpret
from tgraph.compiler.ir import Graph
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes import roll_loops

import tgraph as tg

N = 12


@pytest.fixture(autouse=True)
def everything_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roll_loops, "FEWEST_NODES", 1)
    monkeypatch.setattr(roll_loops, "FEWEST_FUSED", 1)


def loops_of(graph: Graph) -> int:
    return sum(node.primitive is p.loop for node in graph.nodes)


def rolled(function: Callable[..., Any], *arrays: Any) -> Graph:
    """The rolled graph, after a check that it gives the very numbers of the one before."""
    tensors = [tg.tensor(each) for each in arrays]
    before = tg.trace(function, *tensors)
    after = roll_loops.roll_loops(before)
    after.verify()
    for one, other in zip(interpret(before, arrays), interpret(after, arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    return after


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(*arrays: Any) -> Any:
        given = [each.detach().requires_grad_() for each in arrays]
        return tg.autograd.grad(function(*given), given)

    return of


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def cell(x: Any, h: Any, w: Any) -> Any:
    return (x + h @ w).tanh()


def last_state(xs: Any, h: Any, w: Any) -> Any:
    for t in range(N):
        h = cell(xs[t], h, w)
    return h


def all_states(xs: Any, h: Any, w: Any) -> Any:
    states = []
    for t in range(N):
        h = cell(xs[t], h, w)
        states.append(h)
    return tg.stack(states, 1)


def backwards(xs: Any, h: Any, w: Any) -> Any:
    states = []
    for t in reversed(range(N)):
        h = cell(xs[t], h, w)
        states.append(h)
    return tg.cat(states, 0), h


def unbound(xs: Any, h: Any, w: Any) -> Any:
    for x in xs.unbind(0):
        h = cell(x, h, w)
    return h


def written(xs: Any, h: Any, w: Any) -> Any:
    out = tg.zeros(N, *h.shape)
    for t in range(N):
        h = cell(xs[t], h, w)
        out[t] = h
    return out


def numbered(xs: Any, h: Any, w: Any) -> Any:
    for t in range(N):
        h = cell(xs[t], h, w) * (0.1 * t) + t
    return h


def summed(xs: Any, h: Any, w: Any) -> Any:
    losses = []
    for t in range(N):
        h = cell(xs[t], h, w)
        losses.append((h * h).sum())
    return sum(losses)


def bidirectional(xs: Any, h: Any, w: Any) -> Any:
    forth, back, states = h, h, []
    for t in range(N):
        forth = cell(xs[t], forth, w)
        states.append(forth)
    results = []
    for t in reversed(range(N)):
        back = cell(states[t], back, w.T)
        results.append(back)
    return tg.stack(results[::-1])


def two_steps_back(xs: Any, h: Any, w: Any) -> Any:
    before = h
    for t in range(N):
        before, h = h, cell(xs[t], h, w) + before
    return h


def every_other(xs: Any, h: Any, w: Any) -> Any:
    for t in range(2 * N):
        h = cell(xs[t // 2], h, w) if t % 2 else h.sin()
    return h


ARGUMENTS = array(N, 2, 4), array(2, 4), array(4, 4)
TABLE = {  # loops that are left of the function, and of its gradient
    last_state: (1, 2), all_states: (1, 2), backwards: (1, None), unbound: (1, 3),
    written: (1, None), numbered: (1, 2), summed: (2, 2), bidirectional: (2, 4),
    two_steps_back: (1, 2), every_other: (1, 2),
}  # fmt: skip


@pytest.mark.parametrize("function", TABLE, ids=lambda each: each.__name__)
def test_loops(function: Callable[..., Any]) -> None:
    forward, backward = TABLE[function]
    assert loops_of(rolled(function, *ARGUMENTS)) == forward
    if backward is not None:
        graph = rolled(gradient(lambda *x: (function(*x) * 1.5).sum()), *ARGUMENTS)
        assert loops_of(graph) == backward


# --- random loops --------------------------------------------------------------------------------


class RandomLoop:
    """A loop of Python whose body, and what is made of its results, come from a seed."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.steps = [
            (choose.choice(OPERATIONS), *(choose.random() for _ in range(3)))
            for _ in range(choose.randrange(2, 9))
        ]
        self.turns = choose.choice([20, 33, 40])
        self.every = choose.choice([0, 0, 0, 2, 3])  # another operation in so many turns
        self.states = choose.randrange(1, 4)
        self.old = choose.choice([0, 0, 1, 2])  # of which turn a state may be read
        self.lists = choose.choice(["none", "stack 0", "stack 1", "cat", "reversed", "sum"])
        self.is_gradient = choose.random() < 0.4

    def __call__(self, xs: Any, h: Any, w: Any) -> Any:
        states = [[h * (k + 1)] for k in range(self.states)]
        out, listed = tg.zeros(self.turns, *h.shape), []
        for t in range(self.turns):
            values = [each[-1] for each in states]
            values += [each[-1 - self.old] for each in states if len(each) > self.old]
            for operation, *which in self.steps:
                values.append(operation(self.turns, t, xs, w, out, values, *which))
            if self.every and t % self.every == 0:
                values.append(values[-1].cos())
            for each, value in zip(states, reversed(values), strict=False):
                each.append(value.tanh())
            listed.append(values[-1])
        ends = [each[-1] for each in states]
        made = {
            "none": lambda: ends[0], "stack 0": lambda: tg.stack(listed),
            "stack 1": lambda: tg.stack(listed, 1), "cat": lambda: tg.cat(listed, 1),
            "reversed": lambda: tg.stack(listed[::-1]), "sum": lambda: sum(listed),
        }  # fmt: skip
        return *ends, made[self.lists](), out

    def gradient(self, *arrays: Any) -> Any:
        given = [each.detach().requires_grad_() for each in arrays]
        loss = sum((each.sum() for each in self(*given)), given[1].sum())
        return tg.autograd.grad(loss, given, allow_unused=True)


def at(values: list[Any], where: float) -> Any:
    return values[int(where * len(values))]


def write(n: int, t: int, xs: Any, w: Any, out: Any, values: list[Any], *z: float) -> Any:
    out[t if z[1] < 0.5 else n - 1 - t] = at(values, z[0])
    return at(values, z[2])


OPERATIONS = [
    lambda n, t, xs, w, out, v, *z: xs[t] * at(v, z[0]),
    lambda n, t, xs, w, out, v, *z: xs[n - 1 - t] - at(v, z[0]),
    lambda n, t, xs, w, out, v, *z: xs[2 * t : 2 * t + 1].squeeze(0) + at(v, z[0]),
    lambda n, t, xs, w, out, v, *z: xs[:, t % 2] .sum(0)+ at(v, z[0]),
    lambda n, t, xs, w, out, v, *z: xs[t, :, 1:3].sum() * at(v, z[0]),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) @ w,
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) @ w.T,
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) + at(v, z[1]),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) * at(v, z[1]),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) * (0.25 * t),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]) + t,
    lambda n, t, xs, w, out, v, *z: tg.where(at(v, z[0]) > 0, at(v, z[1]), at(v, z[2])),
    lambda n, t, xs, w, out, v, *z: tg.cat([at(v, z[0])[:, 2:], at(v, z[1])[:, :2]], 1),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]).softmax(-1),
    lambda n, t, xs, w, out, v, *z: at(v, z[0]).detach(),
    write,
]  # fmt: skip


def test_random_loops() -> None:
    counts = []
    for seed in range(60):
        program = RandomLoop(seed)
        function = program.gradient if program.is_gradient else program
        with np.errstate(all="ignore"):
            counts.append(loops_of(rolled(function, array(80, 2, 4), array(2, 4), array(4, 4))))
    assert sum(count > 0 for count in counts) > 30
    assert max(counts) > 1
