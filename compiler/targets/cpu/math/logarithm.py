"""Logarithms and powers as branch-free LLVM IR: log, log2, log1p, pow.

Method: x = 2**e * (1 + f) with 1 + f in [2/3, 4/3), a minimax polynomial for log(1 + f)
(tools/fit_polynomials.py), e * ln2 added in two parts. log1p forms f from x by one fused operation
(N. Juffa's published log1pf). pow: float32 takes log2 in float64; float64 takes log2 as the sum of
two doubles from atanh's series, as fdlibm's e_pow.c and SLEEF do.
"""

from __future__ import annotations

import math

from .builder import FLOAT32, FunctionBuilder, Value
from .exponential import LN2, exp2_sum

LOG1P = (  # (log(1 + f) - f + f**2/2) / f**3, for float32
    0.3333321511745453,
    -0.24999797344207764,
    0.2001044601202011,
    -0.16680504381656647,
    0.14005304872989655,
    -0.12184005975723267,
    0.13986915349960327,
    -0.12892849743366241,
)
ATANH_SHORT = {  # (atanh(s) - s) / s**3 in s**2, |s| <= 1/5, to 2**-35 and 2**-56
    "float32": (0.3333333153740049, 0.2000043254572103, 0.1425344748901504, 0.12051089312214716),
    "float64": (
        0.33333333333336396,
        0.19999999998058177,
        0.14285714701821284,
        0.1111106890187601,
        0.0909319259921375,
        0.0762479812292253,
        0.07686431119467783,
    ),
}
ATANH = (  # (atanh(s)/s - 1 - s**2/3) / s**4 in s**2, |s| <= 0.172
    0.20000000000001172,
    0.14285714285027373,
    0.11111111264148672,
    0.09090891802341698,
    0.07693396851234524,
    0.06627972040521062,
    0.06602333213449987,
)
THIRD = (0.3333333333333333, 1.850371707708594e-17)
TWO_LOG2_E = (2.8853900817779268, 4.0710547481862066e-17)
TWO_THIRDS_BITS = {"float32": 0x3F2AAAAB, "float64": 0x3FE5555555555555}
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
LOG2_E = {  # in two parts
    "float32": (1.44269502162933349609, 1.925963033500e-8),
    "float64": (1.4426950408889634, 2.0355273740931033e-17),
}


def split_exponent(b: FunctionBuilder, x: Value, low_bits: int = 0) -> tuple[Value, Value]:
    """(e, m) with x = 2**e * m, m in [low, 2*low), e a float; x positive, denormals welcome.

    `low_bits` are the bits of low, which is 2/3 unless given.
    """
    low_bits = low_bits or TWO_THIRDS_BITS[b.format.name]
    denormal = x.less(b.format.tiny)
    bits = b.bits(b.select(denormal, x * 2.0**b.format.mantissa, x))
    integer_e = (bits - low_bits) >> b.format.mantissa
    m = b.from_bits(bits - (integer_e << b.format.mantissa))
    e = b.convert("sitofp", integer_e, b.format.type)
    return e + b.select(denormal, b.constant(-b.format.mantissa), 0.0), m


def log1p_rest(b: FunctionBuilder, f: Value) -> Value:
    """log(1 + f) - f for f in [-1/3, 1/3].

    float64: log(1 + f) = 2 atanh(s) with s = f / (2 + f), added up as in fdlibm's e_log.c.
    """
    if b.format is FLOAT32:
        return (f * f) * b.mad(f, b.polynomial(f, LOG1P), -0.5)
    s = f / (f + 2.0)
    z = s * s
    half_square = (f * 0.5) * f
    atanh_rest = b.mad(z + z, b.polynomial(z, ATANH_SHORT["float64"]), half_square)
    return b.mad(s, atanh_rest, -half_square)


def at_borders(b: FunctionBuilder, result: Value, x: Value, zero: float = 0.0) -> Value:
    """A logarithm's value where x <= zero, is infinite or NaN."""
    result = b.select(x.less(math.inf), result, x)
    pole = b.select(x.equal(zero), b.constant(-math.inf), math.nan)
    return b.select(x.greater(zero), result, pole)


def log(b: FunctionBuilder, x: Value) -> Value:
    """The natural logarithm."""
    e, m = split_exponent(b, x)
    f = m - 1.0
    high, low = LN2[b.format.name]
    rest = b.mad(e, low, log1p_rest(b, f))
    return at_borders(b, b.mad(e, high, f + rest), x)


def log2(b: FunctionBuilder, x: Value) -> Value:
    """The logarithm to base 2; exact for powers of two."""
    e, m = split_exponent(b, x)
    f = m - 1.0
    high, low = LOG2_E[b.format.name]
    rest = b.mad(f, low, log1p_rest(b, f) * high)
    return at_borders(b, e + b.mad(f, high, rest), x)


