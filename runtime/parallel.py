"""How many threads compiled code uses, and the loop that uses them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from . import blas, locks
from .thread_places import POSIX

if TYPE_CHECKING:
    from .thread_pool import ThreadPool

MAX_THREADS = 1024

_threads: int | None = None
_pool: ThreadPool | None = None


def get_num_threads() -> int:
    """Threads that compiled code may use.

    Set by `set_num_threads`, else by the environment's ``TGRAPH_NUM_THREADS`` or
    ``OMP_NUM_THREADS``, else the number of CPUs this process may run on.
    """
    global _threads
    if _threads is None:
        _threads = _default_threads()
    return _threads


def set_num_threads(count: int) -> None:
    """Use `count` threads (at least 1) in compiled code and in NumPy's and SciPy's OpenBLAS.

    Call it while no other thread multiplies matrices: OpenBLAS does not expect that, nor a fork
    while it multiplies on several threads.
    """
    global _threads
    if not 1 <= count <= MAX_THREADS:
        raise ValueError(f"set_num_threads: expected 1 to {MAX_THREADS} threads, got {count}")
    with locks.RUNTIME:
        _threads = count if POSIX else 1
        if _pool is not None:
            _pool.set_threads(_threads)
        for library in blas.openblas_libraries():
            library.set_num_threads(count)


def parallel_for_address() -> int:
    """Address of ``void parallel_for(ptr body, ptr context, i64 extent, i64 grain, i64 split)``.

    It calls ``void body(ptr context, i64 lo, i64 hi)`` for ranges that together are [0, extent),
    on several threads where extent > grain, and returns when all are done. Every range but the
    last has at least `grain` items, and no thread gets more than `split` of them by itself (more
    chunks balance better, fewer cost less). The ranges depend on the arguments and on the number
    of threads alone. Nested and concurrent loops run on the calling thread. Compiled modules
    call it as ``@tgraph_parallel_for``.
    """
    return _loaded_pool().parallel_for


def shared_out(count: int, grain: int, what: str) -> str:
    """How many threads may share `count` things, of which no thread gets less than `grain`.

    >>> shared_out(64, 16, "task"), shared_out(1, 16, "task")
    ('64 tasks for up to 4 threads', '1 task on one thread')
    """
    shares = -(-count // max(grain, 1))
    total = f"{count:,} {what}{'' if count == 1 else 's'}"
    return f"{total} on one thread" if shares < 2 else f"{total} for up to {shares:,} threads"


def _loaded_pool() -> ThreadPool:
    global _pool
    if _pool is None:
        with locks.RUNTIME:
            if _pool is None:
                # Imported here: with it comes LLVM, which eager mode may never need.
                from .thread_pool import ThreadPool

                _pool = ThreadPool(get_num_threads())
    return _pool


def _default_threads() -> int:
    if not POSIX:
        return 1
    chosen = os.environ.get("TGRAPH_NUM_THREADS")
    if chosen is not None:
        if not (chosen.isdecimal() and 1 <= int(chosen) <= MAX_THREADS):
            raise ValueError(
                f"TGRAPH_NUM_THREADS: expected a number from 1 to {MAX_THREADS}, got {chosen!r}"
            )
        return int(chosen)
    # OpenMP allows a list, one number per level of nesting.
    outer = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if outer.isdecimal() and 1 <= int(outer) <= MAX_THREADS:
        return int(outer)
    return min(_available_cpus(), MAX_THREADS)


def _available_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, _cgroup_cpus()))


def _cgroup_cpus(path: str = "/sys/fs/cgroup/cpu.max") -> int:
    """CPUs that a container's quota allows (Linux control groups, version 2)."""
    try:
        quota, period = Path(path).read_text().split()[:2]
    except (OSError, ValueError):
        return MAX_THREADS
    return MAX_THREADS if quota == "max" else math.ceil(int(quota) / int(period))
