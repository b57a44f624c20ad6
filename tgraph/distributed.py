"""The place of training on several machines, which is not here yet: `is_available()` is False.

Programs that ask before they use it run on one process, as with a PyTorch built without it.
"""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: there is no distributed training yet."""
    return False


def is_initialized() -> bool:
    """False: there is no distributed training yet."""
    return False


def get_rank(group: Any = None) -> int:
    """0: this is the only process."""
    return 0


def get_world_size(group: Any = None) -> int:
    """1: this is the only process."""
    return 1


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"tgraph.distributed has no '{name}': training on several processes is not there yet, and "
        "is_available() is False; nn.DataParallel splits batches over the devices of one process"
    )
