"""Functions of complex numbers in terms of their real and imaginary parts.

They hold for numbers of any size: what could overflow or vanish on the way is scaled, or computed
in float64 where parts are float32. Sources: W. Kahan, "Branch Cuts for Complex Elementary
Functions" (1987), for inverse functions and tangents; R. L. Smith, "Algorithm 116: Complex
division" (1962), as NumPy has it; Annex G of C99 for what infinite and zero parts give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...runtime.dtypes import DType, float64
from ...runtime.records import NamedTuple
from ..ir import Builder, Node, Primitive
from ..ir import primitives as p
from .matching import cast, scalar

Number = int | float


class Real:
    """A real value of a graph in the making, with Python's operators."""

    __slots__ = ("build", "node")

    def __init__(self, build: Builder, node: Node) -> None:
        self.build, self.node = build, node

    @property
    def dtype(self) -> DType:
        return self.node.type.dtype

    def apply(self, primitive: Primitive, *others: Real | Number, **attrs: Any) -> Real:
        """`primitive` of this value and `others`, of which numbers get its dtype."""
        values = (each if isinstance(each, Real) else self.like(each) for each in others)
        operands = [self.node, *(each.node for each in values)]
        return Real(self.build, self.build.apply(primitive, operands, attrs))

    def like(self, number: Number) -> Real:
        """A number of this value's dtype."""
        return Real(self.build, scalar(self.build, self.node, number))

    def cast(self, dtype: DType) -> Real:
        return Real(self.build, cast(self.build, self.node, dtype))

    def where(self, then: Real, otherwise: Real | Number) -> Real:
        """`then` where this truth holds."""
        other = otherwise if isinstance(otherwise, Real) else then.like(otherwise)
        return self.apply(p.where, then, other)

    def __add__(self, other: Real | Number) -> Real:
        return self.apply(p.add, other)

    def __sub__(self, other: Real | Number) -> Real:
        return self.apply(p.sub, other)

    def __rsub__(self, other: Number) -> Real:
        return self.like(other) - self

    def __mul__(self, other: Real | Number) -> Real:
        return self.apply(p.mul, other)

    def __truediv__(self, other: Real | Number) -> Real:
        return self.apply(p.div, other)

    def __rtruediv__(self, other: Number) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return self.apply(p.neg)

    def __abs__(self) -> Real:
        return self.apply(p.abs_)

    def __lt__(self, other: Real | Number) -> Real:
        return self.apply(p.lt, other)

    def __gt__(self, other: Real | Number) -> Real:
        return self.apply(p.gt, other)

    def __ge__(self, other: Real | Number) -> Real:
        return self.apply(p.ge, other)

    def __invert__(self) -> Real:
        return self.apply(p.logical_not)

    def __or__(self, other: Real) -> Real:
        return self.apply(p.logical_or, other)

    def __and__(self, other: Real) -> Real:
        return self.apply(p.logical_and, other)

    def equals(self, other: Real | Number) -> Real:
        return self.apply(p.eq, other)

    def differs(self, other: Real | Number) -> Real:
        return self.apply(p.ne, other)

    def is_negative(self) -> Real:
        """Where the sign is set, that of zeros too."""
        return (self < 0) | (self.apply(p.reciprocal) < 0)

    def is_finite(self) -> Real:
        return abs(self) < math.inf

    def is_nan(self) -> Real:
        return self.apply(p.isnan)

    def with_sign_of(self, other: Real) -> Real:
        """This value, which is not negative, with the sign of another."""
        return other.is_negative().where(-self, self)


class Pair(NamedTuple):
    """A complex value."""

    re: Real
    im: Real

    def cast(self, dtype: DType) -> Pair:
        return Pair(self.re.cast(dtype), self.im.cast(dtype))

    def where(self, condition: Real, other: Pair) -> Pair:
        """This value where a condition holds, elsewhere another."""
        return Pair(condition.where(self.re, other.re), condition.where(self.im, other.im))

    @property
    def times_i(self) -> Pair:
        return Pair(-self.im, self.re)

    @property
    def over_i(self) -> Pair:
        return Pair(self.im, -self.re)


