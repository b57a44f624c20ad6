"""Clipping gradients; parameters as one vector."""

import math

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.nn import utils


def parameters(*gradients):
    found = []
    for gradient in gradients:
        tensor = tg.zeros(len(gradient), requires_grad=True)
        tensor.grad = tg.tensor(gradient)
        found.append(tensor)
    return found


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clip_grad_norm(order):
    values = [[3.0, -1.0], [2.0, 0.5, -4.0]]
    flat = np.concatenate(values)
    norm = np.abs(flat).max() if order == math.inf else (np.abs(flat) ** order).sum() ** (1 / order)
    given = parameters(*values)
    held = given[0].grad
    total = utils.clip_grad_norm_(given, 2.0, norm_type=order)
    assert total.item() == pytest.approx(norm, rel=1e-6)
    clipped = np.concatenate([each.grad.numpy() for each in given])
    np.testing.assert_allclose(clipped, flat * 2 / norm, rtol=1e-5)
    assert given[0].grad is held  # in place
    again = utils.clip_grad_norm_(given, 100.0, norm_type=order)
    assert again.item() == pytest.approx(2, rel=1e-5)
    np.testing.assert_allclose(
        np.concatenate([each.grad.numpy() for each in given]), clipped, rtol=1e-6
    )


def test_clip_grad_norm_of_nothing_and_of_infinity():
    assert utils.clip_grad_norm_([tg.zeros(2, requires_grad=True)], 1.0).item() == 0
    assert utils.clip_grad_norm_(parameters([3.0])[0], 1.0).item() == 3
    with pytest.raises(RuntimeError, match=r"norm of order 2.0 for gradients .* is non-finite"):
        utils.clip_grad_norm_(parameters([math.inf, 1.0]), 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    given = [*parameters([3.0, -1.0], [0.5, -4.0]), tg.zeros(1, requires_grad=True)]
    utils.clip_grad_value_(given, 2.0)
    assert [each.grad.tolist() for each in given[:2]] == [[2, -1], [0.5, -2]]


def test_parameters_as_one_vector():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.requires_grad
    utils.vector_to_parameters(tg.arange(9, dtype=tg.float32), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert layer.bias.tolist() == [6, 7, 8]
    assert layer.weight.is_leaf
    with pytest.raises(RuntimeError, match="expected a vector of 9 elements"):
        utils.vector_to_parameters(tg.zeros(8), layer.parameters())
