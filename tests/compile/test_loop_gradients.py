"""Gradients of loops that tensors end: states are kept, or some of them and others made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from control_cases import of

import tgraph as tg
from tgraph.tracing import loops

Function = Callable[..., Any]


def counted(x: tg.Tensor, w: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    """A state of several tensors, one of which has no gradient, and a captured one."""

    def body(i: tg.Tensor, s: tg.Tensor, total: tg.Tensor) -> Any:
        return i + 1, tg.sin(s * w) + x * 0.1, total + s.sum() * w

    _, s, total = tg.while_loop(lambda i, s, total: i < n, body, (0, x, w * 0))
    return (s * s).sum() + total.sum() + (x * w).sum()


def nested(x: tg.Tensor, w: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    """Loops between tensors in loops, with a branch, and a tensor that turns write."""
    seen = tg.zeros(3).double()

    def inner(i: tg.Tensor, s: tg.Tensor) -> tg.Tensor:
        seen[1:] = s[:2] * w[0]
        return tg.cond(i % 2 == 0, lambda: tg.sin(s * w), lambda: s + x / 4)

    def outer(i: tg.Tensor, s: tg.Tensor) -> Any:
        return i + 1, tg.fori_loop(0, (i * 3) % 5, inner, s) * 0.9

    _, s = tg.while_loop(lambda i, s: i < n, outer, (0, x))
    return (s * s).sum() + (seen * w).sum() + (x * w).sum()


def bounded(x: tg.Tensor, w: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    def body(i: tg.Tensor, s: tg.Tensor) -> Any:
        return i + 1, tg.sin(s * w) + tg.rand(3).double()

    _, s = tg.while_loop(lambda i, s: i < n, body, (0, x), max_iterations=20)
    return (s * s).sum() + (x * w).sum()


def derivatives(function: Function, *args: tg.Tensor) -> list[Any]:
    """First gradients, and those of their squares."""
    x, w, n = args
    tg.manual_seed(3)
    first = tg.autograd.grad(function(x, w, n), [x, w], create_graph=True)
    second = tg.autograd.grad(sum((each**2).sum() for each in first), [x, w])
    return [each.detach().numpy() for each in (*first, *second)]


TURNS = (0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 70)
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("function", "checkpoints"),
    [
        (counted, 3),
        (bounded, 32),
        pytest.param(counted, 2, marks=SLOW),
        pytest.param(counted, 32, marks=SLOW),
        pytest.param(nested, 3, marks=SLOW),
    ],
)
def test_turns_of_every_number(
    function: Function, checkpoints: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than there are checkpoints, as many as their square, and more."""
    monkeypatch.setattr(loops, "CHECKPOINTS", checkpoints)
    compiled = tg.compile(function)
    x, w = of(3).requires_grad_(), of(3, seed=1).requires_grad_()
    for turns in TURNS:
        n = tg.tensor(turns)
        for found, expected in zip(
            derivatives(compiled, x, w, n), derivatives(function, x, w, n), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11)
    assert len(compiled.compiles) == 1


def test_memory_does_not_grow_with_the_turns() -> None:
    """That of a thousand turns is that of one; a bound keeps as many states as it has turns."""
    size = 10_000

    def step(bound: int | None) -> Function:
        def function(x: tg.Tensor, n: tg.Tensor) -> Any:
            _, s = tg.while_loop(
                lambda i, s: i < n, lambda i, s: (i + 1, s.sin()), (0, x), max_iterations=bound
            )
            return tg.autograd.grad((s * s).sum(), x)

        return function

    def arena(bound: int | None) -> int:
        x, n = tg.ones(size).requires_grad_(), tg.tensor(2)
        plain = tg.compile(step(bound)).plan_for(x, n).function.plain
        found: int = plain.plan.arena_bytes
        return found

    state = size * 4
    assert arena(None) < (4 * loops.CHECKPOINTS + 12) * state
    assert 5 * state < arena(5) < 12 * state
