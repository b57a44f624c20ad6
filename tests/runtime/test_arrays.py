"""The array functions: types by the rule for every primitive, values against plain NumPy."""

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from array_cases import cases, convolution_cases, expected_type, sample, type_of
from tgraph.compiler.ir import PRIMITIVES, IRTypeError, infer_type
from tgraph.runtime.array_functions_elementwise import quietly
from tgraph.runtime.array_functions_indexing import write_at
from tgraph.runtime.arrays import FUNCTIONS, array_module, evaluate, to_host, transferred
from tgraph.runtime.cuda import backend
from tgraph.runtime.device import CPU, Device
from tgraph.runtime.dtypes import bool_, float16, float32, float64, int8, int32, int64, uint8

pytest_plugins = ["cuda_tools.device"]

FED_SELECTED_OR_MOVED = {"input", "get", "transfer"}
OF_GRAPHS = {"branch", "loop"}  # which come as functions: tests/ir/test_control.py
NAMES = sorted(set(PRIMITIVES) - FED_SELECTED_OR_MOVED - OF_GRAPHS)
nan, inf = np.nan, np.inf


def run(name, *arrays, **attrs):
    return evaluate(name, [np.asarray(each) for each in arrays], attrs)


def f32(*values):
    return np.array(values, np.float32)


