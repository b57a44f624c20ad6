"""The gamma function's logarithm and its derivatives, and x * log(y).

All are compositions, computed in float64 and rounded: series near the points where a formula would
cancel, the asymptotic expansions behind a shift of the argument elsewhere (Abramowitz and Stegun,
6.1 and 6.3 to 6.4), reflection for negative arguments.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core.composite import composite
from ..core.inplace import overwrite
from ..core.operands import Operand, as_real_float, cast, promote_float, with_a_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import float64
from . import elementwise as e

SHIFT = 10
EVEN_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_EULER = 0.57721566490153286061


def _zeta_less_one(s: int) -> float:
    """zeta(s) - 1, by the formula of Euler and Maclaurin behind the first terms."""
    n = 32.0
    tail = n ** (1 - s) / (s - 1) + n**-s / 2 + s * n ** (-s - 1) / 12
    tail -= s * (s + 1) * (s + 2) * n ** (-s - 3) / 720
    tail += s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * n ** (-s - 5) / 30240
    tail -= math.prod(range(s, s + 7)) * n ** (-s - 7) / 1209600
    return math.fsum([*(k**-s for k in range(2, 32)), tail])


# lgamma(2 + t) = t * (1 - euler + t * (...)), for |t| <= 1/2.
_NEAR_TWO = (
    1 - _EULER,
    *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 27)),
)


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    value: Any = coefficients[-1]
    for each in reversed(coefficients[:-1]):
        value = e.add(e.mul(x, value), each)
    found: Tensor = value
    return found


def _to_nearest(x: Tensor) -> Tensor:
    """The distance to the nearest integer, with its sign."""
    return e.sub(x, e.floor(e.add(x, 0.5)))


@public(method=True, inplace=True, out=True)
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function; its gradient is `digamma`.

    >>> import tgraph as tg
    >>> tg.lgamma(tg.tensor([1.0, 5.0]))  # log(0!), log(4!)
    tensor([0.0000, 3.1781])
    """
    return _lgamma(as_real_float(input, "lgamma"))


@composite("lgamma")
@planned
def _lgamma(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    negative = e.lt(wide, 0)
    positive = e.where(negative, e.sub(1, wide), wide)
    value = _lgamma_of_positive(positive)
    sine = e.sin(e.mul(e.abs(_to_nearest(wide)), math.pi))
    reflected = e.sub(e.log(e.div(math.pi, sine)), value)
    value = e.where(negative, reflected, value)
    return cast(e.where(e.isinf(wide), math.inf, value), x._type.dtype)


def _lgamma_of_positive(x: Tensor) -> Tensor:
    """Up to 8.5 from the neighbourhood of 2, as gamma(x + 1) is x * gamma(x)."""
    below = e.lt(x, 0.5)
    y = e.where(below, e.add(x, 1), x)
    left = e.lt(y, 1.5)
    t = e.sub(e.where(left, e.add(y, 1), y), 2)
    product: Any = 1.0
    for _ in range(6):
        above = e.gt(t, 0.5)
        product = e.where(above, e.mul(e.add(t, 1), product), product)
        t = e.where(above, e.sub(t, 1), t)
    near = e.mul(t, polynomial(t, _NEAR_TWO))
    near = e.add(near, e.where(left, e.neg(e.log(y)), e.log(product)))
    value = e.where(e.lt(y, 8), near, _stirling(e.maximum(y, 8.0)))
    return e.sub(value, e.where(below, e.log(x), 0))


def _stirling(w: Tensor) -> Tensor:
    inverse = e.reciprocal(w)
    terms = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(EVEN_BERNOULLI, 1)]
    series = e.mul(inverse, polynomial(e.mul(inverse, inverse), terms))
    main = e.mul(e.sub(w, 0.5), e.sub(e.log(w), 1))
    return e.add(e.add(main, 0.5 * math.log(2 * math.pi) - 0.5), series)


@input_vjp(_lgamma, saves=(0,))
@planned
def _lgamma_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, _digamma(x))


@public(method=True, inplace=True, out=True)
def digamma(input: Tensor) -> Tensor:
    """The derivative of `lgamma`: -inf at 0, NaN at negative integers.

    >>> import tgraph as tg
    >>> tg.digamma(tg.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """
    return _digamma(as_real_float(input, "digamma"))


