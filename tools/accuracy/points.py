"""Where functions are asked: each gives one array, or two of equal length, of a type of floats.

Sizes are spaced logarithmically from the smallest number to where results overflow or vanish; what
functions change at, as 1, 8 and multiples of pi / 2, has neighbours on both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _random() -> np.random.Generator:
    return np.random.default_rng(20)


def _sizes(dtype: Any, low: float, high: float, count: int = 120) -> Array:
    """Numbers between two sizes, their logarithms spread evenly, with all bits drawn."""
    spread = np.linspace(np.log2(low), np.log2(high), count)
    drawn = np.exp2(np.minimum(spread + _random().uniform(-0.2, 0.2, count), np.log2(high)))
    return np.maximum(drawn, low).astype(dtype)


def _near(dtype: Any, *values: float) -> Array:
    """The numbers, and the next ones and those some hundred steps away on both sides."""
    found = []
    for value in np.array(values, dtype):
        step = np.spacing(np.abs(value)) or np.finfo(dtype).smallest_subnormal
        found += [value + dtype(by) * step for by in (0, 1, -1, 2, -3, 100, -333, 5e4, -5e4)]
    return np.array(found, dtype)


def _small(dtype: Any) -> Array:
    info = np.finfo(dtype)
    least, tiny = info.smallest_subnormal, info.tiny
    return np.array([least, 3 * least, tiny / 7, tiny, 2 * tiny, info.eps / 2, info.eps], dtype)


def _edge(dtype: Any) -> float:
    """Where exp(x) overflows."""
    return float(np.log(np.finfo(dtype).max))


def _both(values: Array) -> Array:
    return np.concatenate([values, -values])


def _specials(dtype: Any) -> Array:
    return np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)


def positive(dtype: Any) -> list[Array]:
    info = np.finfo(dtype)
    sizes = _sizes(dtype, float(info.tiny), float(info.max))
    ordinary = _random().uniform(0.3, 4, 80).astype(dtype)
    near = _near(dtype, 1, 0.5, 2, 2**0.5, 10)
    rest = np.array([info.max, -1.0], dtype)
    return [np.concatenate([sizes, ordinary, near, _small(dtype), rest, _specials(dtype)])]


def everywhere(dtype: Any) -> list[Array]:
    (found,) = positive(dtype)
    turns = (np.arange(1, 40) * (np.pi / 4)).astype(dtype)
    return [np.concatenate([found, -found, turns, -turns, _near(dtype, np.pi, 11 * np.pi / 2)])]


def exponents(dtype: Any) -> list[Array]:
    """Up to where the exponential overflows or is the smallest number, and beyond."""
    edge = _edge(dtype)
    sizes = _sizes(dtype, float(np.finfo(dtype).tiny), edge, 90)
    ordinary = _random().uniform(0, 1.2 * edge, 60).astype(dtype)
    usual = _random().uniform(0, 20, 60).astype(dtype)
    near = _near(dtype, edge, 0.5 * np.log(2), 1, 8, 20, 1.06 * edge)
    far = np.array([2 * edge, 1e6, np.finfo(dtype).max], dtype)
    both = _both(np.concatenate([sizes, ordinary, usual, near, far, _small(dtype)]))
    return [np.concatenate([both, _specials(dtype)])]


def above_minus_one(dtype: Any) -> list[Array]:
    (found,) = positive(dtype)
    return [np.concatenate([found, _sizes(dtype, 1e-8, 0.999, 60) * dtype(-1), _near(dtype, -1)])]


def above_one(dtype: Any) -> list[Array]:
    sizes = _sizes(dtype, 1e-7, float(np.finfo(dtype).max) / 4) + dtype(1)
    near = _near(dtype, 1, 2, 2.5, 3, 8)
    return [np.concatenate([sizes, near, _specials(dtype)])]


def unit(dtype: Any) -> list[Array]:
    inside = _sizes(dtype, float(np.finfo(dtype).tiny), 0.9)
    close = dtype(1) - _sizes(dtype, 1e-7, 0.9, 60)
    both = _both(np.concatenate([inside, close, _small(dtype), _near(dtype, 1, 0.5)]))
    return [np.concatenate([both, _specials(dtype)])]


def open_unit(dtype: Any) -> list[Array]:
    (found,) = unit(dtype)
    return [found[~(np.abs(found) < 1e-30) | (found == 0)]]


def probabilities(dtype: Any) -> list[Array]:
    inside = _sizes(dtype, float(np.finfo(dtype).tiny), 0.5)
    close = dtype(1) - _sizes(dtype, 1e-7, 0.6, 60)
    rest = np.array([1.0, 1.5, -0.5], dtype)
    near = _near(dtype, 0.5, 0.1353352832366127)
    return [np.concatenate([inside, close, near, rest, _specials(dtype)])]


def moderate(dtype: Any) -> list[Array]:
    """Where erfc(x) goes from 2 to the smallest number."""
    edge = _edge(dtype) ** 0.5 * 1.1
    sizes = _sizes(dtype, float(np.finfo(dtype).tiny), edge, 100)
    ordinary = _random().uniform(0, edge, 80).astype(dtype)
    near = _near(dtype, 0.5, 1, 2, 4)
    both = _both(np.concatenate([sizes, ordinary, near, _small(dtype), _near(dtype, 1e4)]))
    return [np.concatenate([both, _specials(dtype)])]


def error_arguments(dtype: Any) -> list[Array]:
    (found,) = moderate(dtype)
    far = _sizes(dtype, 30, float(np.finfo(dtype).max) ** 0.5 / 4, 40)
    return [np.concatenate([found, _both(far)])]


def gamma_arguments(dtype: Any) -> list[Array]:
    sizes = _sizes(dtype, float(np.finfo(dtype).tiny) * 4, float(np.finfo(dtype).max) / 1e4)
    ordinary = _random().uniform(0, 30, 100).astype(dtype)
    below = _random().uniform(-20, 0, 60).astype(dtype)
    near = _near(dtype, 1, 2, 1.4616321449683623, 8, 10)
    poles = np.array([-1.0, -2.0, -7.0], dtype)
    return [np.concatenate([sizes, ordinary, below, near, poles, _specials(dtype)])]


def polygamma_arguments(dtype: Any) -> list[Array]:
    sizes = _sizes(dtype, 1e-7, 1e7, 60)
    ordinary = _random().uniform(0, 30, 60).astype(dtype)
    return [np.concatenate([sizes, ordinary, _near(dtype, 1, 2, 10), _specials(dtype)])]


def bessel_arguments(dtype: Any) -> list[Array]:
    (found,) = positive_bessel_arguments(dtype)
    return [np.concatenate([found[found >= 0], -found[found > 0], _specials(dtype)])]


def positive_bessel_arguments(dtype: Any) -> list[Array]:
    sizes = _sizes(dtype, float(np.finfo(dtype).tiny) * 4, 1e4)
    ordinary = _random().uniform(0, 40, 120).astype(dtype)
    near = _near(dtype, 2, 5, 8, 2.404825557695773, 25)
    return [np.concatenate([sizes, ordinary, near, np.array([-1.0], dtype), _specials(dtype)])]


def decays(dtype: Any) -> list[Array]:
    sizes = _sizes(dtype, float(np.finfo(dtype).tiny) * 4, _edge(dtype))
    ordinary = _random().uniform(0, 1.05 * _edge(dtype), 80).astype(dtype)
    near = _near(dtype, 1, 2, 8)
    return [np.concatenate([sizes, ordinary, near, np.array([-1.0], dtype), _specials(dtype)])]


def airy_arguments(dtype: Any) -> list[Array]:
    edge = (_edge(dtype) * 1.5) ** (2 / 3)
    ordinary = _random().uniform(-30, edge, 160).astype(dtype)
    sizes = _sizes(dtype, 1e-30, 2e3, 60)
    near = _near(dtype, 2.09, -2.09, 1, -2.338107410459767, 8, -8)
    return [np.concatenate([ordinary, sizes, -sizes, near, _specials(dtype)])]


# --- two numbers ---------------------------------------------------------------------------------


def _crossed(dtype: Any, first: Array, second: Array) -> list[Array]:
    a, b = np.meshgrid(first.astype(dtype), second.astype(dtype))
    return [a.ravel(), b.ravel()]


def _joined(*parts: list[Array]) -> list[Array]:
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def pairs(dtype: Any) -> list[Array]:
    edges = np.concatenate([_specials(dtype), _small(dtype)[:3], np.array([1, -2, 3], dtype)])
    edges = np.append(edges, np.finfo(dtype).max)
    root = float(np.finfo(dtype).max) ** 0.5
    drawn = _both(_sizes(dtype, 1 / root, root, 80))
    other = _random().permutation(drawn)
    alike = drawn * _random().uniform(0.2, 5, drawn.size).astype(dtype)
    return _joined(_crossed(dtype, edges, edges), [drawn, other], [drawn, alike])


def moderate_pairs(dtype: Any) -> list[Array]:
    x = _random().uniform(-30, 30, 200).astype(dtype)
    y = (x + np.random.default_rng(4).uniform(-20, 20, 200)).astype(dtype)
    edges = np.append(_specials(dtype), dtype(3))
    return _joined([x, y], _crossed(dtype, edges, edges))


def positive_pairs(dtype: Any) -> list[Array]:
    edges = np.array([0, -0.0, 1, 2, np.inf, np.nan], dtype)
    x = _random().uniform(-30, 30, 120).astype(dtype)
    y = _random().permutation(_sizes(dtype, 1e-12, 1e12))
    near = (1 + _random().uniform(-0.1, 0.1, 60)).astype(dtype)
    return _joined([x, y], [x[:60], near], _crossed(dtype, edges, edges))


def powers(dtype: Any) -> list[Array]:
    edge = _edge(dtype)
    base = np.exp(_random().uniform(-edge, edge, 150) * 0.85).astype(dtype)
    exponent = (_random().permutation(np.linspace(-edge, edge, 150)) / np.log(base)).astype(dtype)
    near = (1 + _random().uniform(-1e-3, 1e-3, 60)).astype(dtype)
    large = (_random().uniform(-edge, edge, 60) / np.log(near)).astype(dtype)
    whole = np.arange(-30, 30, dtype=dtype)
    edges = np.array([0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, np.inf, -np.inf, np.nan], dtype)
    return _joined(
        [base, exponent], [near, large], [-base[:60], whole[:60]], _crossed(dtype, edges, edges)
    )


def gamma_pairs(dtype: Any) -> list[Array]:
    a = _sizes(dtype, 1e-3, 200, 150)
    x = (a * np.exp(_random().uniform(-1.2, 1.2, a.size))).astype(dtype)
    far = _random().permutation(_sizes(dtype, 1e-6, 60, 60))
    edges = np.array([0, 1, 2.5, -1, np.inf, np.nan], dtype)
    return _joined([a, x], [a[:60], far], _crossed(dtype, edges, edges))


def zeta_pairs(dtype: Any) -> list[Array]:
    s = 1 + _sizes(dtype, 1e-5, 60, 150)
    q = _random().permutation(_sizes(dtype, 0.05, 1e4, 150))
    edges = np.array([0.5, 1, 2, np.inf, np.nan], dtype)
    return _joined([s, q], [s[:80], np.ones(80, dtype)], _crossed(dtype, edges, edges))


# --- polynomials ---------------------------------------------------------------------------------


def _orders(dtype: Any, x: Array, high: int) -> list[Array]:
    return [x, _random().integers(0, high, x.size).astype(dtype)]


def polynomials(dtype: Any) -> list[Array]:
    inside = _random().uniform(-1, 1, 250)
    outside = _random().uniform(-2, 2, 40)
    return _joined(
        _orders(dtype, inside.astype(dtype), 30), _orders(dtype, outside.astype(dtype), 12),
        _crossed(dtype, np.array([0, 1, -1]), np.arange(9)),
    )  # fmt: skip


def shifted_polynomials(dtype: Any) -> list[Array]:
    x, n = polynomials(dtype)
    return [((x.astype(np.float64) + 1) / 2).astype(dtype), n]


def wide_polynomials(dtype: Any) -> list[Array]:
    x = _random().uniform(-8, 8, 200).astype(dtype)
    return _joined(_orders(dtype, x, 14), _crossed(dtype, np.array([0, 1, -1, 0.5]), np.arange(10)))
