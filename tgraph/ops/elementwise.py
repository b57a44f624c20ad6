"""Functions of one element at a time: arithmetic, mathematics, comparison, logic, casts.

Operands broadcast as in NumPy and promote as in PyTorch; a Python number takes the dtype of the
tensor it meets, unless its kind is higher (a float with an integer tensor).
"""

from __future__ import annotations

import builtins
import math
from typing import Any, overload

import numpy as np

from ..compiler.ir import Primitive, TensorType
from ..compiler.ir import primitives as p
from ..core.carried_number import CarriedNumber
from ..core.complex_parts import part
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.operands import (
    Operand,
    Scalar,
    as_float,
    as_operand,
    cast,
    promote,
    promote_float,
    promote_pair,
    require_tensor,
    result_type,
    together,
)
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import bool_, float32, int64
from .comparison import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    eq,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
)

# Callers reach these through this module, beside arithmetic.
__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "ne",
]  # fmt: skip


_LN2 = math.log(2.0)


# --- arithmetic --------------------------------------------------------------------------------


def _arithmetic(primitive: Primitive, of_bools: Primitive | None, a: Any, b: Any) -> Tensor:
    x, y = promote_pair(primitive.name, a, b)
    if x._type.dtype is not bool_:
        return apply(primitive, x, y)
    if of_bools is None:
        raise NotImplementedError(f"{primitive.name} is not supported for bool tensors")
    return apply(of_bools, x, y)


def _scaling(primitive: Primitive, x: Tensor, y: Tensor, a: Any, b: Any) -> Tensor:
    """`primitive` of `x` and `y`, to which `a` and `b` were promoted.

    A number that a 16-bit type cannot hold takes part as it is, as in PyTorch: a loss of 16 bits
    times 2**16 is finite where 2**16 of 16 bits would not be.
    """
    dtype = x._type.dtype
    if dtype.itemsize == 2 and dtype.kind == "float" and (_rounded(a, x) or _rounded(b, y)):
        device = x._type.device
        wide = (as_operand(each, float32, primitive.name, device) for each in (a, b))
        return cast(apply(primitive, *wide), dtype)
    return apply(primitive, x, y)


def _rounded(given: Any, promoted: Tensor) -> bool:
    """Whether a number, or 0-d tensor, is another one in the type that it was promoted to."""
    if given is promoted:
        return False
    if isinstance(given, Tensor):
        return not given._type.shape and given._type.dtype.itemsize > 2
    if type(given) not in (bool, int, float):  # an input of a trace in the guise of a number
        return True
    with np.errstate(all="ignore"):
        return float(promoted._type.dtype.numpy.type(given)) != given


@public(method=True, inplace=True, out=True)
def add(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """`input + alpha * other`.

    >>> import tgraph as tg
    >>> tg.add(tg.tensor([1.0, 2.0]), tg.tensor([10.0, 20.0]), alpha=2)
    tensor([21., 42.])
    """
    return _arithmetic(p.add, p.logical_or, input, _scaled(input, other, alpha))


@public(method=True, inplace=True, out=True, aliases=("subtract",))
def sub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """`input - alpha * other`."""
    bools = [
        x._type.dtype is bool_ if isinstance(x, Tensor) else isinstance(x, bool)
        for x in (input, other)
    ]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
            "to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return _arithmetic(p.sub, None, input, _scaled(input, other, alpha))


def _scaled(input: Operand, other: Operand, alpha: Scalar) -> Operand:
    """`alpha * other`, in the type that it has together with `input`."""
    if type(alpha) is int and alpha == 1:
        return other
    dtype = result_type(input, other)
    if isinstance(alpha, builtins.bool) and dtype is not bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, builtins.complex) and not dtype.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, builtins.float) and not dtype.is_differentiable:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if dtype is bool_:
        return logical_and(other, alpha != 0)
    if not isinstance(other, Tensor):
        return other * alpha
    own = other._type.dtype
    if own.is_differentiable and own.itemsize > dtype.itemsize:
        return mul(other, alpha)  # without dimensions: it is not rounded before it is multiplied
    return mul(cast(other, dtype), alpha)


@public(out=True)
def rsub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """`other - alpha * input`."""
    return sub(other, input, alpha=alpha)


@public(method=True, inplace=True, out=True, aliases=("multiply",))
def mul(input: Operand, other: Operand) -> Tensor:
    """`input * other`."""
    x, y = promote_pair("mul", input, other)
    return _scaling(p.logical_and if x._type.dtype is bool_ else p.mul, x, y, input, other)


