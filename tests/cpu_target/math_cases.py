"""Runs the LLVM math functions over arrays and measures their errors in units in the last place.

As a program it checks every float32 bit pattern (minutes for each function):
python tests/cpu_target/math_cases.py exp sin ...
"""

import ctypes
import sys

import numpy as np
from scipy import special
from tgraph.compiler.targets.cpu.math.functions import (
    FUNCTIONS,
    MATH_FUNCTIONS,
    definitions,
    late_definitions,
)
from tgraph.runtime import jit

ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }\n'
Wide = np.longdouble
# Where a long double is no wider than a double (Windows, macOS) nothing can judge float64.
WIDER = np.finfo(Wide).nmant >= 63


def loop_text(name, loop="loop"):
    """LLVM text of `loop(inputs..., out, n)` that applies a function to n elements."""
    function = FUNCTIONS[name]
    pointers = "".join(f"ptr noalias %p{i}, " for i in range(len(function.arguments)))
    loads = "\n".join(
        f"  %a{i} = getelementptr {t}, ptr %p{i}, i64 %i\n  %v{i} = load {t}, ptr %a{i}"
        for i, t in enumerate(function.arguments)
    )
    values = ", ".join(f"{t} %v{i}" for i, t in enumerate(function.arguments))
    return f"""
define void @{loop}({pointers}ptr noalias %out, i64 %n) #0 {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %body, label %exit
body:
  %i = phi i64 [0, %entry], [%next, %body]
{loads}
  %r = call {function.result} @{name}({values})
  %po = getelementptr {function.result}, ptr %out, i64 %i
  store {function.result} %r, ptr %po
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
"""


def native(name):
    """The compiled loop over a function, taking addresses and a count."""
    text = definitions([name]) + loop_text(name) + ATTRIBUTES
    module = jit.compile_module(text, late=late_definitions(text))
    count = len(FUNCTIONS[name].arguments)
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)
    return prototype(module.address("loop"))


def apply(op, dtype, *arrays):
    """The function's values at the elements of equally long arrays."""
    arrays = [np.ascontiguousarray(array, dtype) for array in arrays]
    out = np.empty(arrays[0].shape, dtype)
    name = MATH_FUNCTIONS[op, dtype].name
    native(name)(*(array.ctypes.data for array in (*arrays, out)), out.size)
    return out


def fuses():
    """Whether compiled code multiplies and adds with one rounding, as the functions like it."""
    module = jit.compile_module("""
declare double @llvm.fmuladd.f64(double, double, double)
define double @mad(double %x, double %y, double %z) {
  %r = call double @llvm.fmuladd.f64(double %x, double %y, double %z)
  ret double %r
}
""")
    mad = ctypes.CFUNCTYPE(*[ctypes.c_double] * 4)(module.address("mad"))
    return mad(1 + 2**-30, 1 - 2**-30, -1.0) != 0


def wide_erf(x):
    """erf by its series of positive terms, 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!."""
    if x.dtype != Wide:
        return special.erf(x)
    a = np.minimum(np.abs(x), Wide(7))
    term, total = a.copy(), a.copy()
    for n in range(1, 300):
        term = term * (2 * a * a) / (2 * n + 1)
        total = total + term
    root_pi = np.sqrt(Wide(np.pi) + Wide(1.2246467991473532e-16))
    return np.copysign(2 / root_pi * np.exp(-a * a) * total, x)


def wide_sigmoid(x):
    """The logistic function without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


REFERENCES = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sigmoid": wide_sigmoid,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": wide_erf,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "abs": np.abs,
}


def reference(op, dtype, *arrays):
    """The values in a wider format: float64 for float32, long double for float64."""
    wide = np.float64 if dtype == "float32" else Wide
    with np.errstate(all="ignore"):
        return REFERENCES[op](*(array.astype(wide) for array in arrays))


def ulp_errors(got, want):
    """|got - want| in units in the last place of `got`'s format at `want`; inf where one alone
    is NaN or infinite, or where a zero has the wrong sign."""
    dtype = got.dtype
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        nearest = want.astype(dtype)
        scale = np.clip(np.abs(want), info.tiny, info.max).astype(dtype)
        error = np.abs(got.astype(want.dtype) - want) / np.spacing(scale).astype(want.dtype)
    error = np.where(np.isnan(error), np.inf, error)
    error = np.where((got == nearest) & ~np.isfinite(want), 0, error)
    error = np.where((got == nearest) & ~np.isfinite(nearest), 0, error)
    error = np.where(np.isnan(got) & np.isnan(nearest), 0, error)
    wrong_zero = (nearest == 0) & (np.signbit(got) != np.signbit(nearest))
    return np.where(wrong_zero, np.inf, error)


def specials(dtype):
    """Zeros, infinities, NaN, denormals, the smallest, the largest, small integers."""
    info = np.finfo(dtype)
    positive = [
        0,
        info.smallest_subnormal,
        info.tiny / 3,
        info.tiny,
        info.eps,
        0.5,
        1,
        np.nextafter(np.asarray(1, dtype), np.asarray(2, dtype)),
        1.5,
        2,
        3,
        1e30,
        info.max,
        np.inf,
    ]
    values = np.array(positive, dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


def samples(dtype, count, seed=0):
    """Random bit patterns, ordinary ranges, neighbours of one and of multiples of pi/2."""
    random = np.random.default_rng(seed)
    bits = {"float32": np.uint32, "float64": np.uint64}[dtype]
    patterns = random.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)
    patterns = np.where(np.isnan(patterns), np.asarray(np.nan, dtype), patterns)
    edge = 105 if dtype == "float32" else 750
    near_one = 1 + random.standard_normal(count) * 10.0 ** random.uniform(-8, -1, count)
    parts = [
        random.uniform(-1, 1, count),
        random.uniform(-20, 20, count),
        random.uniform(-edge, edge, count),
        near_one,
        -near_one,
        np.arange(count) * (np.pi / 2),
    ]
    return np.concatenate([patterns, *(part.astype(dtype) for part in parts), specials(dtype)])


def pow_samples(dtype, count, seed=0):
    """Bases and exponents whose power is mostly finite."""
    random = np.random.default_rng(seed)
    edge = 103 if dtype == "float32" else 744
    spread = np.where(random.random(count) < 0.5, 0.85, 1e-3)
    base = np.exp(random.uniform(-edge, edge, count) * spread)
    exponent = random.uniform(-edge, edge, count) / np.log(base)
    return base.astype(dtype), exponent.astype(dtype)


def pairs(values):
    """Every pair of the values, as two arrays."""
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


def float32_patterns(stride, offset=0):
    """Every stride-th float32 bit pattern (NaN as the one quiet NaN), in pieces."""
    piece = 1 << 22
    for start in range(0, 1 << 32, piece * stride):
        stop = min(start + piece * stride, 1 << 32)
        x = np.arange(start + offset, stop, stride, dtype=np.uint64).astype(np.uint32)
        x = x.view(np.float32)
        yield np.where(np.isnan(x), np.float32(np.nan), x)


def largest_error(op, stride, offset=0):
    """(error in ulp, argument) of the worst of every stride-th float32 bit pattern."""
    worst = (0.0, np.float32(0))
    for x in float32_patterns(stride, offset):
        errors = ulp_errors(apply(op, "float32", x), reference(op, "float32", x))
        place = np.argmax(errors)
        worst = max(worst, (float(errors[place]), x[place]), key=lambda pair: pair[0])
    return worst


if __name__ == "__main__":
    for operation in sys.argv[1:]:
        print(operation, *largest_error(operation, 1), flush=True)
