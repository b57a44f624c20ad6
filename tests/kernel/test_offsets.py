"""Kernels that differ in where they read or write alone have one text."""

from __future__ import annotations

import numpy as np
import pytest
from tgraph.compiler.targets.cpu.loader import KernelLoader

import tgraph as tg
from tgraph import nn


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are loaded, in order."""
    found: list[str] = []
    add = KernelLoader.add
    monkeypatch.setattr(
        KernelLoader, "add", lambda self, text: (found.append(text.text), add(self, text))[1]
    )
    return found


def chain(x: tg.Tensor, weight: tg.Tensor) -> tg.Tensor:
    state, seen = x[0], []
    for step in range(1, len(x)):
        state = (tg.logsumexp(state[:, None] + weight, 0) + x[step]).tanh()
        seen.append(state)
    return tg.stack(seen)


def test_steps_of_a_loop_are_one_kernel(texts: list[str]) -> None:
    x, weight = tg.randn(15, 200), tg.randn(200, 200)  # turns too few to be rolled
    expected = chain(x, weight).numpy()
    texts.clear()
    found = tg.compile(chain)(x, weight)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert len(texts) >= 28 and len(set(texts)) < 6


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[3:, 5:].exp(),
        lambda x: x[7].flip(0) + x[9],
        lambda x: x[:, 40:].flip(1)[:, ::2] * 2,
        lambda x: x[5:].sum(1) - x[:-5].amax(1),
        lambda x: nn.functional.pad(x[10:], (2, 1))[:, 1:] + 1,
        lambda x: x.reshape(-1)[100:500].cumsum(0),
        lambda x: x[2:, 3:].T.contiguous(),
        lambda x: tg.cat([x[20:, 10:], x[:3, 10:]], 0).exp(),
    ],
)
def test_parts_of_buffers(part) -> None:
    x = tg.randn(30, 60)
    found, expected = tg.compile(part)(x), part(x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