@public(
    method=True,
    inplace=True,
    out=True,
    aliases=(
        "divide",
        "true_divide",
    ),
)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`; integers divide to the default float type.

    `rounding_mode` "floor" rounds down, "trunc" towards zero; both keep integers integers.
    """
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode not in (None, "trunc"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    x, y = promote_float("div", input, other)
    quotient = _scaling(p.div, x, y, input, other)
    if rounding_mode is None:
        return quotient
    dtype = result_type(input, other)
    if not dtype.is_differentiable:
        return _integer_trunc_divide(input, other)
    if dtype.compute is not dtype:  # the quotient is rounded first, in compiled code too
        quotient = cast(apply(p.div, cast(x, dtype.compute), cast(y, dtype.compute)), dtype)
    return trunc(quotient)


def _integer_trunc_divide(input: Operand, other: Operand) -> Tensor:
    x, y = promote("div", input, other)
    _refuse_zero(x, other)
    down = apply(p.floor_divide, x, y)
    rest = sub(x, mul(down, y))
    return add(down, logical_and(ne(rest, 0), ne(lt(x, 0), lt(y, 0))))


def _refuse_zero(dividend: Any, divisor: Any) -> None:
    """RuntimeError, with PyTorch's text, where some integers are divided by the number 0."""
    if type(divisor) is not int or divisor or result_type(dividend, 0).is_differentiable:
        return
    if not isinstance(dividend, Tensor) or dividend._type.numel:
        raise RuntimeError("ZeroDivisionError")


@public(method=True, inplace=True, out=True)
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """`input / other` rounded down, in the promoted dtype. Division of integers by 0 raises."""
    _refuse_zero(input, other)
    return _arithmetic(p.floor_divide, None, input, other)


@public(method=True, inplace=True, out=True)
def remainder(input: Operand, other: Operand) -> Tensor:
    """The remainder with the sign of the divisor, as Python's `%`."""
    _refuse_zero(input, other)
    return _arithmetic(p.remainder, None, input, other)


@public(method=True, inplace=True, out=True)
def fmod(input: Operand, other: Operand) -> Tensor:
    """The remainder with the sign of the dividend, as C's fmod."""
    _refuse_zero(input, other)
    return _fmod(*promote_pair("fmod", input, other))


@composite("fmod")
@planned
def _fmod(x: Tensor, y: Tensor) -> Tensor:
    if not x._type.dtype.is_floating_point:
        # Not by absolute values: the least integer has none.
        rest = apply(p.remainder, x, y)
        return where(logical_and(ne(rest, 0), ne(lt(rest, 0), lt(x, 0))), sub(rest, y), rest)
    rest = apply(p.remainder, abs(x), abs(y))
    rest = where(lt(x, 0), neg(rest), rest)
    return where(logical_and(eq(x, 0), eq(rest, 0)), x, rest)  # -0.0 stays


@input_vjp(_fmod, 0)
def _fmod_dividend(g: Tensor, out: TensorType, x: TensorType, y: TensorType) -> Tensor:
    return g


@input_vjp(_fmod, 1, saves=(0, 1))
@planned
def _fmod_divisor(g: Tensor, out: TensorType, x: Tensor, y: Tensor) -> Tensor:
    return neg(mul(g, trunc(div(x, y))))


@public(method=True, inplace=True, out=True)
def pow(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent`. Negative powers of integers raise for a Python exponent."""
    is_known = not isinstance(exponent, Tensor) and type(exponent) is not CarriedNumber
    if not is_known or not isinstance(input, Tensor):
        return _arithmetic(p.pow_, None, input, exponent)
    dtype = input._type.dtype
    if dtype is bool_ and exponent is True:
        return apply(p.copy, input)
    if dtype.is_integral and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if dtype.is_complex and (exact := _power_of_complex(input, exponent)) is not None:
        return exact
    if dtype.is_differentiable and not isinstance(exponent, builtins.complex):
        if exponent == 2:
            return apply(p.mul, input, input)
        if exponent == 0.5:
            return apply(p.sqrt, input)
    return _arithmetic(p.pow_, None, input, exponent)


def _power_of_complex(input: Tensor, exponent: Scalar) -> Tensor | None:
    """A power that products give more exactly than the logarithm; None of other exponents."""
    if exponent == 1:
        return apply(p.copy, input)
    if exponent in (2, -2, 3):
        square = apply(p.mul, input, input)
        if exponent == 2:
            return square
        return reciprocal(square) if exponent == -2 else apply(p.mul, square, input)
    return reciprocal(input) if exponent == -1 else None


@public(method=True, inplace=True, out="exact", aliases=("negative",))
def neg(input: Tensor) -> Tensor:
    """`-input`."""
    if require_tensor(input, "neg")._type.dtype is bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return apply(p.neg, input)


@public(method=True, out=True)
def positive(input: Tensor) -> Tensor:
    """`+input`: the tensor itself."""
    if input._type.dtype is bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public(method=True, inplace=True, out="exact", aliases=("absolute",))
def abs(input: Tensor) -> Tensor:
    """Absolute values, real ones of complex numbers; the gradient at 0 is 0."""
    return apply(p.abs_, require_tensor(input, "abs"))


@public(method=True, inplace=True, out="exact")
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of each element."""
    if require_tensor(input, "sign")._type.dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, tgraph.sign is not intended to support complex numbers. Please use "
            "tgraph.sgn instead."
        )
    return sgn(input)


