"""What passes ask of nodes, and the small nodes they make."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...runtime.arrays import evaluate
from ...runtime.device import CPU
from ...runtime.dtypes import DType
from ...runtime.memo import Memo
from ..ir import Builder, Node, Primitive, TensorType
from ..ir import primitives as p
from ..ir.node import attr_key
from ..ir.shapes import Shape
from ..ir.size_number import computed, is_expression, is_made_by

CONSTANTS = frozenset({p.full, p.constant})


def is_constant(node: Node) -> bool:
    """Whether the value is known: one scalar or a whole array."""
    return node.primitive in CONSTANTS


def scalar_of(node: Node) -> Any:
    """The one value that a `full` holds everywhere, else None."""
    return node.attrs["value"] if node.primitive is p.full else None


def holds(node: Node, value: bool | int | float) -> bool:
    """Whether `node` is this one number everywhere, the sign of zero included.

    Its dtype decides whether the number is a bool, an int or a float.
    """
    if node.primitive is not p.full:
        return False
    found, dtype = node.attrs["value"], node.type.dtype
    if is_expression(found):
        return bool(found == scalar_as(value, dtype))
    key = attr_key(value), dtype
    wanted = _keys.get(key) or _keys.keep(key, attr_key(scalar_as(value, dtype)))
    return bool(attr_key(found) == wanted)


# Of the numbers that rules look for, as each dtype has them.
_keys: Memo[Any, Any] = Memo(2_000)


def scalar_as(value: Any, dtype: DType) -> bool | int | float | complex:
    """`value` as the Python scalar that `dtype` makes of it: rounded, wrapped, truncated."""
    if is_expression(value):
        function = _scalar_as(dtype)
        made: Any = value if is_made_by(function, value) else computed(function, value)
        return made  # type: ignore[no-any-return]
    array = evaluate("full", [], {"shape": (), "value": value, "dtype": dtype})
    if dtype.kind == "bool":
        return bool(array)
    if dtype.is_complex:
        return complex(array)
    return float(array) if dtype.is_floating_point else int(array)


@functools.cache
def _scalar_as(dtype: DType) -> Callable[[Any], Any]:
    return functools.partial(scalar_as, dtype=dtype)


def full(build: Builder, type_: TensorType, value: Any) -> Node:
    """A `full` of this type; `value` becomes what the dtype makes of it."""
    value = scalar_as(value, type_.dtype)
    attrs: dict[str, Any] = {"shape": type_.shape, "value": value, "dtype": type_.dtype}
    if type_.device != CPU:
        attrs["device"] = type_.device
    return build.apply(p.full, (), attrs)


def constant(build: Builder, type_: TensorType, value: Any) -> Node:
    """An array constant on the device of `type_`."""
    attrs = {"value": value} if type_.device == CPU else {"value": value, "device": type_.device}
    return build.apply(p.constant, (), attrs)


def scalar(build: Builder, like: Node, value: Any) -> Node:
    """A 0-d `full` of the dtype and device of `like`."""
    return full(build, like.type.with_shape(()), value)


def reshape(build: Builder, node: Node, shape: Shape) -> Node:
    return node if node.shape == shape else build.apply(p.reshape, [node], {"shape": shape})


def part(build: Builder, node: Node, axis: int, start: int, stop: int) -> Node:
    """`node` from one position of an axis to another, exclusive."""
    starts, stops = [0] * node.type.ndim, list(node.shape)
    starts[axis], stops[axis] = start, stop
    attrs = {"starts": tuple(starts), "stops": tuple(stops), "steps": (1,) * node.type.ndim}
    return build.apply(p.slice_, [node], attrs)


def permute(build: Builder, node: Node, axes: tuple[int, ...]) -> Node:
    if axes == tuple(range(len(axes))):
        return node
    return build.apply(p.permute, [node], {"axes": axes})


def broadcast(build: Builder, node: Node, shape: Shape) -> Node:
    """`node` broadcast to `shape`, as simply as possible."""
    if node.shape == shape:
        return node
    if node.primitive is p.full:
        return full(build, node.type.with_shape(shape), node.attrs["value"])
    return build.apply(p.broadcast, [node], {"shape": shape})


def cast(build: Builder, node: Node, dtype: DType) -> Node:
    return node if node.type.dtype is dtype else build.apply(p.cast, [node], {"dtype": dtype})


def call(build: Builder, primitive: Primitive, *inputs: Node, **attrs: Any) -> Node:
    return build.apply(primitive, inputs, attrs)
