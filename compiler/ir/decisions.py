"""Which values are decisions: where an operand changes by one rounding, they jump.

Eager code computes each value once. Where it is computed again, in another kernel or in a backward
plan, a decision must come out as it did the first time: `x == x.amax()` on another rounding of x
finds no extreme at all. So what a decision is made of is kept, or follows exactly from what is
kept; how plans hold to that is told in docs/architecture.md.
"""

from __future__ import annotations

from .node import Node
from .primitives import cast
from .types import TensorType


def is_float(node: Node) -> bool:
    """Whether the elements are floats, or pairs of them."""
    return isinstance(node.type, TensorType) and node.type.dtype.is_differentiable


def is_exact(node: Node) -> bool:
    """Whether equal operands give equal bits, whatever instructions compute the value."""
    return node.primitive.exact or not is_float(node)


def is_reproducible(node: Node) -> bool:
    """Whether equal operands give equal bits in every plan, whatever passes make of it.

    Sums, products, quotients and roots do; but 16-bit floats may be rounded in one plan, and stay
    float32 in another.
    """
    if is_exact(node):
        return True
    return node.primitive.reproducible and node.type.dtype.compute is node.type.dtype


def is_decision(node: Node) -> bool:
    """Whether a rounding of an operand may change the value by a jump."""
    if not node.primitive.discontinuous or not any(map(is_float, node.inputs)):
        return False
    return node.primitive is not cast or not is_float(node)
