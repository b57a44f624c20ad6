"""Gradient rules of elementwise primitives.

Every rule is a function of tensors, so rules can be differentiated again. `g` is the cotangent of
the output; results may have the broadcast shape, the engine sums them back. Rules of several
operations that training often comes by are one plan each in eager mode.
"""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import Primitive, TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate, of_pairs, part
from ..core.dispatch import apply, zeros_of
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import NON_DIFFERENTIABLE, OUTPUT, input_vjp
from . import elementwise as e

_LN2 = math.log(2.0)


def _pass_on(primitive: Primitive, position: int = 0) -> None:
    @input_vjp(primitive, position)
    def _(g: Tensor, out: TensorType, *inputs: TensorType, **attrs: Any) -> Tensor:
        return g


def _flat(primitive: Primitive, index: int = 0) -> None:
    """Steps: the gradient is 0 wherever it exists."""

    @input_vjp(primitive, index)
    def _(g: Tensor, out: TensorType, *inputs: TensorType) -> Tensor:
        return zeros_of(inputs[index])


for _primitive in (p.floor, p.ceil, p.round_, p.trunc, p.floor_divide, p.sign):
    _flat(_primitive)
_flat(p.floor_divide, 1)
for _primitive in (p.copy, p.add):
    _pass_on(_primitive)
_pass_on(p.add, 1)
_pass_on(p.sub, 0)
_pass_on(p.remainder, 0)


@input_vjp(e.direction, saves=(0, OUTPUT))
def _direction(g: Any, out: Any, x: Any) -> Any:
    """What `g` has across the direction of `x`, over its size."""
    size = e.abs(x)
    along = part(g * conjugate(out), 0)
    return e.where(size == 0, 0, (g - out * along) / e.where(size == 0, 1, size))


@input_vjp(p.conj)
def _conj(g: Tensor, out: TensorType, x: TensorType) -> Any:
    return conjugate(g)


@input_vjp(p.complex_, 0)
def _complex_real(g: Tensor, out: TensorType, re: TensorType, im: TensorType) -> Any:
    return part(g, 0)


@input_vjp(p.complex_, 1)
def _complex_imag(g: Tensor, out: TensorType, re: TensorType, im: TensorType) -> Any:
    return part(g, 1)


@input_vjp(p.view_as_real)
def _view_as_real(g: Tensor, out: TensorType, x: TensorType) -> Any:
    return of_pairs(g)


@input_vjp(p.view_as_complex)
def _view_as_complex(g: Tensor, out: TensorType, x: TensorType) -> Any:
    return apply(p.view_as_real, g)


NON_DIFFERENTIABLE.update((p.bitcast, p.repack))


@input_vjp(p.cast)
def _cast(g: Tensor, out: TensorType, x: TensorType, dtype: Any) -> Tensor:
    return apply(p.cast, g, dtype=x.dtype)


@input_vjp(p.neg)
def _neg(g: Any, out: TensorType, x: TensorType) -> Any:
    return -g


@input_vjp(p.abs_, saves=(0,))
def _abs(g: Any, out: TensorType, x: Any) -> Any:
    return g * e.sgn(x)


@input_vjp(p.exp, saves=(OUTPUT,))
def _exp(g: Any, out: Any, x: TensorType) -> Any:
    return g * conjugate(out)


@input_vjp(p.exp2, saves=(OUTPUT,))
def _exp2(g: Any, out: Any, x: TensorType) -> Any:
    return g * out * _LN2


@input_vjp(p.expm1, saves=(OUTPUT,))
def _expm1(g: Any, out: Any, x: TensorType) -> Any:
    return g * (out + 1)


@input_vjp(p.log, saves=(0,))
def _log(g: Any, out: TensorType, x: Any) -> Any:
    return g / conjugate(x)


@input_vjp(p.log2, saves=(0,))
def _log2(g: Any, out: TensorType, x: Any) -> Any:
    return g / (x * _LN2)


@input_vjp(p.log1p, saves=(0,))
def _log1p(g: Any, out: TensorType, x: Any) -> Any:
    return g / (x + 1)


@input_vjp(p.sqrt, saves=(OUTPUT,))
def _sqrt(g: Any, out: Any, x: TensorType) -> Any:
    return g / conjugate(out * 2)


@input_vjp(p.rsqrt, saves=(OUTPUT,))
@planned
def _rsqrt(g: Any, out: Any, x: TensorType) -> Any:
    return g * -0.5 * conjugate(out * out * out)


@input_vjp(p.reciprocal, saves=(OUTPUT,))
@planned
def _reciprocal(g: Any, out: Any, x: TensorType) -> Any:
    return -g * conjugate(out * out)


@input_vjp(p.sin, saves=(0,))
def _sin(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.cos(x))


@input_vjp(p.cos, saves=(0,))
def _cos(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.neg(e.sin(x)))


@input_vjp(p.tan, saves=(OUTPUT,))
def _tan(g: Any, out: Any, x: TensorType) -> Any:
    return g * conjugate(out * out + 1)


