"""Fits polynomials (compiler/targets/cpu/math/*.py, tgraph/ops/basic_draws.py): Remez's exchange.

Run: python tools/fit_polynomials.py [name ...]   (needs mpmath)

Each fit approximates ``target(t)`` on an interval by a polynomial whose weighted error
``|weight(t) * (target(t) - p(t))|`` is smallest. The coefficients are then rounded one after the
other, lowest power first, refitting the rest each time, so that rounding costs little. Printed are
the coefficients, lowest power first, and the weighted error that remains.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[mp.mpf], mp.mpf]
GRID = 1500


@dataclass(frozen=True)
class Fit:
    """One fit: the target and weight over [low, high], how many coefficients, rounded to what."""

    target: Function
    weight: Function
    low: float
    high: float
    count: int
    precision: str


def rounded(value: mp.mpf, precision: str) -> mp.mpf:
    """The nearest number of the format: "f" for float32, "d" for float64."""
    return mp.mpf(struct.unpack(precision, struct.pack(precision, float(value)))[0])


def chebyshev_grid(low: mp.mpf, high: mp.mpf, count: int) -> list[mp.mpf]:
    """Points of [low, high] crowded at both ends, both ends left out."""
    half, centre = (high - low) / 2, (high + low) / 2
    return [centre - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def remez(
    residual: list[mp.mpf], weights: list[mp.mpf], grid: list[mp.mpf], count: int
) -> list[mp.mpf]:
    """The `count` coefficients of the polynomial closest to the residual on the grid."""
    step = (len(grid) - 1) / count
    nodes = [round(i * step) for i in range(count + 1)]
    for _ in range(12):
        rows = mp.matrix(count + 1, count + 1)
        right = mp.matrix(count + 1, 1)
        for row, node in enumerate(nodes):
            for column in range(count):
                rows[row, column] = grid[node] ** column
            rows[row, count] = (-1) ** row / weights[node]
            right[row] = residual[node]
        solution = mp.lu_solve(rows, right)
        coefficients = [solution[i] for i in range(count)]
        errors = [
            w * (r - mp.polyval(coefficients[::-1], t)) for w, r, t in zip(weights, residual, grid)
        ]
        exchanged = extrema(errors, count + 1)
        if exchanged == nodes or len(exchanged) != count + 1:
            break
        nodes = exchanged
    return coefficients


def extrema(errors: list[mp.mpf], count: int) -> list[int]:
    """The index of the largest error of each run of one sign; the `count` neighbours kept."""
    best: list[int] = []
    for index, error in enumerate(errors):
        if best and (errors[best[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[best[-1]]):
                best[-1] = index
        else:
            best.append(index)
    while len(best) > count:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    return best


def closest(
    residual: list[mp.mpf], weights: list[mp.mpf], grid: list[mp.mpf], first: int, count: int
) -> mp.matrix:
    """The coefficients from t**first on that fit the residual best in weighted least squares."""
    powers = [[w * t**k for k in range(first, count)] for w, t in zip(weights, grid)]
    normal = mp.matrix(count - first, count - first)
    right = mp.matrix(count - first, 1)
    for i in range(count - first):
        right[i] = mp.fsum(row[i] * w * r for row, w, r in zip(powers, weights, residual))
        for j in range(count - first):
            normal[i, j] = mp.fsum(row[i] * row[j] for row in powers)
    return mp.lu_solve(normal, right)


def solve(fit: Fit) -> tuple[list[mp.mpf], mp.mpf, mp.mpf]:
    """The rounded coefficients of a fit, the weighted error before and after the rounding."""
    grid = chebyshev_grid(mp.mpf(fit.low), mp.mpf(fit.high), GRID)
    weights = [abs(fit.weight(t)) for t in grid]
    target = [fit.target(t) for t in grid]
    ideal = remez(target, weights, grid, fit.count)
    coarse, coarse_weights = grid[::10], weights[::10]
    residual = [mp.polyval(ideal[::-1], t) for t in coarse]
    done: list[mp.mpf] = []
    for index in range(fit.count):
        refit = closest(residual, coarse_weights, coarse, index, fit.count)
        done.append(rounded(refit[0], fit.precision))
        residual = [r - done[-1] * t**index for r, t in zip(residual, coarse)]
    return done, worst(ideal, target, weights, grid), worst(done, target, weights, grid)


def worst(
    coefficients: list[mp.mpf], target: list[mp.mpf], weights: list[mp.mpf], grid: list[mp.mpf]
) -> mp.mpf:
    """The largest weighted error on the grid, as a power of two."""
    errors = [
        w * abs(r - mp.polyval(coefficients[::-1], t)) for w, r, t in zip(weights, target, grid)
    ]
    return mp.log(max(errors), 2)


# Where erf changes its formula; in float32 where erfc(CUT)**(-1/8) is nearly a float32.
CUT, CUT64 = 65 / 64, 1.0
HALF_LN2 = float(mp.log(2) / 2) * 1.0005
ROOT = mp.sqrt


def expm1_rest(t: mp.mpf) -> mp.mpf:
    """(exp(t) - 1 - t) / t**2."""
    return (mp.expm1(t) - t) / t**2


def log1p_rest(t: mp.mpf) -> mp.mpf:
    """(log(1 + t) - t + t**2/2) / t**3."""
    return (mp.log1p(t) - t + t**2 / 2) / t**3


def exp2_rest(t: mp.mpf) -> mp.mpf:
    """(2**t - 1) / t."""
    return mp.expm1(t * mp.log(2)) / t


def erf_rest(t: mp.mpf) -> mp.mpf:
    """erf(sqrt(t)) / sqrt(t) - 1."""
    return mp.erf(ROOT(t)) / ROOT(t) - 1


def erfc_root(cut: float) -> Function:
    """erfc(t + cut) ** (-1/8) as a function of t."""
    return lambda t: mp.erfc(t + cut) ** (mp.mpf(-1) / 8)


def erfc_weight(cut: float) -> Function:
    """The error of 1 - p**-8 relative to erf(t + cut)."""
    return lambda t: 8 * mp.erfc(t + cut) ** (mp.mpf(9) / 8) / mp.erf(t + cut)


def atanh_rest(t: mp.mpf) -> mp.mpf:
    """(atanh(sqrt(t)) / sqrt(t) - 1 - t/3) / t**2."""
    return (mp.atanh(ROOT(t)) / ROOT(t) - 1 - t / 3) / t**2


def odd_rest(function: Function) -> Function:
    """(f(sqrt(t)) - sqrt(t)) / t**1.5 for an odd f with f(x) ~ x."""

    def rest(t: mp.mpf) -> mp.mpf:
        root = ROOT(t)
        return (function(root) - root) / (t * root)

    return rest


def odd_weight(function: Function) -> Function:
    """Relative error of f(x) = x + x**3 p(x**2), t = x**2."""
    return lambda t: t * ROOT(t) / function(ROOT(t))


def cos_rest(t: mp.mpf) -> mp.mpf:
    """(cos(sqrt(t)) - 1 + t/2) / t**2."""
    return (mp.cos(ROOT(t)) - 1 + t / 2) / t**2


def sine_of_turns(t: mp.mpf) -> mp.mpf:
    """sin(2 pi sqrt(t)) / sqrt(t)."""
    return mp.sin(2 * mp.pi * ROOT(t)) / ROOT(t)


QUARTER_PI = float(mp.pi / 4) ** 2 * 1.001
TINY = 1e-9


def both(
    name: str, counts: tuple[int, int], target: Function, weight: Function, low: float, high: float
) -> dict[str, Fit]:
    """The same fit for float32 and float64."""
    return {
        f"{name}_{format}": Fit(target, weight, low, high, count, precision)
        for format, precision, count in zip(("f32", "f64"), "fd", counts)
    }


FITS: dict[str, Fit] = {
    **both("expm1", (5, 10), expm1_rest, lambda t: t**2 / mp.expm1(t), -HALF_LN2, HALF_LN2),
    **both("exp2", (6, 11), exp2_rest, lambda t: t / mp.power(2, t), -0.5001, 0.5001),
    "log1p_f32": Fit(log1p_rest, lambda t: t**3 / mp.log1p(t), -0.33334, 0.33334, 8, "f"),
    "erf_f32": Fit(erf_rest, lambda t: ROOT(t) / mp.erf(ROOT(t)), TINY, CUT**2, 7, "f"),
    "erf_f64": Fit(erf_rest, lambda t: ROOT(t) / mp.erf(ROOT(t)), TINY, CUT64**2, 12, "d"),
    "erfc_f32": Fit(erfc_root(CUT), erfc_weight(CUT), 0.0, 3.94 - CUT, 8, "f"),
    "erfc_f64": Fit(erfc_root(CUT64), erfc_weight(CUT64), 0.0, 5.93 - CUT64, 19, "d"),
    "atanh_short_f64": Fit(odd_rest(mp.atanh), odd_weight(mp.atanh), TINY, 0.0401, 7, "d"),
    "atanh_pow_f64": Fit(odd_rest(mp.atanh), odd_weight(mp.atanh), TINY, 0.0401, 4, "d"),
    "atanh_f64": Fit(atanh_rest, lambda t: t**2, TINY, 0.0296, 7, "d"),
    **both("sin", (3, 6), odd_rest(mp.sin), odd_weight(mp.sin), TINY, QUARTER_PI),
    **both("cos", (3, 6), cos_rest, lambda t: t**2 / mp.cos(ROOT(t)), TINY, QUARTER_PI),
    "sine_of_turns_f32": Fit(sine_of_turns, lambda t: 1 / sine_of_turns(t), TINY, 0.0625, 6, "d"),
    "sine_of_turns_f64": Fit(sine_of_turns, lambda t: 1 / sine_of_turns(t), TINY, 0.0625, 9, "d"),
    **both("asin", (5, 12), odd_rest(mp.asin), odd_weight(mp.asin), TINY, 0.2501),
    **both("atan", (9, 19), odd_rest(mp.atan), odd_weight(mp.atan), TINY, 1.0),
}


def main() -> None:
    """Solves and prints the fits named on the command line, or all of them."""
    for name in sys.argv[1:] or FITS:
        coefficients, ideal, error = solve(FITS[name])
        print(f"{name}: weighted error 2**{float(error):.1f} (unrounded 2**{float(ideal):.1f})")
        for value in coefficients:
            print(f"    {float(value)!r},")


if __name__ == "__main__":
    main()
