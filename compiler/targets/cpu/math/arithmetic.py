"""Roots, rounding, extrema and the floored division of floats as LLVM IR."""

from __future__ import annotations

import math

from .builder import FLOAT32, FunctionBuilder, Value


def sqrt(b: FunctionBuilder, x: Value) -> Value:
    """The square root, correctly rounded."""
    return b.intrinsic("sqrt", x)


def rsqrt(b: FunctionBuilder, x: Value) -> Value:
    """1 / sqrt(x), each step correctly rounded."""
    return 1.0 / b.intrinsic("sqrt", x)


def reciprocal(b: FunctionBuilder, x: Value) -> Value:
    """1 / x, correctly rounded."""
    return 1.0 / x


def floor(b: FunctionBuilder, x: Value) -> Value:
    """The largest integer not above x."""
    return b.intrinsic("floor", x)


def ceil(b: FunctionBuilder, x: Value) -> Value:
    """The smallest integer not below x."""
    return b.intrinsic("ceil", x)


def round(b: FunctionBuilder, x: Value) -> Value:
    """The nearest integer; halves go to the even one."""
    return b.intrinsic("roundeven", x)


def trunc(b: FunctionBuilder, x: Value) -> Value:
    """The nearest integer towards zero."""
    return b.intrinsic("trunc", x)


def absolute(b: FunctionBuilder, x: Value) -> Value:
    """|x|."""
    return b.absolute(x)


def fma(b: FunctionBuilder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return b.fma(x, y, z)


def maximum(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """The larger one; NaN where either is NaN. Of +0 and -0 either may come."""
    return b.select(x.unordered(x), x, b.select(x.greater(y), x, y))


def minimum(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """The smaller one; NaN where either is NaN. Of +0 and -0 either may come."""
    return b.select(x.unordered(x), x, b.select(x.less(y), x, y))


def floor_divide(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """floor(x / y) as if x / y were not rounded; x / y where y is zero, NaN for infinite x.

    A quotient that rounding lifted onto an integer shows by the sign of x - quotient * y. Beyond
    2**24 (2**53) the quotient is rounded as any other number is.
    """
    quotient = x / y
    whole = b.intrinsic("floor", quotient)
    rest = b.fma(-whole, y, x)
    lifted = (rest * b.copysign(b.constant(1.0), y)).less(0.0)
    # A negative quotient that underflowed to -0: its floor is -1.
    lost = quotient.equal(0.0) & b.bits(quotient).less(0) & x.unequal(0.0)
    whole = b.select(lifted | lost, whole + -1.0, whole)
    whole = b.select(b.absolute(x).equal(math.inf), math.nan, whole)
    return b.select(y.equal(0.0), quotient, whole)


def remainder(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """x - y * floor(x / y) computed exactly and rounded once; a zero has the sign of x."""
    exact = remainder_float32 if b.format is FLOAT32 else remainder_float64
    rest = exact(b, x, y)
    return b.select(rest.equal(0.0), b.copysign(rest, x), rest)


def remainder_float32(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """In float64: each step takes 2**51 off a quotient of up to 2**277.

    A quotient q off by a few units in its last place leaves x - q*y exactly representable, as y
    has only 24 bits.
    """
    wide_y = b.convert("fpext", y, "double")
    inverse = 1.0 / wide_y
    rest = b.convert("fpext", x, "double")
    for _ in range(6):
        quotient = b.intrinsic("rint", rest * inverse)
        rest = b.fma(-quotient, wide_y, rest)
    unreduced = b.convert("fpext", b.mad(x, 0.0, x), "double")  # NaN for infinite x
    rest = b.select(b.absolute(wide_y).equal(math.inf), unreduced, rest)
    other_sign = (rest * b.copysign(b.operand(1.0, "double"), wide_y)).less(0.0)
    return b.convert("fptrunc", b.select(other_sign, rest + wide_y, rest), "float")


def remainder_float64(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """By C's fmod (the frem instruction), which no vector code replaces.

    One exact step before leaves it nothing to do for quotients below 2**53, where it is quick.
    """
    step = b.fma(-b.intrinsic("rint", x / y), y, x)
    # Not finite: x / y overflowed, or y is infinite.
    near = b.select(b.absolute(step).less(math.inf), step, x)
    rest = b.emit(f"frem double {near.text}, {y.text}", "double")
    other_sign = (rest * b.copysign(b.constant(1.0), y)).less(0.0)
    return b.select(other_sign, rest + y, rest)
