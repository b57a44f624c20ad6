"""How fast this machine is: bytes a second at a size, and operations a second.

Both are measured when they are first asked for, once per process and number of threads, with the
means that plans have: copies and sums of memory on all threads, and a product of matrices.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ....runtime import memory, parallel
from ....runtime.dtypes import int64
from ....runtime.plan import BufferRef, CopyStep, GemmStep, Plan
from ...ir import Builder, Graph, TensorType, input_node
from ...ir import primitives as p
from ...pipeline import optimize
from .executable import cpu_executable
from .step_times import repeated

if TYPE_CHECKING:
    import numpy.typing as npt

SMALLEST, LARGEST = 1 << 14, 1 << 29
"""Bytes for which bandwidth is measured: from the first-level cache to beyond all caches."""

PRODUCT = 768
"""Rows and columns of the matrices whose product tells the peak."""

SECONDS, ROUNDS, MOST_REPEATS = 0.002, 7, 2000


def bandwidth(nbytes: int) -> float:
    """Bytes a second that all threads move at most where `nbytes` are read and written again and
    again: those of a cache, if they fit into it.

    The faster of a copy and of reading alone.
    """
    size = SMALLEST
    while size < min(nbytes, LARGEST):
        size *= 2
    return _bandwidth(size, parallel.get_num_threads())


def peak(dtype: str) -> float:
    """Operations a second on 'float32' or 'float64' in a matrix product of all threads.

    A multiply-add is two, so what has no products beside its sums reaches half of it at most.
    """
    return _peak(dtype, parallel.get_num_threads())


@lru_cache
def _bandwidth(nbytes: int, threads: int) -> float:
    return max(nbytes / _copying(nbytes // 2), nbytes / _reading(nbytes))


def _copying(nbytes: int) -> float:
    arrays = np.ones(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
    return _best(Plan([CopyStep("copy", BufferRef(2), BufferRef(1), nbytes)], 0, 3), arrays)


def _reading(nbytes: int) -> float:
    given = input_node("x", TensorType((nbytes // 8,), int64))
    total = Builder().apply(p.sum_, [given], {"axes": (0,), "keepdims": False})
    plan = cpu_executable(optimize(Graph([given], [total]))).plan
    return _best(plan, (np.ones(nbytes // 8, np.int64), np.zeros((), np.int64)))


@lru_cache
def _peak(dtype: str, threads: int) -> float:
    n = PRODUCT
    a, b, c = map(BufferRef, (1, 2, 3))
    step = GemmStep("peak", dtype, n, n, n, a, b, c, False, False, n, n, n)
    arrays = tuple(np.ones((n, n), dtype) for _ in range(3))
    return 2 * n**3 / _best(Plan([step], 0, 4), arrays)


def _best(plan: Plan, arrays: tuple[npt.NDArray[Any], ...]) -> float:
    """The least seconds of a plan: many in one call, so that Python does not count."""
    arena = memory.arena(plan.arena_bytes)
    first = _seconds(repeated(plan, plan.steps, arena), arrays)
    count = max(1, min(MOST_REPEATS, int(SECONDS / max(first, 1e-7))))
    many = repeated(plan, plan.steps, arena, count)
    return min(_seconds(many, arrays) for _ in range(ROUNDS)) / count


def _seconds(plan: Plan, arrays: tuple[npt.NDArray[Any], ...]) -> float:
    began = time.perf_counter()
    plan.run(arrays)
    return time.perf_counter() - began
