"""Divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.api import grad
from ..core.grad_mode import recorded
from ..core.tensor import Tensor
from ..ops.activations import softplus
from ..ops.elementwise import where
from ..ops.factorizations import solve_triangular
from ..ops.movement import broadcast_shapes
from ..ops.special_functions import digamma, lgamma
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    lowrank_log_det,
    lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, batch_mahalanobis, half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import diagonal_matrix, euler_constant, sum_rightmost


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0, where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = where(p.probs == 1, 0, where(q.probs == 1, math.inf, zeros))
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    odds = p.probs * (p.logits - q.logits)
    whole = p.total_count * (odds + (-p.probs).log1p() - (-q.probs).log1p())
    return where(p.total_count > q.total_count, math.inf, whole)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = where(p.probs == 0, 0, where(q.probs == 0, math.inf, each))
    return each.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    constants = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return constants + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """A Bregman divergence of the log-normalizers."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    with recorded():
        points = [each.detach().requires_grad_() for each in p._natural_params]
        whole = p._log_normalizer(*points)
        slopes = grad(whole.sum(), points, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - whole
    for point, other, slope in zip(points, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((other - point) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + lgamma(b)
        - lgamma(a)
        + (a - b) * digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (
        away - ratio.log()
        + ratio * euler_constant
        + (lgamma(1 + ratio) - away).exp()
        - (1 + euler_constant)
    )  # fmt: skip


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return away / q.scale + ratio * (-away / p.scale).exp() - ratio.log() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    whole = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, whole)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    whole = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, whole)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Chyzak and Nielsen, 2019."""
    near = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return near.log() - (4 * p.scale * q.scale).log()


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence expected two Independent of as many reinterpreted_batch_ndims, got "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence expected two TransformedDistribution with the same transforms and "
            f"event shapes, got {p.transforms} and {q.transforms}, {p.event_shape} and "
            f"{q.event_shape}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


# --- multivariate normal distributions -----------------------------------------------------------


def _check_events(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event "
            f"shapes cannot be computed: {p.event_shape} and {q.event_shape}"
        )


def _trace(lower: Tensor, factor: Tensor) -> Tensor:
    """The trace of (lower lower^T)^-1 factor factor^T."""
    batch = broadcast_shapes(lower.shape[:-2], factor.shape[:-2])
    one, other = (each.expand(*batch, *each.shape[-2:]) for each in (lower, factor))
    return solve_triangular(one, other, upper=False).square().sum((-2, -1))


def _lowrank_trace(q: Any, factor: Tensor) -> Tensor:
    """The same of the covariance of `q`, by Woodbury's identity."""
    scale = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    whole = (factor * scale).square().sum((-2, -1))
    inner = (q._unbroadcasted_cov_factor * scale.square()).mT @ factor
    return whole - _trace(q._capacitance_tril, inner)


def _log_det(p: Any) -> Tensor:
    if isinstance(p, MultivariateNormal):
        return 2 * half_log_det(p._unbroadcasted_scale_tril)
    return lowrank_log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)


def _factors(p: Any) -> list[Tensor]:
    """Matrices whose squares add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, diagonal_matrix(p._unbroadcasted_cov_diag.sqrt())]


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    _check_events(p, q)
    away = q.loc - p.loc
    if isinstance(q, MultivariateNormal):
        lower = q._unbroadcasted_scale_tril
        traces = [_trace(lower, each) for each in _factors(p)]
        distance = batch_mahalanobis(lower, away)
    else:
        traces = [_lowrank_trace(q, each) for each in _factors(p)]
        distance = lowrank_mahalanobis(
            q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, away, q._capacitance_tril
        )
    size = p.event_shape[0]
    return 0.5 * (_log_det(q) - _log_det(p) + sum(traces) + distance - size)
