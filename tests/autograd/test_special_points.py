"""Gradients where the derivative is not defined or a formula would give NaN: as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg
from tgraph.nn import functional as F

INF, NAN = float("inf"), float("nan")

# function, point, gradient
CASES: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "relu": (tg.relu, [0.0, -0.0, -1.0, 2.0], [0.0, 0.0, 0.0, 1.0]),
    "abs": (tg.abs, [0.0, -3.0], [0.0, -1.0]),
    "sqrt": (tg.sqrt, [0.0, 4.0], [INF, 0.25]),
    "pow 0": (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    "pow 0.0": (lambda x: x**0.0, [0.0, 2.0], [0.0, 0.0]),
    "pow 1": (lambda x: x**1, [0.0, 2.0], [1.0, 1.0]),
    "pow 2": (lambda x: x**2, [0.0, -3.0], [0.0, -6.0]),
    "pow tensor": (lambda x: x ** tg.tensor([0.0, 2.0]), [0.0, 0.0], [0.0, 0.0]),
    "exponent of zero": (lambda x: tg.zeros(2) ** x, [0.0, 2.0], [0.0, 0.0]),
    "exponent of a negative base": (lambda x: tg.tensor(-2.0) ** x, [2.0], [NAN]),
    "clamp": (lambda x: x.clamp(0, 1), [0.0, 1.0, 2.0, 0.5], [1.0, 1.0, 0.0, 1.0]),
    "amax of ties": (lambda x: x.amax(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
    "max of ties": (lambda x: x.max(), [2.0, 1.0, 2.0], [0.5, 0.0, 0.5]),
    "minimum of ties, first": (lambda x: tg.minimum(x, tg.ones(2)), [1.0, 0.0], [0.5, 1.0]),
    "minimum of ties, second": (lambda x: tg.minimum(tg.ones(2), x), [1.0, 0.0], [0.5, 1.0]),
    "maximum of ties, second": (lambda x: tg.maximum(tg.ones(2), x), [1.0, 0.0], [0.5, 0.0]),
    "max along a dimension": (lambda x: x.max(0).values, [2.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
    "min along a dimension": (lambda x: x.min(0).values, [1.0, 1.0, 2.0], [1.0, 0.0, 0.0]),
    "maximum of equals": (lambda x: tg.maximum(x, tg.zeros(2)), [0.0, 1.0], [0.5, 1.0]),
    "norm at zero": (lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
    "norm of order 3 at zero": (lambda x: x.norm(p=3), [0.0, 0.0], [0.0, 0.0]),
    "norm of order 3": (lambda x: x.norm(p=3), [0.0, 2.0], [0.0, 1.0]),
    "atan2 at the origin": (lambda x: tg.atan2(x, x), [0.0, 1.0], [0.0, 0.0]),
    "huber_loss far away": (
        lambda x: F.huber_loss(x, tg.zeros(4), reduction="sum"),
        [INF, -INF, 0.5, NAN],
        [1.0, -1.0, 0.5, NAN],
    ),
    "smooth_l1_loss far away": (
        lambda x: F.smooth_l1_loss(x, tg.zeros(4), reduction="sum"),
        [INF, -INF, 0.5, NAN],
        [1.0, -1.0, 0.5, NAN],
    ),
    "std of equals": (lambda x: x.std(), [2.0, 2.0], [0.0, 0.0]),
    "prod of one zero": (lambda x: x.prod(), [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    "prod of two zeros": (lambda x: x.prod(), [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    "where": (lambda x: tg.where(x > 0, x.log(), x * 0), [0.5, 2.0], [2.0, 0.5]),
    "sigmoid": (tg.sigmoid, [0.0, 1000.0, -1000.0], [0.25, 0.0, 0.0]),
    "softplus": (F.softplus, [0.0, 1000.0, -1000.0], [0.5, 1.0, 0.0]),
    "logsigmoid": (F.logsigmoid, [0.0, 1000.0, -1000.0], [0.5, 0.0, 1.0]),
    "silu": (F.silu, [0.0, 100.0, -1000.0], [0.5, 1.0, 0.0]),
    "gelu": (F.gelu, [0.0, 100.0, -100.0], [0.5, 1.0, 0.0]),
    "elu": (F.elu, [0.0, 100.0, -1000.0], [1.0, 1.0, 0.0]),
    "leaky_relu": (F.leaky_relu, [0.0, 1.0], [0.01, 1.0]),
    "hardtanh": (F.hardtanh, [-1.0, 1.0, 0.5], [0.0, 0.0, 1.0]),
    "tanh": (tg.tanh, [0.0, 1000.0], [1.0, 0.0]),
    "softmax of huge": (lambda x: tg.softmax(x, 0)[0], [1000.0, 0.0], [0.0, 0.0]),
    "logsumexp of huge": (lambda x: tg.logsumexp(x, 0), [1000.0, 1000.0], [0.5, 0.5]),
    "logsumexp of -inf": (lambda x: tg.logsumexp(x, 0), [-INF, 1.0], [0.0, 1.0]),
    "fmod at zero": (lambda x: tg.fmod(x, 2.0), [0.0, 3.0], [1.0, 1.0]),
    "logit at and outside of its ends": (
        tg.logit,
        [-0.5, 0.0, 0.5, 1.0, 1.5, NAN],
        [NAN, INF, 4.0, INF, NAN, NAN],
    ),
    "logit between bounds": (
        lambda x: tg.logit(x, 0.1),
        [-0.5, 0.05, 0.5, 1.5],
        [0.0, 0.0, 4.0, 0.0],
    ),
    "margin_ranking_loss of equals": (
        lambda x: F.margin_ranking_loss(x, tg.ones(2), tg.tensor([1.0, -1.0]), reduction="sum"),
        [1.0, 1.0],
        [-1.0, 1.0],
    ),
    "floor": (tg.floor, [0.5, 1.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_at(name: str) -> None:
    function, point, expected = CASES[name]
    x = tg.tensor(point, requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected, rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("form", ["eager", "compiled"])
def test_ctc_loss_of_targets_that_are_too_long(form: str) -> None:
    """Infinite with a gradient of NaN in the frames that count, or both 0, as PyTorch's."""
    logs = tg.randn(4, 2, 5).log_softmax(-1)
    targets, frames = tg.tensor([[1, 1, 1], [1, 2, 3]]), tg.tensor([3, 4])

    def loss(x: tg.Tensor, zero: bool) -> tg.Tensor:
        return F.ctc_loss(
            x, targets, frames, tg.tensor([3, 3]), reduction="none", zero_infinity=zero
        )

    def gradient(x: tg.Tensor, zero: bool) -> tg.Tensor:
        return tg.func.grad(lambda x: loss(x, zero).sum())(x)

    run = tg.compile(gradient) if form == "compiled" else gradient
    assert loss(logs, False)[0] == INF and loss(logs, True)[0] == 0
    found = run(logs, False)
    assert found[:3, 0].isnan().all() and found[3, 0].eq(0).all() and found[:, 1].isfinite().all()
    zeroed = run(logs, True)
    assert zeroed[:, 0].eq(0).all()
    tg.testing.assert_close(zeroed[:, 1], found[:, 1])


