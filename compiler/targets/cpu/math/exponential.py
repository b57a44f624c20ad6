"""exp and its family as branch-free LLVM IR: exp, exp2, expm1, sigmoid, sinh, cosh, tanh, erf.

Method: x = n*ln2 + r by Cody and Waite's two-part ln2 ("Software Manual for the Elementary
Functions", 1980), a minimax polynomial for r in [-ln2/2, ln2/2] (tools/fit_polynomials.py), then
2**n put together in the exponent bits, in two factors where the result may be denormal or
overflow. n is rounded by adding 1.5 * 2**mantissa, whose low bits then hold n (so does SLEEF's and
N. Juffa's published code); no conversion to an integer can overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .builder import FunctionBuilder, Operand, Value

LN2 = {  # high part: trailing zero bits, so n * high is exact; low part: the rest of ln 2
    "float32": (0.693359375, -2.12194440e-4),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}
EXPM1 = {  # (exp(r) - 1 - r) / r**2
    "float32": (
        0.4999999701976776,
        0.1666654348373413,
        0.041667502373456955,
        0.008366541005671024,
        0.0013864565407857299,
    ),
    "float64": (
        0.5000000000000006,
        0.16666666666666594,
        0.04166666666657365,
        0.008333333333386182,
        0.0013888888932373326,
        0.00019841269727408236,
        2.4801504444483023e-05,
        2.755739920545245e-06,
        2.7626330966577335e-07,
        2.5056642289575963e-08,
    ),
}
EXP2 = {  # (2**r - 1) / r
    "float32": (
        0.6931471824645996,
        0.24022644758224487,
        0.055503588169813156,
        0.009618835523724556,
        0.001339130336418748,
        0.00015240386710502207,
    ),
    "float64": (
        0.6931471805599453,
        0.2402265069591013,
        0.055504108664822256,
        0.009618129107594365,
        0.0013333558146383174,
        0.00015403530456862635,
        1.5252733802654815e-05,
        1.3215435384812963e-06,
        1.0178088059832885e-07,
        7.073768570831847e-09,
        4.449754370954351e-10,
    ),
}
EXP_RANGE = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}  # beyond: 0 and inf
EXPM1_LOW = {"float32": -20.0, "float64": -40.0}  # below: -1
TANH_END = {"float32": 10.0, "float64": 20.0}  # beyond: 1
ERF_SMALL = {  # erf(x)/x - 1 in x**2, for |x| <= ERF_CUT
    "float32": (
        0.12837916612625122,
        -0.3761262595653534,
        0.11283575743436813,
        -0.02685311622917652,
        0.00518655264750123,
        -0.0007991196471266448,
        7.781112071825191e-05,
    ),
    "float64": (
        0.12837916709551256,
        -0.3761263890318346,
        0.11283791670942668,
        -0.026866170642933243,
        0.005223977604950398,
        -0.0008548325882417317,
        0.00012055292365272194,
        -1.4924691750617501e-05,
        1.6446904009764706e-06,
        -1.6204729958481436e-07,
        1.3704691658712704e-08,
        -7.768603579532657e-10,
    ),
}
ERF_CUT = {"float32": 1.015625, "float64": 1.0}
ERF_END = {"float32": 3.94, "float64": 5.93}  # beyond: 1
ERFC_ROOT = {  # erfc(x) ** (-1/8) in x - ERF_CUT
    "float32": (
        1.2666563987731934,
        0.42201048135757446,
        0.20407284796237946,
        0.059057269245386124,
        0.015075772069394588,
        0.005188951268792152,
        -0.0001633763313293457,
        0.0005489354371093214,
    ),
    "float64": (
        1.2601121043873846,
        0.4156743634715432,
        0.20136065373568768,
        0.057892304008809195,
        0.015423932396004779,
        0.003980176994135426,
        0.0007909313672536651,
        0.00017081570354086657,
        3.352435611513738e-05,
        4.557697802875313e-06,
        1.2642990193957072e-06,
        7.392787122154142e-08,
        4.3948251383097016e-08,
        -6.024669960271995e-09,
        4.76470506496146e-09,
        -1.3712465017658874e-09,
        3.2735391222112073e-10,
        -4.195605359633574e-11,
        2.9503127647175082e-12,
    ),
}


def magic(b: FunctionBuilder, offset: int = 0) -> float:
    """The number that, added to n, leaves n + offset in the low bits of the sum."""
    return 1.5 * 2.0**b.format.mantissa + offset


def reduce_exponent(b: FunctionBuilder, x: Value) -> tuple[Value, Value]:
    """(k, r) with x = n*ln2 + r; the low bits of k are n plus twice the exponent bias."""
    shift = magic(b, 2 * b.format.bias)
    high, low = LN2[b.format.name]
    k = b.mad(x, math.log2(math.e), shift)
    n = k - shift
    return b.bits(k), b.mad(n, -low, b.mad(n, -high, x))


def scale(b: FunctionBuilder, value: Value, k: Value, extra: int = 0) -> Value:
    """value * 2**(n + extra) rounded once, for k = n + 2*bias in the low bits."""
    whole = k + extra if extra else k
    half = b.shift_right(whole, 1)
    mantissa = b.format.mantissa
    return (value * b.from_bits(half << mantissa)) * b.from_bits((whole - half) << mantissa)


def power_of_two(b: FunctionBuilder, k: Value, extra: int = 0) -> Value:
    """2**(n + extra) for k as above, where that is a normal number."""
    return b.from_bits((k + (extra - b.format.bias)) << b.format.mantissa)


def exp_near(b: FunctionBuilder, x: Value, extra: int = 0) -> Value:
    """exp(x) * 2**extra for x within EXP_RANGE or NaN."""
    k, r = reduce_exponent(b, x)
    e = b.mad(r * r, b.polynomial(r, EXPM1[b.format.name]), r) + 1.0
    return scale(b, e, k, extra)


def expm1_near(b: FunctionBuilder, x: Value, extra: int = 0) -> Value:
    """expm1(x) * 2**extra for EXPM1_LOW <= x <= 710 (89) or NaN; the sign of zero is lost."""
    k, r = reduce_exponent(b, x)
    p = b.mad(r * r, b.polynomial(r, EXPM1[b.format.name]), r)
    s = power_of_two(b, k, extra)
    return b.mad(p, s, s - 2.0**extra)


def exp(b: FunctionBuilder, x: Value) -> Value:
    """exp(x)."""
    low, high = EXP_RANGE[b.format.name]
    return zero_below(b, low, x, lambda near: exp_near(b, b.clamp(near, None, high)))


def zero_below(
    b: FunctionBuilder, low: float, x: Value, function: Callable[[Value], Value]
) -> Value:
    """`function(x)`, and 0 where x is below `low`: -inf there, of masked elements, is common.

    There the function is given 0, since steps that underflow are slow: 100 cycles and more.
    """
    gone = x.less(low)
    return b.select(gone, 0.0, function(b.select(gone, 0.0, x)))


def exp2_sum(b: FunctionBuilder, x: Value, tail: Operand | None = None) -> Value:
    """2**(x + tail) for x within [-2*bias, 2*bias] or NaN and a tail far below one."""
    shift = magic(b, 2 * b.format.bias)
    k = x + shift
    r = x - (k - shift)
    if tail is not None:
        r = r + tail
    return scale(b, b.mad(r, b.polynomial(r, EXP2[b.format.name]), 1.0), b.bits(k))


def exp2(b: FunctionBuilder, x: Value) -> Value:
    """2**x."""
    low, high = -(b.format.bias + b.format.mantissa + 1.0), b.format.bias + 1.0
    return zero_below(b, low, x, lambda near: exp2_sum(b, b.clamp(near, None, high)))


def expm1(b: FunctionBuilder, x: Value) -> Value:
    """exp(x) - 1 without cancellation; half of it is built, so that only inf overflows."""
    near = b.clamp(x, EXPM1_LOW[b.format.name], EXP_RANGE[b.format.name][1])
    half = expm1_near(b, near, -1)
    return b.copysign(half + half, x)


def sigmoid(b: FunctionBuilder, x: Value) -> Value:
    """1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) for negative x: nothing overflows."""
    e = zero_below(b, EXP_RANGE[b.format.name][0], -b.absolute(x), lambda near: exp_near(b, near))
    return b.select(x.less(0.0), e, 1.0) / (e + 1.0)


def sinh(b: FunctionBuilder, x: Value) -> Value:
    """(t + t/(t+1)) / 2 with t = expm1(|x|), in quarters so that t does not overflow early."""
    a = b.clamp(b.absolute(x), None, EXP_RANGE[b.format.name][1] + 0.5)
    quarter = expm1_near(b, a, -2)
    half = quarter + quarter
    finite = b.clamp(half, None, b.format.largest)
    return b.copysign(half + finite / (half + half + 1.0), x)


def cosh(b: FunctionBuilder, x: Value) -> Value:
    """e + 1/(4e) with e = exp(|x|) / 2."""
    a = b.clamp(b.absolute(x), None, EXP_RANGE[b.format.name][1] + 0.5)
    e = exp_near(b, a, -1)
    return e + 0.25 / e


def tanh(b: FunctionBuilder, x: Value) -> Value:
    """t / (t + 2) with t = expm1(2x)."""
    a = b.clamp(x, -TANH_END[b.format.name], TANH_END[b.format.name])
    t = expm1_near(b, a + a)
    return b.copysign(t / (t + 2.0), x)


def erf(b: FunctionBuilder, x: Value) -> Value:
    """x + x*p(x**2) near zero, else 1 - p(x)**-8 (the form of Abramowitz and Stegun's 7.1.28)."""
    name = b.format.name
    a = b.absolute(x)
    near = b.mad(a, b.polynomial(x * x, ERF_SMALL[name]), a)
    root = b.polynomial(b.clamp(a, None, ERF_END[name]) - ERF_CUT[name], ERFC_ROOT[name])
    fourth = (root * root) * (root * root)
    far = 1.0 - 1.0 / (fourth * fourth)
    return b.copysign(b.select(a.greater(ERF_CUT[name]), far, near), x)
