"""Graphs on which an engine was wrong once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_graphs.check import ENGINES, Case, check
from tgraph.compiler.ir import Builder, Graph, Node, Primitive, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import from_numpy_dtype, int16, int32, int64

FOUND: list[Callable[[], Case]] = []


def found(make: Callable[[], Case]) -> Callable[[], Case]:
    FOUND.append(make)
    return make


class Make:
    """Short words to build a case with."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.build = Builder()
        self.arrays = arrays
        self.inputs = [
            input_node(f"x{number}", TensorType(array.shape, from_numpy_dtype(array.dtype)))
            for number, array in enumerate(arrays)
        ]

    def __call__(self, primitive: Primitive, *operands: Node, **attrs: object) -> Node:
        return self.build.apply(primitive, operands, attrs)

    def positions(self, *values: int, dtype: type = np.int64) -> Node:
        return self.build.apply(p.constant, [], {"value": np.array(values, dtype)})

    def case(self, *outputs: Node, donate: dict[int, int] | None = None) -> Case:
        graph = Graph(self.inputs, outputs)
        return Case(graph, self.arrays, (1e-5,) * len(outputs), donate or {})


# -- tensors without elements ----------------------------------------------------------------


def empty_case(primitive: Primitive, *shapes: tuple[int, ...], **attrs: object) -> Case:
    make = Make(*(np.zeros(shape, np.float32) for shape in shapes))
    return make.case(make(primitive, *make.inputs, **attrs))


@found
def comparison_of_nothing() -> Case:
    return empty_case(p.gt, (2, 3, 0), (1,))


@found
def input_of_no_elements_returned() -> Case:
    make = Make(np.zeros((1, 5, 0), np.float32))
    return make.case(make.inputs[0])


@found
def reshape_of_nothing() -> Case:
    return empty_case(p.reshape, (1, 0, 8, 3), shape=(0,))


@found
def concatenation_of_nothing() -> Case:
    return empty_case(p.concatenate, (0,), (0,), axis=0)


@found
def position_of_a_maximum_in_no_rows() -> Case:
    return empty_case(p.argmax, (3, 2, 0, 5), axes=(1,), keepdims=True)


@found
def windows_of_nothing_added_up() -> Case:
    return empty_case(
        p.fold, (1, 0, 4), axes=(0,), dilations=(1,), shape=(5, 0), strides=(2,)
    )  # fmt: skip


@found
def product_over_nothing() -> Case:
    return empty_case(p.matmul, (2, 0), (0, 3), transpose_a=False, transpose_b=False)


@found
def sum_over_nothing() -> Case:
    return empty_case(p.sum_, (2, 0), axes=(1,), keepdims=False)


@found
def donated_output_of_no_elements() -> Case:
    make = Make(np.zeros((0, 2), np.float32), np.ones(3, np.float32))
    build = make.build
    outputs = [build.apply(p.neg, [node]) for node in make.inputs]
    return make.case(*outputs, donate={0: 0, 1: 1})


# -- positions ---------------------------------------------------------------------------------


@found
def position_outside_an_axis_of_one() -> Case:
    """No address depends on it, but it is an error all the same."""
    make = Make(np.zeros((), np.float32))
    row = make(p.reshape, make(p.neg, make.inputs[0]), shape=(1,))
    return make.case(make(p.gather, row, make.positions(2, 1), axis=0))


@found
def adding_at_positions_in_an_axis_of_one() -> Case:
    """The base is also where positions come from."""
    make = Make(np.zeros((12, 1), np.int32), np.ones((12, 1), np.int32))
    base, source = make.inputs
    one = make.build.full((), 1, int32)
    at = make(p.remainder, base, one)
    return make.case(make(p.scatter_add, base, at, source, axis=1))


# -- memory ------------------------------------------------------------------------------------


@found
def whole_input_replaced_in_its_own_memory() -> Case:
    make = Make(np.array([False]), np.array([True]))
    base, update = make.inputs
    whole = {"starts": (0,), "stops": (1,), "steps": (2,)}
    return make.case(make(p.slice_update, base, update, **whole), donate={0: 0})


@found
def product_of_a_repeated_column() -> Case:
    """Strides of zero are nothing that BLAS could read."""
    make = Make(np.broadcast_to(np.arange(40.0)[:, None], (40, 17)), np.ones((40, 17)))
    left, right = make.inputs
    return make.case(make(p.matmul, right, left, transpose_a=True, transpose_b=False))


@found
def product_of_every_other_column() -> Case:
    make = Make(np.arange(8 * 3 * 34, dtype=np.float32).reshape(8, 3, 34)[..., ::2] / 64)
    x = make.inputs[0]
    return make.case(make(p.matmul, x, x, transpose_a=False, transpose_b=True))


@found
def constant_returned() -> Case:
    make = Make(np.ones(3, np.float32))
    return make.case(make.positions(1, 2, 3), make(p.neg, make.inputs[0]))


# -- arithmetic --------------------------------------------------------------------------------


