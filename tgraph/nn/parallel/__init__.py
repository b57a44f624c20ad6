"""A module on several devices of one process: batches in parts, copies of the module."""

from __future__ import annotations

from typing import Any

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":
        # So that `from tgraph.nn.parallel import` says it, which hides an AttributeError.
        raise ImportError(
            "tgraph.nn.parallel has no DistributedDataParallel yet: training on several processes "
            "is not there. nn.DataParallel splits batches over the devices of one process"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