@public(method=True, inplace=True, out="exact")
def sgn(input: Tensor) -> Tensor:
    """The sign of each element; of a complex number `input / abs(input)`, and 0 of 0.

    >>> import tgraph as tg
    >>> tg.sgn(tg.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    if require_tensor(input, "sgn")._type.dtype is bool_:
        return apply(p.copy, input)
    return direction(input) if input._type.dtype.is_complex else apply(p.sign, input)


@composite("sgn")
def direction(z: Tensor) -> Tensor:
    """`sgn` of complex numbers, whose gradient reads them; that of real ones reads nothing."""
    return apply(p.sign, z)


@public(method=True, inplace=True, out=True)
def square(input: Tensor) -> Tensor:
    """`input * input`; of bools, integers."""
    if require_tensor(input, "square")._type.dtype is bool_:
        input = cast(input, int64)
    return mul(input, input)


# --- mathematics -------------------------------------------------------------------------------


@public(method=True, inplace=True, out=True)
def exp(input: Tensor) -> Tensor:
    """e to the power of each element; integers are computed in the default float type."""
    return apply(p.exp, as_float(input, "exp"))


@public(method=True, inplace=True, out=True)
def exp2(input: Tensor) -> Tensor:
    """2 to the power of each element."""
    x = as_float(input, "exp2")
    if x._type.dtype.is_complex:
        re, im = (mul(part(x, at), _LN2) for at in (0, 1))  # infinite beside 0 they stay so
        return exp(apply(p.complex_, re, im))
    return apply(p.exp2, x)


@public(method=True, inplace=True, out=True)
def expm1(input: Tensor) -> Tensor:
    """`exp(input) - 1`, accurate near 0."""
    x = as_float(input, "expm1")
    if x._type.dtype.is_complex:
        return _complex_expm1(x)
    return apply(p.expm1, x)


@planned
def _complex_expm1(x: Tensor) -> Tensor:
    real, imaginary = part(x, 0), part(x, 1)
    half = sin(mul(imaginary, 0.5))
    near = sub(mul(expm1(real), cos(imaginary)), mul(mul(half, half), 2))
    return apply(p.complex_, near, mul(exp(real), sin(imaginary)))


@public(method=True, inplace=True, out=True)
def log(input: Tensor) -> Tensor:
    """Natural logarithm: NaN below 0, -inf at 0."""
    return apply(p.log, as_float(input, "log"))


@public(method=True, inplace=True, out=True)
def log2(input: Tensor) -> Tensor:
    """Logarithm to base 2."""
    x = as_float(input, "log2")
    if x._type.dtype.is_complex:
        return _complex_log(x, 1 / _LN2)
    return apply(p.log2, x)


@public(method=True, inplace=True, out=True)
def log10(input: Tensor) -> Tensor:
    """Logarithm to base 10."""
    x = as_float(input, "log10")
    if x._type.dtype.is_complex:
        return _complex_log(x, math.log10(math.e))
    return mul(apply(p.log2, x), math.log10(2.0))


@planned
def _complex_log(x: Tensor, scale: float) -> Tensor:
    """By parts: a complex product would make NaN of infinities."""
    found = log(x)
    return apply(p.complex_, mul(part(found, 0), scale), mul(part(found, 1), scale))


@public(method=True, inplace=True, out=True)
def log1p(input: Tensor) -> Tensor:
    """`log(1 + input)`, accurate near 0."""
    x = as_float(input, "log1p")
    return _complex_log1p(x) if x._type.dtype.is_complex else apply(p.log1p, x)


@planned
def _complex_log1p(x: Tensor) -> Tensor:
    """Near 0 by the square of `abs(1 + x)`, less 1; further off, squares could overflow."""
    near = lt(abs(x), 0.5)
    inner = where(near, x, 0)
    real, imaginary = part(inner, 0), part(inner, 1)
    square = add(mul(real, add(real, 2)), mul(imaginary, imaginary))
    far = log(add(where(near, 0, x), 1))
    close = mul(log1p(square), 0.5)
    angle = atan2(part(x, 1), add(part(x, 0), 1))
    return apply(p.complex_, where(near, close, part(far, 0)), angle)


@public(method=True, inplace=True, out=True)
def sqrt(input: Tensor) -> Tensor:
    """Square root; NaN below 0."""
    return apply(p.sqrt, as_float(input, "sqrt"))


@public(method=True, inplace=True, out=True)
def rsqrt(input: Tensor) -> Tensor:
    """`1 / sqrt(input)`."""
    return apply(p.rsqrt, as_float(input, "rsqrt"))


@public(method=True, inplace=True, out=True)
def reciprocal(input: Tensor) -> Tensor:
    """`1 / input`."""
    return apply(p.reciprocal, as_float(input, "reciprocal"))


@public(method=True, inplace=True, out=True)
def sin(input: Tensor) -> Tensor:
    """Sine of angles in radians."""
    return apply(p.sin, as_float(input, "sin"))


@public(method=True, inplace=True, out=True)
def cos(input: Tensor) -> Tensor:
    """Cosine of angles in radians."""
    return apply(p.cos, as_float(input, "cos"))


@public(method=True, inplace=True, out=True)
def tan(input: Tensor) -> Tensor:
    """Tangent of angles in radians."""
    return apply(p.tan, as_float(input, "tan"))


@public(method=True, inplace=True, out=True, aliases=("arcsin",))
def asin(input: Tensor) -> Tensor:
    """Arcsine in radians; NaN outside [-1, 1]."""
    return apply(p.asin, as_float(input, "asin"))


@public(method=True, inplace=True, out=True, aliases=("arccos",))
def acos(input: Tensor) -> Tensor:
    """Arccosine in radians; NaN outside [-1, 1]."""
    return apply(p.acos, as_float(input, "acos"))


@public(method=True, inplace=True, out=True, aliases=("arctan",))
def atan(input: Tensor) -> Tensor:
    """Arctangent in radians."""
    return apply(p.atan, as_float(input, "atan"))


@public(method=True, inplace=True, out=True, aliases=("arctan2",))
def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, input) in radians, between -pi and pi."""
    return apply(p.atan2, *promote_float("atan2", input, other))


