"""Least integers, signed zeros, infinities and NaN: eager, compiled, in CUDA C, and as PyTorch."""

import itertools
import math

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program

import tgraph as tg

NAN, INF = math.nan, math.inf
FLOATS = [tg.float16, tg.bfloat16, tg.float32, tg.float64]
SIGNED = [tg.int8, tg.int16, tg.int32, tg.int64]
names = str


def on_device(function):
    """`function` as CUDA C; no result is on the device, so it takes and gives tensors."""

    def run(*inputs):
        program = tg.cuda.program(function, *inputs)
        (found,) = run_program(program, [each.numpy() for each in inputs])
        return tg.from_numpy(found)

    return run


RUNS = {"eager": lambda f: f, "compiled": tg.compile}
if shim.available() is None:
    RUNS["cuda"] = on_device


@pytest.fixture(params=RUNS)
def run(request):
    return RUNS[request.param]


def same(found, wanted):
    """Equal numbers, NaN and signs of zeros."""
    found, wanted = found.double().numpy(), np.asarray(wanted, np.float64)
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("dtype", SIGNED, ids=names)
def test_fmod_of_integers(run, dtype):
    limits = np.iinfo(dtype.numpy)
    some = [limits.min, limits.min + 1, -7, -2, -1, 1, 2, 3, 7, limits.max]
    x, y = zip(*itertools.product(some, some))
    wanted = [(abs(a) % abs(b)) * (-1 if a < 0 else 1) for a, b in zip(x, y)]
    found = run(lambda x, y: tg.fmod(x, y))(tg.tensor(x, dtype=dtype), tg.tensor(y, dtype=dtype))
    assert found.tolist() == wanted


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_fmod_of_floats(run, dtype):
    some = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 3.0, -3.0]
    x, y = (tg.tensor(each, dtype=dtype) for each in zip(*itertools.product(some, some)))
    with np.errstate(invalid="ignore"):
        wanted = np.fmod(x.double().numpy(), y.double().numpy())
    same(run(lambda x, y: tg.fmod(x, y))(x, y), wanted)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_scaling_by_powers_that_the_type_does_not_hold(run, dtype):
    least, largest = tg.finfo(dtype).smallest_normal, tg.finfo(dtype).max
    some = [0.0, -0.0, 1.5, -1.125, least, largest, INF, -INF, NAN]
    x, power = zip(*itertools.product(some, [0, 3, -3, 20, -20, 140, 300, -300, 1100, -1100, 3000]))
    with np.errstate(over="ignore"):
        wanted = tg.tensor(np.ldexp(x, power)).to(dtype).double().numpy()
    same(run(tg.ldexp)(tg.tensor(x, dtype=dtype), tg.tensor(power)), wanted)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_nan_to_num(run, dtype):
    x = tg.tensor([NAN, INF, -INF, -0.0, 1.5], dtype=dtype)
    largest = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127}.get(
        dtype.name, np.finfo(np.float64 if dtype is tg.float64 else np.float32).max
    )
    same(run(lambda x: tg.nan_to_num(x))(x), [0.0, largest, -largest, -0.0, 1.5])
    same(run(lambda x: tg.nan_to_num(x, 2.0, 3.0, 4.0))(x), [2.0, 3.0, 4.0, -0.0, 1.5])


def clamped(x, low, high):
    if NAN is low or NAN is high or math.isnan(x) or math.isnan(low) or math.isnan(high):
        return NAN
    return min(max(x, low), high)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
@pytest.mark.parametrize("low, high", [(NAN, 2.0), (-2.0, NAN), (NAN, NAN), (-1.0, 1.0),
                                       (2.0, -1.0), (-INF, INF)])  # fmt: skip
def test_clamp(run, dtype, low, high):
    some = [NAN, INF, -INF, 1.5, -3.0, 7.0]
    wanted = [clamped(x, low, high) for x in some]
    x = tg.tensor(some, dtype=dtype)
    same(run(lambda x: tg.clamp(x, low, high))(x), wanted)
    same(run(lambda x: tg.clamp(x, min=low))(x), [clamped(x, low, INF) for x in some])
    same(run(lambda x: tg.clamp(x, max=high))(x), [clamped(x, -INF, high) for x in some])
    bounds = (tg.full((6,), each, dtype=dtype) for each in (low, high))
    same(run(lambda x, low, high: tg.clamp(x, low, high))(x, *bounds), wanted)


def test_a_bound_of_a_compiled_function_that_becomes_nan():
    f = tg.compile(lambda x, low: tg.clamp(x, min=low))
    x = tg.tensor([-1.0, 3.0])
    for low in (0.0, 1.0, NAN, 2.0):
        same(f(x, low), [clamped(each, low, INF) for each in (-1.0, 3.0)])


@pytest.mark.parametrize("dtype", [tg.float16, tg.bfloat16], ids=names)
def test_a_truncated_quotient_is_rounded_first(run, dtype):
    x, y = tg.tensor([1.0, 2.5, 7.0], dtype=dtype), tg.tensor([0.1, 0.1, 0.1], dtype=dtype)
    wanted = np.trunc((x / y).double().numpy())
    same(run(lambda x, y: tg.div(x, y, rounding_mode="trunc"))(x, y), wanted)


ORDERS = {
    "sort": lambda x: tg.sort(x).values,
    "sort_descending": lambda x: tg.sort(x, descending=True).values,
    "argsort": lambda x: tg.argsort(x, stable=True),
    "topk": lambda x: tg.topk(x, 5).values,
    "topk_smallest": lambda x: tg.topk(x, 5, largest=False).values,
    "kthvalue": lambda x: tg.kthvalue(x, 11).values,
    "median": lambda x: tg.median(x, -1).values,
    "max": lambda x: tg.max(x, -1).values,
    "min": lambda x: tg.min(x, -1).values,
    "argmax": lambda x: tg.argmax(x, -1),
    "argmin": lambda x: tg.argmin(x, -1),
    "searchsorted": lambda x: tg.searchsorted(tg.tensor([-1.0, 2.0, INF]).to(x.dtype), x),
}


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", FLOATS, ids=names)
@pytest.mark.parametrize("name", ORDERS)
def test_order_with_nan(name, dtype, mode):
    """As of float64; NaN is the largest of all."""
    some = np.array([NAN, INF, -INF, 0.0, 1.0, 2.0, 3.0, -1.0, 5.0])
    x = tg.tensor(np.random.default_rng(0).choice(some, (4, 13)))
    wanted = ORDERS[name](x)
    same(RUNS[mode](lambda x: ORDERS[name](x))(x.to(dtype)), wanted.double().numpy())


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_order_of_nan(dtype):
    x = tg.tensor([3.0, NAN, -INF, NAN, 1.0], dtype=dtype)
    same(tg.sort(x).values, [-INF, 1.0, 3.0, NAN, NAN])
    same(tg.topk(x, 3).values, [NAN, NAN, 3.0])
    values, inverse, counts = tg.unique(x, return_inverse=True, return_counts=True)
    same(values, [-INF, 1.0, 3.0, NAN, NAN])
    assert values.dtype is dtype and inverse.tolist()[0] == 2 and counts.tolist() == [1] * 5
    assert tg.searchsorted(tg.tensor([1.0, 2.0], dtype=dtype), x).tolist() == [2, 2, 0, 2, 0]
