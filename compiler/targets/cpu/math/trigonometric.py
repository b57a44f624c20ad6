"""sin, cos and tan as LLVM IR: a quick reduction of small angles, far ones behind a branch.

Method: x = q * pi/2 + r by Cody and Waite's subtraction of pi/2 in pieces ("Software Manual for the
Elementary Functions", 1980), then minimax polynomials for the sine and cosine of r
(tools/fit_polynomials.py). Vectors with an angle beyond NEAR take the exact reduction too
(`far_angles`, `rare`).
"""

from __future__ import annotations

from .builder import FLOAT32, FunctionBuilder, Value
from .exponential import magic
from .rare import rarely

SIN = {  # (sin(r) - r) / r**3 in r**2
    "float32": (-0.16666655242443085, 0.008332189172506332, -0.00019518265617080033),
    "float64": (
        -0.1666666666666663,
        0.008333333333321905,
        -0.0001984126982944104,
        2.7557313574709802e-06,
        -2.5050740962453813e-08,
        1.5895856771687382e-10,
    ),
}
COS = {  # (cos(r) - 1) / r**2 in r**2; the first coefficient is -1/2
    "float32": (-0.5, 0.04166664555668831, -0.0013887310633435845, 2.4432552891084924e-05),
    "float64": (
        -0.5,
        0.041666666666666595,
        -0.0013888888888873335,
        2.4801587288993744e-05,
        -2.755731421346279e-07,
        2.087570476393658e-09,
        -1.1358709608626183e-11,
    ),
}
NEAR = {"float32": 2.0**16, "float64": 2.0**25}
TWO_OVER_PI = 0.6366197723675814
# pi/2 in pieces, none of them negative, so that zeros keep their sign. float64: the products of the
# first three with q are exact.
HALF_PI = {
    "float32": (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    "float64": (
        1.570796325802803,
        9.920935184482005e-10,
        6.123233932053594e-17,
        6.36831716351095e-25,
    ),
}


def quadrant(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """The nearest quarter turn q: its low bits as an i32, and as a float."""
    k = b.mad(x, TWO_OVER_PI, magic(b))
    q = b.bits(k)
    return (q if b.format is FLOAT32 else b.convert("trunc", q, "i32")), k - magic(b)


def reduce_float32(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """(q, r) with x = q * pi/2 + r.

    x - q * first is exact, as it is below 1 and a multiple of 2**-24; what follows rounds r alone.
    """
    q, turns = quadrant(b, x)
    first, second, third = HALF_PI["float32"]
    r = b.fma(turns, -second, b.fma(turns, -first, x))
    return q, b.fma(turns, -third, r)


def reduce_float64(b: FunctionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """(q, r, tail) with x = q * pi/2 + r - tail.

    The first two differences are exact, being multiples of 2**-53 below 1. The third is where its
    subtrahend is the larger one (both are tiny then, and multiples of 2**-80); else what rounding
    takes from it is a difference, too (Dekker's Fast2Sum).
    """
    q, turns = quadrant(b, x)
    first, second, third, rest = HALF_PI["float64"]
    near = b.mad(turns, -second, b.mad(turns, -first, x))
    r = b.mad(turns, -third, near)
    return q, r, b.mad(turns, rest, b.mad(turns, third, r - near))


def reduced(b: FunctionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """(q as an i32, sin(r), cos(r)) for x = q * pi/2 + r; zeros keep their sign."""
    if b.format is FLOAT32:
        q, r = reduce_float32(b, x)
        square = r * r
        less = b.mad(square * r, -b.polynomial(square, SIN["float32"]), 0.0)
        return q, r - less, b.mad(square, b.polynomial(square, COS["float32"]), 1.0)
    q, r, tail = reduce_float64(b, x)
    square = r * r
    less = b.mad(square * r, -b.polynomial(square, SIN["float64"]), tail)
    cosine = b.mad(square, b.polynomial(square, COS["float64"]), b.mad(r, tail, 1.0))
    return q, r - less, cosine


def signed(b: FunctionBuilder, value: Value, bit: Value) -> Value:
    """value, negated where the lowest bit of the i32 `bit` is set."""
    wide = bit if b.format is FLOAT32 else b.convert("zext", bit, "i64")
    return b.from_bits(b.bits(value) ^ (wide << (b.format.bits - 1)))


def sin(b: FunctionBuilder, x: Value) -> Value:
    """sin(x)."""
    q, sine, cosine = reduced(b, x)
    value = b.select((q & 1).unequal(0), cosine, sine)
    return rarely(b, "sin", x, signed(b, value, b.shift_right(q, 1)))


def cos(b: FunctionBuilder, x: Value) -> Value:
    """cos(x)."""
    q, sine, cosine = reduced(b, x)
    value = b.select((q & 1).unequal(0), sine, cosine)
    return rarely(b, "cos", x, signed(b, value, b.shift_right(q + 1, 1)))


def tan(b: FunctionBuilder, x: Value) -> Value:
    """tan(x) as the quotient of the reduced sine and cosine."""
    q, sine, cosine = reduced(b, x)
    odd = (q & 1).unequal(0)
    value = b.select(odd, cosine, sine) / b.select(odd, sine, cosine)
    return rarely(b, "tan", x, signed(b, value, q))
