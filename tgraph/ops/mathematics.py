"""Mathematical functions of one element or two that are made of others."""

from __future__ import annotations

import math

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import part
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.operands import (
    Operand,
    as_float,
    as_operand,
    cast,
    promote,
    promote_float,
    require_tensor,
    result_type,
    widened,
)
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import complex128, float32, float64
from . import creation
from . import elementwise as e
from .activations import sigmoid
from .number_parts import signbit

_LN2 = math.log(2.0)
_LARGE = 1e8  # whose square is the same number with 1 added to it

# --- inverses of hyperbolic functions ------------------------------------------------------------


@planned
def _turned(x: Tensor) -> Tensor:
    """x * 1j by exchange of the parts: products would make NaN of infinities, and lose -0.0."""
    return apply(p.complex_, e.neg(part(x, 1)), part(x, 0))


@planned
def _turned_back(x: Tensor) -> Tensor:
    return apply(p.complex_, part(x, 1), e.neg(part(x, 0)))


@planned
def _on_the_right(angle: Tensor, x: Tensor) -> Tensor:
    """`acos(x)` turned to where the real part is not negative."""
    real, imaginary = part(angle, 0), part(angle, 1)
    below = signbit(part(x, 1))
    return apply(
        p.complex_,
        e.where(below, imaginary, e.neg(imaginary)),
        e.where(below, e.neg(real), real),
    )


@public(method=True, inplace=True, out=True, aliases=("arcsinh",))
def asinh(input: Tensor) -> Tensor:
    """The inverse of `sinh`.

    >>> import tgraph as tg
    >>> tg.asinh(tg.tensor([0.0, -1.0]))
    tensor([ 0.0000, -0.8814])
    """
    x = as_float(input, "asinh")
    if x._type.dtype.is_complex:
        return _turned_back(e.asin(_turned(x)))
    return cast(_asinh(widened(x)), x._type.dtype)


@composite("asinh")
@planned
def _asinh(x: Tensor) -> Tensor:
    size = e.abs(x)
    far = e.gt(size, _LARGE)
    near = e.where(far, 1.0, size)
    square = e.mul(near, near)
    found = e.log1p(e.add(near, e.div(square, e.add(e.sqrt(e.add(square, 1)), 1))))
    found = e.where(far, e.add(e.log(size), _LN2), found)
    return e.where(e.eq(x, 0), x, e.mul(e.sgn(x), found))


@input_vjp(_asinh, saves=(0,))
@planned
def _asinh_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, e.rsqrt(e.add(e.mul(x, x), 1)))


