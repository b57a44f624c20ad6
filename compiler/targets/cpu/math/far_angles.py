"""sin, cos and tan as branch-free LLVM IR, correct for every argument up to the largest.

Method: Payne and Hanek's reduction ("Radian Reduction for Trigonometric Functions", SIGNUM 1983)
without tables: x/(2*pi) is summed from products of x with pieces of 1/(2*pi); a piece whose product
is a whole number of turns drops out when its nearest integer is subtracted. float32 multiplies in
float64 with all six pieces, each product exact. float64 first picks five neighbouring pieces by
the size of x, in a binary tree of selects, and keeps each product's rounding error by an fma.
It takes several times as long as what small angles need: `trigonometric` calls it for
the others.
"""

from __future__ import annotations

from .builder import FLOAT32, FLOAT64, FunctionBuilder, Value
from .exponential import magic
from .trigonometric import COS, SIN, signed

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
# The first 1,280 binary places of 2/pi.
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561"
    "B7246E3A424DD2E006492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484"
    "E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B"
    "3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361D",
    16,
)
PIECE = 53  # bits of 1/(2*pi) in one piece for float64


def turn_bits(start: int, count: int) -> int:
    """Binary places start+1 ... start+count of 1/(2*pi), as an integer."""
    return (TWO_OVER_PI << 2 >> (1284 - start - count)) & ((1 << count) - 1)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """(s, e) with s the rounded sum and s + e = a + b exactly (Knuth)."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def fraction(b: FunctionBuilder, x: Value) -> Value:
    """x less its nearest integer; zero for large x, NaN for infinite x."""
    return x - b.intrinsic("rint", x)


def quadrant(b: FunctionBuilder, turns: Value) -> tuple[Value, Value]:
    """The nearest quarter turn: its number's low bits (i32), and the number negated as a float."""
    shift = magic(FunctionBuilder("", FLOAT64, []))
    k = b.mad(turns, 4.0, shift)
    return b.convert("trunc", b.bits(k), "i32"), shift - k


def reduce_float32(b: FunctionBuilder, a: Value) -> tuple[Value, Value]:
    """(q, r) with a = q * pi/2 + r modulo a turn, for a >= 0; r float32.

    24 bits of a times 29 of a piece are exact in float64. The terms are added twice: roughly for
    q, then in falling order less q, where every partial sum that matters is exact.
    """
    x = b.convert("fpext", a, "double")
    pieces = [turn_bits(29 * i, 29) * 2.0 ** (-29 * (i + 1)) for i in range(5)]
    terms = [fraction(b, x * piece) for piece in pieces]
    rough = terms[0]
    for term in terms[1:]:
        rough = rough + term
    q, negative_q = quadrant(b, rough)
    rest = b.mad(negative_q, 0.25, terms[0])
    for term in terms[1:]:
        rest = rest + term
    rest = b.mad(x, turn_bits(145, 53) * 2.0**-198, rest)
    return q, b.convert("fptrunc", rest * (4.0 * HALF_PI[0]), "float")


def neighbouring_pieces(b: FunctionBuilder, x: Value) -> tuple[Value, list[Value]]:
    """(y, p): x scaled below 2**105, the four pieces p[j] of 1/(2*pi) that matter to it.

    x/(2*pi) = sum(y * 2**(-53*j) * p[j]) modulo a turn. A step of `level` pieces may be skipped
    when x is a multiple of 2**(53 * level), hence these pieces times x whole numbers.
    """
    pieces = [b.constant(turn_bits(PIECE * i, PIECE) * 2.0**-PIECE) for i in range(22)]
    for level, needed in ((16, 19), (8, 11), (4, 7), (2, 5), (1, 4)):
        skip = x.greater_equal(2.0 ** (PIECE * level + 52))
        x = b.select(skip, x * 2.0 ** (-PIECE * level), x)
        # Once 16 are skipped at most 2 more can be: of the higher pieces only the first 6 matter.
        pieces = [
            b.select(skip, pieces[i + level], piece) if i + level < len(pieces) else piece
            for i, piece in enumerate(pieces[:needed])
        ]
    return x, pieces


def reduce_float64(b: FunctionBuilder, a: Value) -> tuple[Value, Value, Value]:
    """(q, r, tail) with a = q * pi/2 + r + tail modulo a turn, for a >= 0.

    The absolute error is below 2**-100; so the relative error of r is below 2**-53 unless a lies
    within 2**-47 of a multiple of pi/2 and is beyond 2**53 (one argument in 10**14).
    """
    y, pieces = neighbouring_pieces(b, a)
    parts = [y if j == 0 else y * 2.0 ** (-PIECE * j) for j in range(4)]
    products = [part * piece for part, piece in zip(parts, pieces)]
    errors = [
        b.fma(part, piece, -product) for part, piece, product in zip(parts[:3], pieces, products)
    ]
    second, second_error = two_sum(errors[0], products[1])
    third, third_error = two_sum(errors[1], products[2])
    first, second = fraction(b, products[0]), fraction(b, second)
    third, tail = two_sum(third, second_error)
    q, negative_q = quadrant(b, first + second + third)
    high, error_a = two_sum(b.mad(negative_q, 0.25, first), second)
    high, error_b = two_sum(high, third)
    tail = error_a + error_b + (tail + third_error + (errors[2] + products[3]))
    turn = 4.0 * HALF_PI[0]
    r = high * turn
    low = b.mad(high, 4.0 * HALF_PI[1], b.fma(high, turn, -r))
    return q, r, b.mad(tail, turn, low)


def reduced(b: FunctionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """(q as an integer, sin(r), cos(r)) for |x| = q * pi/2 + r."""
    a = b.absolute(x)
    if b.format is FLOAT32:
        q, r = reduce_float32(b, a)
        tail = None
    else:
        q, r, tail = reduce_float64(b, a)
    square = r * r
    odd = (square * r) * b.polynomial(square, SIN[b.format.name])
    even = b.polynomial(square, COS[b.format.name])
    if tail is None:
        return q, r + odd, b.mad(square, even, 1.0)
    # Where products with pieces of 1/(2*pi) would be denormal, sin(a) = a.
    sine = b.select(a.less(2.0**-500), a, r + (odd + tail))
    return q, sine, b.mad(square, even, b.mad(-r, tail, 1.0))


def sin(b: FunctionBuilder, x: Value) -> Value:
    """sin(x)."""
    q, sine, cosine = reduced(b, x)
    value = b.select((q & 1).unequal(0), cosine, sine)
    value = signed(b, value, b.shift_right(q, 1))
    return b.from_bits(b.bits(value) ^ (b.bits(x) & b.format.sign_bit))


def cos(b: FunctionBuilder, x: Value) -> Value:
    """cos(x)."""
    q, sine, cosine = reduced(b, x)
    value = b.select((q & 1).unequal(0), sine, cosine)
    return signed(b, value, b.shift_right(q + 1, 1))


def tan(b: FunctionBuilder, x: Value) -> Value:
    """tan(x) as the quotient of the reduced sine and cosine."""
    q, sine, cosine = reduced(b, x)
    odd = (q & 1).unequal(0)
    value = b.select(odd, cosine, sine) / b.select(odd, sine, cosine)
    return b.from_bits(b.bits(signed(b, value, q)) ^ (b.bits(x) & b.format.sign_bit))
