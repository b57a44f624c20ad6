"""Draws of gamma-distributed numbers, with gradients, and of others that are found by rejection.

Each element gets a fixed number of candidates, of which the first that is accepted is taken, so
that nothing depends on data and compiled code draws the same numbers. That none is accepted is
less probable than 1e-12.
"""

from __future__ import annotations

from typing import Any

from ..core.composite import composite
from ..core.operands import cast
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..ops import elementwise as e
from ..ops import random
from ..ops.incomplete_gamma import implicit_gamma_gradient
from ..ops.special_functions import lgamma
from ..runtime.dtypes import float64, int64

_CANDIDATES = 10  # of which each is refused with a probability below 0.05


def first_accepted(candidates: Tensor, accepted: Tensor) -> Tensor:
    """Along the first dimension, the candidate of the first True."""
    at = accepted.to(int64).argmax(0, keepdim=True)
    return candidates.gather(0, at).squeeze(0)


def _uniform(shape: Any, device: Any) -> Tensor:
    """In (0, 1], in float64."""
    return 1 - random.rand(*shape, dtype=float64, device=device)


def _drawn(shape: Any, device: Any) -> tuple[Tensor, Tensor, Tensor]:
    many = (_CANDIDATES, *shape)
    normals = random.randn(*many, dtype=float64, device=device)
    return normals, _uniform(many, device), _uniform(shape, device)


def standard_gamma(concentration: Tensor) -> Tensor:
    """One draw for each element, at rate 1, in float64 rounded to the dtype (see `log_gamma`)."""
    normals, chances, boosts = _drawn(concentration.shape, concentration.device)
    return _standard_gamma(concentration, normals, chances, boosts)


@composite("standard_gamma")
def _standard_gamma(a: Tensor, normals: Tensor, chances: Tensor, boosts: Tensor) -> Tensor:
    """The method of Marsaglia and Tsang (2000); below 1 from a draw for one more."""
    wide = cast(a, float64)
    small = e.lt(wide, 1)
    d = e.sub(e.where(small, e.add(wide, 1), wide), 1 / 3)
    c = e.reciprocal(e.sqrt(e.mul(d, 9)))
    root = e.add(e.mul(normals, c), 1)
    cube = e.mul(root, e.mul(root, root))
    positive = e.gt(root, 0)
    log_cube = e.log(e.where(positive, cube, 1))
    bound = e.add(e.mul(e.mul(normals, normals), 0.5), e.mul(d, e.add(e.sub(1, cube), log_cube)))
    accepted = e.logical_and(positive, e.lt(e.log(chances), bound))
    found = e.mul(d, first_accepted(cube, accepted))
    return cast(e.mul(found, e.where(small, e.pow(boosts, e.reciprocal(wide)), 1)), a._type.dtype)


@input_vjp(_standard_gamma, 0, saves=(0, OUTPUT))
def _standard_gamma_vjp(
    g: Tensor, out: Tensor, a: Tensor, normals: Any, chances: Any, boosts: Any
) -> Tensor:
    return e.mul(g, cast(implicit_gamma_gradient(cast(a, float64), cast(out, float64)), a.dtype))


def poisson(rate: Tensor) -> Tensor:
    """One draw for each element: by products of uniform numbers for small rates, else by PTRS.

    PTRS is the transformed rejection of Hoermann (1993), for rates of at least 10.
    """
    wide = cast(rate.detach(), float64)
    small = e.lt(wide, 10)
    return cast(e.where(small, _by_products(wide, small), _by_rejection(wide, small)), rate.dtype)


def _by_products(rate: Tensor, small: Tensor) -> Tensor:
    low = e.where(small, rate, 1.0)
    times = -_uniform((60, *rate.shape), rate.device).log()
    return (times.cumsum(0) < low).to(float64).sum(0)


def _by_rejection(rate: Tensor, small: Tensor) -> Tensor:
    high = e.where(small, 10.0, rate)
    shape = (20, *rate.shape)
    u = _uniform(shape, rate.device) - 0.5
    v = _uniform(shape, rate.device)
    b = 0.931 + 2.53 * high.sqrt()
    a = -0.059 + 0.02483 * b
    us = 0.5 - u.abs()
    k = ((2 * a / us.clamp(min=1e-300) + b) * u + high + 0.43).floor()
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    possible = (k >= 0) & ((us >= 0.013) | (v <= us))
    kept = k.clamp(min=0)
    bound = -high + kept * high.log() - lgamma(kept + 1)
    slow = (v * inverse_alpha / (a / us.clamp(min=1e-300).square() + b)).log() <= bound
    return first_accepted(kept, quick | (possible & slow))