@public(method=True, inplace=True, out=True, aliases=("arccosh",))
def acosh(input: Tensor) -> Tensor:
    """The inverse of `cosh`, from 0 on; NaN below 1.

    >>> import tgraph as tg
    >>> tg.acosh(tg.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    x = as_float(input, "acosh")
    if x._type.dtype.is_complex:
        return _on_the_right(e.acos(x), x)
    return cast(_acosh(widened(x)), x._type.dtype)


@composite("acosh")
@planned
def _acosh(x: Tensor) -> Tensor:
    far = e.gt(x, _LARGE)
    above = e.sub(e.where(far, 2.0, x), 1)
    found = e.log1p(e.add(above, e.sqrt(e.mul(above, e.add(above, 2)))))
    return e.where(far, e.add(e.log(x), _LN2), e.where(e.lt(x, 1), math.nan, found))


@input_vjp(_acosh, saves=(0,))
@planned
def _acosh_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.mul(g, e.rsqrt(e.sub(e.mul(x, x), 1)))


@public(method=True, inplace=True, out=True, aliases=("arctanh",))
def atanh(input: Tensor) -> Tensor:
    """The inverse of `tanh`: infinite at -1 and 1, NaN beyond.

    >>> import tgraph as tg
    >>> tg.atanh(tg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    x = as_float(input, "atanh")
    if x._type.dtype.is_complex:
        return _turned_back(e.atan(_turned(x)))
    return cast(_atanh(widened(x)), x._type.dtype)


@composite("atanh")
@planned
def _atanh(x: Tensor) -> Tensor:
    size = e.abs(x)
    found = e.mul(e.log1p(e.div(e.mul(size, 2), e.sub(1, size))), 0.5)
    return e.where(e.eq(x, 0), x, e.mul(e.sgn(x), found))


@input_vjp(_atanh, saves=(0,))
@planned
def _atanh_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    return e.div(g, e.sub(1, e.mul(x, x)))


# --- angles --------------------------------------------------------------------------------------


@public(method=True, inplace=True, out=True)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return e.mul(as_float(input, "deg2rad"), math.pi / 180)


@public(method=True, inplace=True, out=True)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return e.mul(as_float(input, "rad2deg"), 180 / math.pi)


@public(method=True, inplace=True, out=True)
def sinc(input: Tensor) -> Tensor:
    """sin(pi * x) / (pi * x), and 1 at 0.

    >>> import tgraph as tg
    >>> tg.sinc(tg.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    x = as_float(input, "sinc")
    return cast(_sinc(widened(x)), x._type.dtype)


@composite("sinc")
@planned
def _sinc(x: Tensor) -> Tensor:
    zero = e.eq(x, 0)
    turned = e.where(zero, 1.0, e.mul(x, math.pi))
    return e.where(zero, 1.0, e.div(e.sin(turned), turned))


@input_vjp(_sinc, saves=(0, OUTPUT))
@planned
def _sinc_vjp(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    """The conjugate of (cos(pi * x) - sinc(x)) / x; near 0, -pi**2 * x / 3."""
    small = e.lt(e.abs(x), 1e-4)
    away = e.where(small, 1.0, x)
    slope = e.div(e.sub(e.cos(e.mul(x, math.pi)), out), away)
    slope = e.where(small, e.mul(x, -(math.pi**2) / 3), slope)
    return e.mul(g, apply(p.conj, slope) if slope._type.dtype.is_complex else slope)


# --- logarithms and powers -----------------------------------------------------------------------


@public(method=True, inplace=True, out=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`; `eps` keeps x between `eps` and 1 - `eps`.

    The gradient is infinite at 0 and 1, as the result is, and NaN outside of them.

    >>> import tgraph as tg
    >>> tg.logit(tg.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    x = as_float(input, "logit")
    wide = widened(x)
    if eps is not None:
        wide = e.clamp(wide, eps, 1 - eps)
    return cast(_logit(wide), x._type.dtype)


@composite("logit")
@planned
def _logit(x: Tensor) -> Tensor:
    return e.log(e.div(x, e.sub(1, x)))


@input_vjp(_logit, saves=(0,))
@planned
def _logit_vjp(g: Tensor, out: TensorType, x: Tensor) -> Tensor:
    """Infinite at 0 and 1, NaN outside of them."""
    inside = e.logical_and(e.ge(x, 0), e.le(x, 1))
    return e.div(g, e.where(inside, e.mul(x, e.sub(1, x)), math.nan))


@public(method=True, out=True)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """log(exp(input) + exp(other)), without overflow.

    >>> import tgraph as tg
    >>> tg.logaddexp(tg.tensor(1000.0), tg.tensor(1000.0))
    tensor(1000.6932)
    """
    require_tensor(input, "logaddexp"), require_tensor(other, "logaddexp", "other")
    x, y = promote_float("logaddexp", input, other)
    if x._type.dtype.is_complex:
        return _complex_logaddexp(x, y)
    return cast(_logaddexp(widened(x), widened(y)), x._type.dtype)


def _complex_logaddexp(x: Tensor, y: Tensor) -> Tensor:
    """By the number with the larger real part; that one where its real part is infinite."""
    is_first = e.ge(part(x, 0), part(y, 0))
    most, least = e.where(is_first, x, y), e.where(is_first, y, x)
    is_finite = e.isfinite(part(most, 0))
    less = e.where(is_finite, e.sub(least, most), 0.0)
    return e.where(is_finite, e.add(most, e.log1p(e.exp(less))), most)


@composite("logaddexp")
@planned
def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    same = e.logical_and(e.eq(x, y), e.isinf(x))
    less = e.neg(e.abs(e.sub(x, e.where(same, 0.0, y))))
    return e.where(same, x, e.add(e.maximum(x, y), e.log1p(e.exp(less))))


@input_vjp(_logaddexp, 0, saves=(0, 1))
@planned
def _logaddexp_first(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.mul(g, sigmoid(e.sub(x, y)))  # whose own gradient is 0 at infinity, not NaN


@input_vjp(_logaddexp, 1, saves=(0, 1))
@planned
def _logaddexp_second(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return e.mul(g, sigmoid(e.sub(y, x)))


@public(method=True, out=True)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2**input + 2**other), without overflow."""
    x, y = promote_float("logaddexp2", input, other)
    wide = _logaddexp(e.mul(widened(x), _LN2), e.mul(widened(y), _LN2))
    return cast(e.div(wide, _LN2), x._type.dtype)


@public(method=True, inplace=True, out=True)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """sqrt(input**2 + other**2), without overflow.

    >>> import tgraph as tg
    >>> tg.hypot(tg.tensor([3.0]), tg.tensor([4.0]))
    tensor([5.])
    """
    x, y = promote("hypot", input, other)
    if not x._type.dtype.is_floating_point:
        raise NotImplementedError(f'"hypot" not implemented for {x._type.dtype.name}')
    return cast(_hypot(widened(x), widened(y)), x._type.dtype)


@composite("hypot")
@planned
def _hypot(x: Tensor, y: Tensor) -> Tensor:
    x, y = e.abs(x), e.abs(y)
    largest, least = e.maximum(x, y), e.minimum(x, y)
    plain = e.logical_and(e.gt(largest, 0), e.isfinite(largest))
    ratio = e.div(e.where(plain, least, 0.0), e.where(plain, largest, 1.0))
    found = e.mul(largest, e.sqrt(e.add(e.mul(ratio, ratio), 1)))
    return e.where(e.logical_or(e.isinf(x), e.isinf(y)), math.inf, found)


@input_vjp(_hypot, 0, saves=(0, OUTPUT))
@planned
def _hypot_first(g: Tensor, out: Tensor, x: Tensor, y: TensorType) -> Tensor:
    return e.mul(g, e.div(x, out))


@input_vjp(_hypot, 1, saves=(1, OUTPUT))
@planned
def _hypot_second(g: Tensor, out: Tensor, x: TensorType, y: Tensor) -> Tensor:
    return e.mul(g, e.div(y, out))


@public(method=True, inplace=True, out="exact")
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent`, computed and given in float64, of complex numbers in complex128.

    >>> import tgraph as tg
    >>> tg.float_power(tg.tensor([2]), -1)
    tensor([0.5000], dtype=tgraph.float64)
    """
    kinds = [result_type(each).is_complex for each in (input, exponent)]
    wide = complex128 if any(kinds) else float64
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        input = creation.scalar_tensor(input, dtype=wide)
    base, power = (
        cast(each, wide) if isinstance(each, Tensor) else each for each in (input, exponent)
    )
    return e.pow(base, power)


@public(method=True, inplace=True, out=True)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """`input * 2**other`; of integers rounded once, whether there is such a power or not.

    >>> import tgraph as tg
    >>> tg.ldexp(tg.tensor([1.5]), tg.tensor([3]))
    tensor([12.])
    """
    kept = require_tensor(input, "ldexp")._type.dtype
    if kept.is_differentiable and not result_type(other).is_differentiable:
        # The type is that of `input`, whatever integers it is scaled by.
        if not kept.is_complex:
            return _scaled(input, as_operand(other, float64, "ldexp", input.device))
        part = float64 if kept is complex128 else float32
        other = as_operand(other, part, "ldexp", input.device)
    return e.mul(input, e.pow(2.0, other))


def _scaled(input: Tensor, power: Tensor) -> Tensor:
    """`input * 2**power` for whole numbers, in the type of `input`."""
    kept = input._type.dtype
    if kept is not float64:  # which holds all products that are neither 0 nor infinite in others
        return cast(e.mul(cast(input, float64), e.pow(2.0, e.clamp(power, -400, 400))), kept)
    for _ in range(2):
        # Steps downwards are shorter, so that only the last product is rounded (musl's scalbn).
        step = e.where(e.lt(power, -1022), -969.0, creation.zeros_like(power))
        step = e.where(e.gt(power, 1023), 1023.0, step)
        input, power = e.mul(input, e.pow(2.0, step)), e.sub(power, step)
    return e.mul(input, e.pow(2.0, e.clamp(power, -1022, 1023)))


# --- bounds --------------------------------------------------------------------------------------


@public(method=True, inplace=True, out=True)
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Elements above `max` become `max`: see `clamp`."""
    return e.clamp(require_tensor(input, "clamp_max"), None, _bound("clamp_max", max))


@public(method=True, inplace=True, out=True)
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Elements below `min` become `min`: see `clamp`."""
    return e.clamp(require_tensor(input, "clamp_min"), _bound("clamp_min", min))


def _bound(operation: str, bound: Operand) -> Operand:
    if bound is None:
        raise TypeError(f"{operation}(): the bound must be Tensor or Number, not NoneType")
    return bound


@public(method=True, out=True)
@planned
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger element; where one is NaN, the other.

    >>> import tgraph as tg
    >>> tg.fmax(tg.tensor([1.0, float("nan")]), tg.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """
    x, y = promote("fmax", input, other)
    return e.where(e.logical_or(e.ge(x, y), e.isnan(y)), x, y)


@public(method=True, out=True)
@planned
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller element; where one is NaN, the other."""
    x, y = promote("fmin", input, other)
    return e.where(e.logical_or(e.le(x, y), e.isnan(y)), x, y)