def same(got, wanted):
    """Equal values including NaN and the sign of zero, and equal dtypes."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    if got.dtype.kind in "fV":
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(got, wanted)
    if got.dtype.kind == "f":
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(wanted)[known])


def test_the_table_is_complete():
    assert set(FUNCTIONS) == set(PRIMITIVES) - {"input"}


@pytest.mark.parametrize("name", NAMES)
def test_every_result_has_the_type_of_the_rule(name):
    count = 0
    for which, arrays, attrs in cases(name):
        result, expected = evaluate(which, arrays, attrs), expected_type(which, arrays, attrs)
        results = result if isinstance(result, tuple) else (result,)
        for got, wanted in zip(results, expected if isinstance(result, tuple) else (expected,)):
            assert type(got) is np.ndarray
            assert type_of(got) == wanted, (name, [type_of(each) for each in arrays], attrs)
        count += 1
    assert count > 0


@pytest.mark.parametrize("name", NAMES)
def test_strided_operands_give_the_same_values(name):
    for which, arrays, attrs in cases(name):
        if not arrays or name in ("random_bits", "view_as_complex"):  # whose pairs lie together
            continue
        strided = [np.repeat(each, 2, axis=-1)[..., ::2] if each.ndim else each for each in arrays]
        strided = [np.asfortranarray(each) if each.ndim == 3 else each for each in strided]
        got, wanted = evaluate(which, strided, attrs), evaluate(which, arrays, attrs)
        for one, other in zip(got, wanted) if isinstance(got, tuple) else [(got, wanted)]:
            wide = np.complex128 if other.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=2e-6, atol=1e-6)


# What is not applied to operands of one type alone.
NEED_MORE = ("where", "cast", "bitcast", "require")


def test_no_warning_escapes():
    big = f32(3e38, -3e38, nan, 0, -1)
    with np.errstate(all="ignore"):
        halves = big.astype(np.float16), big.astype(ml_dtypes.bfloat16)
    for name, primitive in PRIMITIVES.items():
        if primitive.family.value != "elementwise" or name in NEED_MORE:
            continue
        for which, arrays, attrs in cases(name):
            if arrays[0].dtype == np.float32 and arrays[0].ndim == 1:
                for each in (big, *halves):
                    evaluate(which, [each] * len(arrays), attrs)
    run("cast", big, dtype=int8)
    run("cast", big, dtype=float16)
    run("sum", big, axes=(0,), keepdims=False)
    run("full", shape=(2,), value=1e300, dtype=float32)


def test_the_error_state_of_the_caller_stays():
    with np.errstate(all="raise"):
        assert run("div", f32(1), f32(0)) == inf
        assert run("sum", f32(3e38, 3e38), axes=(0,), keepdims=False) == inf
        with pytest.raises(FloatingPointError):
            np.divide(f32(1), f32(0))


def test_a_call_inside_a_call():
    """As when a finaliser computes while the array module allocates."""
    outer = quietly(lambda: quietly(np.divide, f32(1), f32(0)))
    assert outer == inf
    assert quietly(lambda: run("log", f32(0))) == -inf


def test_threads_are_quiet_too():
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda x: float(run("log", x)), [f32(0)[0], f32(1)[0]])) == [-inf, 0]


HALF_FLOATS = [ml_dtypes.bfloat16, np.float16]


@pytest.mark.parametrize("dtype", HALF_FLOATS)
def test_half_types_round_the_float32_result_once(dtype):
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    wide = every.astype(np.float32)
    for name, primitive in PRIMITIVES.items():
        if primitive.family.value != "elementwise" or primitive.arity != 1:
            continue
        if name in ("logical_not", "bitwise_not", "cast", "bitcast"):
            continue
        with np.errstate(all="ignore"):
            wanted = run(name, wide).astype(bool if name in ("isnan", "isinf") else dtype)
            wanted, got = wanted.astype(np.float64), run(name, every).astype(np.float64)
        # NumPy's float16 loops may use the wider result of another libm; a last bit is allowed.
        np.testing.assert_allclose(
            got,
            wanted,
            rtol=2 * float(ml_dtypes.finfo(dtype).eps),
            atol=float(ml_dtypes.finfo(dtype).smallest_subnormal),
            err_msg=name,
        )


def test_bfloat16_binary_functions_agree_with_float32():
    special = f32(nan, inf, -inf, 0.0, -0.0, 1, -1, 2.5, -3.5, 1e38, 1e-40)
    x, y = map(np.ravel, np.meshgrid(special, special))
    halves = x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16)
    x, y = (each.astype(np.float32) for each in halves)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2", "remainder",
                 "floor_divide", "eq", "ne", "lt", "le", "gt", "ge"):  # fmt: skip
        wanted = run(name, x, y)
        with np.errstate(all="ignore"):
            same(run(name, *halves), wanted.astype(wanted.dtype if wanted.dtype == bool
                                                   else ml_dtypes.bfloat16))  # fmt: skip


# --- PyTorch's answers in the corners, taken from PyTorch 2.13 ---


def test_sign_of_nan_and_zeros_is_zero():
    same(run("sign", f32(nan, -0.0, 0.0, -inf, 2.0)), f32(0, 0, 0, -1, 1))


def test_float_division_with_remainder():
    x = f32(4, -4, 1, -1, nan, inf, 5, -7)
    y = f32(2, 2, inf, inf, 1, 2, 0, -0.0)
    same(run("remainder", x, y), f32(0, -0.0, 1, inf, nan, nan, nan, nan))
    same(run("floor_divide", x, y), f32(2, -2, 0, -1, nan, nan, inf, inf))
    x, y = f32(inf, -inf, -1, 1, -0.0, 1e20), f32(1, 1, inf, -inf, 3, 1e-30)
    same(run("floor_divide", x, y), f32(nan, nan, -1, -1, -0.0, inf))


def test_integer_division_has_the_sign_of_the_divisor():
    x, y = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    same(run("floor_divide", x, y), np.array([3, -4, -4, 3]))
    same(run("remainder", x, y), np.array([1, 1, -1, -1]))


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_integer_division_by_zero(name):
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
        run(name, [1, 2], [1, 0])
    same(run(name, np.zeros(0, np.int64), np.zeros(1, np.int64)), np.zeros(0, np.int64))


def test_integer_powers():
    x, y = np.array([2, 1, -1, 0, -1, 3, 7]), np.array([-1, -1, -1, -1, -2, 4, 0])
    same(run("pow", x, y), np.array([0, 1, -1, 0, 1, 81, 1]))
    same(run("pow", np.array([200, 3], np.uint8), np.array([2, 5], np.uint8)),
         np.array([64, 243], np.uint8))  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("exponent, ends", [(0.5, (0, inf)), (-0.5, (inf, 0)), (2, (0, inf))])
def test_powers_by_one_number_are_powers(dtype, exponent, ends):
    x = np.array([-0.0, -inf, -1, 4, nan], dtype)
    for exponents in (np.array(exponent, dtype), np.full(5, exponent, dtype)):
        got = run("pow", x, exponents).astype(np.float64)
        same(got[:2], np.float64(ends))
        assert np.isnan(got[2]) == (exponent != 2) and np.isnan(got[4])
        assert got[3] == 4.0**exponent


def test_shifts_by_too_much_or_less_than_nothing():
    def i8(*values):
        return np.array(values, np.int8)

    same(run("shift_left", i8(1, -1, 5, 3), i8(8, 9, -1, 2)), i8(0, 0, 0, 12))
    same(run("shift_right", i8(1, -1, -128, 127), i8(8, 9, -1, 7)), i8(0, -1, -1, 0))


def test_rounding_is_to_even():
    same(run("round", f32(0.5, 1.5, 2.5, -0.5, -1.5)), f32(0, 2, 2, -0.0, -2))
    same(run("rsqrt", f32(-0.0, 0.0, 4, -1)), f32(-inf, inf, 0.5, nan))


def test_casts():
    same(run("cast", f32(1.9, -1.9, -0.5), dtype=int64), np.array([1, -1, 0]))
    same(run("cast", f32(nan, 0, -0.0, 1e-45), dtype=bool_), np.array([1, 0, 0, 1], bool))
    small = np.array([nan, 0, 1e-40], ml_dtypes.bfloat16)
    same(run("cast", small, dtype=bool_), np.array([1, 0, 1], bool))
    same(run("cast", np.array([2.5, -2.5], ml_dtypes.bfloat16), dtype=int8), np.int8([2, -2]))
    same(run("full", shape=(), value=300, dtype=uint8), np.uint8(44))
    same(run("full", shape=(), value=-1, dtype=uint8), np.uint8(255))
    same(run("full", shape=(), value=200, dtype=int8), np.int8(-56))
    same(run("full", shape=(), value=-0.0, dtype=float32), np.float32(-0.0))
    same(run("full", shape=(), value=5, dtype=bool_), np.bool_(True))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_extremes_see_nan(dtype):
    x = np.array([1, nan, 3, nan], dtype)
    assert np.isnan(run("max", x, axes=(0,), keepdims=False))
    assert np.isnan(run("min", x, axes=(0,), keepdims=False))
    assert run("argmax", x, axes=(0,), keepdims=False) == 1
    assert run("argmin", x, axes=(0,), keepdims=True) == [1]
    assert run("argmax", np.array([3, 3], dtype), axes=(0,), keepdims=False) == 0
    assert np.isnan(run("maximum", x, x[::-1])).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_sums_accumulate_in_float32(dtype):
    ones = np.ones((5000, 2), dtype)
    total = run("sum", ones, axes=(0,), keepdims=False)
    same(total, np.array([5000, 5000], dtype))
    same(run("matmul", ones, ones, transpose_a=True, transpose_b=False),
         np.full((2, 2), 5000, dtype))  # fmt: skip
    at = np.zeros(5000, np.int64)
    same(run("index_put", np.zeros(1, dtype), at, np.ones(5000, dtype), axis=0, accumulate=True),
         np.array([5000], dtype))  # fmt: skip
    same(run("fold", np.ones((3000, 3000), dtype)[:, :1], axes=(0,), strides=(1,), dilations=(1,),
             shape=(3000,)), np.ones(3000, dtype))  # fmt: skip


def test_integer_sums_keep_their_type_and_wrap():
    same(run("sum", np.full(3, 100, np.int8), axes=(0,), keepdims=False), np.int8(44))
    same(run("prod", np.full(3, 10, np.uint8), axes=(0,), keepdims=False), np.uint8(232))


def test_views_share_memory():
    x = np.arange(24.0).reshape(2, 3, 4)
    for name, attrs in [
        ("reshape", {"shape": (6, 4)}),
        ("permute", {"axes": (2, 0, 1)}),
        ("broadcast", {"shape": (5, 2, 3, 4)}),
        ("slice", {"starts": (0, 1, 0), "stops": (2, 3, 4), "steps": (1, 1, 2)}),
        ("diagonal", {"offset": 0}),
        ("diagonal", {"offset": -1}),
        ("flip", {"axes": (0, 2)}),
        ("unfold", {"axes": (2,), "sizes": (2,), "strides": (1,), "dilations": (1,)}),
    ]:
        assert np.shares_memory(run(name, x, **attrs), x), name
    for name, attrs in [("copy", {}), ("cast", {"dtype": float64})]:
        assert not np.shares_memory(run(name, x, **attrs), x), name
    for position in (np.array(1), np.array([1])):
        assert not np.shares_memory(run("index", x, position, axis=0), x)
        assert not np.shares_memory(run("index", x, position, position, axis=0), x)


def test_an_added_axis_of_size_one_stays_writable():
    assert run("broadcast", np.zeros(3), shape=(1, 3)).flags.writeable


def test_pad_with_interior():
    got = run("pad", f32(1, 2), low=(1,), high=(2,), interior=(1,), value=9)
    same(got, f32(9, 1, 9, 2, 9, 9))


def test_unfold_and_fold_are_transposes():
    x, attrs = sample((2, 9, 8), float64), {"axes": (2, 1), "strides": (3, 2), "dilations": (1, 2)}
    windows = run("unfold", x, sizes=(2, 3), **attrs)
    assert windows[1, 2, 1, 1, 2] == x[1, 2 * 2 + 2 * 2, 1 * 3 + 1]
    y = sample(windows.shape, float64, 1)
    folded = run("fold", y, shape=x.shape, **attrs)
    np.testing.assert_allclose((windows * y).sum(), (x * folded).sum())


def test_gather_and_scatter_add_are_transposes():
    x, at = sample((4, 3, 5), float64), np.random.default_rng(0).integers(0, 3, (2, 6, 5))
    got = run("gather", x, at, axis=1)
    assert got[1, 4, 3] == x[1, at[1, 4, 3], 3]
    y = sample(got.shape, float64, 1)
    added = run("scatter_add", np.zeros_like(x), at, y, axis=1)
    np.testing.assert_allclose((got * y).sum(), (x * added).sum())


@pytest.mark.parametrize(
    "axis, count, shape", [(0, 1, (9,)), (1, 2, (2, 5)), (2, 1, ()), (0, 3, ())]
)
def test_index_and_index_put_are_transposes(axis, count, shape):
    x, rng = sample((4, 3, 5), float64), np.random.default_rng(0)
    at = [rng.integers(0, x.shape[axis + offset], shape) for offset in range(count)]
    got = run("index", x, *at, axis=axis)
    np.testing.assert_array_equal(got, x[(slice(None),) * axis + tuple(at)])
    y = sample(got.shape, float64, 1)
    added = run("index_put", np.zeros_like(x), *at, y, axis=axis, accumulate=True)
    np.testing.assert_allclose((got * y).sum(), (x * added).sum())


def test_the_last_write_wins():
    got = run("index_put", f32(0, 0), np.array([1, 1]), f32(5, 6), axis=0, accumulate=False)
    same(got, f32(0, 6))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_positions_out_of_range(dtype):
    x, values = np.zeros((3, 5)), np.zeros((3, 1))
    at = np.array([7], dtype)
    message = "^index 7 is out of bounds for dimension 1 with size 5$"
    with pytest.raises(IndexError, match=message):
        run("index", x, at, axis=1)
    with pytest.raises(IndexError, match=message):
        run("index_put", x, at, values, axis=1, accumulate=True)
    with pytest.raises(IndexError, match=message):
        run("index_put", x, at, values, axis=1, accumulate=False)
    with pytest.raises(IndexError, match="index -1 is out of bounds for dimension 0 with size 3"):
        run("gather", x, np.array([[-1]], dtype), axis=0)
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        run("scatter_add", x, np.array([[3]], dtype), np.zeros((1, 1)), axis=0)


def test_matmul_of_any_layout():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.int32):
        a, b = (
            rng.integers(-5, 5, (2, 4, 3)).astype(dtype),
            rng.integers(-5, 5, (3, 5)).astype(dtype),
        )
        wanted = np.einsum("bmk,kn->bmn", a, b)
        same(run("matmul", a, b, transpose_a=False, transpose_b=False), wanted)
        at, bt = a.swapaxes(1, 2), b.T
        same(run("matmul", at, bt, transpose_a=True, transpose_b=True), wanted)
        strided = np.repeat(np.repeat(a, 2, axis=2), 2, axis=1)[:, ::2, ::2]
        same(run("matmul", strided, b, transpose_a=False, transpose_b=False), wanted)
        same(run("matmul", np.broadcast_to(a[:, :1, :1], a.shape), b, transpose_a=False,
                 transpose_b=False), np.einsum("bmk,kn->bmn", np.repeat(np.repeat(
                     a[:, :1, :1], 4, 1), 3, 2), b))  # fmt: skip


def naive_convolution(x, w, **attrs):
    """Sum over taps with explicit loops, straight from the definition."""
    spatial = x.ndim - 2
    shape = expected_type("convolution", [x, w], attrs).shape
    strides, padding, dilation = attrs["strides"], attrs["padding"], attrs["dilation"]
    input_dilation, groups = attrs["input_dilation"], attrs["groups"]
    result = np.zeros(shape)
    per_group = w.shape[0] // groups
    for out in np.ndindex(*shape[2:]):
        for tap in np.ndindex(*w.shape[2:]):
            at = [
                out[k] * strides[k] + tap[k] * dilation[k] - padding[k][0] for k in range(spatial)
            ]
            spread = all(a % d == 0 for a, d in zip(at, input_dilation))
            at = tuple(a // d for a, d in zip(at, input_dilation))
            if not spread or any(not 0 <= a < size for a, size in zip(at, x.shape[2:])):
                continue
            for o in range(w.shape[0]):
                first = o // per_group * w.shape[1]
                channels = x[(slice(None), slice(first, first + w.shape[1]), *at)]
                result[(slice(None), o, *out)] += channels @ w[(o, slice(None), *tap)]
    return result


def test_convolution_matches_its_definition():
    for _, arrays, attrs in convolution_cases(float64):
        got = run("convolution", *arrays, **attrs)
        np.testing.assert_allclose(got, naive_convolution(*arrays, **attrs), atol=1e-12)
        assert got.flags.c_contiguous


def test_host_call_checks_what_comes_back():
    result = type_of(f32(1, 2))
    with pytest.raises(RuntimeError, match="gave 2 arrays, its type says 1"):
        evaluate("host_call", [], {"function": lambda: (1, 2), "results": (result,), "name": "f"})
    with pytest.raises(RuntimeError, match=r"f gave an array of float64\[2\] as result 0"):
        wrong = {"function": lambda: (np.zeros(2),), "results": (result,), "name": "f"}
        evaluate("host_call", [], wrong)


def test_random_bits_are_one_stream_per_counter():
    key, counter = np.array(5), np.array(3)
    bits = run("random_bits", key, counter, shape=(4, 3))
    same(bits, run("random_bits", key, counter, shape=(12,)).reshape(4, 3))
    assert (bits != run("random_bits", key, counter - 1, shape=(4, 3))).any()


def test_array_modules(cuda):
    assert array_module(CPU) is np
    assert array_module(cuda) is backend.cupy()


@pytest.mark.skipif(backend.why_unavailable() is None, reason="CUDA is there")
def test_an_array_module_that_is_not_there():
    with pytest.raises(RuntimeError, match=r"^CUDA is not available: "):
        array_module(Device("cuda", 0))


# --- on a CUDA device ---


def on_device(name, arrays, attrs, device):
    """The results of a primitive on a device: they lie there, and come back as NumPy arrays."""
    xp = array_module(device)
    given = [each if name == "random_bits" else transferred(each, device) for each in arrays]
    with xp.cuda.Device(device.index):
        result = evaluate(name, given, attrs, xp)
    several = isinstance(result, tuple)
    for each in result if several else (result,):
        assert type(each) is xp.ndarray and each.device.id == device.index
    return tuple(map(to_host, result)) if several else to_host(result)


def agree(got, wanted, label, ulps=8, summed=False):
    """Equal shapes, dtypes and values; floats may differ by some ulps, and sums where they vanish.

    Zeros have equal signs, but those of sums.
    """
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, label
    if wanted.dtype.kind not in "fV":
        np.testing.assert_array_equal(got, wanted, err_msg=label)
        return
    limits = ml_dtypes.finfo(wanted.dtype)
    eps, least = float(limits.eps), float(limits.eps if summed else limits.tiny)
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=ulps * eps, atol=ulps * least, err_msg=label)
    zeros = (got == 0) & (wanted == 0) & (not summed)
    np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(wanted)[zeros], label)


SUMS = {
    "sum", "prod", "matmul", "convolution", "fold", "index_put", "scatter_add",
    "attention", "attention_rows", "attention_gradient", "lu", "triangular_solve",
}  # fmt: skip


# The stand-in for CuPy has no functions of complex arrays. Signs of vectors are cuSOLVER's own:
# `test_factorizations_cuda.py` holds those of these three to the matrices that they are factors of.
OWN_SIGNS = ("qr", "eigh", "svd")
REAL = [
    name for name in NAMES if PRIMITIVES[name].family.value != "complex" and name not in OWN_SIGNS
]


@pytest.mark.parametrize("name", REAL)
def test_a_device_gives_what_the_cpu_gives(name, cuda):
    ulps, summed = 64 if name in SUMS else 16, name in SUMS
    for which, arrays, attrs in cases(name):
        wanted, got = evaluate(which, arrays, attrs), on_device(which, arrays, attrs, cuda)
        label = f"{which} of {[type_of(each) for each in arrays]} {attrs}"
        pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
        for one, other in pairs:
            agree(one, other, label, ulps, summed)


SPECIAL = (0.0, -0.0, 1, -1, 0.5, -2.5, 3, inf, -inf, nan, 1e30, -1e-30, 7.0000005, 65504)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_special_values_on_a_device(dtype, cuda):
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL, dtype)
    x, y = (np.ascontiguousarray(each.reshape(-1)) for each in np.meshgrid(special, special))
    for name, primitive in PRIMITIVES.items():
        if primitive.family.value != "elementwise" or name in ("cast", "bitcast", "require"):
            continue
        arrays = [x, y][: primitive.arity] if name != "where" else [np.arange(len(x)) % 2 > 0, x, y]
        try:
            infer_type(primitive, [type_of(each) for each in arrays], {})
        except IRTypeError:
            continue  # of integers alone
        wanted, got = run(name, *arrays), on_device(name, arrays, {}, cuda)
        if name in ("maximum", "minimum"):  # of two zeros either
            wanted, got = wanted + np.array(0, dtype), got + np.array(0, dtype)
        agree(got, wanted, name, ulps=16)


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers_on_a_device(dtype, cuda):
    bits, limits = 8 * np.dtype(dtype).itemsize, np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, bits - 1, bits, bits + 1, limits.max, limits.min}
    values |= {-1, -2, -7} if limits.min else set()
    values = np.array(sorted(values), dtype)
    x, y = (np.ascontiguousarray(each.reshape(-1)) for each in np.meshgrid(values, values))
    for name in ("add", "sub", "mul", "shift_left", "shift_right", "pow", "maximum", "minimum",
                 "bitwise_and", "bitwise_xor", "eq", "lt", "ge"):  # fmt: skip
        agree(on_device(name, [x, y], {}, cuda), run(name, x, y), name)
    for name in ("neg", "abs", "sign", "bitwise_not", "logical_not"):
        if dtype is not np.uint8 or name not in ("neg",):
            agree(on_device(name, [x], {}, cuda), run(name, x), name)
    some = (y != 0) & ~((x == limits.min) & (y == np.array(-1).astype(dtype)))
    for name in ("floor_divide", "remainder"):
        agree(on_device(name, [x[some], y[some]], {}, cuda), run(name, x[some], y[some]), name)
        with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
            on_device(name, [x, y], {}, cuda)


def test_zeros_keep_their_sign_on_a_device(cuda):
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for shape in ((), (1,), (2, 3), (0,)):
            zero = np.full(shape, -0.0, dtype)
            assert np.signbit(to_host(transferred(zero, cuda)).astype(np.float32)).all()
            attrs = {"shape": shape, "value": -0.0, "dtype": type_of(zero).dtype}
            agree(on_device("full", [], attrs, cuda), zero, f"{dtype} {shape}")
            agree(on_device("constant", [], {"value": zero}, cuda), zero, f"{dtype} {shape}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_the_first_of_several_nan_on_a_device(dtype, cuda):
    x = np.zeros((3, 2000), dtype)
    x[0, [1500, 600, 1023]] = np.nan
    x[1, 77] = 1
    for name, wanted in (("argmax", [600, 77, 0]), ("argmin", [600, 0, 0])):
        got = on_device(name, [x], {"axes": (1,), "keepdims": False}, cuda)
        same(got, np.array(wanted))
        same(got, run(name, x, axes=(1,), keepdims=False))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_, np.int64])
@pytest.mark.parametrize("highest", [1, 5, 400])
def test_additions_to_repeated_positions_on_a_device(dtype, highest, cuda):
    rng = np.random.default_rng(highest)
    at = rng.integers(0, highest, 1000)
    base, values = rng.integers(0, 2, (400, 3)).astype(dtype), sample((1000, 3), type_of(
        np.zeros(1, dtype)).dtype)  # fmt: skip
    attrs = {"axis": 0, "accumulate": True}
    got = on_device("index_put", [base, at, values], attrs, cuda)
    again = on_device("index_put", [base, at, values], attrs, cuda)
    same(got, again)
    wanted = run("index_put", base, at, values, **attrs)
    tolerance = 4 * float(ml_dtypes.finfo(dtype).eps) if got.dtype.kind == "f" else 0
    largest = np.abs(wanted.astype(np.float64)).max()
    np.testing.assert_allclose(
        got.astype(np.float64), wanted.astype(np.float64), atol=tolerance * largest
    )


def test_the_last_write_wins_on_a_device(cuda):
    rng = np.random.default_rng(0)
    at = [rng.integers(0, 4, (5, 7)), rng.integers(0, 3, (5, 7))]
    x, values = np.zeros((2, 4, 3, 6)), rng.random((2, 5, 7, 6))
    attrs = {"axis": 1, "accumulate": False}
    wanted = x.copy()
    for place in np.ndindex(5, 7):
        wanted[:, at[0][place], at[1][place]] = values[:, *place]
    same(run("index_put", x, *at, values, **attrs), wanted)
    same(on_device("index_put", [x, *at, values], attrs, cuda), wanted)


def test_nothing_is_written_where_a_position_is_outside(cuda):
    for device in (CPU, cuda):
        target, at = (transferred(each, device) for each in (np.zeros(3), np.array([0, 3])))
        values = transferred(np.ones(2), device)
        with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0"):
            write_at(array_module(device), target, [at], values, 0)
        assert not to_host(target).any()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_positions_out_of_range_on_a_device(dtype, cuda):
    x, values, at = np.zeros((3, 5)), np.zeros((3, 1)), np.array([7], dtype)
    for name, arrays, attrs in [
        ("index", [x, at], {"axis": 1}),
        ("index_put", [x, at, values], {"axis": 1, "accumulate": True}),
        ("index_put", [x, at, values], {"axis": 1, "accumulate": False}),
        ("gather", [x, np.array([[7]], dtype)], {"axis": 1}),
        ("scatter_add", [x, np.array([[7]], dtype), np.zeros((1, 1))], {"axis": 1}),
    ]:
        with pytest.raises(
            IndexError, match=r"^index 7 is out of bounds for dimension 1 with size 5$"
        ):
            on_device(name, arrays, attrs, cuda)
        arrays[1] = -arrays[1]
        with pytest.raises(IndexError, match=r"^index -7 is out of bounds"):
            on_device(name, arrays, attrs, cuda)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_floats_become_integers_on_a_device(dtype, cuda):
    x = np.array([1.9, -1.9, -0.5, 100, -100, 300, -300, 65000, inf, -inf, nan], dtype)
    whole = np.array([*(int(each) for each in x[:8]), *[-(2**63)] * 3])
    for wanted in (int8, uint8, int32, int64):
        got = on_device("cast", [x], {"dtype": wanted}, cuda)
        same(got, whole.astype(wanted.numpy))


def test_arrays_move_between_devices(cuda):
    if array_module(cuda).cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two devices")
    x = np.arange(12.0).reshape(3, 4)
    there = transferred(transferred(x, cuda).T[::2], Device("cuda", 1))
    assert there.device.id == 1
    same(to_host(transferred(there, cuda)), x.T[::2])
