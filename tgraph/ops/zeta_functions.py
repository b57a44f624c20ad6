"""Hurwitz's zeta function, and the gamma function of several dimensions."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.operands import Operand, as_real_float, cast, promote_real_float, with_a_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e
from .special_functions import EVEN_BERNOULLI, SHIFT, lgamma


def zeta(input: Operand, other: Operand) -> Tensor:
    """The sum of (k + other)**-input for k from 0 on; of numbers `input` above 1.

    >>> import tgraph as tg
    >>> tg.special.zeta(tg.tensor(2.0), 1)  # pi**2 / 6
    tensor(1.6449)
    """
    return _zeta(*promote_real_float("zeta", *with_a_tensor("zeta", input, other)))


@composite("zeta")
@planned
def _zeta(s: Tensor, x: Tensor) -> Tensor:
    """By Euler's and Maclaurin's formula behind the first terms."""
    dtype = s._type.dtype
    s, x = cast(s, float64), cast(x, float64)
    total: Any = e.pow(x, e.neg(s))
    for k in range(1, SHIFT):
        total = e.add(total, e.pow(e.add(x, k), e.neg(s)))
    w = e.add(x, SHIFT)
    power = e.pow(w, e.neg(s))
    total = e.add(total, e.add(e.div(e.mul(power, w), e.sub(s, 1)), e.mul(power, 0.5)))
    rising, inverse = s, e.reciprocal(w)
    power = e.mul(power, inverse)
    for k, b in enumerate(EVEN_BERNOULLI, 1):
        total = e.add(total, e.mul(e.mul(power, rising), b / math.factorial(2 * k)))
        rising = e.mul(rising, e.mul(e.add(s, 2 * k - 1), e.add(s, 2 * k)))
        power = e.mul(power, e.mul(inverse, inverse))
    total = e.where(e.isinf(s), e.pow(x, e.neg(s)), total)
    pole = e.logical_and(e.le(x, 0), e.eq(x, e.floor(x)))
    odd = e.logical_and(e.lt(x, 0), e.ne(s, e.floor(s)))
    total = e.where(pole, math.inf, e.where(odd, math.nan, total))
    return cast(e.where(e.eq(s, 1), math.inf, e.where(e.lt(s, 1), math.nan, total)), dtype)


@input_vjp(_zeta, 1, saves=(0, 1))
@planned
def _zeta_vjp(g: Tensor, out: TensorType, s: Tensor, x: Tensor) -> Tensor:
    return e.mul(g, e.mul(e.neg(s), _zeta(e.add(s, 1), x)))


@public(method=True, inplace=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of `p` dimensions, for numbers above (p - 1) / 2.

    >>> import tgraph as tg
    >>> tg.mvlgamma(tg.tensor([2.0]), 2)
    tensor([0.4516])
    """
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, got {p}")
    x = as_real_float(input, "mvlgamma")
    total: Any = p * (p - 1) / 4 * math.log(math.pi)
    for at in range(p):
        total = e.add(lgamma(e.sub(x, at / 2)), total)
    found: Tensor = total
    return found
