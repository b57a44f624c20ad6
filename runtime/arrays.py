"""One table from the name of a primitive to a function over an array module.

Eager mode, constant folding and the graph interpreter evaluate through it. Functions take the
array module, the arrays, and the primitive's attributes by name. Results have exactly the type
that the primitive's rule gives; views share memory where the array module can make them; no
floating-point warning escapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import (
    array_functions_contractions,
    array_functions_elementwise,
    array_functions_indexing,
    array_functions_movement,
    array_functions_reductions,
    array_functions_sources,
)
from .array_functions_elementwise import Array as Array
from .array_functions_elementwise import Function as Function
from .device import Device

# Every primitive but `input`, which is fed.
FUNCTIONS: dict[str, Function] = {
    **array_functions_elementwise.FUNCTIONS,
    **array_functions_reductions.FUNCTIONS,
    **array_functions_movement.FUNCTIONS,
    **array_functions_indexing.FUNCTIONS,
    **array_functions_contractions.FUNCTIONS,
    **array_functions_sources.FUNCTIONS,
}


def evaluate(name: str, arrays: Sequence[Array], attrs: Mapping[str, Any], xp: Any = np) -> Any:
    """The value of the primitive `name`: an array, or a tuple of them where it has several.

    >>> import numpy as np
    >>> evaluate("add", [np.array([1, 2]), np.array(10)], {})
    array([11, 12])
    """
    return FUNCTIONS[name](xp, *arrays, **attrs)


def array_module(device: Device) -> Any:
    """The array module that holds a device's values; RuntimeError for a device it cannot reach."""
    if device.type == "cpu":
        return np
    raise RuntimeError(
        f"device '{device}' is not available: this version of tgraph runs on the CPU only and has "
        "no CUDA support yet; use device='cpu'"
    )
