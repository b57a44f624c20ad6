"""Rules from the facts on primitives, and rules about sums, products and signs."""

from __future__ import annotations

import math
import operator

import numpy as np

from ..ir import Node
from ..ir import primitives as p
from ..ir.size_number import computed
from .matching import broadcast, call, full, holds, scalar, scalar_of
from .rewrite import RewriteBuilder, elementwise_with, rewrite


@rewrite(*elementwise_with("identity"), reading=[p.full])
def identity_element(build: RewriteBuilder, node: Node) -> Node | None:
    """f(x, e) is x. The identity of adding floats is -0.0: -0.0 + 0.0 is 0.0."""
    x, e = node.inputs
    identity = node.primitive.identity
    assert identity is not None
    exact = holds(e, identity)
    if node.primitive is p.add and node.type.dtype.is_floating_point:
        exact = holds(e, -0.0) or (holds(e, 0.0) and _never_negative_zero(x))
    return broadcast(build, x, node.shape) if exact else None


_WITHOUT_NEGATIVE_ZERO = frozenset({p.abs_, p.exp, p.exp2, p.cosh, p.acos, p.sign})


def _never_negative_zero(node: Node) -> bool:
    if node.primitive is p.cast:
        return not node.inputs[0].type.dtype.is_floating_point
    squared = node.primitive is p.mul and node.inputs[0] is node.inputs[1]
    return squared or node.primitive in _WITHOUT_NEGATIVE_ZERO


@rewrite(*elementwise_with("absorbing"), reading=[p.full])
def absorbing_element(build: RewriteBuilder, node: Node) -> Node | None:
    absorbing = node.primitive.absorbing
    assert absorbing is not None
    return full(build, node.type, absorbing) if holds(node.inputs[1], absorbing) else None


