"""Random graphs over the whole primitive table, with a way to compare several engines on them.

Values carry an exactness: an exact float is a small dyadic number on which additions, products
and comparisons are exact in every engine, so only exact values reach operations that jump
(comparisons, floor, argmax, casts to integers, indices). The rest is compared by tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tgraph.compiler.ir import Builder, Graph, IRTypeError, Node, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import DType, bool_, float16, float32, float64, int32, int64, uint8

Choose = Callable[[int], int]
MAX_ELEMENTS = 3000
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33, 40)
DTYPES = (float32, float32, float32, float32, float64, float16, int64, int32, uint8, bool_)
SMOOTH = (p.exp, p.tanh, p.sin, p.cos, p.erf, p.atan, p.expm1, p.sinh, p.cosh)
HALVES = (p.neg, p.abs_, p.copy)
JUMPS = (p.floor, p.ceil, p.round_, p.trunc, p.sign)
COMPARISONS = (p.eq, p.ne, p.lt, p.le, p.gt, p.ge)


@dataclass
class Value:
    node: Node
    exact: bool
    bound: float  # no element is larger


@dataclass
class Program:
    """A graph under construction; `lines` are Python that builds it again."""

    choose: Choose
    build: Builder = field(default_factory=Builder)
    inputs: list[Node] = field(default_factory=list)
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def pick(self, options: Any) -> Any:
        return options[self.choose(len(options))]

    def add(self, prim: Any, operands: list[Node], exact: bool, bound: float, **attrs: Any) -> None:
        node = self.build.apply(prim, operands, attrs)
        if node.type.numel <= MAX_ELEMENTS:
            self.values.append(Value(node, exact, bound))

    def of(self, test: Callable[[Value], bool]) -> list[Value]:
        return [value for value in self.values if test(value)]

    def graph(self) -> Graph:
        outputs = [self.values[-1].node]
        for _ in range(self.choose(3)):
            outputs.append(self.pick(self.values).node)
        return Graph(self.inputs, outputs)


def random_program(choose: Choose, steps: int) -> Program:
    """A program of about `steps` operations on one to three inputs."""
    program = Program(choose)
    for number in range(1 + choose(3)):
        _input(program, number)
    makers = [*MAKERS]
    for _ in range(steps):
        try:
            program.pick(makers)(program)
        except IRTypeError:
            continue  # the drawn operands do not fit: draw something else
    return program


def _input(program: Program, number: int) -> None:
    shape = tuple(program.pick(SIZES) for _ in range(program.choose(4)))
    while prod(shape) > MAX_ELEMENTS:
        shape = shape[1:]
    dtype: DType = program.pick(DTYPES)
    node = input_node(f"x{number}", TensorType(shape, dtype))
    seed = program.choose(1000)
    rng = np.random.default_rng(seed)
    if dtype is bool_:
        array = rng.integers(0, 2, shape).astype(bool)
    elif dtype.kind == "float":
        array = (rng.integers(-8, 9, shape) / 4).astype(dtype.numpy)
    else:
        array = rng.integers(0, 6, shape).astype(dtype.numpy)
    program.inputs.append(node)
    program.arrays.append(np.asarray(array))
    program.values.append(Value(node, True, 5.0 if dtype.kind != "float" else 2.0))


def _is_float(value: Value) -> bool:
    return value.node.type.dtype.kind == "float"


def _is_number(value: Value) -> bool:
    return value.node.type.dtype is not bool_


def _limit(value: Value) -> float:
    return {"float16": 64.0, "uint8": 200.0}.get(value.node.type.dtype.name, 1e4)


def _draw(program: Program, test: Callable[[Value], bool]) -> Value:
    found = program.of(test)
    if not found:
        raise IRTypeError("no such value yet")
    # Prefer recent values, so that graphs are deep.
    value: Value = found[-1 - min(program.choose(6), len(found) - 1)]
    return value


def _partner(program: Program, value: Value) -> Value:
    """A value of the same type, broadcast to it from a smaller one, or a constant."""
    dtype = value.node.type.dtype
    found = program.of(lambda other: other.node.type.dtype is dtype)
    other: Value = program.pick(found)
    if program.choose(3) == 0 or not _broadcasts(other.node.shape, value.node.shape):
        number = program.choose(4)
        constant: Any = bool(number % 2) if dtype is bool_ else number
        if dtype.kind == "float":
            constant = number / 2 - 0.5
        return Value(program.build.full((), constant, dtype), True, 3.0)
    return other


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return prod(np.broadcast_shapes(a, b)) <= MAX_ELEMENTS
    except ValueError:
        return False


def _unary(program: Program) -> None:
    kind = program.choose(3)
    if kind == 0:
        value = _draw(program, _is_float)
        if value.bound <= 4:
            bound = 64.0 if value.bound > 1 else 8.0
            program.add(program.pick(SMOOTH), [value.node], False, bound)
    elif kind == 1:
        value = _draw(program, _is_number)
        prim = program.pick(HALVES)
        if not (prim is p.neg and value.node.type.dtype.kind == "uint"):
            program.add(prim, [value.node], value.exact, value.bound)
    else:
        value = _draw(program, lambda v: _is_float(v) and v.exact)
        program.add(program.pick(JUMPS), [value.node], True, value.bound + 1)


def _squash(program: Program) -> None:
    value = _draw(program, _is_float)
    program.add(p.tanh, [value.node], False, 1.0)


def _binary(program: Program) -> None:
    value = _draw(program, _is_number)
    other = _partner(program, value)
    prim = program.pick((p.add, p.sub, p.mul, p.maximum, p.minimum))
    exact = value.exact and other.exact
    bound = value.bound * other.bound if prim is p.mul else value.bound + other.bound
    unsigned = value.node.type.dtype.kind == "uint" and prim is p.sub
    if bound < _limit(value) and not unsigned:
        program.add(prim, [value.node, other.node], exact, bound)


def _divide(program: Program) -> None:
    value = _draw(program, lambda v: _is_float(v) and v.bound < 100)
    other = _partner(program, value)
    one = program.build.full((), 1.5, value.node.type.dtype)
    positive = program.build.apply(
        p.add, [program.build.apply(p.mul, [other.node, other.node]), one]
    )
    prim = program.pick((p.div, p.sqrt, p.log, p.rsqrt, p.reciprocal, p.atan2, p.pow_))
    if other.bound > 30:
        return
    if prim in (p.div, p.atan2):
        program.add(prim, [value.node, positive], False, value.bound + 2)
    elif prim is p.pow_:
        half = program.build.full((), 0.75, value.node.type.dtype)
        program.add(prim, [positive, half], False, 200.0)
    else:
        program.add(prim, [positive], False, 40.0)


def _compare(program: Program) -> None:
    value = _draw(program, lambda v: v.exact)
    other = _partner(program, value)
    if other.exact:
        program.add(program.pick(COMPARISONS), [value.node, other.node], True, 1.0)


def _logic(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.dtype is bool_)
    if program.choose(3) == 0:
        program.add(p.logical_not, [value.node], True, 1.0)
        return
    other = _partner(program, value)
    prim = program.pick((p.logical_and, p.logical_or, p.logical_xor, p.bitwise_and))
    program.add(prim, [value.node, other.node], True, 1.0)


def _where(program: Program) -> None:
    condition = _draw(program, lambda v: v.node.type.dtype is bool_)
    value = program.pick(program.values)
    other = _partner(program, value)
    if _broadcasts(condition.node.shape, np.broadcast_shapes(value.node.shape, other.node.shape)):
        exact = value.exact and other.exact
        bound = max(value.bound, other.bound)
        program.add(p.where, [condition.node, value.node, other.node], exact, bound)


def _cast(program: Program) -> None:
    value = program.pick(program.values)
    dtype: DType = program.pick(DTYPES)
    if not value.exact and dtype.kind != "float":
        return
    if dtype is uint8 and value.node.type.dtype.is_signed:
        return
    exact = value.exact and (dtype.kind != "float" or dtype.itemsize >= 4 or value.bound < 16)
    program.add(p.cast, [value.node], exact and dtype is not float16, value.bound, dtype=dtype)


def _axes(program: Program, ndim: int) -> tuple[int, ...]:
    axes = tuple(axis for axis in range(ndim) if program.choose(2))
    return axes or ((program.choose(ndim),) if ndim else ())


def _reduce(program: Program) -> None:
    value = _draw(program, _is_number)
    axes = _axes(program, value.node.type.ndim)
    count = prod(value.node.shape[axis] for axis in axes)
    keepdims = bool(program.choose(2))
    prim = program.pick((p.sum_, p.sum_, p.max_, p.min_))
    bound = value.bound * count if prim is p.sum_ else value.bound
    if bound < _limit(value):
        program.add(prim, [value.node], value.exact, bound, axes=axes, keepdims=keepdims)


def _normalize(program: Program) -> None:
    """What softmax and layer norm do: several reductions over one row."""
    value = _draw(program, lambda v: _is_float(v) and v.node.type.ndim > 0 and v.bound < 50)
    build, x = program.build, value.node
    axis = (x.type.ndim - 1,) if program.choose(3) else (program.choose(x.type.ndim),)
    keep = {"axes": axis, "keepdims": True}
    if program.choose(2):
        top = build.apply(p.max_, [x], keep)
        e = build.apply(p.exp, [build.apply(p.sub, [x, top])])
        total = build.apply(p.sum_, [e], keep)
        program.add(p.div, [e, total], False, 1.0)
        return
    scale = build.full((), 1 / x.shape[axis[0]], x.type.dtype)
    mean = build.apply(p.mul, [build.apply(p.sum_, [x], keep), scale])
    centered = build.apply(p.sub, [x, mean])
    square = build.apply(p.mul, [centered, centered])
    variance = build.apply(p.mul, [build.apply(p.sum_, [square], keep), scale])
    one = build.full((), 1.0, x.type.dtype)
    program.add(
        p.mul,
        [centered, build.apply(p.rsqrt, [build.apply(p.add, [variance, one])])],
        False,
        value.bound * 2,
    )


def _logical_reduce(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.dtype is bool_)
    axes = _axes(program, value.node.type.ndim)
    prim = program.pick((p.any_, p.all_))
    program.add(prim, [value.node], True, 1.0, axes=axes, keepdims=bool(program.choose(2)))


def _position(program: Program) -> None:
    value = _draw(program, lambda v: v.exact and v.node.type.ndim > 0)
    axis = program.choose(value.node.type.ndim)
    prim = program.pick((p.argmax, p.argmin))
    size = float(value.node.shape[axis])
    program.add(prim, [value.node], True, size, axes=(axis,), keepdims=bool(program.choose(2)))


def _reshape(program: Program) -> None:
    value = program.pick(program.values)
    shape = list(value.node.shape)
    kind = program.choose(3)
    if kind == 0 and len(shape) > 1:
        axis = program.choose(len(shape) - 1)
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif kind == 1 and shape:
        axis = program.choose(len(shape))
        factors = [f for f in (2, 3, 4, 5) if shape[axis] % f == 0]
        if factors:
            f = program.pick(factors)
            shape[axis : axis + 1] = [shape[axis] // f, f]
    else:
        shape.insert(program.choose(len(shape) + 1), 1)
    if len(shape) <= 5:
        program.add(p.reshape, [value.node], value.exact, value.bound, shape=tuple(shape))


def _permute(program: Program) -> None:
    value = program.pick(program.values)
    rest = list(range(value.node.type.ndim))
    axes = tuple(rest.pop(program.choose(len(rest))) for _ in range(len(rest)))
    program.add(p.permute, [value.node], value.exact, value.bound, axes=axes)


def _broadcast(program: Program) -> None:
    value = program.pick(program.values)
    shape = [program.pick((2, 3, 9)) if size == 1 else size for size in value.node.shape]
    if program.choose(2):
        shape.insert(0, program.pick((2, 4)))
    if prod(shape) <= MAX_ELEMENTS:
        program.add(p.broadcast, [value.node], value.exact, value.bound, shape=tuple(shape))


def _slice(program: Program) -> None:
    value = program.pick(program.values)
    starts, stops, steps = [], [], []
    for size in value.node.shape:
        start = program.choose(size)
        starts.append(start)
        stops.append(start + 1 + program.choose(size - start))
        steps.append(1 + program.choose(3))
    program.add(
        p.slice_, [value.node], value.exact, value.bound,
        starts=tuple(starts), stops=tuple(stops), steps=tuple(steps),
    )  # fmt: skip


def _pad(program: Program) -> None:
    value = program.pick(program.values)
    ndim = value.node.type.ndim
    low, high, interior = (
        tuple(program.choose(3) for _ in range(ndim)),
        tuple(program.choose(3) for _ in range(ndim)),
        tuple(program.choose(2) for _ in range(ndim)),
    )
    dtype = value.node.type.dtype
    fill: Any = True if dtype is bool_ else 1 if dtype.kind != "float" else 1.5
    program.add(
        p.pad, [value.node], value.exact, max(value.bound, 2.0),
        low=low, high=high, interior=interior, value=fill,
    )  # fmt: skip


def _flip(program: Program) -> None:
    value = program.pick(program.values)
    axes = _axes(program, value.node.type.ndim)
    program.add(p.flip, [value.node], value.exact, value.bound, axes=axes)


def _concatenate(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.ndim > 0)
    axis = program.choose(value.node.type.ndim)
    found = program.of(
        lambda v: v.node.type.dtype is value.node.type.dtype
        and v.node.type.ndim == value.node.type.ndim
        and v.node.shape[:axis] == value.node.shape[:axis]
        and v.node.shape[axis + 1 :] == value.node.shape[axis + 1 :]
    )
    parts = [value, *(program.pick(found) for _ in range(1 + program.choose(2)))]
    program.add(
        p.concatenate, [part.node for part in parts], all(part.exact for part in parts),
        max(part.bound for part in parts), axis=axis,
    )  # fmt: skip


def _slice_update(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.ndim > 0)
    starts = tuple(program.choose(size) for size in value.node.shape)
    steps = tuple(1 + program.choose(2) for _ in value.node.shape)
    attrs = {"starts": starts, "stops": value.node.shape, "steps": steps}
    part = program.build.apply(p.slice_, [value.node], attrs)
    other = _partner(program, value)
    if not _broadcasts(other.node.shape, part.shape):
        return
    if np.broadcast_shapes(other.node.shape, part.shape) != part.shape:
        return
    update = program.build.apply(p.broadcast, [other.node], {"shape": part.shape})
    exact, bound = value.exact and other.exact, max(value.bound, other.bound)
    program.add(p.slice_update, [value.node, update], exact, bound, **attrs)


def _windows(program: Program) -> None:
    value = _draw(program, lambda v: _is_number(v) and v.node.type.ndim > 0)
    axis = program.choose(value.node.type.ndim)
    size = 1 + program.choose(min(4, value.node.shape[axis]))
    attrs = {
        "axes": (axis,),
        "sizes": (size,),
        "strides": (1 + program.choose(2),),
        "dilations": (1 + program.choose(2),),
    }
    windows = program.build.apply(p.unfold, [value.node], attrs)
    if min(windows.shape, default=1) == 0 or windows.type.numel > MAX_ELEMENTS:
        return
    if program.choose(2):
        prim = program.pick((p.max_, p.sum_))
        bound = value.bound * size
        if bound < _limit(value):
            last = (windows.type.ndim - 1,)
            program.add(prim, [windows], value.exact, bound, axes=last, keepdims=False)
    elif value.bound * size < _limit(value):
        attrs.pop("sizes")
        program.add(
            p.fold, [windows], value.exact, value.bound * size, shape=value.node.shape, **attrs
        )


def _positions(program: Program, size: int, shape: tuple[int, ...]) -> Node:
    """An index tensor with entries in [0, size), computed or constant."""
    rng = np.random.default_rng(program.choose(100))
    dtype = program.pick((np.int64, np.int32))
    constant = program.build.apply(p.constant, [], {"value": rng.integers(0, size, shape, dtype)})
    return constant


def _index(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.ndim > 0)
    axis = program.choose(value.node.type.ndim)
    shape = tuple(program.pick((1, 3, 6)) for _ in range(program.choose(3)))
    index = _positions(program, value.node.shape[axis], shape)
    program.add(p.index, [value.node, index], value.exact, value.bound, axis=axis)


def _gather(program: Program) -> None:
    value = _draw(program, lambda v: v.node.type.ndim > 0)
    axis = program.choose(value.node.type.ndim)
    shape = list(value.node.shape)
    shape[axis] = program.pick((1, 4))
    index = _positions(program, value.node.shape[axis], tuple(shape))
    program.add(p.gather, [value.node, index], value.exact, value.bound, axis=axis)


def _scatter(program: Program) -> None:
    value = _draw(program, lambda v: _is_number(v) and v.node.type.ndim > 0)
    if value.bound * 20 > _limit(value):
        return
    axis = program.choose(value.node.type.ndim)
    shape = list(value.node.shape)
    shape[axis] = program.pick((1, 4))
    index = _positions(program, value.node.shape[axis], tuple(shape))
    source = program.build.apply(p.gather, [value.node, index], {"axis": axis})
    bound = value.bound * 20
    kind = program.choose(3)
    if kind == 0:
        operands = [value.node, index, source]
        program.add(p.scatter_add, operands, value.exact, bound, axis=axis)
        return
    index = _positions(program, value.node.shape[axis], (3,))
    source = program.build.apply(p.index, [value.node, index], {"axis": axis})
    program.add(
        p.index_put, [value.node, index, source], value.exact, bound,
        axis=axis, accumulate=kind == 1,
    )  # fmt: skip


def _matmul(program: Program) -> None:
    value = _draw(program, lambda v: _is_number(v) and v.node.type.ndim >= 2)
    dtype = value.node.type.dtype
    found = program.of(lambda v: v.node.type.dtype is dtype and v.node.type.ndim >= 2)
    other: Value = program.pick(found)
    k = max(value.node.shape[-2:])
    bound = value.bound * other.bound * k
    if bound > _limit(value):
        return
    program.add(
        p.matmul, [value.node, other.node], value.exact and other.exact, bound,
        transpose_a=bool(program.choose(2)), transpose_b=bool(program.choose(2)),
    )  # fmt: skip


def _iota(program: Program) -> None:
    size = program.pick(SIZES)
    dtype = program.pick((int64, float32))
    program.add(p.iota, [], True, float(size), size=size, dtype=dtype)


def _random(program: Program) -> None:
    key = program.build.apply(p.constant, [], {"value": np.array([program.choose(50), 7])})
    shape = tuple(program.pick((1, 3, 8)) for _ in range(program.choose(3)))
    bits = program.build.apply(p.random_bits, [key], {"shape": shape, "offset": program.choose(3)})
    twenty = program.build.full((), 20, bits.type.dtype)
    small = program.build.apply(p.shift_right, [bits, twenty])
    as_int = program.build.apply(p.cast, [small], {"dtype": int32})
    program.values.append(Value(as_int, True, 4096.0))


MAKERS = (
    _unary, _unary, _squash, _binary, _binary, _binary, _divide, _compare, _logic, _where, _where,
    _cast, _reduce, _reduce, _normalize, _logical_reduce, _position, _reshape, _reshape, _permute,
    _permute, _broadcast, _slice, _pad, _flip, _concatenate, _slice_update, _windows, _index,
    _gather, _scatter, _matmul, _matmul, _iota, _random,
)  # fmt: skip
