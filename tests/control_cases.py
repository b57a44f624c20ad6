"""Functions with branches and loops, and tensors for them: for tests on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tgraph as tg
from tgraph.core import pytree

Function = Callable[..., Any]


def of(*shape: int, seed: int = 0) -> tg.Tensor:
    return tg.tensor(np.random.default_rng(seed).uniform(0.4, 1.6, shape))


CELL = tg.nn.Linear(3, 3).double()


def newton(a: tg.Tensor) -> tg.Tensor:
    return tg.while_loop(
        lambda x: ((x * x - a).abs() > 1e-9).any(), lambda x: (x + a / x) / 2, a, max_iterations=12
    )


def products(xs: tg.Tensor) -> Any:
    return tg.scan(
        lambda total, x: (total * x, {"all": total * x, "none": None}), 1.0 + 0 * xs[0], xs
    )


def recurrent(h: tg.Tensor, xs: tg.Tensor) -> Any:
    def step(h: tg.Tensor, x: tg.Tensor) -> Any:
        h = tg.tanh(CELL(h) + x)
        return h, h

    return tg.scan(step, h, xs, reverse=True)


def branches_in_loops(a: tg.Tensor, b: tg.Tensor) -> Any:
    def body(n: tg.Tensor, x: tg.Tensor) -> Any:
        return n + 1, tg.cond(n % 2 == 0, lambda: x * a, lambda: tg.sin(x) + b.sum())

    return tg.while_loop(lambda n, x: n < 5, body, (0, a), max_iterations=8)


def captured_by_one(x: tg.Tensor, w: tg.Tensor, v: tg.Tensor) -> Any:
    """Branches that read different tensors, some of which were made of others."""
    made = (w * v).sin()
    return tg.cond(x.sum() > 0, lambda x: (x * made, w), lambda x: (x / v, x), (x,))


def chosen(x: tg.Tensor) -> Any:
    picked = [tg.switch(tg.tensor(at), [tg.exp, tg.neg, tg.sin], x) for at in (-1, 1, 7)]
    return picked, tg.switch(1, [tg.exp, tg.neg], x)


def counted(x: tg.Tensor) -> Any:
    return tg.fori_loop(2, 5, lambda i, s: (s[0] * i, s[1] + s[0] * x), (x, x * 0))


def mapped(xs: tg.Tensor, w: tg.Tensor) -> Any:
    return tg.map(lambda pair: (pair[0] * pair[1]).sum() * w, (xs, xs.exp()))


def nested(xs: tg.Tensor, w: tg.Tensor) -> Any:
    def outer(total: tg.Tensor, x: tg.Tensor) -> Any:
        inner = tg.scan(lambda t, y: (t * w + y * x.sum(), t * y), total, xs)
        return inner[0] / 8, inner[1].sum()

    return tg.scan(outer, xs[0], xs)


def stopped(w: tg.Tensor, xs: tg.Tensor) -> Any:
    """Gradients end inside where they end in eager code."""

    def step(c: tg.Tensor, x: tg.Tensor) -> Any:
        with tg.no_grad():
            still = (c * w).exp()
        return c.detach() * w + x * w, still * w + tg.grad(lambda c: (c**3 * w).sum())(c)

    return tg.scan(step, w, xs)


def views_and_writes(x: tg.Tensor) -> Any:
    base = x * 2
    row = base[0]
    base.mul_(x)  # the view follows

    def step(total: tg.Tensor, x: tg.Tensor) -> Any:
        own = x * row
        part = own[1:]
        own[0] = 5.0
        own.mul_(total)
        return total + part.sum(), own

    return tg.scan(step, row.sum(), x)


CASES: dict[str, tuple[Function, tuple[tg.Tensor, ...]]] = {
    "newton": (newton, (of(3),)),
    "products": (products, (of(5, 2),)),
    "recurrent": (recurrent, (of(3), of(4, 3))),
    "branches in loops": (branches_in_loops, (of(3), of(3, seed=1))),
    "captured by one": (captured_by_one, (of(3), of(3, seed=1), of(3, seed=2))),
    "captured by the other": (captured_by_one, (-of(3), of(3, seed=1), of(3, seed=2))),
    "chosen": (chosen, (of(3),)),
    "counted": (counted, (of(3),)),
    "mapped": (mapped, (of(4, 3), of(3))),
    "nested": (nested, (of(3, 2), of(2))),
    "stopped": (stopped, (of(2), of(3, 2))),
    "views and writes": (views_and_writes, (of(3, 3),)),
}


def loss(function: Function) -> Function:
    def total(*args: tg.Tensor) -> tg.Tensor:
        floats = [
            x for x in pytree.leaves(function(*args)) if x is not None and x.is_floating_point()
        ]
        return sum(((x * (at + 0.7)) ** 2).sum() for at, x in enumerate(floats))  # type: ignore[return-value]

    return total


def derivatives(function: Function) -> Function:
    """Results, gradients, and gradients of their squares."""
    of_all = loss(function)

    def first(*args: tg.Tensor) -> Any:
        return tg.grad(of_all, range(len(args)))(*args)

    def both(*args: tg.Tensor) -> Any:
        def squares(*args: tg.Tensor) -> Any:
            return sum((each**2).sum() for each in first(*args))

        return function(*args), first(*args), tg.grad(squares, range(len(args)))(*args)

    return both
