"""NaN, infinities, signed zeros, denormals and extreme integers: eager against compiled code.

Elementwise primitives must agree bit for bit, but for the functions that are computed by other
means on either side; these may differ by a stated number of units in the last place. Which NaN
comes out is left open. Signed zeros count as different, except where stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tgraph.compiler.compile_graph import compile_graph
from tgraph.compiler.ir import (
    PRIMITIVES,
    Builder,
    Family,
    Graph,
    IRTypeError,
    Primitive,
    TensorType,
    input_node,
)
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.targets.cpu.executable import cpu_executable
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import REAL_DTYPES, DType, bool_, from_numpy_dtype

Array = np.ndarray[Any, Any]
ELEMENTWISE = [each for each in PRIMITIVES.values() if each.family is Family.ELEMENTWISE]
# Units in the last place by which compiled code may differ, where NumPy or SciPy computes the
# eager value by another method: the sum of both errors.
ULPS = {
    "exp": 2, "exp2": 2, "expm1": 3, "log": 2, "log2": 3, "log1p": 3, "sin": 3, "cos": 3, "tan": 5,
    "asin": 5, "acos": 4, "atan": 3, "sinh": 4, "cosh": 4, "tanh": 4, "erf": 5, "atan2": 4,
    "pow": 3, "rsqrt": 1,
}  # fmt: skip
# The sum of negative zeros is 0.0 or -0.0 by how it starts; a maximum of zeros is either of them.
OPEN_ZEROS = {"sum", "max", "min", "maximum", "minimum"}


def floats(dtype: DType) -> Array:
    """Zeros, infinities, NaN, denormals, limits, numbers around which functions change."""
    info = np.finfo(np.float32 if dtype.name == "bfloat16" else dtype.numpy)
    tiny, largest = float(info.tiny), float(info.max)
    smallest = float(info.smallest_subnormal)
    if dtype.name == "bfloat16":
        smallest, largest = 2.0**-133, float(np.array(3.3895314e38))
    values = [
        0.0, 1.0, 2.0, 0.5, 1.5, 2.5, 3.0, 7.25, 10.0, 88.0, 100.0, 1e-3, 1e-5, np.pi, np.pi / 2,
        np.e, tiny, smallest, largest, largest / 2, 1 / float(info.eps), 0.9999, 1.0001, 1e4,
        float(np.sqrt(largest)), np.inf,
    ]  # fmt: skip
    both = np.array([*values, *(-value for value in values), np.nan])
    with np.errstate(all="ignore"):
        return both.astype(dtype.numpy)


def whole(dtype: DType) -> Array:
    info = np.iinfo(dtype.numpy)
    near = [0, 1, 2, 3, 5, 7, 8, 10, 31, 32, 63, 64, 100, info.max, info.max - 1, info.max // 2,
            info.min, info.min + 1, info.min // 2]  # fmt: skip
    if dtype.is_signed:
        near += [-1, -2, -3, -7, -10, -64, -100]
    return np.array(sorted(value for value in near if info.min <= value <= info.max), dtype.numpy)


def special(dtype: DType) -> Array:
    if dtype is bool_:
        return np.array([False, True])
    return floats(dtype) if dtype.is_floating_point else whole(dtype)


def type_of(array: Array) -> TensorType:
    return TensorType(array.shape, from_numpy_dtype(array.dtype))


def operands(primitive: Primitive, dtype: DType) -> list[Array]:
    """Every special value, or every pair of them."""
    values = special(dtype)
    if primitive.arity == 1:
        return [values]
    left, right = np.repeat(values, values.size), np.tile(values, values.size)
    if primitive is p.where:
        return [np.arange(left.size) % 3 == 0, left, right]
    if primitive in (p.floor_divide, p.remainder) and not dtype.is_floating_point:
        left, right = left[right != 0], right[right != 0]  # dividing by zero raises eagerly
    return [left, right]


def compiled_values(
    primitive: Primitive, arrays: list[Array], attrs: dict[str, Any]
) -> Iterator[tuple[str, Array]]:
    nodes = [input_node(f"x{at}", type_of(array)) for at, array in enumerate(arrays)]
    graph = Graph(nodes, [Builder().apply(primitive, nodes, attrs)])
    yield "plain", cpu_executable(graph).run(arrays)[0]
    yield "optimised", compile_graph(graph).run(arrays)[0]


def ordered(array: Array) -> Array:
    """Integers in the order of the floats, one apart for neighbours; both zeros are 0."""
    bits = array.view(f"i{array.itemsize}").astype(np.int64)
    low = -(1 << (8 * array.itemsize - 1))
    return np.where(bits < 0, low - bits, bits)


def differing(want: Array, have: Array, ulps: int, zeros: bool = True) -> Array:
    """Where two results are further apart than `ulps`; `zeros` tells -0.0 from 0.0."""
    if want.dtype.kind not in "fV":
        return want != have
    nan = np.isnan(want.astype(np.float64)), np.isnan(have.astype(np.float64))
    apart = np.abs(ordered(want) - ordered(have)) > ulps
    if zeros and not ulps:
        apart |= np.signbit(want.astype(np.float64)) != np.signbit(have.astype(np.float64))
    return np.where(nan[0] | nan[1], nan[0] != nan[1], apart)


def supports(primitive: Primitive, dtype: DType) -> bool:
    kinds = [TensorType((), dtype)] * (primitive.arity or 1)
    if primitive is p.where:
        kinds[0] = TensorType((), bool_)
    try:
        primitive.infer(kinds, {"dtype": dtype})
    except IRTypeError:
        return False
    return True


PAIRS = [
    (primitive, dtype)
    for primitive in ELEMENTWISE
    for dtype in REAL_DTYPES
    if supports(primitive, dtype) and primitive not in (p.cast, p.bitcast, p.require)
]


@pytest.mark.parametrize(("primitive", "dtype"), PAIRS, ids=str)
def test_elementwise(primitive: Primitive, dtype: DType) -> None:
    arrays = operands(primitive, dtype)
    want = evaluate(primitive.name, arrays, {})
    ulps = ULPS.get(primitive.name, 0) if dtype.is_floating_point else 0
    if dtype.is_half:
        ulps = min(ulps, 1)
    for how, have in compiled_values(primitive, arrays, {}):
        wrong = differing(want, have, ulps, primitive.name not in OPEN_ZEROS)
        report(wrong, arrays, want, have, f"{primitive.name}, {how}")


def report(wrong: Array, arrays: list[Array], want: Array, have: Array, what: str) -> None:
    if not wrong.any():
        return
    lines = [
        f"{what}({', '.join(repr(array[at]) for array in arrays)}): "
        f"compiled {have[at]!r}, eager {want[at]!r}"
        for at in np.flatnonzero(wrong)[:20]
    ]
    raise AssertionError(f"{int(wrong.sum())} of {wrong.size} differ\n" + "\n".join(lines))


CASTS = [(source, target) for source in REAL_DTYPES for target in REAL_DTYPES]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_cast(source: DType, target: DType) -> None:
    values = special(source)
    if source.is_floating_point:  # some that integers do not hold
        large = evaluate("cast", [np.array([3e9 + 1, -3e9 - 1, 2**40 + 7])], {"dtype": source})
        values = np.append(values, large)
    want = evaluate("cast", [values], {"dtype": target})
    for how, have in compiled_values(p.cast, [values], {"dtype": target}):
        report(differing(want, have, 0), [values], want, have, f"cast, {how}")


@pytest.mark.parametrize("source", REAL_DTYPES, ids=str)
def test_bitcast(source: DType) -> None:
    values = special(source)
    x = input_node("x", type_of(values))
    targets = [each for each in REAL_DTYPES if each.itemsize == source.itemsize]
    graph = Graph([x], [Builder().apply(p.bitcast, [x], {"dtype": each}) for each in targets])
    for run in (cpu_executable(graph).run, compile_graph(graph).run):
        for target, have in zip(targets, run([values]), strict=True):
            want = evaluate("bitcast", [values], {"dtype": target})
            wrong = (have.view(np.uint8) != want.view(np.uint8)).reshape(values.size, -1).any(1)
            if target.is_half:  # of which NaN stays NaN, but a signalling one becomes quiet
                with np.errstate(invalid="ignore"):  # which some processors say of a signalling one
                    wrong &= ~(np.isnan(want) & np.isnan(have))
            report(wrong, [values], want, have, f"bitcast to {target}")


# -- reductions ------------------------------------------------------------------------------

ROWS: dict[str, list[float]] = {
    "with NaN": [1.0, np.nan, 2.0, -1.0],
    "with infinity": [1.0, np.inf, 2.0, -1.0],
    "with both infinities": [np.inf, 1.0, -np.inf, 2.0],
    "all -inf": [-np.inf] * 4,
    "all inf": [np.inf] * 4,
    "negative zeros": [-0.0] * 4,
    "both zeros": [0.0, -0.0, -0.0, 0.0],
    "zeros the other way": [-0.0, 0.0, 0.0, -0.0],
    "equal": [2.5] * 4,
    "NaN last": [3.0, 1.0, 2.0, np.nan],
    "two NaNs": [np.nan, 3.0, np.nan, 1.0],
    "denormals": [1e-40, -3e-42, 1e-44, 2e-45],
}
REDUCTIONS = (p.sum_, p.prod, p.max_, p.min_, p.argmax, p.argmin)


@pytest.mark.parametrize("length", (4, 60, 1000), ids="length {}".format)
@pytest.mark.parametrize("axis", (0, 1), ids=("columns", "rows"))
@pytest.mark.parametrize("primitive", REDUCTIONS, ids=str)
def test_reductions(primitive: Primitive, axis: int, length: int) -> None:
    rows = [np.resize(np.array(row), length) for row in ROWS.values()]
    for name in ("float32", "float64", "float16", "bfloat16"):
        dtype = next(each for each in REAL_DTYPES if each.name == name)
        with np.errstate(all="ignore"):
            table = np.stack(rows).astype(dtype.numpy)
        array = np.ascontiguousarray(table if axis == 1 else table.T)
        attrs = {"axes": (axis,), "keepdims": False}
        want = evaluate(primitive.name, [array], attrs)
        for how, have in compiled_values(primitive, [array], attrs):
            wrong = differing(want, have, 0, primitive.name not in OPEN_ZEROS)
            if primitive in (p.sum_, p.prod):  # the order of the operations is left open
                wrong &= ~np.isclose(want.astype(float), have.astype(float), rtol=1e-3, atol=1e-40)
            found = [list(ROWS)[at] for at in np.flatnonzero(wrong)]
            assert not found, f"{how} {name}: {found}: {have[wrong]} for {want[wrong]}"


@pytest.mark.parametrize("primitive", REDUCTIONS, ids=str)
def test_integer_reductions_wrap(primitive: Primitive) -> None:
    rng = np.random.default_rng(0)
    for dtype in REAL_DTYPES:
        if not dtype.is_integral:
            continue
        info = np.iinfo(dtype.numpy)
        array = rng.integers(info.min, info.max, (5, 70), dtype.numpy, endpoint=True)
        array[0, :3], array[1, 7:9] = info.max, info.min
        for axis in (0, 1):
            attrs = {"axes": (axis,), "keepdims": False}
            want = evaluate(primitive.name, [array], attrs)
            for how, have in compiled_values(primitive, [array], attrs):
                np.testing.assert_array_equal(have, want, err_msg=f"{how} {dtype} axis {axis}")


def test_every_function_with_a_bound_exists() -> None:
    assert set(ULPS) <= set(PRIMITIVES)


def test_powers_of_a_half_are_no_square_roots() -> None:
    """C99, F.9.4.4: of minus infinity and minus zero they are positive."""
    for dtype in (np.float32, np.float64):
        base, half = np.array([-np.inf, -0.0, 4.0], dtype), np.array(0.5, dtype)
        found = evaluate("pow", [base, half], {})
        assert found.tolist() == [np.inf, 0.0, 2.0] and not np.signbit(found).any()
