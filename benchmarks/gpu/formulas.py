"""Formulas that read the same in every library of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

RATE, VOLATILITY = 0.02, 0.3
STENCIL_STEPS = 20


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
