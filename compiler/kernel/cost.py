"""What instructions cost, roughly: the unit is an addition of one vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir import PRIMITIVES
from .kernel import Instr

_COSTS: Mapping[str, int] = {"load": 2, "store": 2, "const": 0, "check": 3, "contract": 2}


def cost(instr: Instr) -> int:
    """Rough machine operations of an instruction, per vector of lanes scaled to one element."""
    found: Any = PRIMITIVES.get(instr.op)
    return found.cost if found is not None else _COSTS.get(instr.op, 1)
