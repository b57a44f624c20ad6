"""Rules about comparisons, bits and `where`."""

from __future__ import annotations

from ..ir import Node
from ..ir import primitives as p
from .matching import broadcast, call, full, holds, scalar_of
from .rewrite import RewriteBuilder, rewrite

_OPPOSITE = {p.eq: p.ne, p.ne: p.eq}
_OPPOSITE_IN_ORDER = {p.lt: p.ge, p.ge: p.lt, p.gt: p.le, p.le: p.gt}


@rewrite(p.logical_not)
def negated_comparison(build: RewriteBuilder, node: Node) -> Node | None:
    """not (x < y) is x >= y for integers only: with NaN both comparisons are false."""
    (x,) = node.inputs
    opposite = _OPPOSITE.get(x.primitive)
    if x.primitive in _OPPOSITE_IN_ORDER and not x.inputs[0].type.dtype.is_floating_point:
        opposite = _OPPOSITE_IN_ORDER[x.primitive]
    return None if opposite is None else call(build, opposite, *x.inputs)


_OF_ITSELF = {p.eq: True, p.le: True, p.ge: True, p.ne: False, p.lt: False, p.gt: False}


@rewrite(*_OF_ITSELF)
def compared_with_itself(build: RewriteBuilder, node: Node) -> Node | None:
    """A float differs from itself exactly when it is NaN."""
    x, y = node.inputs
    if x is not y:
        return None
    if not x.type.dtype.is_floating_point:
        return full(build, node.type, _OF_ITSELF[node.primitive])
    return call(build, p.isnan, x) if node.primitive is p.ne else None


@rewrite(p.eq, p.ne)
def bool_compared_with_a_constant(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    value = scalar_of(y)
    if value is None or x.type.dtype.kind != "bool":
        return None
    same = broadcast(build, x, node.shape)
    return same if value is (node.primitive is p.eq) else call(build, p.logical_not, same)


@rewrite(p.isnan, p.isinf)
def integers_are_finite(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    if x.primitive is not p.cast or x.inputs[0].type.dtype.is_floating_point:
        return None
    # float16 has no room for large integers: they become infinite.
    never = node.primitive is p.isnan or x.type.dtype.name != "float16"
    return full(build, node.type, False) if never else None


@rewrite(p.bitwise_xor, p.logical_xor)
def xor_with_itself(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    return full(build, node.type, 0) if x is y else None


@rewrite(p.logical_xor)
def xor_with_true_is_not(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    return call(build, p.logical_not, broadcast(build, x, node.shape)) if holds(y, True) else None


@rewrite(p.bitwise_and, p.bitwise_or)
def bits_with_all_or_none(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    ones = True if node.type.dtype.kind == "bool" else -1
    if holds(y, ones if node.primitive is p.bitwise_and else 0):
        return broadcast(build, x, node.shape)
    if holds(y, 0 if node.primitive is p.bitwise_and else ones):
        return full(build, node.type, y.attrs["value"])
    return None


@rewrite(p.shift_left, p.shift_right)
def shift_by_nothing(build: RewriteBuilder, node: Node) -> Node | None:
    x, y = node.inputs
    return broadcast(build, x, node.shape) if holds(y, 0) else None


# --- where ---


@rewrite(p.where)
def where_of_equals(build: RewriteBuilder, node: Node) -> Node | None:
    _, x, y = node.inputs
    return broadcast(build, x, node.shape) if x is y else None


@rewrite(p.where)
def where_of_a_known_condition(build: RewriteBuilder, node: Node) -> Node | None:
    condition, x, y = node.inputs
    value = scalar_of(condition)
    return None if value is None else broadcast(build, x if value else y, node.shape)


@rewrite(p.require)
def what_is_known_to_hold(build: RewriteBuilder, node: Node) -> Node | None:
    condition, x = node.inputs
    return broadcast(build, x, node.shape) if holds(condition, True) else None


@rewrite(p.where)
def where_of_true_and_false(build: RewriteBuilder, node: Node) -> Node | None:
    condition, x, y = node.inputs
    if node.type.dtype.kind != "bool":
        return None
    condition = broadcast(build, condition, node.shape)
    if holds(x, True) and holds(y, False):
        return condition
    return call(build, p.logical_not, condition) if holds(x, False) and holds(y, True) else None


@rewrite(p.where)
def where_inside_where(build: RewriteBuilder, node: Node) -> Node | None:
    """The inner choice by the same condition is made already."""
    condition, x, y = node.inputs
    inner_x = x.inputs[1] if x.primitive is p.where and x.inputs[0] is condition else x
    inner_y = y.inputs[2] if y.primitive is p.where and y.inputs[0] is condition else y
    if inner_x is x and inner_y is y:
        return None
    return broadcast(build, call(build, p.where, condition, inner_x, inner_y), node.shape)


RULES = (
    negated_comparison,
    compared_with_itself,
    bool_compared_with_a_constant,
    integers_are_finite,
    xor_with_itself,
    xor_with_true_is_not,
    bits_with_all_or_none,
    shift_by_nothing,
    where_of_equals,
    where_of_a_known_condition,
    what_is_known_to_hold,
    where_of_true_and_false,
    where_inside_where,
)
