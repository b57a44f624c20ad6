"""Random programs over the whole primitive table, drawn by a function `choose(n)` in [0, n).

Every value carries what is known of it: `bound`, which no element's magnitude exceeds; `error`,
by how much two correct engines may differ; and `grain`, where the error is 0: elements are
multiples of 2**-grain. Only values without error reach operations that jump (comparisons, floor,
argmax, casts to integers, positions), but for a value that is compared with its own extreme;
whether a result is free of error follows from the bits
that it needs. So every difference beyond the tracked error is a fault of an engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

import numpy as np
from tgraph.compiler.ir import Builder, Graph, IRTypeError, Node, Primitive, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

from .bounds import known_result

Choose = Callable[[int], int]
Maker = Callable[["Program"], None]
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33, 40)
LARGE_SIZES = (1, 2, 8, 31, 64, 100, 257, 300, 1000, 4099)
DTYPES = (
    float32, float32, float32, float32, float32, float64, float64, float16, bfloat16, int64,
    int64, int32, int32, uint8, int8, int16, bool_,
)  # fmt: skip
MAX_NDIM = 6
FLOAT_LIMIT = {"float16": 500.0, "bfloat16": 1e4, "float32": 1e5, "float64": 1e8}
# An engine may be off by this share of a value's bound before operations on it are not drawn.
MAX_ERROR = 0.05


class Unfit(Exception):
    """The drawn operands do not suit the drawn operation: draw something else."""


@dataclass(frozen=True)
class Value:
    node: Node
    bound: float
    error: float
    grain: int

    @property
    def exact(self) -> bool:
        return self.error == 0

    @property
    def dtype(self) -> DType:
        return self.node.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def ndim(self) -> int:
        return self.node.type.ndim

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.dtype.is_integral

    @property
    def is_bool(self) -> bool:
        return self.dtype is bool_


@dataclass
class Program:
    """A graph under construction, with the arrays to feed it."""

    choose: Choose
    build: Builder = field(default_factory=Builder)
    inputs: list[Node] = field(default_factory=list)
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    preferred: list[Value] = field(default_factory=list)
    sizes: tuple[int, ...] = SIZES
    max_elements: int = 3000
    hazard: bool = False  # positions may lie outside
    outputs: tuple[Value, ...] = ()
    donate: dict[int, int] = field(default_factory=dict)

    def pick(self, options: Sequence[Any]) -> Any:
        if not options:
            raise Unfit
        return options[self.choose(len(options))]

    def maybe(self, one_in: int) -> bool:
        return self.choose(one_in) == one_in - 1

    def draw(self, test: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value for which `test` holds, rather a recent one, so that graphs are deep."""
        found = [value for value in self.values if test(value)]
        if not found:
            raise Unfit
        if self.maybe(4):
            value: Value = self.pick(found)
            return value
        return found[-1 - min(self.choose(6), len(found) - 1)]

    def op(
        self,
        primitive: Primitive,
        *operands: Value,
        bound: float | None = None,
        error: float | None = None,
        **attrs: Any,
    ) -> Value:
        """A new value that is not yet drawn from; `bound` and `error` where more is known."""
        node = self.build.apply(primitive, [each.node for each in operands], attrs)
        if node.type.numel > self.max_elements or node.type.ndim > MAX_NDIM:
            raise Unfit
        known = known_result(primitive, node.type, operands, attrs)
        return self.known(node, known.bound if bound is None else bound,
                          known.error if error is None else error, known.grain)  # fmt: skip

    def known(self, node: Node, bound: float, error: float, grain: int) -> Value:
        """A value with what its type does to it: integers wrap, floats round."""
        dtype = node.type.dtype
        if dtype.kind != "float":
            whole = dtype.is_integral and not bound <= np.iinfo(dtype.numpy).max
            return Value(node, inf if whole else bound, 0.0, 0)
        if not bound <= FLOAT_LIMIT[dtype.name]:
            raise Unfit
        eps = 2.0 ** -mantissa(dtype)
        if error > 0 or math.log2(max(bound, 1e-9)) + grain > mantissa(dtype) - 1:
            error += 2 * bound * eps
        if error > MAX_ERROR * max(bound, 1.0):
            raise Unfit
        return Value(node, bound, error, grain)

    def keep(self, value: Value) -> Value:
        """Let later operations draw `value`."""
        self.values.append(value)
        return value

    def const(self, number: Any, dtype: DType) -> Value:
        """A Python scalar as a value; a multiple of 1/4 is exact."""
        node = self.build.full((), number, dtype)
        exact = dtype.kind != "float" or number * 4 == int(number * 4)
        return self.known(node, abs(float(number)), 0.0, 2 if exact else 60)

    def array(self, array: np.ndarray[Any, Any]) -> Value:
        """An array constant of integers."""
        node = self.build.apply(p.constant, [], {"value": array})
        return self.known(node, float(np.abs(array).max(initial=0)), 0.0, 0)

    def broadcasts(self, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        try:
            return prod(np.broadcast_shapes(a, b)) <= self.max_elements
        except ValueError:
            return False

    def partner(self, value: Value, test: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value of the same dtype that broadcasts with `value`, or a constant."""
        found = [
            other
            for other in self.values
            if other.dtype is value.dtype and self.broadcasts(other.shape, value.shape)
        ]
        found = [other for other in found if test(other)]
        if not found or self.choose(3) == 0:
            number = self.choose(6)
            if value.is_bool:
                return self.const(bool(number % 2), bool_)
            return self.const(number / 2 - 0.5 if value.is_float else number, value.dtype)
        other: Value = self.pick(found)
        return other

    def graph(self) -> Graph:
        return Graph(self.inputs, [value.node for value in self.outputs])


def mantissa(dtype: DType) -> int:
    """Bits of precision of a float type."""
    return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]


def random_program(choose: Choose, steps: int, makers: Sequence[Maker]) -> Program:
    """A program of about `steps` operations of `makers` on one to four inputs."""
    program = Program(choose)
    if program.maybe(12):
        program.sizes, program.max_elements = LARGE_SIZES, 60_000
    elif program.maybe(10):
        program.sizes = (0, 1, 2, 3, 5, 8)
    program.hazard = program.maybe(25)
    for number in range(1 + choose(4)):
        add_input(program, number)
    for _ in range(steps):
        try:
            program.pick(makers)(program)
        except (Unfit, IRTypeError):
            continue
    _finish(program)
    return program


def add_input(program: Program, number: int) -> None:
    shape = tuple(program.pick(program.sizes) for _ in range(program.choose(5)))
    if program.inputs and program.maybe(3):
        shape = program.pick(program.inputs).shape  # so that outputs can replace inputs
    while prod(shape) > program.max_elements:
        shape = shape[1:]
    dtype: DType = program.pick(DTYPES)
    if program.inputs and program.maybe(2):
        dtype = program.pick(program.inputs).type.dtype
    array = _laid_out(program, _data(program.choose(1000), shape, dtype))
    node = input_node(f"x{number}", TensorType(shape, dtype))
    program.inputs.append(node)
    program.arrays.append(array)
    largest = 2.0 if dtype.kind == "float" else 6.0
    program.keep(Value(node, largest, 0.0, 2 if dtype.kind == "float" else 0))


def _data(seed: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype is bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "float":
        return np.asarray(rng.integers(-8, 9, shape) / 4).astype(dtype.numpy)
    low = 0 if dtype.kind == "uint" else -3
    return np.asarray(rng.integers(low, 7, shape)).astype(dtype.numpy)


def _laid_out(program: Program, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same elements, at times with gaps, transposed, or repeated by a stride of 0."""
    kind = program.choose(8)
    if array.ndim == 0 or kind < 5:
        return np.ascontiguousarray(array).reshape(array.shape)
    if kind == 5:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if kind == 6:
        axes = list(range(array.ndim))
        order = [axes.pop(program.choose(len(axes))) for _ in range(len(axes))]
        back = np.argsort(order)
        return np.ascontiguousarray(array.transpose(order)).transpose(back)
    axis = program.choose(array.ndim)
    one = np.ascontiguousarray(array.take([0], axis)) if array.shape[axis] else array
    return np.broadcast_to(one, array.shape)


def _finish(program: Program) -> None:
    """Choose outputs, and inputs whose memory some of them take."""
    wanted = list(program.preferred) or [program.values[-1]]
    read = {operand for value in program.values for operand in value.node.inputs}
    unread = [value for value in program.values if value.node not in read]
    for _ in range(program.choose(5)):
        wanted.append(program.pick(unread or program.values))
    if program.maybe(3):
        wanted.append(program.pick(program.values))
    program.outputs = tuple(wanted)
    if not program.maybe(3):
        return
    free = [
        number
        for number, array in enumerate(program.arrays)
        if array.flags.writeable and not _overlaps_itself(array)
    ]
    for at, value in enumerate(wanted):
        fitting = [number for number in free if program.inputs[number].type == value.node.type]
        if fitting and value.node not in program.inputs and value not in wanted[:at]:
            chosen: int = program.pick(fitting)
            program.donate[at] = chosen
            free.remove(chosen)


def _overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape))
