"""Accuracy, special values and vectorisation of the LLVM math functions."""

import doctest
import re
from fractions import Fraction

import math_cases as cases
import numpy as np
import pytest
from tgraph.compiler.targets.cpu.math import builder as llvm_math_builder
from tgraph.compiler.targets.cpu.math import far_angles, trigonometric
from tgraph.compiler.targets.cpu.math import functions as llvm_math
from tgraph.compiler.targets.cpu.math.functions import (
    FUNCTIONS,
    MATH_FUNCTIONS,
    definitions,
    function_name,
    late_definitions,
)

# The largest error in units in the last place that a test accepts: (float32, float64).
BOUNDS = {
    "exp": (1.1, 1.1),
    "exp2": (1.1, 1.2),
    "expm1": (1.6, 2.1),
    "sigmoid": (2.5, 2.5),
    "sinh": (2.4, 2.6),
    "cosh": (1.6, 1.6),
    "tanh": (2.7, 2.7),
    "erf": (2.5, 2.5),
    "log": (1.1, 0.9),
    "log2": (1.6, 1.9),
    "log1p": (1.7, 1.5),
    "pow": (1.1, 1.1),
    "sin": (1.6, 1.9),
    "cos": (1.6, 1.9),
    "tan": (3.4, 3.6),
    "asin": (2.5, 2.5),
    "acos": (1.3, 1.4),
    "atan": (1.9, 3.2),
    "atan2": (2.2, 3.2),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
    "reciprocal": (0.5, 0.5),
    "floor": (0, 0),
    "ceil": (0, 0),
    "round": (0, 0),
    "trunc": (0, 0),
    "abs": (0, 0),
}
if not cases.fuses():
    # Products that are rounded before they are added: 2.07 ulp over all float32 for log2.
    BOUNDS |= {"expm1": (1.8, 2.1), "log2": (2.2, 1.9), "pow": (1.1, 1.2)}
UNARY = [op for op in BOUNDS if op not in ("pow", "atan2")]
DTYPES = ("float32", "float64")
INTEGERS = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]
needs_long_double = pytest.mark.skipif(
    not cases.WIDER, reason="long double is no wider than double here"
)


def assert_close(op, dtype, *arrays):
    bound = BOUNDS[op][DTYPES.index(dtype)]
    got = cases.apply(op, dtype, *arrays)
    want = cases.reference(op, dtype, *arrays)
    errors = cases.ulp_errors(got, want)
    worst = np.argmax(errors)
    assert errors[worst] <= bound, (
        f"{op} of {[array[worst] for array in arrays]} is {got[worst]}, not {want[worst]}: "
        f"{errors[worst]:.2f} ulp"
    )


@pytest.mark.parametrize("op", UNARY)
def test_float32_over_all_bit_patterns(op):
    for x in cases.float32_patterns(1 << 11, offset=77):
        assert_close(op, "float32", x)
    assert_close(op, "float32", cases.samples("float32", 20_000))


@pytest.mark.slow
@pytest.mark.parametrize("op", UNARY)
def test_float32_densely(op):
    worst, where = cases.largest_error(op, 1 << 9, offset=13)
    assert worst <= BOUNDS[op][0], f"{op}({where}) is off by {worst} ulp"


@needs_long_double
@pytest.mark.parametrize("op", UNARY)
def test_float64(op):
    assert_close(op, "float64", cases.samples("float64", 20_000))


@needs_long_double
@pytest.mark.slow
@pytest.mark.parametrize("op", UNARY)
def test_float64_densely(op):
    assert_close(op, "float64", cases.samples("float64", 50_000, 1))


@pytest.mark.parametrize("op", ["pow", "atan2"])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=needs_long_double)])
def test_two_arguments(op, dtype):
    assert_close(op, dtype, *cases.pairs(cases.specials(dtype)))
    x = cases.samples(dtype, 20_000)
    assert_close(op, dtype, x, np.random.default_rng(3).permutation(x))
    assert_close(op, dtype, *cases.pow_samples(dtype, 50_000))


def test_arguments_close_to_multiples_of_half_pi():
    # The float closest to a multiple of pi/2 relative to its size; the values are from 420-digit
    # arithmetic.
    closest = np.array([16367173 * 2.0**72], np.float32)
    np.testing.assert_allclose(cases.apply("cos", "float32", closest), [-1.6147698e-9], rtol=2e-7)
    x = np.array([np.pi, 1e22, 2.0**1023, 1.7e308])
    want = [1.2246467991473532e-16, -0.8522008497671888, 0.563127779850884, -0.5952560848632077]
    np.testing.assert_allclose(cases.apply("sin", "float64", x), want, rtol=3e-16)
    half_pi = np.array([np.pi / 2])
    np.testing.assert_allclose(
        cases.apply("tan", "float64", half_pi), [16331239353195369.756], rtol=3e-16
    )
    # The double closest to a multiple of pi/2; the absolute error of the reduction shows here.
    closest = np.array([6381956970095103 * 2.0**797])
    np.testing.assert_allclose(
        cases.apply("cos", "float64", closest), [-4.6871659242546276e-19], rtol=1e-12
    )


