"""Activations that are zero, or random, where their argument is small or negative."""

from __future__ import annotations

import math
import warnings

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.inplace import applied
from ..core.operands import cast, require_float, require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import float32, float64
from . import basic_draws
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .activations import leaky_relu, softmax
from .creation import arange
from .generator import Generator


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x for |x| > lambd, else 0.

    >>> import tgraph as tg
    >>> tg.nn.functional.hardshrink(tg.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return _hardshrink(require_float(input, "hardshrink"), lambd)


@planned
def _hardshrink(x: Tensor, lambd: float) -> Tensor:
    inside = e.logical_and(e.ge(x, -lambd), e.le(x, lambd))
    return e.where(inside, 0, x)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x nearer to 0 by lambd, and 0 for |x| <= lambd.

    >>> import tgraph as tg
    >>> tg.nn.functional.softshrink(tg.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambda must not be negative, but found {lambd}")
    return _softshrink(require_float(input, "softshrink"), lambd)


@planned
def _softshrink(x: Tensor, lambd: float) -> Tensor:
    inside = e.logical_and(e.ge(x, -lambd), e.le(x, lambd))
    return e.where(inside, 0, e.where(e.gt(x, 0), e.sub(x, lambd), e.add(x, lambd)))


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x for x > 0, else x times a random number in [lower, upper): one for each element.

    Without `training` it is their mean.

    >>> import tgraph as tg
    >>> tg.nn.functional.rrelu(tg.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return leaked(input, lower, upper, training, None, inplace)


def leaked(
    input: Tensor,
    lower: float,
    upper: float,
    training: bool,
    generator: Generator | None,
    inplace: bool = False,
) -> Tensor:
    """`rrelu`, of the numbers of a generator."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise RuntimeError(f"rrelu: bounds must be finite, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    x = require_float(input, "rrelu")
    return applied(_leaked, x, "rrelu_", inplace, lower, upper, generator)


def _leaked(x: Tensor, lower: float, upper: float, generator: Generator | None) -> Tensor:
    wide = float64 if x._type.dtype is float64 else float32
    drawn = basic_draws.uniform(x._type.shape, wide, generator, x._type.device)
    slope = cast(e.add(e.mul(drawn, upper - lower), lower), x._type.dtype)
    return e.where(e.gt(x, 0), x, e.mul(x, slope))


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Samples of a categorical distribution that can be differentiated.

    The softmax along `dim` of logits with random numbers of the Gumbel distribution, over `tau`.
    With `hard` the largest becomes 1 and the others 0, with the gradient of what they were.

    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax" (2017).

    >>> import tgraph as tg
    >>> tg.nn.functional.gumbel_softmax(tg.zeros(5, 3), hard=True).sum(1)
    tensor([1., 1., 1., 1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    dtype = require_float(logits, "gumbel_softmax")._type.dtype
    wide = float64 if dtype is float64 else float32
    drawn = basic_draws.uniform(logits._type.shape, wide, None, logits._type.device)
    gumbels = cast(e.neg(e.log(e.neg(e.log1p(e.neg(drawn))))), dtype)
    soft = softmax(e.div(e.add(logits, gumbels), tau), dim)
    if not hard:
        return soft
    at = r.argmax(soft.detach(), dim, keepdim=True)
    positions = arange(soft._type.shape[dim], device=soft._type.device)
    shape = [1] * soft.ndim
    shape[dim] = -1
    chosen = cast(e.eq(m.reshape(positions, shape), at), dtype)
    return e.add(e.sub(chosen, soft.detach()), soft)


@with_autocast
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x for x > 0, else weight * x, with one weight, or one per channel (dimension 1)."""
    require_tensor(weight, "prelu", "weight")
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight._type.numel != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input._type.shape[1] if input.ndim > 1 else 1
        if channels != weight._type.numel:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight._type.numel} and channel size = {channels}."
            )
    shape = [1] * input.ndim
    if input.ndim > 1:
        shape[1] = weight._type.numel
    return _prelu(input, apply(p.reshape, weight, shape=tuple(shape)))


@planned
def _prelu(x: Tensor, weight: Tensor) -> Tensor:
    return e.where(e.gt(x, 0), x, e.mul(x, weight))
