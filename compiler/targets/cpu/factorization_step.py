"""How a factorization becomes a step of LAPACK's, over operands as they lie."""

from __future__ import annotations

from collections.abc import Mapping

from ....runtime.factorization import Factorization, can_call, factorization
from ....runtime.plan_steps import ArrayRef, BufferRef
from ...ir import Node


def is_native(node: Node) -> bool:
    """Whether LAPACK is called by generated code."""
    return can_call(node.primitive.name, [each.shape for each in node.inputs])


def factorization_of(node: Node, operands: tuple[ArrayRef, ...]) -> Factorization:
    """How a node is computed from operands that lie in memory."""
    return factorization(
        node.primitive.name,
        operands[0].dtype.name,
        [each.shape for each in operands],
        [each.strides or () for each in operands],
        node.attrs,
    )


def places_of_results(of: Factorization, places: Mapping[int, BufferRef]) -> list[BufferRef | None]:
    """Where results lie by their numbers; None for those that nobody reads."""
    return [places.get(at) for at in range(len(of.call.results))]
