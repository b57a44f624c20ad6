"""Elementwise functions over an array module, one per primitive.

Half types are computed in float32 and rounded once, as NumPy's and ml_dtypes' own loops do; the
functions that take several steps convert explicitly. CuPy's functions of the same name do the same,
but for those that are written out here.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import DType, from_numpy_dtype, uint8

Array = Any
Function = Callable[..., Array]


class _QuietContext(threading.local):
    """A context in which NumPy ignores floating-point errors, made once per thread.

    NumPy keeps its error state in a context variable. Entering a ready context costs a tenth of
    what `np.errstate` costs, which is more than most small operations take.
    """

    def __init__(self) -> None:
        with np.errstate(all="ignore"):
            self.run = contextvars.copy_context().run


_context = _QuietContext()
quiet = np.errstate(all="ignore")  # a decorator for functions of several steps


def quietly(function: Callable[..., Any], *operands: Any, **options: Any) -> Array:
    """One call of the array module without warnings; a scalar result becomes an array."""
    try:
        result = _context.run(function, *operands, **options)
    except RuntimeError:  # the context is entered already: a finaliser runs inside another call
        with np.errstate(all="ignore"):
            result = function(*operands, **options)
    return result if type(result) is np.ndarray else as_array(result)


def as_array(value: Array) -> Array:
    """NumPy answers 0-d operands with a scalar; a tensor's value is always an array."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def in_float32(function: Function) -> Function:
    """`function(xp, *arrays)` with half types converted first and the result rounded once."""

    def converted(xp: Any, *arrays: Array) -> Array:
        dtype = arrays[0].dtype
        wide = compute_dtype(dtype)
        if wide is not dtype:
            return function(xp, *(each.astype(wide) for each in arrays)).astype(dtype)
        return function(xp, *arrays)

    return converted


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What elements of a NumPy dtype are computed in; itself, where they are as they are."""
    if dtype.itemsize != 2:
        return dtype
    known = from_numpy_dtype(dtype)
    return dtype if known.compute is known else known.compute.numpy


def _unary(name: str) -> Function:
    def function(xp: Any, x: Array) -> Array:
        try:  # `quietly` written out, which saves a third of the overhead
            result = _context.run(getattr(xp, name), x)
        except RuntimeError:
            return quietly(getattr(xp, name), x)
        return result if type(result) is np.ndarray else as_array(result)

    return function


def _binary(name: str) -> Function:
    def function(xp: Any, x: Array, y: Array) -> Array:
        try:
            result = _context.run(getattr(xp, name), x, y)
        except RuntimeError:
            return quietly(getattr(xp, name), x, y)
        return result if type(result) is np.ndarray else as_array(result)

    return function


def _checked(function: Function) -> Function:
    return quiet(lambda xp, *arrays, **attrs: as_array(function(xp, *arrays, **attrs)))


def _sign(xp: Any, x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN and for both zeros, as PyTorch has it."""
    if x.dtype.kind == "u":
        return xp.sign(x)
    if x.dtype.kind == "c":
        return _direction(xp, x)
    return (xp.greater(x, 0).view(np.int8) - xp.less(x, 0).view(np.int8)).astype(x.dtype)


def _direction(xp: Any, x: Array) -> Array:
    """x / |x| by parts, as NumPy's division loses numbers near the smallest; 0 of 0."""
    size = xp.absolute(x)
    zero = size == 0
    by = xp.where(zero, size.dtype.type(1), size)
    result = xp.empty(x.shape, x.dtype)
    result.real[...] = xp.where(zero, size.dtype.type(0), x.real / by)  # without signs of zeros
    result.imag[...] = xp.where(zero, size.dtype.type(0), x.imag / by)
    return result


def _div(xp: Any, x: Array, y: Array) -> Array:
    if xp is not np and x.dtype.kind == "c":
        return _complex_quotient_on_device(xp, x, y)
    return _true_divide(xp, x, y)


def _complex_quotient_on_device(xp: Any, x: Array, y: Array) -> Array:
    """By the larger part of the divisor, with zeros of the signs that compiled code gives.

    CuPy's own division makes NaN of quotients by zero, by infinity and by large numbers; a
    reciprocal of these would be flushed to zero.
    """
    zero, one = y.dtype.type(0).real, y.dtype.type(1).real
    is_zero, is_wide = y == 0, xp.absolute(y.real) >= xp.absolute(y.imag)
    large, small = xp.where(is_wide, y.real, y.imag), xp.where(is_wide, y.imag, y.real)
    ratio = xp.where(is_zero, zero, small / xp.where(is_zero, one, large))
    size = large + small * ratio
    first, second = xp.where(is_wide, x.real, x.imag), xp.where(is_wide, x.imag, x.real)
    nothing, product = xp.absolute(large), first * ratio
    turned = xp.where(is_wide, second - product, product - second) / size
    result = xp.empty(turned.shape, x.dtype)
    result.real[...] = xp.where(is_zero, x.real / nothing, (first + second * ratio) / size)
    result.imag[...] = xp.where(is_zero, x.imag / nothing, turned)
    return result


