"""Coefficients of Chebyshev's polynomials in tgraph/ops: interpolation in 50 digits.

Run: python tools/fit_chebyshev.py [name ...]   (needs mpmath)

Printed are those above 1e-18 of the least value, lowest degree first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 50
NODES = 90


def coefficients(function: Callable[[Any], Any]) -> list[float]:
    """Of a function on [-1, 1]."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / NODES for k in range(NODES)]
    values = [function(mp.cos(each)) for each in angles]
    found = [
        2 * mp.fsum(v * mp.cos(j * t) for v, t in zip(values, angles, strict=True)) / NODES
        for j in range(NODES)
    ]
    found[0] /= 2
    least = min(map(abs, values))
    while abs(found[-1]) < mp.mpf("1e-18") * least:
        found.pop()
    return [float(each) for each in found]


def _scaled_erfc(place: Any) -> Any:
    """Of (x - 3.75) / (x + 3.75), times 1 + 2 * x: Shepherd and Laframboise (1981)."""
    x = mp.mpf("3.75") * (1 + place) / (1 - place)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _near(order: int) -> Callable[[Any], Any]:
    """Of x / 4 - 1, for x up to 8: exp(-x) * I(x), of order 1 over x."""

    def function(place: Any) -> Any:
        x = 4 * (1 + place)
        return mp.exp(-x) * mp.besseli(order, x) / x**order

    return function


def _far(order: int) -> Callable[[Any], Any]:
    """Of 16 / x - 1, for x from 8 on: exp(-x) * sqrt(x) * I(x)."""

    def function(place: Any) -> Any:
        x = 16 / (1 + place)
        return mp.exp(-x) * mp.sqrt(x) * mp.besseli(order, x)

    return function


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "scaled erfc": _scaled_erfc,
    "i0 near": _near(0), "i1 near": _near(1), "i0 far": _far(0), "i1 far": _far(1),
}  # fmt: skip


if __name__ == "__main__":
    for name in sys.argv[1:] or FUNCTIONS:
        print(name)
        print("    " + ", ".join(map(repr, coefficients(FUNCTIONS[name]))) + ",")
