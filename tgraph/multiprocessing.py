"""Python's `multiprocessing`. Tensors that are sent to another process are copied.

Batches of a `DataLoader` with workers travel in shared memory, see `tgraph.utils.data`.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403
from typing import Any

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The one there is."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """How the workers of a `DataLoader` share memory."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """ValueError for one that is not there."""
    if new_strategy != _STRATEGY:
        raise ValueError(f"set_sharing_strategy: expected {_STRATEGY!r}, got {new_strategy!r}")


def spawn(
    fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> Any:  # fmt: skip
    """Run `fn(number, *args)` in so many processes; RuntimeError where one fails."""
    context = _multiprocessing.get_context(start_method)
    processes = [
        context.Process(target=fn, args=(number, *args), daemon=daemon)  # type: ignore[attr-defined]
        for number in range(nprocs)
    ]
    for each in processes:
        each.start()
    if not join:
        return processes
    for number, each in enumerate(processes):
        each.join()
        if each.exitcode:
            for other in processes:
                other.terminate()
            raise RuntimeError(f"process {number} exited with code {each.exitcode}")
    return None