@input_vjp(p.asin, saves=(0,))
def _asin(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.rsqrt(1 - x * x))


@input_vjp(p.acos, saves=(0,))
def _acos(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.neg(e.rsqrt(1 - x * x)))


@input_vjp(p.atan, saves=(0,))
def _atan(g: Any, out: TensorType, x: Any) -> Any:
    return g / conjugate(x * x + 1)


@input_vjp(p.sinh, saves=(0,))
def _sinh(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.cosh(x))


@input_vjp(p.cosh, saves=(0,))
def _cosh(g: Any, out: TensorType, x: Any) -> Any:
    return g * conjugate(e.sinh(x))


@input_vjp(p.tanh, saves=(OUTPUT,))
@planned
def _tanh(g: Any, out: Any, x: TensorType) -> Any:
    return g * conjugate(1 - out * out)


@input_vjp(p.erf, saves=(0,))
@planned
def _erf(g: Any, out: TensorType, x: Any) -> Any:
    return g * (2 / math.sqrt(math.pi)) * e.exp(-(x * x))


@input_vjp(p.sub, 1)
def _sub_right(g: Any, out: TensorType, x: TensorType, y: TensorType) -> Any:
    return -g


@input_vjp(p.mul, 0, saves=(1,))
def _mul_left(g: Any, out: TensorType, x: TensorType, y: Any) -> Any:
    return g * conjugate(y)


@input_vjp(p.mul, 1, saves=(0,))
def _mul_right(g: Any, out: TensorType, x: Any, y: TensorType) -> Any:
    return g * conjugate(x)


@input_vjp(p.div, 0, saves=(1,))
def _div_left(g: Any, out: TensorType, x: TensorType, y: Any) -> Any:
    return g / conjugate(y)


@input_vjp(p.div, 1, saves=(0, 1))
@planned
def _div_right(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return -g * conjugate((x / y) / y)


@input_vjp(p.remainder, 1, saves=(0, 1))
def _remainder_right(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return -g * e.floor_divide(x, y)


@input_vjp(p.pow_, 0, saves=(0, 1))
@planned
def _pow_base(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    """y * x**(y - 1), and 0 for y = 0, also where x = 0."""
    return e.where(y == 0, 0, g * conjugate(y * e.pow(x, y - 1)))


@input_vjp(p.pow_, 1, saves=(0, 1, OUTPUT))
@planned
def _pow_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    """x**y * log(x), and its limit 0 at x = 0 for y >= 0."""
    flat = e.logical_and(x == 0, _is_not_negative(y))
    return g * conjugate(e.where(flat, 0, out * e.log(e.where(flat, 1, x))))


def _is_not_negative(y: Any) -> Any:
    """Where exponents are real numbers of at least 0."""
    if not y._type.dtype.is_complex:
        return y >= 0
    return e.logical_and(part(y, 0) >= 0, part(y, 1) == 0)


@input_vjp(p.maximum, 0, saves=(0, 1))
@planned
def _maximum_left(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return e.where(x < y, 0, e.where(x == y, g * 0.5, g))


@input_vjp(p.maximum, 1, saves=(0, 1))
@planned
def _maximum_right(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return e.where(y < x, 0, e.where(x == y, g * 0.5, g))


@input_vjp(p.minimum, 0, saves=(0, 1))
@planned
def _minimum_left(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return e.where(x > y, 0, e.where(x == y, g * 0.5, g))


@input_vjp(p.minimum, 1, saves=(0, 1))
@planned
def _minimum_right(g: Any, out: TensorType, x: Any, y: Any) -> Any:
    return e.where(y > x, 0, e.where(x == y, g * 0.5, g))


def _over_square(a: Any, x: Any, y: Any) -> Any:
    """a / (x**2 + y**2), and 0 at the origin, where atan2 has no slope."""
    square = x * x + y * y
    return e.where(square == 0, 0, a / e.where(square == 0, 1, square))


@input_vjp(p.atan2, 0, saves=(0, 1))
def _atan2_left(g: Any, out: TensorType, y: Any, x: Any) -> Any:
    return g * _over_square(x, x, y)


@input_vjp(p.atan2, 1, saves=(0, 1))
def _atan2_right(g: Any, out: TensorType, y: Any, x: Any) -> Any:
    return g * _over_square(-y, x, y)


@input_vjp(p.where, 1, saves=(0,))
def _where_then(g: Any, out: TensorType, c: Any, x: TensorType, y: TensorType) -> Any:
    return e.where(c, g, 0)


@input_vjp(p.where, 2, saves=(0,))
def _where_else(g: Any, out: TensorType, c: Any, x: TensorType, y: TensorType) -> Any:
    return e.where(c, 0, g)


@input_vjp(p.require, 1)
def _require(g: Any, out: TensorType, holds: TensorType, x: TensorType, **attrs: Any) -> Any:
    return g
