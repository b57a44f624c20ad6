"""Draws of gamma-distributed numbers, with gradients.

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
from ..ops.count_draws import first_accepted
from ..ops.incomplete_gamma import implicit_gamma_gradient
from ..runtime.dtypes import float64

_CANDIDATES = 10  # of which each is refused with a probability below 0.05


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