@rewrite(*elementwise_with("involution"))
def involution(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return x.inputs[0] if x.primitive is node.primitive else None


@rewrite(*elementwise_with("idempotent"))
def idempotent(build: RewriteBuilder, node: Node) -> Node | None:
    """f(f(x)) is f(x); f(x, x) is x."""
    x = node.inputs[0]
    if len(node.inputs) == 2:
        return x if x is node.inputs[1] else None
    return x if x.primitive is node.primitive else None


@rewrite(p.maximum, p.minimum)
def lattice(build: RewriteBuilder, node: Node) -> Node | None:
    """max(x, lowest) is x, also for NaN; max(max(x, y), y) is max(x, y)."""
    x, y = node.inputs
    if x.primitive is node.primitive and y in x.inputs and x.shape == node.shape:
        return x
    value = scalar_of(y)
    if value is None:
        return None
    lowest, highest = _range(node)
    neutral = lowest if node.primitive is p.maximum else highest
    return broadcast(build, x, node.shape) if value == neutral else None


def _range(node: Node) -> tuple[int | float, int | float]:
    dtype = node.type.dtype
    if dtype.is_floating_point:
        return -math.inf, math.inf
    if dtype.kind == "bool":
        return False, True
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


# --- sums and signs ---


@rewrite(p.sub)
def minus_itself(build: RewriteBuilder, node: Node) -> Node | None:
    """Only for integers: inf - inf is NaN."""
    x, y = node.inputs
    if x is not y or node.type.dtype.is_floating_point:
        return None
    return full(build, node.type, 0)


@rewrite(p.sub, reading=[p.full])
def subtracting_from_zero_is_negating(build: RewriteBuilder, node: Node) -> Node | None:
    """For floats from -0.0 only: 0.0 - 0.0 is 0.0."""
    x, y = node.inputs
    zero = -0.0 if node.type.dtype.is_floating_point else 0
    return call(build, p.neg, broadcast(build, y, node.shape)) if holds(x, zero) else None


@rewrite(p.neg)
def negated_difference(build: RewriteBuilder, node: Node) -> Node | None:
    """Only for integers: -(x - x) is -0.0."""
    (x,) = node.inputs
    if x.primitive is not p.sub or node.type.dtype.is_floating_point:
        return None
    return call(build, p.sub, x.inputs[1], x.inputs[0])


@rewrite(p.abs_)
def absolute_of_negated(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return call(build, p.abs_, x.inputs[0]) if x.primitive is p.neg else None


@rewrite(p.cos, p.cosh)
def even_function_of_negated(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return call(build, node.primitive, x.inputs[0]) if x.primitive is p.neg else None


@rewrite(p.erf, p.sin, p.tan, p.asin, p.atan, p.sinh, p.tanh, reading=[p.neg, p.mul, p.div])
def odd_function_of_negated(build: RewriteBuilder, node: Node) -> Node | None:
    """f(-x) is -f(x), f(x * -c) is -f(x * c): f of a number and of its negative are one."""
    (x,) = node.inputs
    if x.primitive is p.neg:
        positive = x.inputs[0]
    elif x.primitive in (p.mul, p.div) and x.type.dtype.is_floating_point:
        value = scalar_of(x.inputs[1])
        if value is None or not computed(operator.lt, value, 0):
            return None
        factor = full(build, x.inputs[1].type, -value)
        positive = call(build, x.primitive, x.inputs[0], factor)
    else:
        return None
    return call(build, p.neg, call(build, node.primitive, positive))


# --- products and quotients ---


@rewrite(p.mul, reading=[p.full])
def integers_times_zero(build: RewriteBuilder, node: Node) -> Node | None:
    """Only for integers: NaN * 0 is NaN, -1.0 * 0.0 is -0.0."""
    integral = not node.type.dtype.is_floating_point
    return full(build, node.type, 0) if integral and holds(node.inputs[1], 0) else None


@rewrite(p.mul, reading=[p.full])
def times_minus_one_is_negating(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    if not node.type.dtype.is_signed or not holds(y, -1):
        return None
    return call(build, p.neg, broadcast(build, x, node.shape))


@rewrite(p.mul, p.div, reading=[p.neg])
def product_of_negated(build: RewriteBuilder, node: Node) -> Node | None:
    """-x * -y is x * y; -x * c is x * -c."""
    x, y = node.inputs
    if x.primitive is not p.neg or not node.type.dtype.is_floating_point:
        return None
    value = scalar_of(y)
    if value is not None:
        return call(build, node.primitive, x.inputs[0], full(build, y.type, -value))
    if y.primitive is not p.neg:
        return None
    return call(build, node.primitive, x.inputs[0], y.inputs[0])


@rewrite(p.div, reading=[p.full])
def division_by_a_number(build: RewriteBuilder, node: Node) -> Node | None:
    """Multiplies where the inverse is exact: x / 4.0 is x * 0.25."""
    x, y = node.inputs
    value = scalar_of(y)
    if value is None or not _has_exact_inverse(value, node):
        return None
    return call(build, p.mul, x, full(build, y.type, 1.0 / value))


def _has_exact_inverse(value: float, node: Node) -> bool:
    """A power of two whose inverse is a normal number of the type."""
    highest = {"float16": 14, "bfloat16": 126, "float32": 126, "float64": 1022}
    return bool(computed(_is_power_of_two, value, highest[node.type.dtype.name]))


def _is_power_of_two(value: float, highest: int) -> bool:
    """Whether it is one with an exponent that is not above `highest`, nor as far below 0."""
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return False
    return abs(math.frexp(value)[1] - 1) <= highest


@rewrite(p.div, reading=[p.full])
def one_divided_by_it(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    if not holds(x, 1.0):
        return None
    return call(build, p.reciprocal, broadcast(build, y, node.shape))


@rewrite(p.reciprocal)
def reciprocal_of_square_root(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    return call(build, p.rsqrt, x.inputs[0]) if x.primitive is p.sqrt else None


@rewrite(p.floor_divide)
def integer_divided_by_one(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    integral = not node.type.dtype.is_floating_point
    return broadcast(build, x, node.shape) if integral and holds(y, 1) else None


@rewrite(p.remainder)
def integer_remainder_by_one(build: RewriteBuilder, node: Node) -> Node | None:
    integral = not node.type.dtype.is_floating_point
    return full(build, node.type, 0) if integral and holds(node.inputs[1], 1) else None


@rewrite(p.add, p.mul, reading=[p.full])
def integer_numbers_together(build: RewriteBuilder, node: Node) -> Node | None:
    """(x + 1) + 2 is x + 3. Only for integers, whose arithmetic is associative."""
    x, y = node.inputs
    if node.type.dtype.is_floating_point or x.primitive is not node.primitive:
        return None
    first, second = scalar_of(x.inputs[1]), scalar_of(y)
    if first is None or second is None or x.shape != node.shape:
        return None
    together = first + second if node.primitive is p.add else first * second
    inner = broadcast(build, x.inputs[0], node.shape)
    return call(build, node.primitive, inner, scalar(build, y, together))


RULES = (
    identity_element,
    absorbing_element,
    involution,
    idempotent,
    lattice,
    minus_itself,
    subtracting_from_zero_is_negating,
    negated_difference,
    absolute_of_negated,
    even_function_of_negated,
    odd_function_of_negated,
    integers_times_zero,
    times_minus_one_is_negating,
    product_of_negated,
    division_by_a_number,
    one_divided_by_it,
    reciprocal_of_square_root,
    integer_divided_by_one,
    integer_remainder_by_one,
    integer_numbers_together,
)
