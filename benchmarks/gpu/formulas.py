"""Formulas that read the same in every library of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

RATE, VOLATILITY = 0.02, 0.3
STENCIL_STEPS = 20
CLOSE = 1e-4
"""The share of a number that the square of its root may be off."""


def black_scholes(
    library: Any, erf: Callable[[Any], Any], spot: Any, strike: Any, years: Any
) -> tuple[Any, Any]:
    """Prices of European calls and puts (Black and Scholes, 1973)."""

    def normal(x: Any) -> Any:
        return 0.5 + 0.5 * erf(x * math.sqrt(0.5))

    spread = VOLATILITY * library.sqrt(years)
    d1 = (library.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
    d2 = d1 - spread
    discounted = strike * library.exp(-RATE * years)
    call = spot * normal(d1) - discounted * normal(d2)
    put = discounted * normal(-d2) - spot * normal(-d1)
    return call, put


def diffused(pad: Callable[[Any], Any], u: Any) -> Any:
    """Heat after twenty explicit steps; `pad` puts a frame of zeros around a matrix."""
    for _ in range(STENCIL_STEPS):
        p = pad(u)
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        u = u + 0.1 * (around - 4 * u)
    return u


def decoded(
    library: Any, write: Callable[[Any, Any, Any], Any], at: Any, x: Any, keys: Any, values: Any,
    positions: Any, weights: tuple[Any, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """A turn of decoding: attention of `x` (batch, width) over what was seen until now.

    `write(cache, at, row)` gives a cache with another row; `positions` counts rows, as a column.
    """
    query, key, value, out = weights
    keys, values = write(keys, at, x @ key), write(values, at, x @ value)
    scores = (keys * (x @ query)).sum(-1) / math.sqrt(x.shape[-1])
    shares = library.exp(scores) * (positions <= at)
    mixed = (shares[..., None] * values).sum(0) / shares.sum(0)[..., None]
    return library.tanh(mixed @ out + x / 2), keys, values


def is_far(a: Any, x: Any) -> Any:
    """Whether some `x` is no root of `a` yet."""
    return (abs(x * x - a) > CLOSE * a).any()


def nearer(a: Any, x: Any) -> Any:
    """A turn of Newton's iteration for roots."""
    return (x + a / x) * 0.5
