"""What a contender makes of a workload: a call to time and its results as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Data = Mapping[str, Array]


@dataclass(frozen=True)
class Case:
    """`call()` makes one call and returns when it has finished.

    `fetch(result)` gives the arrays of the last call in the order of the NumPy reference; a
    training step gives its loss and then the parameters as they are after the step.
    """

    call: Callable[[], Any]
    fetch: Callable[[Any], list[Array]]