@public(method=True, inplace=True, out=True)
def sinh(input: Tensor) -> Tensor:
    """Hyperbolic sine."""
    return apply(p.sinh, as_float(input, "sinh"))


@public(method=True, inplace=True, out=True)
def cosh(input: Tensor) -> Tensor:
    """Hyperbolic cosine."""
    return apply(p.cosh, as_float(input, "cosh"))


@public(method=True, inplace=True, out=True)
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return apply(p.tanh, as_float(input, "tanh"))


@public(method=True, inplace=True, out=True)
def erf(input: Tensor) -> Tensor:
    """The error function."""
    return apply(p.erf, as_float(input, "erf"))


def _rounding(primitive: Primitive, input: Tensor) -> Tensor:
    dtype = require_tensor(input, primitive.name)._type.dtype
    if dtype.is_complex:
        raise NotImplementedError(f"{primitive.name} is not supported for complex inputs")
    return apply(primitive if dtype.is_floating_point else p.copy, input)


@public(method=True, inplace=True, out="exact")
def floor(input: Tensor) -> Tensor:
    """Each element rounded down."""
    return _rounding(p.floor, input)


@public(method=True, inplace=True, out="exact")
def ceil(input: Tensor) -> Tensor:
    """Each element rounded up."""
    return _rounding(p.ceil, input)


@public(method=True, inplace=True, out="exact")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Each element rounded to the nearest, halves to the even neighbour."""
    if decimals == 0 or not input._type.dtype.is_floating_point:
        return _rounding(p.round_, input)
    scale = 10.0**decimals
    return div(apply(p.round_, mul(input, scale)), scale)


@public(method=True, inplace=True, out="exact", aliases=("fix",))
def trunc(input: Tensor) -> Tensor:
    """Each element rounded towards zero."""
    return _rounding(p.trunc, input)


@public(method=True, inplace=True, out="exact")
def frac(input: Tensor) -> Tensor:
    """The part behind the point, with the sign of the element."""
    return sub(input, trunc(input))


# --- selection ---------------------------------------------------------------------------------


@public(method=True, out=True)
def maximum(input: Operand, other: Operand) -> Tensor:
    """The larger of two elements; NaN if either is. Equal ones share the gradient."""
    return apply(p.maximum, *promote_pair("maximum", input, other))


@public(method=True, out=True)
def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller of two elements; NaN if either is. Equal ones share the gradient."""
    return apply(p.minimum, *promote_pair("minimum", input, other))


