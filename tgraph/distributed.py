"""The place of training on several machines, which is not here yet: `is_available()` is False.

Programs that ask before they use it run on one process, as with a PyTorch built without it.
"""

from __future__ import annotations

from typing import Any

from .core.absent import not_here

_WAY_OUT = (
    "training on several processes is not there yet, and is_available() is False; nn.DataParallel "
    "splits batches over the devices of one process"
)
_CALLS = (
    "all_gather", "all_gather_object", "all_reduce", "all_to_all", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "get_backend",
    "init_process_group", "irecv", "isend", "monitored_barrier", "new_group", "recv", "reduce",
    "reduce_scatter", "scatter", "send",
)  # fmt: skip
"""What programs import, and call where there are several processes."""


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


def is_nccl_available() -> bool:
    """False: there is no distributed training yet."""
    return False


def is_gloo_available() -> bool:
    """False: there is no distributed training yet."""
    return False


def is_mpi_available() -> bool:
    """False: there is no distributed training yet."""
    return False


def is_torchelastic_launched() -> bool:
    """False: there is no distributed training yet."""
    return False


def __getattr__(name: str) -> Any:
    if name in _CALLS:
        return not_here(f"distributed.{name}", _WAY_OUT)
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"tgraph.distributed has no '{name}': {_WAY_OUT}")