def test_where_does_not_leak_nan() -> None:
    x = tg.tensor([0.0, 4.0], requires_grad=True)
    safe = tg.where(x > 0, x, 1.0)
    tg.where(x > 0, safe.sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_max_pool_gives_ties_to_the_first() -> None:
    x = tg.ones(1, 1, 2, 4, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]]


def test_cross_entropy_of_ignored_and_huge() -> None:
    x = tg.tensor([[1000.0, 0.0], [5.0, 5.0]], requires_grad=True)
    F.cross_entropy(x, tg.tensor([1, -100])).backward()
    assert x.grad.tolist() == [[1.0, -1.0], [0.0, 0.0]]


def test_logits_loss_of_huge() -> None:
    x = tg.tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, tg.tensor([0.0, 0.0]), reduction="sum")
    loss.backward()
    assert loss.item() == 1000.0
    assert x.grad.tolist() == [1.0, 0.0]


def test_padding_row_of_an_embedding_gets_none() -> None:
    weight = tg.ones(3, 2, requires_grad=True)
    F.embedding(tg.tensor([0, 1, 0]), weight, padding_idx=0).sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


def test_extremes_share_a_gradient_among_more_ties_than_a_half_type_counts() -> None:
    x = tg.zeros(70_000, dtype=tg.float16, requires_grad=True)
    x.amax().backward()
    assert x.grad.double().sum().item() == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gradient_of_a_product_along_each_of_three_axes(dim: int) -> None:
    x = (tg.arange(24, dtype=tg.float64) + 1).reshape(2, 3, 4).requires_grad_()
    product = x.prod(dim)
    product.sum().backward()
    expected = product.detach().unsqueeze(dim) / x.detach()
    assert tg.allclose(x.grad, expected, rtol=1e-12)
