"""Divergences between distributions of two families.

KL(p || q) is the cross entropy, the mean of -log q(x) under p, less the entropy of p. What a family
of q needs of p are few means: of x and its square, of log(x), of exp(-t x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import full_like
from ..ops.elementwise import where
from ..ops.special_functions import digamma, lgamma, xlogy
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

# --- means under p -------------------------------------------------------------------------------


def _mean_log_of_uniform(p: Any) -> Tensor:
    return (xlogy(p.high, p.high) - xlogy(p.low, p.low)) / (p.high - p.low) - 1


MEAN_LOG: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -p.rate.log() - euler_constant,
    Gamma: lambda p: digamma(p.concentration) - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _mean_log_of_uniform,
}
"""The mean of log(x)."""


def _mean_exp_of_uniform(p: Any, t: Tensor) -> Tensor:
    return ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low))


MEAN_EXP: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate) ** -p.concentration,
    Normal: lambda p, t: (0.5 * (p.scale * t).square() - p.loc * t).exp(),
    Uniform: _mean_exp_of_uniform,
}
"""The mean of exp(-t x)."""


# --- the cross entropy, by the family of q -------------------------------------------------------


def _to_exponential(p: Any, q: Any, kind: type) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _to_gamma(p: Any, q: Any, kind: type) -> Tensor:
    a = q.concentration
    return lgamma(a) - a * q.rate.log() - (a - 1) * MEAN_LOG[kind](p) + q.rate * p.mean


def _to_gumbel(p: Any, q: Any, kind: type) -> Tensor:
    start = q.loc / q.scale
    return (
        q.scale.log()
        + p.mean / q.scale
        - start
        + start.exp() * MEAN_EXP[kind](p, q.scale.reciprocal())
    )


def _to_normal(p: Any, q: Any, kind: type) -> Tensor:
    squares = p.variance + (p.mean - q.loc).square()
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + squares / (2 * q.scale.square())


def _to_pareto(p: Any, q: Any, kind: type) -> Tensor:
    return (q.alpha + 1) * MEAN_LOG[kind](p) - q.alpha.log() - q.alpha * q.scale.log()


def _to_uniform(p: Any, q: Any, kind: type) -> Tensor:
    return (q.high - q.low).log()


def _to_continuous_bernoulli(p: Any, q: Any, kind: type) -> Tensor:
    return -p.mean * q.logits - (-q.probs).log1p() - q.log_normalizer()


def _to_beta(p: Any, q: Any, kind: type) -> Tensor:
    """For a uniform p, of which 1 - x is uniform, too."""
    a, b = q.concentration1, q.concentration0
    turned = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    means = (a - 1) * MEAN_LOG[kind](p) + (b - 1) * MEAN_LOG[kind](turned)
    return lgamma(a) + lgamma(b) - lgamma(a + b) - means


CROSS_ENTROPY: dict[type, Callable[[Any, Any, type], Tensor]] = {
    Beta: _to_beta, ContinuousBernoulli: _to_continuous_bernoulli, Exponential: _to_exponential,
    Gamma: _to_gamma, Gumbel: _to_gumbel, Normal: _to_normal, Pareto: _to_pareto,
    Uniform: _to_uniform,
}  # fmt: skip

# Where p gives numbers that q excludes.
_OUTSIDE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {
    (Beta, Uniform): lambda p, q: (q.low > 0) | (q.high < 1),
    (ContinuousBernoulli, Uniform): lambda p, q: (q.low >= 0) | (q.high <= 1),
    (Uniform, Beta): lambda p, q: (p.high > 1) | (p.low < 0),
    (Uniform, ContinuousBernoulli): lambda p, q: (p.high >= 1) | (p.low <= 0),
    (Uniform, Exponential): lambda p, q: p.low < 0,
    (Uniform, Gamma): lambda p, q: p.low < 0,
    (Uniform, Pareto): lambda p, q: p.low < q.scale,
    (Pareto, Exponential): lambda p, q: p.alpha <= 1,
    (Pareto, Gamma): lambda p, q: p.alpha <= 1,
    (Pareto, Normal): lambda p, q: p.alpha <= 2,
}
_FINITE = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (ContinuousBernoulli, Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel,),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_POSITIVE = (*_BOUNDED, Exponential, Gamma)
_INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: _BOUNDED,
    Gamma: _BOUNDED,
    Gumbel: _POSITIVE,
    Laplace: _POSITIVE,
    Normal: _POSITIVE,
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _finite(kind_p: type, kind_q: type) -> None:
    cross, outside = CROSS_ENTROPY[kind_q], _OUTSIDE.get((kind_p, kind_q))

    @register_kl(kind_p, kind_q)
    def _rule(p: Any, q: Any) -> Tensor:
        whole = cross(p, q, kind_p) - p.entropy()
        return whole if outside is None else where(outside(p, q), math.inf, whole)


def _infinite(p: Any, q: Any) -> Tensor:
    return full_like(p.mean, math.inf)


for _p, _several in _FINITE.items():
    for _q in _several:
        _finite(_p, _q)
for _p, _several in _INFINITE.items():
    for _q in _several:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    """By the mean of |x - loc|, of a folded normal distribution."""
    away = p.loc - q.loc
    along = away / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * along.square()).exp()
    folded = folded + away * (math.sqrt(0.5) * along).erf()
    return (2 * q.scale).log() + folded / q.scale - p.entropy()
