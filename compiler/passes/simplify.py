"""One form for each value, constants folded, and algebra: fewer, cheaper and safer operations.

The rules of all three run in one walk, which makes each node that they change once; a walk for
each took half as long again.

Every rule of algebra keeps IEEE semantics, NaN, infinities and the sign of zero included, with the
exceptions that its comment names. So `x + 0.0` stays (for x = -0.0 it is 0.0), and so do `x - x`
and `x * 0.0` of floats.
"""

from __future__ import annotations

from ..ir import Graph
from . import (
    canonicalize,
    fold_constants,
    simplify_arithmetic,
    simplify_logic,
    simplify_movement,
    simplify_positions,
    simplify_powers,
)
from .rewrite import apply_rules

RULES = (
    canonicalize.nothing_is_full,
    *fold_constants.RULES,
    *simplify_arithmetic.RULES,
    *simplify_logic.RULES,
    *simplify_powers.RULES,
    *simplify_movement.RULES,
    *simplify_positions.RULES,
    *canonicalize.RULES,
)


def simplify(graph: Graph) -> Graph:
    return apply_rules(graph, RULES)
