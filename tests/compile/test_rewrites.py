"""Functions at the edge of what a rewrite of graphs may change: compiled as eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tgraph as tg


def written_behind(x: Any) -> Any:
    y = x.clone()
    y[2:4] = 7.0
    return y[1:3] * 1.0, y[0:2] * 1.0, y[3:5] * 1.0, y[1:5] * 1.0


def gradient_of_every_other(axis: int) -> Callable[[Any], Any]:
    def gradient(x: Any) -> Any:
        taken = (slice(None),) * axis + (slice(1, None, 2),)
        return tg.grad(lambda x: (x[taken] ** 2).sum())(x)

    return gradient


X = tg.arange(5 * 4 * 3, dtype=tg.float32).reshape(5, 4, 3) - 20
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "division by a number whose inverse is no float32": lambda x: x * 1e-30 / 2.0**-128,
    "division by powers of two": lambda x: (x / 2.0**126, x / 2.0**-126, x / 2.0**-3),
    "slices around what was written": written_behind,
    **{
        f"scan along axis {axis} of rotated ones": lambda x, axis=axis: (
            x.permute(2, 0, 1).cumsum(axis), x.permute(1, 2, 0).cumsum(axis)
        )
        for axis in range(3)
    },
    "sum of products with one factor for all": lambda x: (x @ x[:1].mT).sum(0),
    "sum of products with one factor for all, in front": lambda x: (x[:1].mT @ x).sum(0),
    **{f"gradient of every other along {axis}": gradient_of_every_other(axis) for axis in range(3)},
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager(name: str) -> None:
    function = FUNCTIONS[name]
    found, expected = tg.compile(function)(X), function(X)
    for one, other in zip(tg.pytree.leaves(found), tg.pytree.leaves(expected), strict=True):
        assert one.shape == other.shape and tg.allclose(one, other, rtol=1e-5, atol=0)
