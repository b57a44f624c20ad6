"""Not a contender: copies as many bytes as a workload has to move, on all threads.

Half of the bytes are read and half written, so a row that takes as long as its copy moves its
data at the speed of memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..case import Array, Case
from ..workload import Workload

_pool = ThreadPoolExecutor(1)
_threads = 1


def start(threads: int) -> None:
    global _pool, _threads
    _threads = threads
    _pool = ThreadPoolExecutor(max(1, threads - 1))


def versions() -> dict[str, str]:
    return {}


def copy(workload: Workload) -> Case:
    """A copy of the least bytes of a workload."""
    source = np.ones(workload.least_bytes // 2, np.uint8)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(source, _threads), np.array_split(target, _threads)))

    def call() -> None:
        waiting = [_pool.submit(np.copyto, to, of) for of, to in parts[1:]]
        np.copyto(parts[0][1], parts[0][0])
        for each in waiting:
            each.result()

    return Case(call, _nothing)


def _nothing(result: Any) -> list[Array]:
    return []
