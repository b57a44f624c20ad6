"""What a primitive does to the bound, error and grain of values (see `program`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from tgraph.compiler.ir import Family, Primitive, TensorType


class Known(NamedTuple):
    bound: float
    error: float
    grain: int


INEXACT = 60  # a grain that no mantissa holds

# name -> (largest magnitude of the argument, bound of the result, Lipschitz constant)
_SMOOTH: dict[str, tuple[float, Callable[[float], float], Callable[[float], float]]] = {
    "exp": (5, math.exp, math.exp),
    "exp2": (7, lambda b: 2**b, lambda b: 2**b),
    "expm1": (5, math.exp, math.exp),
    "sinh": (5, math.cosh, math.cosh),
    "cosh": (5, math.cosh, math.cosh),
    "tanh": (1e9, lambda b: min(b, 1.0), lambda b: 1.0),
    "sin": (100, lambda b: 1.0, lambda b: 1.0),
    "cos": (100, lambda b: 1.0, lambda b: 1.0),
    "erf": (1e9, lambda b: 1.0, lambda b: 1.2),
    "atan": (1e9, lambda b: 1.6, lambda b: 1.0),
    "tan": (1, lambda b: 1.6, lambda b: 3.5),
    "asin": (0.75, lambda b: 0.9, lambda b: 1.6),
    "acos": (0.75, lambda b: 2.5, lambda b: 1.6),
}
SMOOTH = tuple(_SMOOTH)
LARGEST_ARGUMENT = {name: entry[0] for name, entry in _SMOOTH.items()}
# Of arguments that are at least 1.
_ABOVE_ONE: dict[str, Callable[[float], float]] = {
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "rsqrt": lambda b: 1.0,
    "reciprocal": lambda b: 1.0,
}
ABOVE_ONE = tuple(_ABOVE_ONE)


def known_result(
    primitive: Primitive, type_: TensorType, operands: Sequence[Any], attrs: Mapping[str, Any]
) -> Known:
    """What is known of the result, before its own rounding."""
    name = primitive.name
    if type_.dtype.name == "bool":
        return Known(1.0, 0.0, 0)
    if name in _SMOOTH:
        return _smooth(name, operands[0])
    if name in _ABOVE_ONE:
        value = operands[0]
        bound = max(_ABOVE_ONE[name](max(value.bound, 1.0)), 1.0)
        return Known(bound, value.error * 1.5, INEXACT)
    if type_.dtype.kind == "uint" and _may_go_below_zero(name, operands):
        return Known(math.inf, 0.0, 0)
    if name in _RULES:
        return _RULES[name](operands, attrs, type_)
    if primitive.family in (Family.VIEW, Family.GATHER) or name in ("copy", "where", "require"):
        return _largest([each for each in operands if not each.is_bool] or operands, attrs, name)
    raise NotImplementedError(name)


def _may_go_below_zero(name: str, operands: Sequence[Any]) -> bool:
    return name in ("sub", "neg") or (name == "cast" and operands[0].dtype.is_signed)


def _smooth(name: str, value: Any) -> Known:
    largest, bound, lipschitz = _SMOOTH[name]
    if value.bound > largest:
        return Known(math.inf, 0.0, INEXACT)
    return Known(bound(value.bound), lipschitz(value.bound) * value.error, INEXACT)


def _largest(values: Sequence[Any], attrs: Mapping[str, Any], name: str) -> Known:
    if name in ("gather", "index"):
        values = values[:1]
    if name == "index_put":
        values = [values[0], values[-1]]
    bound, error, grain = (
        max(each) for each in zip(*((v.bound, v.error, v.grain) for v in values), strict=True)
    )
    if name == "pad":
        return Known(max(bound, abs(float(attrs["value"]))), error, max(grain, 2))
    return Known(bound, error, grain)


def _sum(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    a, b = operands
    return Known(a.bound + b.bound, a.error + b.error, max(a.grain, b.grain))


def _product(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    a, b = operands
    error = a.error * b.bound + b.error * a.bound + a.error * b.error
    return Known(_times(a.bound, b.bound), error, a.grain + b.grain)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _same(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return _largest(operands, attrs, "")


def _jump(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return Known(operands[0].bound + 1, 0.0, 0)


def _counted(count: int, value: Any, terms: float = 1.0) -> Known:
    """A sum of `count` elements; its own rounding grows with the square root of the count."""
    bound = _times(value.bound, count)
    eps = 2.0**-53 if type(value) is not Known and value.dtype.name == "float64" else 2.0**-24
    rounding = bound * eps * (4 + math.sqrt(count)) if value.error or value.grain > 20 else 0.0
    return Known(bound, value.error * count + rounding, value.grain)


def _reduced_sum(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    (value,) = operands
    return _counted(prod(value.shape[axis] for axis in attrs["axes"]), value)


def _running_sum(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    value = operands[0]
    return _counted(value.shape[attrs["axis"]], value)


def _reduced_product(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    (value,) = operands
    return _multiplied(prod(value.shape[axis] for axis in attrs["axes"]), value)


def _running_product(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    value = operands[0]
    return _multiplied(value.shape[attrs["axis"]], value)


def _multiplied(count: int, value: Any) -> Known:
    if not value.is_float or count == 0:
        return Known(math.inf if count else 1.0, 0.0, 0)
    largest = max(value.bound, 1.0)
    if count * math.log(largest + 1e-9) > 11:
        return Known(math.inf, 0.0, INEXACT)
    error = value.error * count * largest ** max(count - 1, 0)
    return Known(largest**count, error, value.grain * count)


def _linear_scan(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    """At most the sum of `count` added numbers, each times a product of factors."""
    factor, added = operands
    count = factor.shape[attrs["axis"]]
    factors = _multiplied(count, factor)
    if math.isinf(factors.bound):
        return factors
    terms = _product([factors, added], attrs, type_)
    return Known(_times(terms.bound, count), terms.error * count, terms.grain)


def _folded(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    (value,) = operands
    return _counted(prod(value.shape[len(attrs["shape"]) :]), value)


def _added_at(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    base, source = operands[0], operands[-1]
    if not attrs.get("accumulate", True):
        return _largest([base, source], attrs, "")
    others = max(_others(base, attrs["axis"], len(operands) - 2), 1)
    per_place = _counted(max(source.node.type.numel // others, 1), source)
    return Known(
        base.bound + per_place.bound, base.error + per_place.error, max(base.grain, source.grain)
    )


def _others(base: Any, axis: int, count: int) -> int:
    """Elements beside the axes that are written at positions: these never meet."""
    return prod(base.shape[:axis]) * prod(base.shape[axis + count :])


def _contracted(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    a, b = operands
    if "groups" in attrs:
        count = prod(b.shape[1:])
    else:
        count = a.shape[-2] if attrs["transpose_a"] else a.shape[-1]
    one = _product(operands, attrs, type_)
    bound = _times(one.bound, count)
    eps = 2.0**-53 if a.dtype.name == "float64" else 2.0**-24
    rounding = bound * eps * (4 + math.sqrt(count)) if one.error or one.grain > 12 else 0.0
    return Known(bound, one.error * count + rounding, one.grain)


def _cast(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    (value,) = operands
    if type_.dtype.kind != "float":
        return Known(value.bound, 0.0, 0)
    return Known(value.bound, value.error, value.grain)


def _wild(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return Known(math.inf, 0.0, 0)


def _position(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return Known(float(operands[0].shape[attrs["axes"][0]]), 0.0, 0)


def _rank(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return Known(float(operands[0].shape[-1]), 0.0, 0)


def _quotient(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    """Divisors are at least 1/2."""
    a, b = operands
    error = 2 * a.error + 4 * a.bound * b.error
    return Known(2 * a.bound, error, INEXACT)


def _floored(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    return Known(2 * operands[0].bound + 1, 0.0, 0)


def _rest(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    a, b = operands
    return Known(min(b.bound, 2 * a.bound + b.bound), 0.0, max(a.grain, b.grain))


def _angle(operands: Sequence[Any], attrs: Any, type_: Any) -> Known:
    """The second operand is at least 1/2."""
    return Known(3.2, 2 * sum(each.error for each in operands), INEXACT)


_RULES: dict[str, Callable[[Sequence[Any], Any, Any], Known]] = {
    "add": _sum, "sub": _sum, "mul": _product, "neg": _same, "abs": _same, "sign": _jump,
    "floor": _jump, "ceil": _jump, "round": _jump, "trunc": _jump, "maximum": _same,
    "minimum": _same, "max": _same, "min": _same, "sum": _reduced_sum, "cumsum": _running_sum,
    "prod": _reduced_product, "cumprod": _running_product, "cummax": _same, "cummin": _same,
    "linear_scan": _linear_scan,
    "fold": _folded, "scatter_add": _added_at, "index_put": _added_at, "matmul": _contracted,
    "convolution": _contracted, "cast": _cast, "bitwise_and": _wild, "bitwise_or": _wild,
    "bitwise_xor": _wild, "bitwise_not": _wild, "shift_left": _wild, "shift_right": _same,
    "argmax": _position, "argmin": _position, "argsort": _rank, "select_nth": _rank,
    "div": _quotient,
    "floor_divide": _floored,
    "remainder": _rest, "atan2": _angle, "random_bits": _wild,
}  # fmt: skip
