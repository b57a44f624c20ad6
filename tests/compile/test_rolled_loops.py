"""Loops of Python in compiled functions: their turns are compiled once, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg
from tgraph import nn


def near(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert tg.allclose(one, other, rtol=1e-4, atol=1e-5)


def states(xs: Any, w: Any) -> Any:
    h, found = tg.zeros(2, 4), []
    for x in xs.unbind(0):
        h = (x + h @ w).tanh() * 0.9 + h * 0.1
        found.append(h)
    return tg.stack(found)


def trained(xs: Any, w: Any) -> Any:
    """The loss and one step of descent."""
    loss = (states(xs, w) ** 2).mean()
    (gradient,) = tg.autograd.grad(loss, w)
    return loss, w - gradient


def noisy(xs: Any, w: Any) -> Any:
    h = xs[0]
    for t in range(len(xs)):
        h = nn.functional.dropout((h @ w).tanh(), 0.2) + xs[t] * (0.01 * t) + tg.randn(2, 4)
    return (h,)


def accumulated(xs: Any, w: Any) -> Any:
    """The gradient over the parts of a batch, one after another."""
    total = tg.zeros_like(w)
    for t in range(0, len(xs), 2):
        x = xs[t : t + 2].reshape(4, 4)
        (gradient,) = tg.autograd.grad(((x @ w).sin() @ w).square().mean(), w)
        total = total + gradient
    return (total,)


def given(turns: int) -> tuple[tg.Tensor, tg.Tensor]:
    tg.manual_seed(turns)
    return tg.randn(turns, 2, 4), (tg.randn(4, 4) / 4).requires_grad_()


@pytest.mark.parametrize("function", [trained, noisy, accumulated], ids=lambda each: each.__name__)
def test_more_turns_are_no_more_kernels(function: Callable[..., Any]) -> None:
    counts = []
    for turns in (64, 96):
        xs, w = given(turns)
        compiled = tg.compile(function)
        text = str(compiled.explain(xs, w))
        counts.append(text.count("[kernel]"))
        assert "[loop]" in text
        for seed in (1, 2):
            tg.manual_seed(seed)
            expected = function(xs, w)
            tg.manual_seed(seed)
            near(compiled(xs, w), expected)
    assert counts[0] == counts[1]


def test_gradients_of_what_a_compiled_loop_gives() -> None:
    """The forward plan saves rows of turns, of which second gradients are made, too."""
    xs, w = given(24)
    compiled = tg.compile(states)
    assert "[loop]" in str(compiled.explain(xs, w))
    results = []
    for function in (states, compiled):
        x = xs.clone().requires_grad_()
        first = tg.autograd.grad((function(x, w) ** 2).mean(), (x, w), create_graph=True)
        second = tg.autograd.grad(sum((each**2).sum() for each in first), (x, w))
        results.append((*first, *second))
    near(*results)


def test_what_is_not_rolled() -> None:
    """Layers of their own, and arithmetic that one kernel does without storing what is between."""
    layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(100)))

    def euler(x: Any, v: Any) -> Any:
        for _ in range(40):
            x, v = x + 0.1 * v, v + 0.1 * ((1 - x * x) * v - x)
        return x, v

    xs, x = tg.randn(2, 4), tg.rand(8)
    assert "[loop]" not in str(tg.compile(layers).explain(xs))
    compiled = tg.compile(euler)
    assert "[loop]" not in str(compiled.explain(x, x))
    near(compiled(x, x), euler(x, x))
