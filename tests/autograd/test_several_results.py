"""Gradients through operations with several results, by rules that take all cotangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tgraph.compiler.ir import TensorType
from tgraph.compiler.ir import primitives as p

import tgraph as tg
from tgraph.core import dispatch
from tgraph.core.dispatch import apply_several
from tgraph.core.tensor import Tensor
from tgraph.core.vjp_rules import RULES, vjp


def _sine_and_cosine(x: Any) -> tuple[Any, ...]:
    return np.sin(x), np.cos(x), np.signbit(x)


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """A rule for the opaque call; the list has which cotangents arrived, call by call."""
    arrived: list[list[bool]] = []
    monkeypatch.setitem(RULES, p.host_call, RULES[p.host_call])
    monkeypatch.setattr(dispatch, "_saved", {})  # what rules save, as far as was asked

    @vjp(p.host_call, saves_outputs=(0, 1))
    def _(cotangents: Any, outputs: Any, inputs: Any, attrs: Any, wanted: Any) -> Any:
        arrived.append([each is not None for each in cotangents])
        assert type(outputs[2]) is TensorType  # which is not saved
        sine, cosine, _ = outputs
        parts = [
            None if cotangents[0] is None else cotangents[0] * cosine,
            None if cotangents[1] is None else -cotangents[1] * sine,
        ]
        given = [part for part in parts if part is not None]
        return [given[0] if len(given) == 1 else given[0] + given[1]]

    return arrived


def sine_and_cosine(x: Tensor) -> tuple[Tensor, ...]:
    results = (x._type, x._type, x._type._replace(dtype=tg.bool))
    return apply_several(p.host_call, x, function=_sine_and_cosine, results=results, name="both")


def test_all_cotangents_arrive_at_once(rule: list[list[bool]]) -> None:
    x = tg.tensor([0.5, 2.0], requires_grad=True)
    sine, cosine, negative = sine_and_cosine(x)
    assert sine.requires_grad and cosine.requires_grad and not negative.requires_grad
    assert sine.grad_fn is cosine.grad_fn
    (sine * 2 + cosine * 3).sum().backward()
    at = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(at) - 3 * np.sin(at), rtol=1e-6)
    assert rule == [[True, True, False]]


def test_what_does_not_arrive_is_none(rule: list[list[bool]]) -> None:
    x = tg.tensor([0.5, 2.0], requires_grad=True)
    sine_and_cosine(x)[1].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), -np.sin(x.detach().numpy()), rtol=1e-6)
    assert rule == [[False, True, False]]


def test_every_order_of_derivative(rule: list[list[bool]]) -> None:
    x = tg.tensor(0.5, dtype=tg.float64, requires_grad=True)
    y = sine_and_cosine(x)[0]
    for expected in (np.cos(0.5), -np.sin(0.5), -np.cos(0.5)):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_compiled_as_eager(rule: list[list[bool]]) -> None:
    def gradient(x: Tensor) -> Any:
        def loss(x: Tensor) -> Tensor:
            sine, cosine, _ = sine_and_cosine(x)
            return (sine * cosine).sum()

        return tg.grad(loss)(x)

    x = tg.linspace(-2, 2, 9)
    np.testing.assert_allclose(tg.compile(gradient)(x).numpy(), gradient(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient(x).numpy(), np.cos(2 * x.numpy()), atol=1e-6)


def test_overwritten_results_are_refused(rule: list[list[bool]]) -> None:
    x = tg.tensor([0.5, 2.0], requires_grad=True)
    sine, cosine, _ = sine_and_cosine(x)
    with tg.no_grad():
        cosine.zero_()
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*HostCallBackward0"):
        sine.sum().backward()