def closest_to_quarter_turns(top):
    """Doubles up to 2**top that are closest to multiples of pi/2: convergents of their quotient."""
    half_pi = Fraction(1 << 1281, far_angles.TWO_OVER_PI << 1)
    found = []
    for exponent in range(top):
        rest, old, new = half_pi / Fraction(2) ** (exponent - 52), (0, 1), (1, 0)
        while new[0] < 1 << 53:
            whole = rest.numerator // rest.denominator
            old, new = new, (whole * new[0] + old[0], whole * new[1] + old[1])
            if 1 << 50 <= new[0] < 1 << 53:
                found.append(new[0] * 2.0 ** (exponent - 52))
            rest = 1 / (rest - whole)
    return np.array(found)


def test_pieces_of_half_pi():
    for dtype, bits in (("float32", 70), ("float64", 132)):
        total = sum(map(Fraction, trigonometric.HALF_PI[dtype]))
        assert abs(total * far_angles.TWO_OVER_PI / 2**1280 - 1) < Fraction(1, 2**bits)


@needs_long_double
@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_near_angles_closest_to_quarter_turns(op):
    x = closest_to_quarter_turns(27)
    assert x.size > 50
    assert np.any(x > trigonometric.NEAR["float64"]) and np.any(x < trigonometric.NEAR["float64"])
    assert_close(op, "float64", np.concatenate([x, -x]))


@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_far_angles_beside_near_ones(op, dtype):
    near = np.linspace(-9, 9, 203).astype(dtype)
    far = trigonometric.NEAR[dtype] * near
    far[::9] = np.inf
    mixed = np.where(np.arange(203) % 5 == 1, far, near)
    alone = np.where(mixed == far, cases.apply(op, dtype, far), cases.apply(op, dtype, near))
    np.testing.assert_array_equal(cases.apply(op, dtype, mixed), alone)
    one_by_one = [cases.apply(op, dtype, mixed[at : at + 1])[0] for at in range(203)]
    np.testing.assert_array_equal(one_by_one, alone)


def test_exp2_and_log2_of_whole_powers_are_exact():
    for dtype, low, high in (("float32", -149, 127), ("float64", -1074, 1023)):
        n = np.arange(low, high + 1, dtype=dtype)
        powers = np.ldexp(np.ones_like(n), n.astype(np.int32))
        np.testing.assert_array_equal(cases.apply("exp2", dtype, n), powers)
        np.testing.assert_array_equal(cases.apply("log2", dtype, powers), n)


