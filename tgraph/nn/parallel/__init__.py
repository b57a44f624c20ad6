"""A module on several devices of one process: batches in parts, copies of the module."""

from __future__ import annotations

import warnings
from typing import Any

from .data_parallel import DataParallel, data_parallel
from .distributed import NOT_YET as _NOT_YET
from .distributed import DistributedDataParallel as _DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def __getattr__(name: str) -> Any:
    if name != "DistributedDataParallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Programs import it and go on without, where there is one process.
    warnings.warn(f"{_NOT_YET}; to make one is an error", stacklevel=2)
    return _DistributedDataParallel
