"""The place of `DistributedDataParallel`."""

from __future__ import annotations

from typing import Any

from ..module import Module

NOT_YET = (
    "tgraph has no DistributedDataParallel yet: training on several processes is not there. "
    "nn.DataParallel splits batches over the devices of one process"
)


class DistributedDataParallel(Module):
    """Copies of a module in several processes, which are not there yet: NotImplementedError.

    Programs import it for the case that there are several, and run on one.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(NOT_YET)