def test_pow_of_small_integers_is_exact():
    base, exponent = np.meshgrid(np.arange(-12.0, 13), np.arange(0.0, 6))
    for dtype in DTYPES:
        got = cases.apply("pow", dtype, base.ravel(), exponent.ravel())
        np.testing.assert_array_equal(got, (base**exponent).ravel())


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema(op, dtype):
    x, y = cases.pairs(cases.specials(dtype))
    np.testing.assert_array_equal(cases.apply(op, dtype, x, y), getattr(np, op)(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_fma_rounds_once(dtype):
    x = np.asarray([1 + np.finfo(dtype).eps], dtype)
    got = cases.apply("fma", dtype, x, x, -(x * x))
    np.testing.assert_array_equal(got, [np.finfo(dtype).eps ** 2])


def division_samples(dtype):
    random = np.random.default_rng(0)
    x = np.concatenate(
        [
            random.uniform(-100, 100, 20_000),
            random.integers(-50, 50, 20_000) / 4,
            random.standard_normal(20_000) * 10.0 ** random.uniform(-30, 30, 20_000),
        ]
    )
    y = random.permutation(x)
    special = cases.pairs(cases.specials(dtype))
    return [np.concatenate(pair).astype(dtype) for pair in zip((x, y), special)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainder(dtype):
    x, y = division_samples(dtype)
    with np.errstate(all="ignore"):
        want = np.remainder(x, y)
    got = cases.apply("remainder", dtype, x, y)
    np.testing.assert_array_equal(got, want)
    # A zero keeps the sign of the dividend, as in PyTorch and unlike NumPy.
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(x[got == 0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_floor_divide(dtype):
    x, y = division_samples(dtype)
    with np.errstate(all="ignore"):
        want = np.floor_divide(x, y)
        exact = ~(np.abs(x / y) >= 2.0 ** (np.finfo(dtype).nmant - 1))
    got = cases.apply("floor_divide", dtype, x, y)
    np.testing.assert_array_equal(got[exact], want[exact])
    # Beyond, NumPy itself rounds several times.
    np.testing.assert_allclose(got[~exact], want[~exact], rtol=4 * np.finfo(dtype).eps)


def test_floor_divide_of_a_rounded_quotient():
    # 1 / 0.1 rounds to 10, but 0.1 is a little more than a tenth.
    one, tenth = np.ones(1), np.full(1, 0.1)
    assert cases.apply("floor_divide", "float64", one, tenth)[0] == 9
    np.testing.assert_array_equal(
        cases.apply("floor_divide", "float64", -one * 1e-300, one * 1e300), [-1]
    )


def integer_pairs(dtype):
    info, random = np.iinfo(dtype), np.random.default_rng(1)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max], dtype)
    if info.min < 0:
        edges = np.concatenate([edges, np.array([-1, -2, -3, -7], dtype)])
    x = random.integers(info.min, info.max, 20_000, dtype, endpoint=True)
    y = random.integers(info.min, info.max, 20_000, dtype, endpoint=True)
    y >>= random.integers(0, info.bits, 20_000).astype(dtype)
    return [np.concatenate(pair) for pair in zip(cases.pairs(edges), (x, y))]


@pytest.mark.parametrize("op", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(op, dtype):
    x, y = integer_pairs(dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, op)(x, y)
    np.testing.assert_array_equal(cases.apply(op, dtype, x, y), want)


@pytest.mark.parametrize("op", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_all_pairs_of_bytes(op, dtype):
    x, y = cases.pairs(np.arange(256).astype(np.uint8).view(dtype))
    with np.errstate(all="ignore"):
        want = getattr(np, op)(x, y)
    np.testing.assert_array_equal(cases.apply(op, dtype, x, y), want)


def test_definitions_come_once_and_need_no_declarations():
    text = definitions(["tg_exp_f32", "tg_log_f32", "tg_exp_f32"])
    assert re.findall(r"^define .*@(\w+)\(", text, re.MULTILINE) == ["tg_exp_f32", "tg_log_f32"]
    assert "declare" not in text
    everything = definitions(FUNCTIONS)
    assert everything.count("define internal") == len(MATH_FUNCTIONS)
    declared = "declare float @llvm.fma.f32(float, float, float)\n"
    text = declared + everything + cases.loop_text("tg_exp_f32") + cases.ATTRIBUTES
    cases.jit.compile_module(text, late=late_definitions(text))


@pytest.mark.parametrize("module", [llvm_math, llvm_math_builder])
def test_examples_in_docstrings(module):
    results = doctest.testmod(module)
    assert results.attempted and not results.failed


def test_unknown_names():
    with pytest.raises(KeyError, match="no math function 'tg_gamma_f32'"):
        definitions(["tg_gamma_f32"])
    assert function_name("exp", "float64") == "tg_exp_f64"


def test_every_float_function_has_both_dtypes():
    for op in llvm_math.FLOAT_FUNCTIONS:
        assert {(op, "float32"), (op, "float64")} <= set(MATH_FUNCTIONS)
    assert set(BOUNDS) <= set(llvm_math.FLOAT_FUNCTIONS)


def vectorised(name, features, cpu):
    """The optimised IR of a loop over the function, for a given x86 processor."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3)
    text = definitions([name]) + cases.loop_text(name) + cases.ATTRIBUTES
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(module)


# C's fmod, and 64-bit division, which x86 has for scalars only.
WIDE_INSIDE = {"tg_remainder_f32", "tg_philox_u32"}  # worked out in 64 bits
SCALAR = {"tg_remainder_f64", "tg_floor_divide_u64", "tg_remainder_u64"}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in SCALAR])
def test_loops_vectorise(name):
    text = vectorised(name, "", "x86-64-v4")
    function = FUNCTIONS[name]
    lanes = {"float": 16, "double": 8, "i64": 8, "i32": 16, "i16": 16, "i8": 16}[
        function.arguments[0]
    ]
    bits = {"float": 32, "double": 64}.get(function.result) or int(function.result[1:])
    lanes = 8 if bits == 64 or name in WIDE_INSIDE else 16
    widths = [int(width) for width in re.findall(r"store <(\d+) x", text)]
    assert max(widths, default=1) >= lanes
    main = text[: re.search(rf"store <{max(widths)} x", text).end()]
    for called in re.findall(r"call [^@]*@([\w.]+)\(", main):
        assert re.match(r"(llvm|tg_rare)[\w.]+\.v\d+", called), f"a scalar call of {called}"
    assert "extractelement" not in main


@pytest.mark.parametrize("name", ["tg_exp_f32", "tg_sin_f32", "tg_log_f64", "tg_pow_f64"])
def test_loops_vectorise_on_avx2(name):
    text = vectorised(name, "", "x86-64-v3")
    lanes = 8 if name.endswith("f32") else 4
    assert re.search(rf"store <{lanes} x", text)
