"""Checkpoints: numbers stay what they are, values are computed again, and peak memory falls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tgraph as tg

F = tg.nn.functional
POLICIES = tg.checkpoint_policies


class Block(tg.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = tg.nn.LayerNorm(width)
        self.wide = tg.nn.Linear(width, 4 * width)
        self.back = tg.nn.Linear(4 * width, width)

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        hidden = tg.checkpoint_name(F.gelu(self.wide(self.norm(x))), "hidden")
        return x + F.dropout(self.back(hidden), 0.25)


tg.manual_seed(0)
BLOCKS = [Block(32) for _ in range(3)]
PARAMETERS = [each for block in BLOCKS for each in block.parameters()]
X = tg.randn(128, 32)
How = Callable[[Block, tg.Tensor], tg.Tensor]


def by(policy: Any) -> How:
    return lambda block, x: tg.checkpoint(block, x, policy=policy)


HOW: dict[str, How] = {
    "plain": lambda block, x: block(x),
    "nothing": by(None),
    "nested": lambda block, x: tg.checkpoint(lambda x: tg.checkpoint(block)(x) * 1, x),
    "dots": by(POLICIES.dots_saveable),
    "names": by(POLICIES.save_only_these_names("hidden")),
    "everything": by(POLICIES.everything_saveable),
}


def loss(x: tg.Tensor, how: How) -> tg.Tensor:
    for block in BLOCKS:
        x = how(block, x)
    return x.pow(2).mean()


def step(how: How) -> Callable[[tg.Tensor], Any]:
    def run(x: tg.Tensor) -> Any:
        value = loss(x, how)
        return value.detach(), *tg.autograd.grad(value, PARAMETERS)

    return run


def seeded(function: Callable[..., Any], *args: Any) -> Any:
    tg.manual_seed(1)
    return function(*args), tg.rand(2)  # what is drawn behind it is the same, too


def near(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    for one, other in zip(tg.pytree.leaves(found), tg.pytree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=tolerance)


@functools.cache
def expected() -> Any:
    return seeded(step(HOW["plain"]), X)


@pytest.mark.parametrize("name", HOW)
def test_numbers_are_those_without(name):
    near(seeded(step(HOW[name]), X), expected())
    near(seeded(tg.compile(step(HOW[name])), X), expected())
    outside = tg.compile(lambda x: loss(x, HOW[name]))
    near(seeded(lambda x: tg.autograd.grad(outside(x), PARAMETERS), X)[0], expected()[0][1:])


def test_peak_memory_of_a_training_step_falls():
    peak = {name: tg.tracing.program(step(how), X).arena_bytes for name, how in HOW.items()}
    assert peak["nothing"] < peak["plain"] / 2 and peak["nested"] <= peak["nothing"]
    assert peak["nothing"] < peak["names"] < peak["plain"] * 0.75
    assert peak["nothing"] < peak["dots"] < peak["plain"] * 0.75
    assert peak["everything"] == peak["plain"]


def test_what_runs_how_often():
    calls: list[str] = []

    def f(x: tg.Tensor) -> tg.Tensor:
        calls.append("f")
        return (x.sin() * x).sum()

    x = tg.tensor([1.0, 2.0], dtype=tg.float64, requires_grad=True)
    value = tg.checkpoint(f, x)
    assert calls == ["f"] and value.grad_fn.name() == "CheckpointBackward"
    value.backward()
    assert calls == ["f", "f"]
    with tg.no_grad():
        assert not tg.checkpoint(f, x).requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()
    value = tg.checkpoint(f, x)
    with tg.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace.*CheckpointBackward"):
        value.backward()


def test_a_function_that_does_something_else_is_told():
    sizes = iter([2, 3])

    def f(x: tg.Tensor) -> tg.Tensor:
        return x.expand(next(sizes))

    with pytest.raises(RuntimeError, match="gave something else when it ran again"):
        tg.checkpoint(f, tg.ones(1, requires_grad=True)).sum().backward()


def test_a_function_that_accumulates_into_the_outside_is_told():
    """Its second run would add to what the first one left, with the history of that."""
    x, total = tg.ones(2, requires_grad=True), tg.zeros(2)

    def f(x: tg.Tensor) -> tg.Tensor:
        total.add_(x)
        return x * total

    y = tg.checkpoint(f, x).sum()
    with pytest.raises(
        tg.utils.checkpoint.CheckpointError, match="left at a tensor of the outside"
    ):
        y.backward()


def test_gradients_of_what_is_made_of_each_other():
    """A checkpoint that reads a tensor and another made of it: what it gives each goes on once."""
    x, *parts = (tg.rand(3, dtype=tg.float64, requires_grad=True) for _ in range(3))
    x.register_hook(lambda g: g * 5)

    def f(how: Any) -> tg.Tensor:
        made = x * 2 + parts[0]
        made.register_hook(lambda g: g * 3)
        found: tg.Tensor = how(lambda x: (x * made + made.exp() * parts[1]).sum(), x)
        return tg.cond(
            found < 0, lambda: found, lambda: found + how(lambda x: (x * parts[1]).exp() @ made, x)
        )

    def gradients(f: Any) -> Any:
        first = tg.autograd.grad(f(), [x, *parts], create_graph=True)
        return first, tg.autograd.grad(sum(each.pow(2).sum() for each in first), [x, *parts])

    expected = gradients(lambda: f(lambda function, x: function(x)))
    near(gradients(lambda: f(tg.checkpoint)), expected, 1e-9)
    near(gradients(tg.compile(lambda: f(tg.checkpoint))), expected, 1e-9)
    near(tg.compile(lambda: gradients(lambda: f(tg.checkpoint)))(), expected, 1e-9)


def curved(x: tg.Tensor) -> tg.Tensor:
    return (tg.tanh(x) * x.exp()).cumsum(0).pow(2).sum()


def test_transforms():
    held: Any = tg.checkpoint(lambda x: (tg.tanh(x) * x.exp()).cumsum(0))

    def f(x: tg.Tensor) -> tg.Tensor:
        found: tg.Tensor = held(x).pow(2).sum()
        return found

    rows = tg.randn(3, 4, dtype=tg.float64)
    for around in (
        lambda f: tg.grad(lambda x: tg.grad(f)(x[0]).pow(2).sum()),
        lambda f: tg.vmap(tg.grad(f)),
        lambda f: tg.grad(lambda x: tg.vmap(f)(x).sum()),
        lambda f: tg.vmap(tg.hessian(f)),
        lambda f: lambda x: tg.jvp(f, (x,), (x * 2,)),
    ):
        expected = around(curved)(rows)
        near(around(f)(rows), expected, 1e-9)
        near(tg.compile(around(f))(rows), expected, 1e-9)

    def looped(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: tg.scan(lambda c, row: (c + f(row) * c, c), x[0, 0] * 0 + 1, x)[0]

    expected = tg.grad(looped(curved))(rows)
    near(tg.compile(tg.grad(looped(f)))(rows), expected, 1e-9)
    near(tg.compile(tg.grad(tg.checkpoint(looped(f))))(rows), expected, 1e-9)


def test_values_are_computed_again():
    def f(x: tg.Tensor) -> tg.Tensor:
        return (x @ x).tanh().pow(2).sum()

    products = [
        str(tg.compile(tg.value_and_grad(each)).explain(tg.eye(8))).count("matmul [gemm]")
        for each in (f, tg.checkpoint(f), tg.checkpoint(f, policy=POLICIES.dots_saveable))
    ]
    assert products == [3, 4, 3]


@pytest.mark.parametrize("is_argument", [True, False])
def test_views_that_were_written_have_their_history_before_the_first_run(is_argument):
    def gradient(checkpointed):
        x = tg.linspace(-1.0, 1.0, 12).reshape(3, 4).requires_grad_()
        view = (x * 1.0)[1:]
        view.add_(x[:-1])
        if is_argument:
            y = checkpointed(lambda t: tg.tanh(t) * t, view)
        else:
            y = checkpointed(lambda: tg.tanh(view) * view)
        y.sum().backward()
        return x.grad

    found = gradient(lambda function, *args: tg.checkpoint(function)(*args))
    tg.testing.assert_close(found, gradient(lambda function, *args: function(*args)))
