"""What functions of numbers are exactly, by mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp


class Reference(NamedTuple):
    """Exact values of one function.

    Where they cross zero, errors are told in units of `size`, the height of the wave: a function of
    a rounded number cannot be exact relative to a value near zero. `limit` tells values that are
    wanted at infinities and zeros where PyTorch has others.
    """

    exact: Callable[..., Any]
    size: Callable[..., float] | None = None
    limit: Callable[..., float | None] | None = None


# --- exact values --------------------------------------------------------------------------------


def _erfcx(x: Any) -> Any:
    if x > 1e9:  # what is left of the series is 1 / (2 x**2)
        return (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def _ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    root = mp.sqrt(2)
    if x < -1e9:
        return -x * x / 2 - mp.log(-x * mp.sqrt(2 * mp.pi))
    return mp.log1p(-mp.erfc(x / root) / 2) if x > 0 else mp.log(mp.erfc(-x / root) / 2)


def _ndtri(p: Any) -> Any:
    if not 0 < p < 1:
        raise ValueError
    if p > 0.5:
        return -_ndtri(1 - p)
    logarithm, x = mp.log(p), -mp.sqrt(-2 * mp.log(2 * p))
    for _ in range(200):  # Newton's steps for the logarithm, which is nearly a parabola
        value = _log_ndtr(x)
        slope = mp.exp(-x * x / 2 - value) / mp.sqrt(2 * mp.pi)
        step = (value - logarithm) / slope
        x -= step
        if abs(step) < mp.mpf(10) ** -45 * (abs(x) + mp.mpf(10) ** -45):
            return x
    raise ValueError(p)


def _erfinv(x: Any) -> Any:
    if abs(x) >= 1:
        raise ValueError
    if abs(x) > 0.9:
        return -mp.sign(x) * _ndtri((1 - abs(x)) / 2) / mp.sqrt(2)
    return mp.erfinv(x)


def _loggamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1e5 else mp.re(mp.loggamma(x))


def _polygamma(n: int) -> Callable[[Any], Any]:
    return lambda x: mp.polygamma(n, x)


def _mvlgamma(x: Any) -> Any:
    return 3 * mp.log(mp.pi) / 2 + sum(_loggamma(x - mp.mpf(k) / 2) for k in range(3))


def _igamma(a: Any, x: Any) -> Any:
    if a <= 0 or x < 0:
        raise ValueError
    return mp.gammainc(a, 0, x, regularized=True)


def _igammac(a: Any, x: Any) -> Any:
    if a <= 0 or x < 0:
        raise ValueError
    return mp.gammainc(a, x, regularized=True)


def _zeta(s: Any, q: Any) -> Any:
    if s <= 1:
        raise ValueError
    with mp.extradps(int(s * mp.log10(q + 10)) + 10):  # mpmath's digits are those of 1
        return mp.zeta(s, q)


def _scaled(order: int, kind: str) -> Callable[[Any], Any]:
    def exact(x: Any) -> Any:
        if kind == "k":
            return mp.besselk(order, x) * mp.exp(x)
        return mp.besseli(order, x) * mp.exp(-abs(x))

    return exact


def _sinc(x: Any) -> Any:
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x)) if x > -1e5 else mp.exp(x)


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 1e5 else x


def _softplus_to_20(x: Any) -> Any:
    return _softplus(x) if x <= 20 else x


def _tanh_gelu(x: Any) -> Any:
    return x * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))) / 2


def _spherical(x: Any) -> Any:
    return mp.sin(x) / x if x else mp.mpf(1)


def _recurrence(first: Callable[[Any], Any], step: Callable[..., Any]) -> Callable[..., Any]:
    """Polynomials: of order 0 it is 1, of order 1 `first`, then `step(k, x, p[k], p[k - 1])`."""

    def exact(x: Any, n: Any) -> Any:
        before, value = mp.mpf(1), first(x)
        if int(n) == 0:
            return before
        for k in range(1, int(n)):
            before, value = value, step(k, x, value, before)
        return value

    return exact


def _chebyshev(first: Callable[[Any], Any], shifted: bool = False) -> Callable[..., Any]:
    exact = _recurrence(first, lambda k, x, p, q: 2 * x * p - q)
    return (lambda x, n: exact(2 * x - 1, n)) if shifted else exact


_CHEBYSHEV = {
    "t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1,
}  # fmt: skip
_HERMITE = _recurrence(lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q)
_HERMITE_E = _recurrence(lambda x: x, lambda k, x, p, q: x * p - k * q)
_LAGUERRE = _recurrence(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))
_LEGENDRE = _recurrence(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))

# --- heights of waves ----------------------------------------------------------------------------


def _wave(x: float, *others: float) -> float:
    return min(1.0, (2 / (math.pi * abs(x))) ** 0.5) if x else 1.0


def _airy_wave(x: float) -> float:
    return 0.5 * min(1.0, abs(x) ** -0.25) if x < 0 else 0.0


def _one(*numbers: float) -> float:
    return 1.0


def _half(x: float) -> float:
    """Of x * (1 + erf(x)) / 2, as `gelu` is defined, computed and differentiated everywhere."""
    return abs(x) / 2


def _largest_term(of: Callable[..., Any], turn: complex) -> Callable[..., float]:
    """The sum of the sizes of a polynomial's terms, which is its value at turned arguments."""
    return lambda x, n: float(abs(of(mp.mpc(abs(x)) * turn, n)))


