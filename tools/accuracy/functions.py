"""Every function of numbers: how it is called and where it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import points as at
from .points import Array


class Function(NamedTuple):
    """One function of tgraph and PyTorch, and the points of a type to measure it at."""

    name: str
    points: Callable[[Any], Sequence[Array]]
    call: Callable[..., Any]


def _named(path: str) -> Callable[..., Any]:
    def call(library: Any, *tensors: Any) -> Any:
        found = library
        for part in path.split("."):
            found = getattr(found, part)
        return found(*tensors)

    return call


def row(
    name: str,
    points: Callable[[Any], Sequence[Array]],
    call: Callable[..., Any] | None = None,
) -> Function:
    return Function(name, points, call or _named(name))


FUNCTIONS = [
    row("exp", at.exponents),
    row("exp2", at.exponents),
    row("expm1", at.exponents),
    row("log", at.positive),
    row("log2", at.positive),
    row("log10", at.positive),
    row("log1p", at.above_minus_one),
    row("sqrt", at.positive),
    row("rsqrt", at.positive),
    row("reciprocal", at.everywhere),
    row("sin", at.everywhere),
    row("cos", at.everywhere),
    row("tan", at.everywhere),
    row("asin", at.unit),
    row("acos", at.unit),
    row("atan", at.everywhere),
    row("sinh", at.exponents),
    row("cosh", at.exponents),
    row("tanh", at.exponents),
    row("asinh", at.everywhere),
    row("acosh", at.above_one),
    row("atanh", at.unit),
    row("atan2", at.pairs),
    row("hypot", at.pairs),
    row("pow", at.powers),
    row("logaddexp", at.moderate_pairs),
    row("logaddexp2", at.moderate_pairs),
    row("sigmoid", at.exponents),
    row("logit", at.probabilities),
    row("nn.functional.softplus", at.exponents),
    row("nn.functional.logsigmoid", at.exponents),
    row("nn.functional.silu", at.exponents),
    row("nn.functional.gelu", at.moderate),
    row(
        "gelu, approximate='tanh'",
        at.moderate,
        lambda library, x: library.nn.functional.gelu(x, approximate="tanh"),
    ),
    row("nn.functional.mish", at.exponents),
    row("nn.functional.elu", at.exponents),
    row("erf", at.everywhere),
    row("erfc", at.moderate),
    row("special.erfcx", at.error_arguments),
    row("erfinv", at.open_unit),
    row("special.ndtr", at.moderate),
    row("special.log_ndtr", at.error_arguments),
    row("special.ndtri", at.probabilities),
    row("special.entr", at.positive),
    row("sinc", at.moderate),
    row("xlogy", at.positive_pairs),
    row("special.xlog1py", at.positive_pairs),
    row("lgamma", at.gamma_arguments),
    row("digamma", at.gamma_arguments),
    *(
        row(
            f"polygamma({n}, x)",
            at.polygamma_arguments,
            lambda library, x, n=n: library.polygamma(n, x),
        )
        for n in (1, 2, 3, 4)
    ),
    row("mvlgamma(x, 3)", at.above_one, lambda library, x: library.mvlgamma(x, 3)),
    row("igamma", at.gamma_pairs),
    row("igammac", at.gamma_pairs),
    row("special.zeta", at.zeta_pairs),
    row("special.i0", at.exponents),
    row("special.i0e", at.bessel_arguments),
    row("special.i1", at.exponents),
    row("special.i1e", at.bessel_arguments),
    row("special.modified_bessel_k0", at.decays),
    row("special.modified_bessel_k1", at.decays),
    row("special.scaled_modified_bessel_k0", at.positive_bessel_arguments),
    row("special.scaled_modified_bessel_k1", at.positive_bessel_arguments),
    row("special.bessel_j0", at.bessel_arguments),
    row("special.bessel_j1", at.bessel_arguments),
    row("special.bessel_y0", at.positive_bessel_arguments),
    row("special.bessel_y1", at.positive_bessel_arguments),
    row("special.spherical_bessel_j0", at.bessel_arguments),
    row("special.airy_ai", at.airy_arguments),
    *(row(f"special.chebyshev_polynomial_{kind}", at.polynomials) for kind in "tuvw"),
    *(
        row(f"special.shifted_chebyshev_polynomial_{kind}", at.shifted_polynomials)
        for kind in "tuvw"
    ),
    row("special.hermite_polynomial_h", at.wide_polynomials),
    row("special.hermite_polynomial_he", at.wide_polynomials),
    row("special.laguerre_polynomial_l", at.wide_polynomials),
    row("special.legendre_polynomial_p", at.polynomials),
]
BY_NAME = {each.name: each for each in FUNCTIONS}
