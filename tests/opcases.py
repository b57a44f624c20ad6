"""The table of operations: one row for each way in which a public function is tested."""

import opcases_edges
import opcases_elementwise
import opcases_families
import opcases_linalg
import opcases_losses
import opcases_movement
import opcases_names
import opcases_nn
import opcases_reductions
import opcases_vision
from opcase import CASES, OpCase

FAMILIES = (
    opcases_elementwise,
    opcases_linalg,
    opcases_reductions,
    opcases_movement,
    opcases_nn,
    opcases_losses,
    opcases_edges,
    opcases_vision,
    opcases_families,
    opcases_names,
)
BY_NAME = {each.name: each for each in CASES}

__all__ = ["BY_NAME", "CASES", "FAMILIES", "OpCase"]