# --- limits, where PyTorch gives NaN or another number -------------------------------------------


def _vanishes(x: float) -> float | None:
    """At infinity."""
    return 0.0 if math.isinf(x) and x > 0 else None


def _vanishes_both(x: float) -> float | None:
    return 0.0 if math.isinf(x) else None


def _gelu_limit(x: float) -> float | None:
    return x if math.isinf(x) and x > 0 else None


def _polygamma_limit(n: int) -> Callable[[float], float | None]:
    def limit(x: float) -> float | None:
        if math.isinf(x):
            return 0.0 if x > 0 else math.nan
        return math.copysign(1, x) ** (n + 1) * (-1) ** (n + 1) * math.inf if x == 0 else None

    return limit


def _zeta_limit(s: float, q: float) -> float | None:
    return 0.0 if math.isinf(s) and q > 1 else None


def _no_number(*numbers: float) -> float | None:
    return math.nan if any(map(math.isnan, numbers)) else None


# --- the table -----------------------------------------------------------------------------------

REFERENCES = {
    "exp": Reference(mp.exp),
    "exp2": Reference(lambda x: mp.power(2, x)),
    "expm1": Reference(mp.expm1),
    "log": Reference(mp.log),
    "log2": Reference(lambda x: mp.log(x, 2)),
    "log10": Reference(mp.log10),
    "log1p": Reference(mp.log1p),
    "sqrt": Reference(mp.sqrt),
    "rsqrt": Reference(lambda x: 1 / mp.sqrt(x)),
    "reciprocal": Reference(lambda x: 1 / x),
    "sin": Reference(mp.sin),
    "cos": Reference(mp.cos),
    "tan": Reference(mp.tan),
    "asin": Reference(mp.asin),
    "acos": Reference(mp.acos),
    "atan": Reference(mp.atan),
    "sinh": Reference(mp.sinh),
    "cosh": Reference(mp.cosh),
    "tanh": Reference(mp.tanh),
    "asinh": Reference(mp.asinh),
    "acosh": Reference(mp.acosh),
    "atanh": Reference(mp.atanh),
    "atan2": Reference(mp.atan2),
    "hypot": Reference(mp.hypot),
    "pow": Reference(mp.power),
    "logaddexp": Reference(lambda x, y: _softplus(y - x) + x, size=_one),
    "logaddexp2": Reference(lambda x, y: mp.log1p(mp.power(2, y - x)) / mp.log(2) + x, size=_one),
    "sigmoid": Reference(_sigmoid),
    "logit": Reference(lambda x: mp.log(x / (1 - x)), size=_one),
    "nn.functional.softplus": Reference(_softplus_to_20),
    "nn.functional.logsigmoid": Reference(lambda x: -_softplus(-x)),
    "nn.functional.silu": Reference(lambda x: x * _sigmoid(x)),
    "nn.functional.gelu": Reference(lambda x: x * _ndtr(x), size=_half, limit=_gelu_limit),
    "gelu, approximate='tanh'": Reference(_tanh_gelu, size=_half),
    "nn.functional.mish": Reference(lambda x: x * mp.tanh(_softplus(x))),
    "nn.functional.elu": Reference(lambda x: x if x > 0 else mp.expm1(x)),
    "erf": Reference(mp.erf),
    "erfc": Reference(mp.erfc),
    "special.erfcx": Reference(_erfcx),
    "erfinv": Reference(_erfinv),
    "special.ndtr": Reference(_ndtr),
    "special.log_ndtr": Reference(_log_ndtr),
    "special.ndtri": Reference(_ndtri),
    "special.entr": Reference(lambda x: -x * mp.log(x) if x else mp.mpf(0)),
    "sinc": Reference(_sinc, size=lambda x: min(1.0, 1 / abs(math.pi * x)) if x else 1.0),
    "xlogy": Reference(lambda x, y: x * mp.log(y)),
    "special.xlog1py": Reference(lambda x, y: x * mp.log1p(y)),
    "lgamma": Reference(_loggamma, size=_one),
    "digamma": Reference(mp.digamma, size=_one),
    **{
        f"polygamma({n}, x)": Reference(_polygamma(n), size=_one, limit=_polygamma_limit(n))
        for n in (1, 2, 3, 4)
    },
    "mvlgamma(x, 3)": Reference(_mvlgamma, size=_one),
    "igamma": Reference(_igamma, limit=_no_number),
    "igammac": Reference(_igammac, limit=_no_number),
    "special.zeta": Reference(_zeta, limit=_zeta_limit),
    "special.i0": Reference(lambda x: mp.besseli(0, x)),
    "special.i0e": Reference(_scaled(0, "i")),
    "special.i1": Reference(lambda x: mp.besseli(1, x)),
    "special.i1e": Reference(_scaled(1, "i")),
    "special.modified_bessel_k0": Reference(lambda x: mp.besselk(0, x)),
    "special.modified_bessel_k1": Reference(lambda x: mp.besselk(1, x)),
    "special.scaled_modified_bessel_k0": Reference(_scaled(0, "k")),
    "special.scaled_modified_bessel_k1": Reference(_scaled(1, "k")),
    "special.bessel_j0": Reference(lambda x: mp.besselj(0, x), size=_wave, limit=_vanishes_both),
    "special.bessel_j1": Reference(lambda x: mp.besselj(1, x), size=_wave, limit=_vanishes_both),
    "special.bessel_y0": Reference(lambda x: mp.bessely(0, x), size=_wave, limit=_vanishes),
    "special.bessel_y1": Reference(lambda x: mp.bessely(1, x), size=_wave, limit=_vanishes),
    "special.spherical_bessel_j0": Reference(_spherical, size=_wave, limit=_vanishes_both),
    "special.airy_ai": Reference(mp.airyai, size=_airy_wave, limit=_vanishes),
    **{
        f"special.chebyshev_polynomial_{kind}": Reference(_chebyshev(first), size=_one)
        for kind, first in _CHEBYSHEV.items()
    },
    **{
        f"special.shifted_chebyshev_polynomial_{kind}": Reference(
            _chebyshev(first, True), size=_one
        )
        for kind, first in _CHEBYSHEV.items()
    },
    "special.hermite_polynomial_h": Reference(_HERMITE, size=_largest_term(_HERMITE, 1j)),
    "special.hermite_polynomial_he": Reference(_HERMITE_E, size=_largest_term(_HERMITE_E, 1j)),
    "special.laguerre_polynomial_l": Reference(_LAGUERRE, size=_largest_term(_LAGUERRE, -1)),
    "special.legendre_polynomial_p": Reference(_LEGENDRE, size=_one),
}
