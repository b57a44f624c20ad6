"""One module per contender: `start`, `versions` and a function per workload.

``start(threads)`` imports the library (its time is the import time) and sets its threads;
``versions()`` names it; ``<workload>(data)`` gives a `Case`. Other packages of workloads, such as
`arrays`, have modules of the same names for theirs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..case import Case, Data
    from ..workload import Workload

NAMES = ["numpy", "torch", "torch_compile", "jax", "tgraph"]
"""To choose from. `before` is tgraph as it was at a commit that the command line names."""
TITLES = {
    "numpy": "NumPy",
    "torch": "torch",
    "torch_compile": "torch.compile",
    "jax": "JAX",
    "tgraph": "tgraph",
    "before": "tgraph before",
}
COMPILERS = ["torch_compile", "jax", "tgraph", "before"]
VERSIONS = ("tgraph", "before")


def implementation(contender: str, workload: Workload) -> Callable[[Data], Case]:
    """What makes a contender's case of a workload's data; `copy` has one for all."""
    if contender == "copy":
        module = importlib.import_module(".with_copy", __package__)
        return lambda data: module.copy(workload)
    theme = f"{__package__.rpartition('.')[0]}.{workload.theme}"
    function: Callable[[Data], Case] = getattr(
        importlib.import_module(f"{theme}.with_{contender}"), workload.implementation
    )
    return function