@composite("digamma")
@planned
def _digamma(x: Tensor) -> Tensor:
    wide = cast(x, float64)
    negative = e.lt(wide, 0)
    y = e.where(negative, e.sub(1, wide), wide)
    near = e.lt(y, SHIFT)
    w = e.where(near, e.add(y, SHIFT), y)
    terms = [b / (2 * k) for k, b in enumerate(EVEN_BERNOULLI[:7], 1)]
    inverse = e.reciprocal(w)
    square = e.mul(inverse, inverse)
    value = e.sub(e.sub(e.log(w), e.mul(inverse, 0.5)), e.mul(square, polynomial(square, terms)))
    total: Any = e.reciprocal(y)
    for k in range(1, SHIFT):
        total = e.add(total, e.reciprocal(e.add(y, k)))
    value = e.sub(value, e.where(near, total, 0))
    away = _to_nearest(wide)
    cotangent = e.div(math.pi, e.tan(e.mul(away, math.pi)))
    pole = e.where(e.eq(away, 0), math.nan, e.sub(value, cotangent))
    return cast(e.where(negative, pole, value), x._type.dtype)


@input_vjp(_digamma, saves=(0,))
@planned
def _digamma_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, _polygamma(x, n=1))


@public(out=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """Derivative number `n` of `digamma`.

    >>> import tgraph as tg
    >>> tg.polygamma(1, tg.tensor(1.0))  # pi**2 / 6
    tensor(1.6449)
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    x = as_real_float(input, "polygamma")
    return _polygamma(x, n=n) if n else _digamma(x)


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """`tgraph.polygamma` of this tensor."""
    return polygamma(n, self)


def polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` written over this tensor, which is returned."""
    return overwrite(self, lambda before: polygamma(n, before), "polygamma_", (n,))


@composite("polygamma")
@planned
def _polygamma(x: Tensor, n: int) -> Tensor:
    """By Hurwitz's zeta function: (-1)**(n + 1) * n! * zeta(n + 1, x)."""
    wide = cast(x, float64)
    negative = e.lt(wide, 0)
    y = e.where(negative, e.sub(1, wide), wide)
    value = e.mul(_hurwitz(n + 1, y), float((-1) ** (n + 1) * math.factorial(n)))
    cotangent = e.reciprocal(e.tan(e.mul(_to_nearest(wide), math.pi)))
    bend = e.mul(polynomial(cotangent, _cotangent_derivative(n)), math.pi ** (n + 1))
    reflected = e.sub(e.mul(value, (-1) ** n), bend)
    return cast(e.where(negative, reflected, value), x._type.dtype)


def _hurwitz(s: int, x: Tensor) -> Tensor:
    total: Any = e.pow(x, -s)
    for k in range(1, SHIFT):
        total = e.add(total, e.pow(e.add(x, k), -s))
    w = e.add(x, SHIFT)
    terms = [0.5, *(0.0 for _ in range(15))]
    rising = float(s)
    for k, b in enumerate(EVEN_BERNOULLI, 1):
        terms[2 * k - 1] = b * rising / math.factorial(2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    inverse = e.reciprocal(w)
    tail = e.mul(e.pow(inverse, s), polynomial(inverse, terms))
    return e.add(total, e.add(e.div(e.pow(inverse, s - 1), s - 1), tail))


@functools.cache
def _cotangent_derivative(n: int) -> tuple[float, ...]:
    """Derivative number `n` of the cotangent, as a polynomial in the cotangent."""
    found = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(found)][1:]
        found = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):  # the derivative of the cotangent is -(1 + cot**2)
            found[k] -= c
            found[k + 2] -= c
    return tuple(found)


@input_vjp(_polygamma, saves=(0,))
@planned
def _polygamma_vjp(g: Tensor, out: TensorType, x: Tensor, n: int) -> Tensor:
    return e.mul(g, _polygamma(x, n=n + 1))


@public(method=True, inplace=True, out=True)
def xlogy(input: Operand, other: Operand) -> Tensor:
    """`input * log(other)`; 0 where `input` is 0, unless `other` is NaN.

    >>> import tgraph as tg
    >>> tg.xlogy(tg.tensor([0.0, 2.0]), tg.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return _xlogy(*promote_float("xlogy", *with_a_tensor("xlogy", input, other)))


@composite("xlogy")
@planned
def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    return e.where(e.logical_and(e.eq(x, 0), e.logical_not(e.isnan(y))), 0, e.mul(x, e.log(y)))


@input_vjp(_xlogy, 0, saves=(0, 1))
@planned
def _xlogy_x(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    nothing = e.logical_and(e.eq(x, 0), e.le(y, 0))
    return e.where(nothing, 0, e.mul(g, e.log(y)))


@input_vjp(_xlogy, 1, saves=(0, 1))
@planned
def _xlogy_y(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.div(e.mul(g, x), y)
