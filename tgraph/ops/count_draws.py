"""Random counts: those of Poisson and binomial distributions.

Each element gets a fixed number of candidates, of which the first that is accepted is taken, so
that nothing depends on data and compiled code draws the same numbers. That none is accepted is
less probable than 1e-12.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.operands import cast, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import float64, int64
from . import basic_draws, generator
from . import elementwise as e
from .movement import broadcast_shapes, broadcast_to
from .special_functions import lgamma

_WAITS = 60
"""How many events are counted at most where 10 are expected: more have a chance of 1e-25."""
_CANDIDATES = 20


def first_accepted(candidates: Tensor, accepted: Tensor) -> Tensor:
    """Along the first dimension, the candidate of the first True."""
    at = accepted.to(int64).argmax(0, keepdim=True)
    return candidates.gather(0, at).squeeze(0)


def _uniform(shape: Any, like: Tensor, generator: generator.Generator | None) -> Tensor:
    """In (0, 1], in float64."""
    return 1 - basic_draws.uniform(shape, float64, generator, like._type.device)


def _number_of(waits: Tensor, limit: Tensor) -> Tensor:
    """How many events come before `limit`, after waiting times along the first dimension."""
    return (waits.cumsum(0) < limit).to(float64).sum(0)


def _of_floats(operation: str, **given: Tensor) -> None:
    for name, each in given.items():
        if not require_tensor(each, operation, name)._type.dtype.is_floating_point:
            raise NotImplementedError(
                f"{operation}() only supports floating-point dtypes for {name}, "
                f"got: {each._type.dtype.name}"
            )


# -- Poisson ---------------------------------------------------------------------------------


@public()
@planned
def poisson(input: Tensor, generator: generator.Generator | None = None) -> Tensor:
    """Counts of events that come with the rates that the elements give, in their dtype.

    By waiting times for small rates, else by the transformed rejection PTRS of Hoermann (1993).
    RuntimeError for rates below 0 or NaN, in compiled code too.

    >>> import tgraph as tg
    >>> (tg.poisson(tg.tensor([0.0, 1e6])) / 1e4).round()
    tensor([  0., 100.])
    """
    _of_floats("poisson", input=input)
    rate = input.detach()
    message = "invalid Poisson rate, expected rate to be non-negative"
    wide = cast(apply(p.require, e.ge(rate, 0), rate, message=message), float64)
    small = e.lt(wide, 10)
    waits = -_uniform((_WAITS, *wide.shape), wide, generator).log()
    few = _number_of(waits, e.where(small, wide, 1.0))
    many = _by_rejection(e.where(small, 10.0, wide), generator)
    return cast(e.where(small, few, many), input._type.dtype)


def _by_rejection(rate: Tensor, generator: generator.Generator | None) -> Tensor:
    shape = (_CANDIDATES, *rate.shape)
    u = _uniform(shape, rate, generator) - 0.5
    v = _uniform(shape, rate, generator)
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    us = (0.5 - u.abs()).clamp(min=1e-300)
    k = ((2 * a / us + b) * u + rate + 0.43).floor()
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    possible = (k >= 0) & ((us >= 0.013) | (v <= us))
    kept = k.clamp(min=0)
    bound = -rate + kept * rate.log() - lgamma(kept + 1)
    slow = (v * inverse_alpha / (a / us.square() + b)).log() <= bound
    return first_accepted(kept, quick | (possible & slow))


# -- binomial --------------------------------------------------------------------------------


@public()
@planned
def binomial(count: Tensor, prob: Tensor, generator: generator.Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`; both broadcast.

    By waiting times where few successes are expected, else by the transformed rejection BTRS of
    Hoermann (1993). Counts are cut to whole numbers, probabilities to 0 and 1; NaN of NaN.

    >>> import tgraph as tg
    >>> tg.binomial(tg.tensor([0.0, 7.0, 7.0]), tg.tensor([0.5, 0.0, 1.0]))
    tensor([0., 0., 7.])
    """
    _of_floats("binomial", count=count, prob=prob)
    if count._type.dtype is not prob._type.dtype:
        raise RuntimeError(
            f"binomial(): count and prob must have the same dtype, but got "
            f"{count._type.dtype} and {prob._type.dtype}"
        )
    shape = broadcast_shapes(count._type.shape, prob._type.shape)
    n = e.trunc(broadcast_to(cast(count.detach(), float64), shape)).clamp(min=0)
    chance = broadcast_to(cast(prob.detach(), float64), shape)
    swapped = e.gt(chance, 0.5)  # then failures are counted
    rare = e.where(swapped, 1 - chance, chance).clamp(min=0)
    small = e.lt(n * rare, 10)
    waits = (_uniform((_WAITS, *shape), n, generator).log() / e.log1p(-rare)).ceil()
    few = _number_of(waits, n + 0.5)
    many = _by_trial_rejection(e.where(small, 40.0, n), e.where(small, 0.25, rare), generator)
    found = e.where(small, few, many)
    found = e.where(swapped, n - found, found)
    return cast(e.where(e.ne(n + chance, n + chance), math.nan, found), count._type.dtype)


def _by_trial_rejection(n: Tensor, chance: Tensor, generator: generator.Generator | None) -> Tensor:
    shape = (_CANDIDATES, *n.shape)
    u = _uniform(shape, n, generator) - 0.5
    v = _uniform(shape, n, generator)
    spread = (n * chance * (1 - chance)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * chance
    us = (0.5 - u.abs()).clamp(min=1e-300)
    k = ((2 * a / us + b) * u + n * chance + 0.5).floor()
    quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
    possible = (k >= 0) & (k <= n)
    kept = k.clamp(min=0).minimum(n)
    mode = ((n + 1) * chance).floor()
    ways = lgamma(mode + 1) + lgamma(n - mode + 1) - lgamma(kept + 1) - lgamma(n - kept + 1)
    bound = ways + (kept - mode) * (chance.log() - e.log1p(-chance))
    alpha = (2.83 + 5.1 / b) * spread
    slow = (v * alpha / (a / us.square() + b)).log() <= bound
    return first_accepted(kept, possible & (quick | slow))
