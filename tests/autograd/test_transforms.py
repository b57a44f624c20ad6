"""tg.grad, value_and_grad and vjp: values, containers, nesting, what stays untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tgraph as tg


def cube(x: Any) -> Any:
    return (x**3).sum()


def test_grad_and_its_grads() -> None:
    x = tg.tensor([1.0, 2.0])
    assert tg.grad(cube)(x).tolist() == [3.0, 12.0]
    second = tg.grad(lambda t: tg.grad(cube)(t).sum())
    assert second(x).tolist() == [6.0, 12.0]
    third = tg.grad(lambda t: second(t).sum())
    assert third(x).tolist() == [6.0, 6.0]


def test_results_and_arguments_are_plain() -> None:
    x = tg.tensor([1.0, 2.0])
    value, gradient = tg.value_and_grad(cube)(x)
    assert value.item() == 9.0
    assert not value.requires_grad and not gradient.requires_grad
    assert not x.requires_grad and x.grad is None


def test_an_argument_that_requires_grad_stays_connected() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    gradient = tg.grad(cube)(x)
    assert gradient.requires_grad
    gradient.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_closures_are_differentiable_too() -> None:
    weight = tg.tensor([2.0, 3.0], requires_grad=True)
    gradient = tg.grad(lambda t: (t * t * weight).sum())(tg.ones(2))
    assert gradient.tolist() == [4.0, 6.0]
    gradient.sum().backward()
    assert weight.grad.tolist() == [2.0, 2.0]


def test_nesting_over_different_arguments() -> None:
    mixed = tg.grad(lambda x: tg.grad(lambda y: x * x * y)(tg.tensor(5.0)))
    assert mixed(tg.tensor(3.0)).item() == 6.0


def test_perturbations_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y)) = 1, which a single perturbation would give as 2.
    outer = tg.grad(lambda x: x * tg.grad(lambda y: x + y)(tg.tensor(1.0)))
    assert outer(tg.tensor(1.0)).item() == 1.0


def test_argnums_and_containers() -> None:
    def loss(parameters: Any, x: Any, scale: float) -> Any:
        return ((parameters["w"] * x + parameters["b"][0]) * scale).sum()

    parameters = {"w": tg.tensor([1.0, 2.0]), "b": [tg.tensor(3.0)]}
    x = tg.tensor([5.0, 6.0])
    gradient = tg.grad(loss)(parameters, x, 2.0)
    assert gradient["w"].tolist() == [10.0, 12.0]
    assert gradient["b"][0].item() == 4.0
    both = tg.grad(loss, argnums=(0, 1))(parameters, x, 2.0)
    assert both[1].tolist() == [2.0, 4.0]
    assert tg.grad(loss, argnums=-2)(parameters, x, scale=2.0)["w"].tolist() == [10.0, 12.0]


def test_auxiliary_results() -> None:
    gradient, aux = tg.grad(lambda x: ((x * x).sum(), {"twice": x * 2}), has_aux=True)(tg.ones(2))
    assert gradient.tolist() == [2.0, 2.0]
    assert aux["twice"].tolist() == [2.0, 2.0] and not aux["twice"].requires_grad
    (value, _), _ = tg.value_and_grad(lambda x: (x.sum(), 7), has_aux=True)(tg.ones(2))
    assert value.item() == 2.0


def test_arguments_without_influence_get_zeros() -> None:
    gradient = tg.grad(lambda x, y: x.sum(), argnums=(0, 1))(tg.ones(2), tg.ones(3))
    assert gradient[1].tolist() == [0.0] * 3
    assert tg.grad(lambda x: tg.tensor(1.0))(tg.ones(2)).tolist() == [0.0, 0.0]


def test_vjp() -> None:
    matrix = tg.arange(6.0).reshape(2, 3)
    out, pull = tg.vjp(lambda m, v: (m @ v, v * 2), matrix, tg.ones(3))
    assert out[0].tolist() == [3.0, 12.0] and not out[0].requires_grad
    by_matrix, by_vector = pull((tg.tensor([1.0, 0.0]), tg.ones(3)))
    assert by_matrix.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    assert by_vector.tolist() == [2.0, 3.0, 4.0]
    again = pull((tg.tensor([1.0, 0.0]), tg.ones(3)))[1]
    assert again.tolist() == by_vector.tolist()
    with pytest.raises(RuntimeError, match="structure of the outputs"):
        pull(tg.ones(2))


def test_jvp_as_the_vjp_of_a_vjp() -> None:
    x, direction = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0])
    linear = lambda u: tg.vjp(lambda t: t * t, x)[1](u)[0]  # noqa: E731
    _, pull = tg.vjp(linear, tg.ones(2))
    (product,) = pull(direction)  # a tuple of one, as in PyTorch and JAX
    assert product.tolist() == [2.0, 40.0]


def test_grad_mode_outside_does_not_matter_inside() -> None:
    with tg.no_grad():
        assert tg.grad(cube)(tg.ones(2)).tolist() == [3.0, 3.0]
        assert not tg.is_grad_enabled()
        x = tg.ones(2, requires_grad=True)
        assert not tg.grad(cube)(x).requires_grad


def test_newton_converges() -> None:
    def loss(x: Any) -> Any:
        return (x - 2) ** 4 + (x - 2) ** 2

    x = tg.tensor(5.0, dtype=tg.float64)
    for _ in range(20):
        x = x - tg.grad(loss)(x) / tg.grad(tg.grad(loss))(x)
    np.testing.assert_allclose(x.item(), 2.0)


def test_errors_name_the_way_out() -> None:
    with pytest.raises(RuntimeError, match=r"^grad: expected .* scalar tensor, got one of"):
        tg.grad(lambda x: x * 2)(tg.ones(2))
    with pytest.raises(RuntimeError, match="expected the function to return a Tensor, got float"):
        tg.grad(lambda x: 1.0)(tg.ones(2))
    with pytest.raises(TypeError, match=r"expected Tensors .* got float"):
        tg.grad(cube)(1.0)
    with pytest.raises(RuntimeError, match="floating point"):
        tg.grad(cube)(tg.ones(2, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="argnums=1 does not fit a call with 1"):
        tg.grad(cube, argnums=1)(tg.ones(2))