@public(method=True, inplace=True, out=True, aliases=("clip",))
@planned
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Elements limited to [min, max]; inside, bounds included, the gradient passes.

    NaN where an element or a bound is NaN.

    >>> import tgraph as tg
    >>> tg.clamp(tg.tensor([-2.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if result_type(input, *(each for each in (min, max) if each is not None)).is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = result_type(input, *bounds)
    x = result = cast(input, dtype)
    if min is not None:
        low = as_operand(min, dtype, "clamp", input._type.device)
        result = where(_or_unknown(lt(x, low), low, min), low, result)
    if max is not None:
        high = as_operand(max, dtype, "clamp", input._type.device)
        result = where(_or_unknown(gt(result, high), high, max), high, result)
    return result


def _or_unknown(beyond: Tensor, bound: Tensor, given: Operand) -> Tensor:
    """Where elements lie beyond a bound, or the bound is NaN."""
    if type(given) in (bool, int, float) and given == given:
        return beyond
    return logical_or(beyond, isnan(bound)) if bound._type.dtype.is_floating_point else beyond


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...


@overload
def where(condition: Tensor, input: Operand, other: Operand) -> Tensor: ...


@public(out="exact")
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """`input` where `condition` holds, else `other`.

    With the condition alone: the positions where it holds, as `nonzero(as_tuple=True)`.

    >>> import tgraph as tg
    >>> x = tg.tensor([-1.0, 2.0])
    >>> tg.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if require_tensor(condition, "where", "condition")._type.dtype is not bool_:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition._type.dtype}"
        )
    if isinstance(input, Tensor) or isinstance(other, Tensor):
        x, y = promote_pair("where", input, other)
    else:  # numbers, which go where the condition is
        dtype = result_type(input, other)
        x, y = (as_operand(each, dtype, "where", condition._type.device) for each in (input, other))
    if condition._type.device is x._type.device is y._type.device:
        return apply(p.where, condition, x, y)
    return apply(p.where, *together(condition, x, y))


@public(method=True, inplace=True, out=True)
@planned
def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """`input + weight * (end - input)`."""
    if isinstance(input, Tensor) and input._type.dtype is bool_:
        raise NotImplementedError("lerp is not implemented for bool; convert it with .float()")
    input, end, promoted = promote("lerp", input, end, weight)
    return add(input, mul(promoted if isinstance(weight, Tensor) else weight, sub(end, input)))


@public(method=True, inplace=True, out=True)
@planned
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
    input, tensor1, tensor2 = promote("addcmul", input, tensor1, tensor2)
    return add(input, _scaled(input, mul(tensor1, tensor2), +value))


@public(method=True, inplace=True, out=True)
@planned
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`."""
    input, tensor1, tensor2 = promote("addcdiv", input, tensor1, tensor2)
    return add(input, _scaled(input, div(tensor1, tensor2), +value))


@public(method=True, inplace=True, out="exact")
@planned
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN, inf and -inf replaced: by 0 and by the largest and lowest finite values."""
    if input._type.dtype.is_complex:
        parts = (nan_to_num(part(input, at), nan, posinf, neginf) for at in (0, 1))
        return apply(p.complex_, *parts)
    if not input._type.dtype.is_floating_point:
        return apply(p.copy, input)
    dtype, device = input._type.dtype, input._type.device
    high, low = _finite_range(input)
    above = as_operand(high if posinf is None else posinf, dtype, "nan_to_num", device)
    below = as_operand(low if neginf is None else neginf, dtype, "nan_to_num", device)
    ends = where(lt(input, 0), below, above)
    return where(apply(p.isnan, input), nan, where(apply(p.isinf, input), ends, input))


def _finite_range(x: Tensor) -> tuple[float, float]:
    largest = {
        "float16": 65504.0,
        "bfloat16": 3.3895313892515355e38,
        "float32": 3.4028234663852886e38,
        "float64": 1.7976931348623157e308,
    }[x._type.dtype.name]
    return largest, -largest
