"""The math functions that generated CPU kernels call, as LLVM IR text.

Every function is scalar, branch-free and ``alwaysinline``, so that LLVM's loop vectoriser turns a
loop over it into vector code of the machine's full width. They keep IEEE semantics (NaN,
infinities, signed zeros, denormals); the error bounds are asserted by tests/cpu_target. A
definition calls intrinsics, which LLVM's parser (18 and later) declares by itself, so that a kernel
that declares the same ones does not clash with it, and tests for rare arguments (`rare`).

>>> function_name("exp", "float32")
'tg_exp_f32'
>>> print(definitions(["tg_square_root_f32"]))
Traceback (most recent call last):
    ...
KeyError: "no math function 'tg_square_root_f32'; see MATH_FUNCTIONS"
>>> print(definitions(["tg_sqrt_f32"]))
define internal float @tg_sqrt_f32(float %x) alwaysinline nounwind willreturn memory(none) {
  %1 = call float @llvm.sqrt.f32(float %x)
  ret float %1
}
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property

from .....runtime.records import record
from . import arithmetic, exponential, far_angles, integer, inverse, logarithm, rare, trigonometric
from .builder import FLOAT32, FLOAT64, Format, FunctionBuilder, Value

PHILOX = "tg_philox_u32"  # i32 (i64 seed, i64 offset, i64 index)


@record()
class MathFunction:
    """A function of the library: its name, LLVM types and (built when asked for) its text."""

    name: str
    arguments: tuple[str, ...]
    result: str
    build: Callable[[], str]

    @cached_property
    def text(self) -> str:
        """The definition as LLVM IR."""
        return self.build()


FLOAT_FUNCTIONS: dict[str, tuple[Callable[..., Value], int]] = {  # and how many arguments
    "exp": (exponential.exp, 1),
    "exp2": (exponential.exp2, 1),
    "expm1": (exponential.expm1, 1),
    "sigmoid": (exponential.sigmoid, 1),
    "sinh": (exponential.sinh, 1),
    "cosh": (exponential.cosh, 1),
    "tanh": (exponential.tanh, 1),
    "erf": (exponential.erf, 1),
    "log": (logarithm.log, 1),
    "log2": (logarithm.log2, 1),
    "log1p": (logarithm.log1p, 1),
    "pow": (logarithm.pow, 2),
    "sin": (trigonometric.sin, 1),
    "cos": (trigonometric.cos, 1),
    "tan": (trigonometric.tan, 1),
    "asin": (inverse.asin, 1),
    "acos": (inverse.acos, 1),
    "atan": (inverse.atan, 1),
    "atan2": (inverse.atan2, 2),
    "sqrt": (arithmetic.sqrt, 1),
    "rsqrt": (arithmetic.rsqrt, 1),
    "reciprocal": (arithmetic.reciprocal, 1),
    "floor": (arithmetic.floor, 1),
    "ceil": (arithmetic.ceil, 1),
    "round": (arithmetic.round, 1),
    "trunc": (arithmetic.trunc, 1),
    "abs": (arithmetic.absolute, 1),
    "fma": (arithmetic.fma, 3),
    "maximum": (arithmetic.maximum, 2),
    "minimum": (arithmetic.minimum, 2),
    "floor_divide": (arithmetic.floor_divide, 2),
    "remainder": (arithmetic.remainder, 2),
}
LONG_LINES = 80
"""Powers have more; other functions have at most 50."""
RARE = {
    test.name: test
    for format in (FLOAT32, FLOAT64)
    for test in (
        rare.Rare("sin", format, trigonometric.NEAR[format.name], far_angles.sin),
        rare.Rare("cos", format, trigonometric.NEAR[format.name], far_angles.cos),
        rare.Rare("tan", format, trigonometric.NEAR[format.name], far_angles.tan),
    )
}
INTEGER_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "floor_divide": integer.floor_divide,
    "remainder": integer.remainder,
    "pow": integer.pow,
}
SUFFIXES = {
    "float32": "f32",
    "float64": "f64",
    **{dtype: suffix for dtype, (suffix, _) in integer.INTEGERS.items()},
}


def function_name(op: str, dtype: str) -> str:
    """The LLVM name of an operation for a dtype; KeyError for a dtype without functions.

    Example:
        >>> function_name("remainder", "uint8")
        'tg_remainder_u8'
    """
    return f"tg_{op}_{SUFFIXES[dtype]}"


@cache
def is_long(name: str) -> bool:
    """Whether a function is so long that LLVM spends milliseconds on each of its copies."""
    return FUNCTIONS[name].text.count("\n") > LONG_LINES


def definitions(names: Iterable[str]) -> str:
    """The LLVM IR text that defines the functions named, each once, in the order first asked.

    Intrinsics are not declared (see above). The module is compiled with `late_definitions` of its
    text. Raises KeyError for an unknown name.
    """
    texts = []
    for name in dict.fromkeys(names):
        if name not in FUNCTIONS:
            raise KeyError(f"no math function {name!r}; see MATH_FUNCTIONS")
        texts.append(FUNCTIONS[name].text + "\n")
    text = "\n".join(texts)
    return text + rare.declarations(_tests(text))


def late_definitions(text: str) -> str:
    """What has to be inlined late into a module that calls math functions: see `compile_module`."""
    return rare.late_definitions(_tests(text))


def _tests(text: str) -> list[rare.Rare]:
    """The tests for rare arguments that a text calls."""
    return [RARE[name] for name in rare.called(text)]


def _float_function(op: str, format: Format) -> MathFunction:
    function, count = FLOAT_FUNCTIONS[op]
    name = function_name(op, format.name)

    def build() -> str:
        b = FunctionBuilder(name, format, "xyz"[:count])
        return b.finish(function(b, *b.arguments))

    return MathFunction(name, (format.type,) * count, format.type, build)


def _integer_function(op: str, dtype: str) -> MathFunction:
    suffix, bits = integer.INTEGERS[dtype]
    name = function_name(op, dtype)

    def build() -> str:
        b = integer.integer_builder(name, bits)
        return b.finish(INTEGER_FUNCTIONS[op](b, *b.arguments, bits, suffix[0] == "i"))

    return MathFunction(name, (f"i{bits}",) * 2, f"i{bits}", build)


def _philox() -> MathFunction:
    def build() -> str:
        b = integer.philox_builder(PHILOX)
        return b.finish(integer.philox(b, *b.arguments))

    return MathFunction(PHILOX, ("i64",) * 3, "i32", build)


MATH_FUNCTIONS: dict[tuple[str, str], MathFunction] = {
    **{
        (op, format.name): _float_function(op, format)
        for format in (FLOAT32, FLOAT64)
        for op in FLOAT_FUNCTIONS
    },
    **{
        (op, dtype): _integer_function(op, dtype)
        for dtype in integer.INTEGERS
        for op in INTEGER_FUNCTIONS
    },
    ("philox", "uint32"): _philox(),
}
FUNCTIONS = {function.name: function for function in MATH_FUNCTIONS.values()}