def log1p(b: FunctionBuilder, x: Value) -> Value:
    """log(1 + x): with 1 + x = 2**e * (1 + f), f = x * 2**-e + (2**-e - 1)."""
    bits = b.bits(x + 1.0)
    shift = (bits - TWO_THIRDS_BITS[b.format.name]) >> b.format.mantissa
    exponent = shift << b.format.mantissa
    four = (b.format.bias + 2) << b.format.mantissa
    quarter = b.from_bits(four - exponent)
    f = b.from_bits(b.bits(x) - exponent) + b.mad(quarter, 0.25, -1.0)
    e = b.convert("sitofp", shift, b.format.type)
    high, low = LN2[b.format.name]
    rest = b.mad(e, low, log1p_rest(b, f))
    result = at_borders(b, b.mad(e, high, f + rest), x, zero=-1.0)
    return b.copysign(result, x)


def pow_float32(b: FunctionBuilder, a: Value, y: Value) -> Value:
    """a**y for a >= 0: log2(a) to 2**-35 in float64, the rest in float32."""
    e, m = split_exponent(b, a)
    m = b.convert("fpext", m, "double")
    s = (m + -1.0) / (m + 1.0)
    z = s * s
    atanh = b.mad(s * z, b.polynomial(z, ATANH_SHORT["float32"]), s)
    log2_a = b.mad(atanh, TWO_LOG2_E[0], b.convert("fpext", e, "double"))
    infinite = b.convert("fpext", b.select(a.equal(0.0), -math.inf, a), "double")
    log2_a = b.select(a.greater(0.0) & a.less(math.inf), log2_a, infinite)
    t = b.clamp(b.convert("fpext", y, "double") * log2_a, -151.0, 129.0)
    high = b.convert("fptrunc", t, "float")
    low = b.convert("fptrunc", t - b.convert("fpext", high, "double"), "float")
    return exp2_sum(b, high, low)


def log2_sum(b: FunctionBuilder, a: Value) -> tuple[Value, Value]:
    """log2(a) as high + low to about 2**-66, for a positive and finite.

    log(m) = 2*atanh(s) with s = (m-1)/(m+1), and atanh(s) = s + s*(s**2/3 + s**4*p(s**2)).
    """
    e, m = split_exponent(b, a, ROOT_HALF_BITS)
    f, d = m - 1.0, m + 1.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = b.fma(-s, m - (d - 1.0), b.fma(-s, d, f)) * inverse
    z = s * s
    z_low = b.mad(s + s, s_low, b.fma(s, s, -z))
    third = z * THIRD[0]
    slope = b.mad(z, 2.0 * ATANH[0], THIRD[0])
    third_low = b.mad(z_low, slope, b.mad(z, THIRD[1], b.fma(z, THIRD[0], -third)))
    rest = (z * z) * b.polynomial(z, ATANH)
    u = third + rest
    u_low = ((third - u) + rest) + third_low
    v = s * u
    v_low = b.mad(s_low, u, b.mad(s, u_low, b.fma(s, u, -v)))
    w = s + v
    w_low = ((s - w) + v) + (s_low + v_low)
    product = w * TWO_LOG2_E[0]
    product_low = b.mad(
        w_low, TWO_LOG2_E[0], b.mad(w, TWO_LOG2_E[1], b.fma(w, TWO_LOG2_E[0], -product))
    )
    high = e + product
    return high, ((e - high) + product) + product_low


def pow_float64(b: FunctionBuilder, a: Value, y: Value) -> Value:
    """a**y for a >= 0."""
    high, low = log2_sum(b, a)
    infinite = b.select(a.equal(0.0), -math.inf, a)  # or NaN
    high = b.select(a.greater(0.0) & a.less(math.inf), high, infinite)
    t = y * high
    near = b.absolute(t).less(2048.0)
    t_low = b.select(near, b.mad(y, low, b.fma(y, high, -t)), 0.0)
    return exp2_sum(b, b.clamp(t, -1080.0, 1030.0), t_low)


def pow(b: FunctionBuilder, x: Value, y: Value) -> Value:
    """x**y with C's and IEEE 754's special cases."""
    powers = pow_float32 if b.format is FLOAT32 else pow_float64
    a = b.absolute(x)
    result = b.select(a.equal(1.0) | y.equal(0.0), 1.0, powers(b, a, y))
    half = y * 0.5
    fractional = b.intrinsic("trunc", y).unequal(y)
    odd = b.intrinsic("trunc", half).unequal(half)  # or fractional, which changes nothing
    sign = b.bits(x) & b.select(odd, b.operand(b.format.sign_bit, b.format.integer), 0)
    sign = b.select(fractional, 0, sign)
    invalid = x.less(0.0) & x.greater(-math.inf) & fractional
    return b.select(invalid, math.nan, b.from_bits(b.bits(result) ^ sign))
