"""asin, acos, atan and atan2 as branch-free LLVM IR.

Method: the reductions of Moshier's Cephes (asin: half-angle above 1/2; atan: reciprocal above 1)
with minimax polynomials (tools/fit_polynomials.py).
"""

from __future__ import annotations

import math

from .builder import FunctionBuilder, Value

ASIN = {  # (asin(x) - x) / x**3 in x**2, |x| <= 1/2
    "float32": (
        0.16666752099990845,
        0.07495307177305222,
        0.04546963796019554,
        0.024181535467505455,
        0.04216502979397774,
    ),
    "float64": (
        0.16666666666665403,
        0.07500000000338586,
        0.044642856826945757,
        0.030381959196846317,
        0.022371756555946472,
        0.017359728080273754,
        0.013884998227215482,
        0.012170810945481557,
        0.006520891012195098,
        0.019548083135456598,
        -0.01625599211600093,
        0.03193444462363559,
    ),
}
ATAN = {  # (atan(x) - x) / x**3 in x**2, |x| <= 1
    "float32": (
        -0.33333298563957214,
        0.1999853551387787,
        -0.14264126121997833,
        0.10951653867959976,
        -0.08402050286531448,
        0.05793561786413193,
        -0.031157497316598892,
        0.010904346592724323,
        -0.0017914498457685113,
    ),
    "float64": (
        -0.3333333333333186,
        0.19999999999755197,
        -0.14285714271342265,
        0.11111110678916171,
        -0.09090901237711632,
        0.07692212952140387,
        -0.06665860505908036,
        0.05877308464755096,
        -0.052392355362779613,
        0.04673956684742955,
        -0.04092653442861096,
        0.03406806394176748,
        -0.025827121057395794,
        0.01697835321582647,
        -0.009184791909642602,
        0.00385609858664929,
        -0.0011641167335305872,
        0.00022303240460070883,
        -2.0259579596231656e-05,
    ),
}
HALF_PI = {
    "float32": (1.5707963705062866, -4.371138828673793e-08),
    "float64": (1.5707963267948966, 6.123233995736766e-17),
}


def asin_core(b: FunctionBuilder, a: Value) -> tuple[Value, Value, Value]:
    """(large, t, rest) for 0 <= a <= 1: asin(t) = t + rest, where t is a, or where a is large
    (above 1/2) sqrt((1 - a) / 2), whose asin is (pi/2 - asin(a)) / 2. Above 1 all is NaN."""
    large = a.greater(0.5)
    half = b.mad(a, -0.5, 0.5)
    square = b.select(large, half, a * a)
    t = b.select(large, b.intrinsic("sqrt", half), a)
    return large, t, (square * t) * b.polynomial(square, ASIN[b.format.name])


def asin(b: FunctionBuilder, x: Value) -> Value:
    """asin(x)."""
    high, low = HALF_PI[b.format.name]
    large, t, rest = asin_core(b, b.absolute(x))
    angle = t + rest
    return b.copysign(b.select(large, high - (angle + angle - low), angle), x)


def acos(b: FunctionBuilder, x: Value) -> Value:
    """acos(x): 2 asin(sqrt((1-x)/2)), pi less that of -x, or pi/2 - asin(x)."""
    high, low = HALF_PI[b.format.name]
    large, t, rest = asin_core(b, b.absolute(x))
    twice = (t + rest) + (t + rest)
    far = b.select(x.less(0.0), (2.0 * high) - (twice - 2.0 * low), twice)
    near = high - (b.copysign(t, x) - (low - b.copysign(rest, x)))
    return b.select(large, far, near)


def atan_core(b: FunctionBuilder, t: Value) -> Value:
    """atan(t) for 0 <= t <= 1."""
    square = t * t
    return b.mad(square * t, b.polynomial(square, ATAN[b.format.name]), t)


def atan(b: FunctionBuilder, x: Value) -> Value:
    """atan(x)."""
    high, low = HALF_PI[b.format.name]
    a = b.absolute(x)
    large = a.greater(1.0)
    angle = atan_core(b, b.select(large, 1.0 / a, a))
    return b.copysign(b.select(large, high - (angle - low), angle), x)


def atan2(b: FunctionBuilder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with C's rules for zeros and infinities."""
    high, low = HALF_PI[b.format.name]
    a, c = b.absolute(x), b.absolute(y)
    steep = c.greater(a)
    top, bottom = b.select(steep, a, c), b.select(steep, c, a)
    t = b.select(top.equal(bottom), 1.0, top / bottom)
    t = b.select(c.equal(0.0), c, t)
    t = b.select(x.unordered(y), math.nan, t)
    angle = atan_core(b, t)
    angle = b.select(steep, high - (angle - low), angle)
    leftward = b.bits(x).less(0)
    return b.copysign(b.select(leftward, 2.0 * high - (angle - 2.0 * low), angle), y)
