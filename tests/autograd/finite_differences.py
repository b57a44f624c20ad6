"""Gradients against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tgraph as tg

Array = np.ndarray[Any, Any]
STEP = 1e-6


def numeric_vjp(
    function: Callable[..., Any], inputs: Sequence[Array], cotangent: Array, position: int
) -> Array:
    """The vector-Jacobian product of one input, element by element."""
    result = np.zeros_like(inputs[position])
    for at in np.ndindex(result.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = [each.copy() for each in inputs]
            moved[position][at] += step
            with tg.no_grad():
                ends.append(function(*map(tg.tensor, moved)).numpy())
        result[at] = np.sum(cotangent * (ends[0] - ends[1])) / (2 * STEP)
    return result


def check_gradients(
    function: Callable[..., Any], *inputs: Array, second: bool = True, tolerance: float = 1e-5
) -> None:
    """First gradients with a random cotangent, then gradients of these."""
    tensors = [tg.tensor(each, requires_grad=True) for each in inputs]
    output = function(*tensors)
    assert output.requires_grad
    cotangent = np.asarray(np.random.RandomState(7).randn(*output.shape))
    found = tg.autograd.grad(
        output, tensors, tg.tensor(cotangent), create_graph=second, materialize_grads=True
    )
    for at, each in enumerate(found):
        expected = numeric_vjp(function, inputs, cotangent, at)
        assert each.shape == expected.shape
        np.testing.assert_allclose(
            each.detach().numpy(), expected, rtol=tolerance, atol=tolerance, err_msg=f"input {at}"
        )
    if second:
        _check_second(function, inputs, cotangent, tolerance)


def _check_second(
    function: Callable[..., Any], inputs: Sequence[Array], cotangent: Array, tolerance: float
) -> None:
    """Gradients of the first gradients, which are functions of the inputs and the cotangent."""

    def first(position: int) -> Callable[..., Any]:
        def gradient(*arguments: Any) -> Any:
            with tg.enable_grad():
                entered = [
                    each if each.requires_grad else each.requires_grad_() for each in arguments
                ]
                output = function(*entered[:-1])
                return tg.autograd.grad(
                    output,
                    entered[:-1],
                    entered[-1],
                    create_graph=True,
                    materialize_grads=True,
                )[position].sin()

        return gradient

    for position in range(len(inputs)):
        arguments = [*inputs, cotangent]
        tensors = [tg.tensor(each, requires_grad=True) for each in arguments]
        output = first(position)(*tensors)
        if not output.requires_grad:
            continue
        weights = np.asarray(np.random.RandomState(8).randn(*output.shape))
        found = tg.autograd.grad(output, tensors, tg.tensor(weights), materialize_grads=True)

        def detached(*arguments: Any, position: int = position) -> Any:
            return first(position)(*arguments).detach()

        for at, each in enumerate(found):
            expected = numeric_vjp(detached, arguments, weights, at)
            np.testing.assert_allclose(
                each.numpy(),
                expected,
                rtol=10 * tolerance,
                atol=10 * tolerance,
                err_msg=f"gradient {position} with respect to {at}",
            )
