"""Gradients of loops that tensors end: states are kept, or some of them and others made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from control_cases import of

import tgraph as tg
from tgraph.core import pytree
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


def scanned(x: tg.Tensor, w: tg.Tensor, checkpoints: int | None, reverse: bool) -> tg.Tensor:
    """A state of several tensors, rows of two, results, and a tensor that turns write."""
    seen = tg.zeros(3).double()

    def step(state: Any, rows: Any) -> Any:
        (h, turn), (one, other) = state, rows
        h = tg.tanh(h * w + one)
        seen.add_(h * other)
        return (h, turn + 1), {"all": h * turn, "none": None}

    xs = x * tg.arange(7.0)[:, None].double(), x.expand(7, 3)
    (h, turn), ys = tg.scan(step, (x, 0), xs, None, reverse, checkpoints)
    return (h * turn).sum() + (ys["all"] ** 2).sum() + (seen * w).sum()


def counting(x: tg.Tensor, w: tg.Tensor, checkpoints: int | None, reverse: bool) -> tg.Tensor:
    last = tg.fori_loop(3, 10, lambda i, s: tg.sin(s * w) + x / i, x, checkpoints)
    bounded = tg.while_loop(lambda s: s.sum() < 40, lambda s: s * (1 + w), x, 12, checkpoints)
    return (last**2).sum() + (bounded * w).sum()


@pytest.mark.parametrize(
    ("function", "checkpoints"),
    [
        (scanned, 3),
        pytest.param(scanned, 1, marks=SLOW),
        pytest.param(counting, 3, marks=SLOW),
    ],
)
def test_so_many_checkpoints(function: Function, checkpoints: int) -> None:
    def given(checkpoints: int | None) -> Function:
        return lambda x, w, reverse: function(x, w, checkpoints, reverse)

    compiled = tg.compile(given(checkpoints))
    x, w = of(3).requires_grad_(), of(3, seed=1).requires_grad_()
    for reverse in (False, True) if function is scanned else (False,):
        for found, expected in zip(
            derivatives(compiled, x, w, reverse), derivatives(given(None), x, w, reverse),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11)


def test_checkpoints_that_are_none() -> None:
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="scan: expected at least one checkpoint, got"):
            tg.scan(lambda c, x: (c, x), 0.0, tg.ones(3), checkpoints=wrong)

    def summed(x: tg.Tensor) -> Any:
        return tg.scan(lambda c, x: (c + x, c), tg.zeros(()), x, checkpoints=3)

    x = tg.ones(20)  # of what has no gradient nothing is kept, so that no loop is in another
    assert len(tg.trace(summed, x).whole) == 3 < len(tg.trace(summed, x.requires_grad_()).whole)


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

    def rows(checkpoints: int | None) -> Function:
        def function(x: tg.Tensor, n: tg.Tensor) -> Any:
            s, _ = tg.scan(lambda s, _: (s.sin(), None), x, length=400, checkpoints=checkpoints)
            return tg.autograd.grad((s * s).sum(), x)

        return function

    def memory(function: Function) -> int:
        x, n = tg.ones(size).requires_grad_(), tg.tensor(2)
        found: int = tg.compile(function).plan_for(x, n).function.plain.plan.arena_bytes
        return found

    def arena(bound: int | None) -> int:
        return memory(step(bound))

    state = size * 4
    assert memory(rows(20)) < 60 * state and 400 * state < memory(rows(None)) < 420 * state
    assert arena(None) < (4 * loops.CHECKPOINTS + 12) * state
    assert 5 * state < arena(5) < 12 * state


# --- inside of vmap and jvp ----------------------------------------------------------------------

ROWS = tg.tensor([[0.3, 0.5, 0.7], [1.3, -0.2, 0.1], [4.0, 5.0, 6.0]]).double()
COUNTS = tg.tensor([0, 7, 3])
WEIGHT = of(3, seed=1)


@tg.custom_jvp
def softened(x: tg.Tensor) -> tg.Tensor:
    return tg.log(1 + tg.exp(x))


@softened.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return softened(primals[0]), tangents[0] * tg.sigmoid(primals[0]) * 1.5


def examples(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    """Of numbers that differ, with an int that a turn decides by, and a variable that changes."""
    factor = 0.9

    def body(i: tg.Tensor, k: tg.Tensor, s: tg.Tensor) -> Any:
        s = tg.sin(s * WEIGHT) * factor + x[k] * 0.1
        return i + 1, (k * 2 + 1) % 3, tg.cond(k == 0, lambda: s * x, lambda: s)

    i, _, s = tg.while_loop(lambda i, k, s: i < n, body, (0, 2, x))
    factor = 100.0
    return (s * s).sum() + i * (x * WEIGHT).sum()


def to_the_edge(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    """The derivative of another turn would be infinite."""

    def body(s: tg.Tensor) -> tg.Tensor:
        after = tg.where(s >= 3, s * 0 + 4, s + 1) + tg.sqrt(4 - s) * x.sum() * 0.01
        return tg.minimum(after, s * 0 + 4)

    return tg.while_loop(lambda s: s < 4, body, n.double()) * x.prod()


def with_rules(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    def body(i: tg.Tensor, s: tg.Tensor) -> Any:
        return i + 1, softened(s) * 0.3 + s.detach() * x + tg.rand(3).double() * s

    return (tg.while_loop(lambda i, s: i < n, body, (0, x))[1] ** 2).sum()


def loops_in_loops(x: tg.Tensor, n: tg.Tensor) -> tg.Tensor:
    def inner(i: tg.Tensor, s: tg.Tensor) -> tg.Tensor:
        return tg.scan(lambda s, w: (tg.sin(s * w) + x / 4, None), s, WEIGHT)[0]

    def outer(i: tg.Tensor, s: tg.Tensor) -> Any:
        each = tg.vmap(lambda a, m: tg.fori_loop(0, m, lambda j, a: a.cos() + x[0], a))
        return i + 1, each(tg.fori_loop(0, i % 3, inner, s), COUNTS - i) * 0.9

    return (tg.while_loop(lambda i, s: i < n, outer, (0, x))[1] ** 2).sum()


def along(function: Function) -> Function:
    return lambda x, n: tg.jvp(lambda x: function(x, n), (x,), (x,))


def batched(function: Function) -> Function:
    return tg.vmap(function, randomness="different")


@pytest.mark.parametrize(
    ("function", "around"),
    [
        (examples, lambda f: batched(tg.hessian(f))),
        (to_the_edge, lambda f: batched(tg.grad(f))),
        *(
            pytest.param(*each, marks=SLOW)
            for each in (
                (with_rules, lambda f: along(batched(tg.grad(f)))),
                (examples, lambda f: lambda x, n: tg.jacrev(tg.jacfwd(f))(x[1], n[1])),
                (examples, lambda f: tg.grad(lambda x, n: (batched(tg.grad(f))(x, n) ** 2).sum())),
                (loops_in_loops, lambda f: batched(tg.grad(f))),
                (loops_in_loops, lambda f: batched(tg.hessian(f))),
                (with_rules, lambda f: batched(tg.jacfwd(tg.jacrev(f), randomness="same"))),
            )
        ),
    ],
)
def test_inside_of_transforms(
    function: Function, around: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "CHECKPOINTS", 2)
    tg.manual_seed(3)
    if function is to_the_edge:  # where eager code computes examples together it has 0 * inf
        expected = tg.stack([tg.grad(function)(*each) for each in zip(ROWS, COUNTS, strict=True)])
    else:
        expected = around(function)(ROWS, COUNTS)
    tg.manual_seed(3)
    found = tg.compile(around(function))(ROWS, COUNTS)
    for one, other in zip(pytree.leaves(found), pytree.leaves(expected), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-8, atol=1e-11)


def test_jacobians_of_branches_and_loops_in_reverse() -> None:
    """Many cotangents at once, for what was recorded as one step."""

    def function(x: tg.Tensor) -> tg.Tensor:
        s = tg.cond(x.sum() > 0, lambda: x.sin() * WEIGHT, lambda: x.cos())
        s, _ = tg.scan(lambda s, w: (s * w + x, None), s, WEIGHT)
        return tg.while_loop(lambda s: (s * s).sum() < 50, lambda s: s * 1.5 + x.sin(), s)

    found, expected = tg.compile(tg.jacrev(function))(ROWS[0]), tg.jacrev(function)(ROWS[0])
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)


def test_tangents_go_through_no_grad() -> None:
    """Of which the records of a body know nothing."""

    def body(s: tg.Tensor) -> tg.Tensor:
        with tg.no_grad():
            return s * 2

    def function(x: tg.Tensor) -> Any:
        return tg.jvp(lambda x: tg.while_loop(lambda s: s.sum() < 9, body, x), (x,), (x,))

    with pytest.raises(NotImplementedError, match=r"no_grad\(\) in it, at .*gradients.py:\d+"):
        tg.compile(function)(tg.ones(3))