def _reciprocal(xp: Any, x: Array) -> Array:
    """That of complex numbers by a division, as reciprocals of NumPy are not those of zeros."""
    return _div(xp, xp.ones((), x.dtype), x) if x.dtype.kind == "c" else xp.reciprocal(x)


def _erf(xp: Any, x: Array) -> Array:
    from scipy import special  # a tenth of a second to import

    return special.erf(x)


_true_divide = _binary("true_divide")


def _shift(name: str) -> Function:
    ufunc = _binary(name)

    def function(xp: Any, x: Array, y: Array) -> Array:
        if xp is np:
            return ufunc(np, x, y)
        return _shifted_on_device(xp, getattr(xp, name), x, y)

    return function


def _shifted_on_device(xp: Any, ufunc: Function, x: Array, y: Array) -> Array:
    """A shift by less than 0 or by all bits leaves the sign, as with NumPy. C++ leaves it open."""
    bits = 8 * x.dtype.itemsize
    inside = xp.logical_and(y >= 0, y < bits)
    found = ufunc(x, xp.where(inside, y, 0))
    if ufunc is xp.left_shift or x.dtype.kind == "u":
        return xp.where(inside, found, 0)
    return xp.where(inside, found, xp.right_shift(x, bits - 1))


def _floor_divide(xp: Any, x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        _refuse_zero(x, y)
    elif xp is not np:
        return _floor_divide_on_device(xp, x, y)
    return xp.floor_divide(x, y)


def _floor_divide_on_device(xp: Any, x: Array, y: Array) -> Array:
    """NumPy's floor division. CuPy takes floor(x / y), which is wrong where the quotient rounds up.

    From the remainder follows the quotient, a whole number but for the error of one division.
    """
    rest, raw = xp.fmod(x, y), x / y
    quotient = (x - rest) / y
    quotient = xp.where((rest != 0) & ((rest < 0) != (y < 0)), quotient - 1, quotient)
    whole = xp.floor(quotient)
    whole = xp.where(quotient - whole > 0.5, whole + 1, whole)
    whole = xp.where(quotient == 0, xp.copysign(x.dtype.type(0), raw), whole)
    return xp.where(y == 0, raw, whole)


def _remainder(xp: Any, x: Array, y: Array) -> Array:
    """The remainder with the sign of the divisor; a zero keeps the sign of the dividend."""
    if x.dtype.kind in "iu":
        _refuse_zero(x, y)
        return xp.remainder(x, y)
    rest = xp.fmod(x, y)
    wrong = (rest != 0) & ((rest < 0) != (y < 0))
    return xp.where(wrong, rest + y, rest)


def _refuse_zero(dividend: Array, divisor: Array) -> None:
    if not divisor.all() and dividend.size:
        raise RuntimeError("ZeroDivisionError")  # PyTorch's type and text


def _pow(xp: Any, x: Array, y: Array) -> Array:
    """Integers wrap; a negative exponent gives the truncated quotient 1 // x**-y, and 0 for 0."""
    if x.dtype.kind == "c":
        return _complex_pow(xp, x, y)
    if xp is not np:
        return xp.power(x, y)  # whose integers do just that
    if x.dtype.kind == "i":
        return _integer_pow(x, y)
    if y.ndim == 0 and y == 0.5:
        # NumPy takes the root here, whose values for -0.0 and -inf are not those of the power.
        return np.where(x == -np.inf, np.asarray(np.inf, x.dtype), np.sqrt(x) + x.dtype.type(0))
    return np.power(x, y)


def _complex_pow(xp: Any, x: Array, y: Array) -> Array:
    """exp(y log(x)); 1 for y = 0, and 0 for x = 0, where y has a positive real part."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    powers = xp.exp(y * xp.log(x))
    powers = xp.where((x == 0) & (y.real > 0), zero, powers)
    return xp.where(y == 0, one, powers).astype(x.dtype)


def _integer_pow(x: Array, y: Array) -> Array:
    negative = y < 0
    if not negative.any():
        return np.power(x, y)
    powers = np.power(x, np.where(negative, 0, y).astype(y.dtype))
    one = np.asarray(1, x.dtype)
    inverse = np.where(x == one, one, np.where(x == -one, np.where(y & 1, -one, one), one - one))
    return np.where(negative, inverse, powers)


def _cast(xp: Any, x: Array, dtype: DType) -> Array:
    """Floats truncate towards zero into integers.

    A float out of range gives what compiled code and PyTorch give, which depends on the CPU. On a
    device it wraps, and becomes the least integer where 64 bits do not hold it, as kernels do.
    """
    if x.dtype.itemsize == 2 and x.dtype.kind in "Vf" and not dtype.is_floating_point:
        x = x.astype(np.float32)  # V is bfloat16; of float16 NumPy makes other uint32 out of range
    if dtype.kind == "bool":
        return as_array(x != 0)
    if xp is not np and x.dtype.kind == "f" and dtype.kind in ("int", "uint"):
        return _truncated(xp, x).astype(dtype.numpy)
    if x.dtype.kind == "c" and not dtype.is_complex:
        return _cast(xp, x.real, dtype)
    if dtype.compute is not dtype and x.dtype.itemsize == 8 and x.dtype.kind == "f":
        x = quietly(x.astype, dtype.compute.numpy)  # as in compiled code, and in PyTorch
    if dtype is uint8 and x.dtype == np.float64:
        x = quietly(x.astype, np.int64)  # where NumPy takes 32 bits
    return quietly(x.astype, dtype.numpy)


def _bitcast(xp: Any, x: Array, dtype: DType) -> Array:
    """The same memory as elements of another type of the same size; bytes are True but for 0."""
    return as_array(x.view(np.uint8) != 0) if dtype.kind == "bool" else x.view(dtype.numpy)


def _truncated(xp: Any, x: Array) -> Array:
    """Floats as int64. CuPy's conversion takes the nearest integer, and 0 for negative bytes."""
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    inside = xp.logical_and(x >= -(2.0**63), x < 2.0**63)
    return xp.where(inside, x.astype(np.int64), np.int64(-(2**63)))


def _where(xp: Any, condition: Array, x: Array, y: Array) -> Array:
    if xp is not np and x.dtype.kind == "V":  # bfloat16, for which CuPy would compute in float32
        return xp.where(condition, x.view(np.uint16), y.view(np.uint16)).view(x.dtype)
    return xp.where(condition, x, y)


def _require(xp: Any, holds: Array, x: Array, message: str) -> Array:
    if not bool(xp.all(holds)):
        raise RuntimeError(message)
    return _copy(xp, xp.broadcast_to(x, np.broadcast_shapes(holds.shape, x.shape)))


def _copy(xp: Any, x: Array, strides: tuple[int, ...] | None = None) -> Array:
    """Where elements are to lie in memory is up to eager mode, see `compiler/ir/layouts.py`."""
    return xp.array(x, copy=True, order="C")


_SAME_NAME_UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "sin", "cos", "tan",
    "sinh", "cosh", "tanh", "floor", "ceil", "trunc", "isnan", "isinf", "logical_not",
)  # fmt: skip
_RENAMED_UNARY = {
    "neg": "negative", "abs": "absolute", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "round": "rint", "bitwise_not": "invert",
}  # fmt: skip
_SAME_NAME_BINARY = (
    "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor",
)  # fmt: skip
_RENAMED_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "atan2": "arctan2", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip

FUNCTIONS: dict[str, Function] = {
    **{name: _unary(name) for name in _SAME_NAME_UNARY},
    **{name: _unary(theirs) for name, theirs in _RENAMED_UNARY.items()},
    **{name: _binary(name) for name in _SAME_NAME_BINARY},
    **{name: _binary(theirs) for name, theirs in _RENAMED_BINARY.items()},
    "div": _div,
    "shift_left": _shift("left_shift"),
    "shift_right": _shift("right_shift"),
    "sign": _checked(_sign),
    "rsqrt": _checked(in_float32(lambda xp, x: _reciprocal(xp, xp.sqrt(x)))),
    "reciprocal": lambda xp, x: quietly(_reciprocal, xp, x),
    "erf": _checked(in_float32(_erf)),
    "floor_divide": _checked(in_float32(_floor_divide)),
    "remainder": _checked(in_float32(_remainder)),
    "pow": _checked(in_float32(_pow)),
    "cast": _cast,
    "bitcast": _bitcast,
    "where": _where,
    "require": _require,
    "copy": _copy,
}