def _in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of float64 parts, rounded once: no square of a float32 leaves its range there."""

    def rounded(*operands: Pair) -> Any:
        dtype = operands[0].re.dtype
        return function(*(each.cast(float64) for each in operands)).cast(dtype)

    return rounded


def _ordered(x: Pair) -> tuple[Real, Real]:
    """The sizes of the parts, the larger first."""
    re, im = abs(x.re), abs(x.im)
    return re.apply(p.maximum, im), re.apply(p.minimum, im)


# --- arithmetic ----------------------------------------------------------------------------------


def multiply(x: Pair, y: Pair) -> Pair:
    return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def divide(x: Pair, y: Pair) -> Pair:
    """By the larger part of the divisor, so that no square of one is needed."""
    wide = abs(y.re) >= abs(y.im)
    large, small = wide.where(y.re, y.im), wide.where(y.im, y.re)
    zero = y.re.equals(0) & y.im.equals(0)
    ratio = zero.where(large.like(0), small / zero.where(large.like(1), large))
    scale = 1 / (large + small * ratio)
    first, second = wide.where(x.re, x.im), wide.where(x.im, x.re)
    re = (first + second * ratio) * scale
    product = first * ratio
    im = wide.where(second - product, product - second) * scale  # not negated: zeros have signs
    return Pair(zero.where(x.re / abs(large), re), zero.where(x.im / abs(large), im))


def reciprocal(x: Pair) -> Pair:
    return divide(Pair(x.re.like(1), x.re.like(0)), x)


@_in_float64
def absolute(x: Pair) -> Real:
    return _hypotenuse(x)


def _hypotenuse(x: Pair) -> Real:
    large, small = _ordered(x)
    infinite = abs(x.re).equals(math.inf) | abs(x.im).equals(math.inf)
    ratio = small / large.equals(0).where(large.like(1), large)
    size = large * (ratio * ratio + 1).apply(p.sqrt)
    return infinite.where(size.like(math.inf), size)


def direction(x: Pair) -> Pair:
    """x / |x|, and 0 for 0."""
    size = absolute(x)
    zero = size.equals(0)
    by = zero.where(size.like(1), size)
    return Pair(zero.where(x.re.like(0), x.re / by), zero.where(x.im.like(0), x.im / by))


def equal(x: Pair, y: Pair) -> Real:
    return x.re.equals(y.re) & x.im.equals(y.im)


def different(x: Pair, y: Pair) -> Real:
    return x.re.differs(y.re) | x.im.differs(y.im)


# --- exponentials, logarithms, powers ------------------------------------------------------------


@_in_float64
def exp(x: Pair) -> Pair:
    return _exp(x)


_MOST = 709.0
"""Of larger numbers exponentials are infinite; times the cosine of an angle they may not be."""


def _exp(x: Pair) -> Pair:
    beyond = x.re > _MOST
    shift = beyond.where(x.re.like(_MOST), 0)
    size, factor = (x.re - shift).apply(p.exp), beyond.where(x.re.like(math.exp(_MOST)), 1)
    flat, turns = x.im.equals(0), x.im.is_finite()
    cos, sin = (x.im.apply(each) for each in (p.cos, p.sin))
    re = flat.where(x.re.apply(p.exp), size * cos * factor)
    im = flat.where(x.im, size * sin * factor)
    endless, nothing = (x.re.equals(end) & ~turns for end in (math.inf, -math.inf))
    re = endless.where(re.like(math.inf), nothing.where(re.like(0), re))
    return Pair(re, nothing.where(im.like(0).with_sign_of(x.im), im))


@_in_float64
def log(x: Pair) -> Pair:
    return _log(x)


def _log(x: Pair) -> Pair:
    """The logarithm of the size near 1 from its distance, elsewhere from the larger part."""
    large, small = _ordered(x)
    infinite = abs(x.re).equals(math.inf) | abs(x.im).equals(math.inf)
    near = (large > 0.5) & (large < 2)
    close = near.where(large, 1)
    ratio = small / large.equals(0).where(large.like(1), large)
    square = near.where((close - 1) * (close + 1) + small * small, ratio * ratio)
    rest = square.apply(p.log1p) * 0.5
    size = near.where(rest, large.apply(p.log) + rest)
    size = infinite.where(size.like(math.inf), size)
    return Pair(size, x.im.apply(p.atan2, x.re))


@_in_float64
def sqrt(x: Pair) -> Pair:
    return _sqrt(x)


def _sqrt(x: Pair) -> Pair:
    large, _ = _ordered(x)
    # By powers of 4, whose roots are exact.
    down, up = large > 2.0**1000, large < 2.0**-900
    scale = down.where(large.like(2.0**-4), up.where(large.like(2.0**200), 1))
    back = down.where(large.like(2.0**2), up.where(large.like(2.0**-100), 1))
    re, im = x.re * scale, x.im * scale
    root = ((abs(re) + _hypotenuse(Pair(re, im))) * 0.5).apply(p.sqrt)
    zero = root.equals(0)
    other = abs(im) / (zero.where(root.like(1), root) * 2)
    other = zero.where(other.like(0), other)
    right = re.is_negative()
    result_re = right.where(other, root) * back
    result_im = (right.where(root, other) * back).with_sign_of(x.im)
    endless = abs(x.im).equals(math.inf)
    return Pair(endless.where(root.like(math.inf), result_re), endless.where(x.im, result_im))


@_in_float64
def reciprocal_sqrt(x: Pair) -> Pair:
    return reciprocal(_sqrt(x))


@_in_float64
def power(x: Pair, y: Pair) -> Pair:
    """exp(y log(x)); 1 for y = 0, and 0 for x = 0, where y has a positive real part."""
    powers = _exp(multiply(y, _log(x)))
    one, zero = x.re.like(1), x.re.like(0)
    of_zero = x.re.equals(0) & x.im.equals(0) & (y.re > 0)
    powers = Pair(zero, zero).where(of_zero, powers)
    return Pair(one, zero).where(y.re.equals(0) & y.im.equals(0), powers)


# --- angles --------------------------------------------------------------------------------------


def _times(size: Real, factor: Real) -> Real:
    """A product that is 0 where the second factor is: its sign, whatever the first one is."""
    return factor.equals(0).where(factor, size * factor)


@_in_float64
def sinh(x: Pair) -> Pair:
    return _sinh(x)


def _hyperbolic(x: Real) -> tuple[Real, Real, Real]:
    """Two numbers which, times the third one, are sinh(x) and cosh(x)."""
    size = abs(x)
    beyond = size > _MOST
    near = beyond.where(x.like(0), x)
    far = (beyond.where(size, _MOST) - _MOST).apply(p.exp) * 0.5
    sinh = beyond.where(far * x.apply(p.sign), near.apply(p.sinh))
    cosh = beyond.where(far, near.apply(p.cosh))
    return sinh, cosh, beyond.where(x.like(math.exp(_MOST)), 1)


def _sinh(x: Pair) -> Pair:
    sinh, cosh, factor = _hyperbolic(x.re)
    cos, sin = (x.im.apply(each) for each in (p.cos, p.sin))
    turns, endless = x.im.is_finite(), abs(x.re).equals(math.inf)
    re = turns.where(sinh * cos * factor, endless.where(x.re.like(math.inf), x.re))
    lost = ~(turns | endless | x.re.equals(0))
    re = lost.where(x.re.like(math.nan), re)
    return Pair(re, _times(cosh, sin) * factor)


@_in_float64
def cosh(x: Pair) -> Pair:
    return _cosh(x)


def _cosh(x: Pair) -> Pair:
    sinh, cosh, factor = _hyperbolic(x.re)
    cos, sin = (x.im.apply(each) for each in (p.cos, p.sin))
    upright = x.re.equals(0)
    im = x.im.equals(0).where(upright.where(x.re, x.re.apply(p.sign)) * x.im, sinh * sin * factor)
    turns, endless = x.im.is_finite(), abs(x.re).equals(math.inf)
    im = (upright & ~turns).where(im.like(0), im)
    re = (endless & ~turns).where(x.re.like(math.inf), cosh * cos * factor)
    return Pair(re, im)


@_in_float64
def tanh(x: Pair) -> Pair:
    return _tanh(x)


def _tanh(x: Pair) -> Pair:
    large = abs(x.re) > 20
    near = large.where(x.re.like(0), x.re)
    tan, sinh = x.im.apply(p.tan), near.apply(p.sinh)
    beta, square = tan * tan + 1, sinh * sinh
    by = beta * square + 1
    re = beta * (square + 1).apply(p.sqrt) * sinh / by
    far = x.im.apply(p.sin) * x.im.apply(p.cos) * 4 * (abs(x.re) * -2).apply(p.exp)
    turns, endless = x.im.is_finite(), abs(x.re).equals(math.inf)
    far = (endless & ~turns).where(far.like(0).with_sign_of(x.im), far)
    re = large.where((turns | endless).where(x.re.apply(p.sign), math.nan), re)
    re = x.re.equals(0).where(x.re, re)
    return Pair(re, x.im.equals(0).where(x.im, large.where(far, tan / by)))


@_in_float64
def sin(x: Pair) -> Pair:
    return _sinh(x.over_i).times_i


@_in_float64
def cos(x: Pair) -> Pair:
    return _cosh(x.times_i)


@_in_float64
def tan(x: Pair) -> Pair:
    return _tanh(x.times_i).over_i


def _asinh(x: Real) -> Real:
    """Of a real number: log(x + sqrt(x * x + 1)), accurate near 0, without squares of large x."""
    size = abs(x)
    huge = size > 2.0**28
    small = huge.where(size.like(1), size)
    square = small * small
    near = (small + square / ((square + 1).apply(p.sqrt) + 1)).apply(p.log1p)
    far = huge.where(size, 1).apply(p.log) + math.log(2.0)
    return huge.where(far, near).with_sign_of(x)


_FAR = 2.0**100
"""The size from which on 1 is nothing beside a number or its square."""


def _is_far(x: Pair) -> Real:
    """Where a part is, whatever the other one is: infinite beside NaN, too."""
    return (abs(x.re) > _FAR) | (abs(x.im) > _FAR)


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """The roots of 1 - x and of 1 + x."""
    return _sqrt(Pair(1 - x.re, -x.im)), _sqrt(Pair(x.re + 1, x.im))


@_in_float64
def asin(x: Pair) -> Pair:
    below, above = _roots(x)
    re = x.re.apply(p.atan2, below.re * above.re - below.im * above.im)
    near = Pair(re, _asinh(below.re * above.im - below.im * above.re))
    height = (_log(x).re + math.log(2.0)).with_sign_of(x.im)
    far = Pair(x.re.apply(p.atan2, abs(x.im)), height)
    found = far.where(_is_far(x), near)
    return Pair((x.im.is_nan() & x.re.equals(0)).where(x.re, found.re), found.im)


@_in_float64
def acos(x: Pair) -> Pair:
    below, above = _roots(x)
    re = below.re.apply(p.atan2, above.re) * 2
    near = Pair(re, _asinh(above.re * below.im - above.im * below.re))
    height = -(_log(x).re + math.log(2.0)).with_sign_of(x.im)
    found = Pair(abs(x.im).apply(p.atan2, x.re), height).where(_is_far(x), near)
    upright = x.im.is_nan() & x.re.equals(0)
    return Pair(upright.where(x.re.like(math.pi / 2), found.re), found.im)


@_in_float64
def atan(x: Pair) -> Pair:
    height = abs(x.im)
    square = x.re * x.re
    re = (x.re * 2).apply(p.atan2, (1 - height) * (height + 1) - square) * 0.5
    distance = (1 - height) * (1 - height) + square
    im = (height * 4 / distance).apply(p.log1p) * 0.25
    pole = (math.log(2.0) - _log(Pair(1 - height, x.re)).re) * 0.5
    im = (distance < 2.0**-100).where(pole, im)
    endless = abs(x.re).equals(math.inf) | height.equals(math.inf)
    beyond = endless.where(im.like(0), abs(reciprocal(x).im))
    upright = re.like(math.pi / 2).with_sign_of(x.re)
    far = Pair(x.re.is_nan().where(x.re, upright), beyond)
    re, im = far.where(_is_far(x), Pair(re, im))
    return Pair(re, x.im.equals(0).where(x.im, im.with_sign_of(x.im)))


FUNCTIONS: dict[Primitive, Callable[..., Any]] = {
    p.mul: multiply,
    p.div: divide,
    p.reciprocal: reciprocal,
    p.abs_: absolute,
    p.sign: direction,
    p.eq: equal,
    p.ne: different,
    p.exp: exp,
    p.log: log,
    p.sqrt: sqrt,
    p.rsqrt: reciprocal_sqrt,
    p.pow_: power,
    p.sinh: sinh,
    p.cosh: cosh,
    p.tanh: tanh,
    p.sin: sin,
    p.cos: cos,
    p.tan: tan,
    p.asin: asin,
    p.acos: acos,
    p.atan: atan,
}
"""What computes each elementwise primitive of complex operands."""
