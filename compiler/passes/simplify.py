"""Algebra: fewer, cheaper and numerically safer operations for the same values.

Every rule keeps IEEE semantics, NaN, infinities and the sign of zero included, with the exceptions
that its comment names. So `x + 0.0` stays (for x = -0.0 it is 0.0), and so do `x - x` and
`x * 0.0` of floats.
"""

from __future__ import annotations

from ..ir import Graph
from . import (
    simplify_arithmetic,
    simplify_logic,
    simplify_movement,
    simplify_positions,
    simplify_powers,
)
from .canonicalize import RULES as CANONICAL
from .rewrite import apply_rules

RULES = (
    *simplify_arithmetic.RULES,
    *simplify_logic.RULES,
    *simplify_powers.RULES,
    *simplify_movement.RULES,
    *simplify_positions.RULES,
    *CANONICAL,
)


def simplify(graph: Graph) -> Graph:
    return apply_rules(graph, RULES)
