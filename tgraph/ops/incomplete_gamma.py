"""The incomplete gamma functions, regularized, and what random draws need of them.

By quadrature, in float64: of the density from the argument on, away from the mean, where it falls;
on a logarithmic scale, t = x * exp(-+ s), relative to that of x. The nodes are those for integrands
that decay exponentially (Takahasi and Mori, "Double exponential formulas for numerical
integration", 1974).
"""

from __future__ import annotations

import math

from ..core.composite import composite
from ..core.operands import cast, promote_real_float, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from . import from_data
from . import movement as m
from . import reductions as r
from .special_functions import digamma, lgamma

_STEP = 0.08
_POINTS = [k * _STEP for k in range(-43, 51)]
_NODES = [math.exp(x - math.exp(-x)) for x in _POINTS]
_WEIGHTS = [_STEP * (1 + math.exp(-x)) * math.exp(x - math.exp(-x)) for x in _POINTS]


@public(method=True, inplace=True, out=True)
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The integral of t**(input - 1) * exp(-t) from 0 to `other`, over gamma(input).

    It is the probability that a gamma-distributed number is less. NaN for negative numbers.

    >>> import tgraph as tg
    >>> tg.igamma(tg.tensor([1.0, 4.0]), tg.tensor([1.0, 4.0]))
    tensor([0.6321, 0.5665])
    """
    return _igamma(*_two("igamma", input, other), upper=False)


@public(method=True, inplace=True, out=True)
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """1 - igamma(input, other), without the loss of digits.

    >>> import tgraph as tg
    >>> tg.igammac(tg.tensor([1.0, 4.0]), tg.tensor([1.0, 4.0]))
    tensor([0.3679, 0.4335])
    """
    return _igamma(*_two("igammac", input, other), upper=True)


def _two(name: str, input: Tensor, other: Tensor) -> tuple[Tensor, ...]:
    return promote_real_float(
        name, require_tensor(input, name), require_tensor(other, name, "other")
    )


@composite("igamma")
@planned
def _igamma(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    dtype, a, x = a._type.dtype, cast(a, float64), cast(x, float64)
    is_proper = e.logical_and(e.gt(a, 0), e.gt(x, 0))
    is_proper = e.logical_and(is_proper, e.logical_not(e.isinf(e.add(a, x))))
    order, at = (e.where(is_proper, each, 1.0) for each in (a, x))
    below = e.logical_or(e.le(at, order), e.lt(at, 1))
    one_more = e.logical_and(below, e.lt(order, 1))
    raised = e.where(one_more, e.add(order, 1), order)
    total = _integral(raised, at, below)
    total = e.where(one_more, e.div(e.add(e.mul(at, total), 1), order), total)
    part = e.mul(total, _times_density(order, at))
    rest = e.sub(1, part)
    found = e.where(below, rest, part) if upper else e.where(below, part, rest)
    # The ends: nothing lies below 0, all below infinity; and above an order of 0.
    is_low = e.logical_and(e.logical_or(e.eq(x, 0), e.isinf(a)), e.ne(a, 0))
    edge = e.where(is_low, float(upper), float(not upper))
    is_wrong = e.logical_or(e.lt(a, 0), e.lt(x, 0))
    is_wrong = e.logical_or(is_wrong, e.isnan(e.add(a, x)))
    both = e.logical_or(e.eq(e.maximum(a, x), 0), e.isinf(e.minimum(a, x)))
    edge = e.where(e.logical_or(is_wrong, both), math.nan, edge)
    return cast(e.where(is_proper, e.clamp(found, 0, 1), edge), dtype)


def _integral(a: Tensor, x: Tensor, below: Tensor) -> Tensor:
    """Of exp(a * s - x * expm1(s)) from 0 on, to the left or right: `igamma` over the density."""
    side = e.where(below, -1.0, 1.0)
    rate = e.add(e.abs(e.sub(x, a)), e.sqrt(x))
    scale = e.reciprocal(e.where(below, e.minimum(a, rate), rate))
    nodes, weights = _nodes_for(x)
    s = e.mul(e.mul(scale, nodes), side)
    return e.mul(r.sum(e.mul(e.exp(_power(a, x, s)), weights), 0), scale)


def _nodes_for(x: Tensor) -> tuple[Tensor, ...]:
    return tuple(
        m.reshape(from_data.tensor(each, dtype=float64, device=x.device), (-1, *(1,) * x.ndim))
        for each in (_NODES, _WEIGHTS)
    )


def _power(a: Tensor, x: Tensor, s: Tensor) -> Tensor:
    return e.sub(e.mul(a, s), e.mul(x, e.expm1(s)))


def _times_density(a: Tensor, x: Tensor) -> Tensor:
    """x**a * exp(-x) / gamma(a); of large `a` relative to the density at the mean."""
    is_large = e.gt(a, 10)
    size = e.where(is_large, a, 10.0)
    apart = e.div(e.sub(x, size), size)
    inverse = e.reciprocal(size)
    square = e.mul(inverse, inverse)
    series = e.add(e.mul(square, -1 / 1188), 1 / 1680)
    for each in (1 / 1260, 1 / 360, 1 / 12):
        series = e.sub(each, e.mul(square, series))
    large = e.mul(size, e.sub(e.log1p(apart), apart))
    large = e.sub(large, e.mul(inverse, series))
    large = e.add(large, e.mul(e.log(e.mul(size, 1 / (2 * math.pi))), 0.5))
    small = e.sub(e.sub(e.mul(a, e.log(x)), x), lgamma(a))
    return e.exp(e.where(is_large, large, small))


@input_vjp(_igamma, 0, saves=(0, 1))
@planned
def _igamma_order(g: Tensor, out: object, a: Tensor, x: Tensor, upper: bool) -> Tensor:
    wide, at = cast(a, float64), e.maximum(cast(x, float64), 1e-300)
    slope = e.mul(implicit_gamma_gradient(wide, at), e.div(_times_density(wide, at), at))
    return e.mul(g, cast(slope if upper else e.neg(slope), a._type.dtype))


@input_vjp(_igamma, 1, saves=(0, 1))
@planned
def _igamma_vjp(g: Tensor, out: object, a: Tensor, x: Tensor, upper: bool) -> Tensor:
    power = e.sub(e.mul(e.sub(a, 1), e.log(x)), x)
    slope = e.exp(e.sub(power, lgamma(a)))
    return e.mul(g, e.neg(slope) if upper else slope)


def implicit_gamma_gradient(a: Tensor, z: Tensor) -> Tensor:
    """dz/da of a draw at a fixed probability F(z; a): -(dF/da) / (dF/dz) (Figurnov et al., 2018).

    dF/da is the integral of d/da of the density over the side of `z` that lies away from the mean.
    """
    left = e.lt(z, a)
    z = e.maximum(z, 1e-300)
    side = e.where(left, -1.0, 1.0)
    base = e.sub(e.log(z), digamma(a))
    scale = e.reciprocal(e.add(e.abs(e.sub(z, a)), e.sqrt(z)))
    nodes, weights = _nodes_for(z)
    s = e.mul(e.mul(scale, nodes), side)
    total = r.sum(e.mul(e.mul(e.add(base, s), e.exp(_power(a, z, s))), weights), 0)
    return e.mul(e.mul(side, z), e.mul(total, scale))
