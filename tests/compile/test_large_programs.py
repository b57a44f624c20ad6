"""Long and wide programs, from tracing to running: no recursion, work in proportion to the size."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tgraph as tg


def chain(length):
    """`length` operations, one after another, that keep their values within [-1, 1]."""

    def program(x):
        y = x
        for at in range(length // 4):
            y = tg.tanh(-(y * x) + (at % 5 + 0.5))
        return y

    return program


def fan_out(width):
    """`width` products of one tensor and what they add up to."""

    def program(x):
        products = [x * float(at) for at in range(width)]
        total = products[0]
        for product in products[1:]:
            total = total + product
        return total, products[width // 2]

    return program


def outputs(width):
    """`width` results."""

    def program(x):
        return [x * float(at) for at in range(width)]

    return program


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "rtol"),
    [(chain(50_000), 1e-4), (fan_out(2_000), 1e-4), (outputs(1_500), 0)],
    ids=["chain", "fan_out", "outputs"],
)
def test_large_programs(program, rtol):
    x = tg.tensor([0.1, -0.7, 0.9, 0.3])
    found, wanted = tg.compile(program)(x), program(x)
    for one, other in zip(tg.pytree.flatten(found)[0], tg.pytree.flatten(wanted)[0], strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol)


@pytest.mark.slow
def test_gradient_of_a_long_chain():
    x = tg.tensor([0.1, -0.7, 0.9, 0.3])
    loss = lambda x: chain(2000)(x).sum()  # noqa: E731
    np.testing.assert_allclose(
        tg.compile(tg.grad(loss))(x).numpy(), tg.grad(loss)(x).numpy(), rtol=1e-3, atol=1e-6
    )


def python_calls(function, *args):
    """How many calls of Python functions `function` makes: its work, without a clock."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("program", [chain, fan_out, outputs])
def test_work_is_in_proportion_to_size(program):
    x = tg.ones(4)
    tg.compile(program(8))(x)  # what is done once
    small = python_calls(tg.compile(program(200)), x)
    large = python_calls(tg.compile(program(800)), x)
    assert large < 5 * small
