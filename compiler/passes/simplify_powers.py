"""Rules about powers, exponentials and logarithms, the numerically safer forms among them."""

from __future__ import annotations

import math

from ..ir import Node
from ..ir import primitives as p
from .matching import broadcast, call, full, holds, scalar, scalar_of
from .rewrite import RewriteBuilder, rewrite

_LARGEST_CHAIN = 4


@rewrite(p.pow_)
def power_by_a_small_integer(build: RewriteBuilder, node: Node) -> Node | None:
    """x ** 3 as products; x ** 0 is 1, even for NaN, and x ** -1.0 is 1 / x."""
    x, y = node.inputs
    exponent = scalar_of(y)
    if exponent is None or exponent not in (-1, *range(_LARGEST_CHAIN + 1)):
        return None
    if exponent == 0:
        return full(build, node.type, 1)
    x = broadcast(build, x, node.shape)
    if exponent == -1:
        return call(build, p.reciprocal, x) if node.type.dtype.is_floating_point else None
    return _product(build, x, int(exponent))


def _product(build: RewriteBuilder, x: Node, exponent: int) -> Node:
    if exponent == 1:
        return x
    half = _product(build, x, exponent // 2)
    square = call(build, p.mul, half, half)
    return call(build, p.mul, square, x) if exponent % 2 else square


@rewrite(p.pow_)
def power_by_a_half(build: RewriteBuilder, node: Node) -> Node | None:
    """x ** 0.5 and x ** -0.5 by roots.

    Powers of -0.0 and -inf are positive where the root of -0.0 is -0.0 and that of -inf is NaN;
    the corrections are left out where x cannot be negative.
    """
    x, y = node.inputs
    exponent = scalar_of(y)
    if exponent not in (0.5, -0.5):
        return None
    root = p.sqrt if exponent > 0 else p.rsqrt
    x = broadcast(build, x, node.shape)
    if never_negative(x):
        return call(build, root, x)
    positive_zero = call(build, p.add, x, scalar(build, x, 0.0))
    at_minus_infinity = call(build, p.eq, x, scalar(build, x, -math.inf))
    limit = scalar(build, x, math.inf if exponent > 0 else 0.0)
    return call(build, p.where, at_minus_infinity, limit, call(build, root, positive_zero))


_NEVER_NEGATIVE = frozenset({p.abs_, p.exp, p.exp2, p.cosh, p.acos})


def never_negative(node: Node) -> bool:
    """Whether the value is positive, +0.0 or NaN, told from the operation alone."""
    squared = node.primitive is p.mul and node.inputs[0] is node.inputs[1]
    return squared or node.primitive in _NEVER_NEGATIVE


@rewrite(p.log)
def logarithm_of_one_more(build: RewriteBuilder, node: Node) -> Node | None:
    """log(1 + x) keeps the digits of a small x as log1p(x); for x = -0.0 the zero is negative."""
    (x,) = node.inputs
    if x.primitive is not p.add or not holds(x.inputs[1], 1.0):
        return None
    return call(build, p.log1p, broadcast(build, x.inputs[0], node.shape))


@rewrite(p.add, reading=[p.exp])
def exponential_minus_one(build: RewriteBuilder, node: Node) -> Node | None:
    """exp(x) - 1 keeps the digits of a small x as expm1(x); for x = -0.0 the zero is negative."""
    x, y = node.inputs
    if x.primitive is not p.exp or not holds(y, -1.0):
        return None
    return call(build, p.expm1, broadcast(build, x.inputs[0], node.shape))


@rewrite(p.log)
def logarithm_of_softmax(build: RewriteBuilder, node: Node) -> Node | None:
    """log(exp(z) / sum(exp(z))) is z - log(sum(exp(z))), finite where exp(z) underflows."""
    (quotient,) = node.inputs
    if quotient.primitive is not p.div:
        return None
    exponential, total = quotient.inputs
    if exponential.primitive is not p.exp or exponential.shape != node.shape:
        return None
    source = total
    while source.primitive in (p.reshape, p.broadcast):
        source = source.inputs[0]
    if source.primitive is not p.sum_ or source.inputs[0] is not exponential:
        return None
    return call(build, p.sub, exponential.inputs[0], call(build, p.log, total))


RULES = (
    power_by_a_small_integer,
    power_by_a_half,
    logarithm_of_one_more,
    exponential_minus_one,
    logarithm_of_softmax,
)