def integer_power(dtype: type, low: int, high: int) -> Case:
    """Also wrapping, and to negative powers."""
    rng = np.random.default_rng(0)
    base = rng.integers(low, high, 400).astype(dtype)
    exponent = rng.integers(-5 if low < 0 else 0, 40, 400).astype(dtype)
    make = Make(base, exponent)
    return make.case(make(p.pow_, *make.inputs))


@found
def integer_power_of_bytes() -> Case:
    return integer_power(np.uint8, 0, 255)


@found
def integer_power_of_signed_bytes() -> Case:
    return integer_power(np.int8, -128, 127)


@found
def integer_power_of_int64() -> Case:
    return integer_power(np.int64, -5, 5)


@found
def product_of_numbers_of_different_sizes() -> Case:
    """The factor taken out of an inner product was smaller than the result."""
    make = Make(np.zeros((1, 4, 3), np.int16), np.zeros((4, 3), np.int64))
    x, y = make.inputs
    always = make(p.where, make(p.ge, y, y), make.build.full((), 3, int16), x)
    return make.case(make(p.mul, make(p.mul, always, always), always))


# -- Python functions inside a plan --------------------------------------------------------------


def halves(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return array[:2], array[2:]


def host_case(*arrays: np.ndarray, flat: bool) -> Case:
    make = Make(*arrays)
    x = make.inputs[0]
    given = make(p.reshape, x, shape=(x.type.numel,)) if flat else x
    rest = given.type.with_shape((given.shape[0] - 2, *given.shape[1:]))
    results = (given.type.with_shape((2, *given.shape[1:])), rest)
    call = make(p.host_call, given, function=halves, results=results, name="halves")
    first, second = (make(p.get, call, index=at) for at in (0, 1))
    return make.case(make(p.neg, second), make(p.add, first, first))


@found
def results_of_a_function_that_are_read_later() -> Case:
    return host_case(np.arange(12.0).reshape(4, 3), flat=False)


@found
def function_of_a_reshaped_input() -> Case:
    return host_case(np.arange(12.0).reshape(4, 3), flat=True)


@found
def function_of_a_reshaped_strided_input() -> Case:
    return host_case(np.arange(24.0).reshape(4, 6)[:, ::2], flat=True)


# -- rows saved between stages -----------------------------------------------------------------


@found
def value_saved_by_a_stage_of_other_axes() -> Case:
    """The root is saved while the second sum runs; the stage that gathers has no axes."""
    rng = np.random.default_rng(0)
    x, y, z = (rng.uniform(0.1, 1, 33).astype(np.float32) for _ in range(3))
    make = Make(x, y, z, np.array([4], np.int32))
    a, b, c, at = make.inputs
    keep = {"axes": (0,), "keepdims": True}
    unit = make(p.mul, a, make(p.rsqrt, make(p.sum_, b, **keep)))
    length = make(p.sum_, make(p.mul, unit, a), **keep)
    rest = make(p.sub, a, make(p.mul, unit, length))
    picked = make(p.gather, rest, at, axis=0)
    squashed = make(p.tanh, picked)
    return make.case(make(p.add, c, make(p.mul, squashed, squashed)), picked)


@found
def running_sum_of_one() -> Case:
    """The kernel has one stage without loops, whose sums must start at zero nevertheless."""
    make = Make(np.arange(68, dtype=np.float32).reshape(4, 1, 17))
    return make.case(make(p.cumsum, *make.inputs, axis=1, reverse=False))


@found
def windows_of_a_product_with_one_column() -> Case:
    """BLAS reads them, as a matrix that lies where the windows are."""
    make = Make(np.ones((4, 1, 16)), np.ones((1, 1, 3)))
    attrs = {"strides": (2,), "padding": ((1, 2),), "dilation": (1,), "input_dilation": (2,)}
    return make.case(make(p.convolution, *make.inputs, groups=1, **attrs))


@found
def division_in_a_part_of_a_concatenation() -> Case:
    """Elsewhere the divisor is not wanted, and what a masked load gives in its place is 0."""
    numbers = np.arange(8, dtype=np.uint8).reshape(4, 2)
    make = Make(numbers, numbers + 3, np.array([[2, 3]], np.uint8))
    a, b, divisor = make.inputs
    rest = make(p.remainder, b, divisor)
    return make.case(make(p.concatenate, a, rest, axis=0), make(p.floor_divide, b, divisor))


@found
def positions_worked_out_in_a_pad() -> Case:
    """Where nothing is wanted they may be anything, and are no error."""
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    make = Make(table, np.array([-7, -5, -6], np.int64))
    values, shifted = make.inputs
    count = make(p.iota, size=6, dtype=int64)
    turned = make(p.sub, make.positions(5), count)
    moved = make(p.add, shifted, make.positions(8))
    around = {"low": (1, 0), "high": (2, 0), "interior": (0, 0)}
    rows = [make(p.index, values, at, axis=0) for at in (turned, moved)]
    flipped = make(p.index, values, make(p.flip, count, axes=(0,)), axis=0)
    return make.case(*(make(p.pad, each, **around, value=0.0) for each in (*rows, flipped)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", FOUND, ids=lambda make: make.__name__)
def test_found_graph(make, engine):
    check(make(), [engine])
