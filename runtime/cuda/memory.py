"""The memory of CUDA devices: CuPy's pool, what it holds, and what to do when it is full."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..device import Device
from . import backend
from .devices import index_of

_Result = TypeVar("_Result")
DeviceLike = int | str | Device | None


class Cache(Protocol):
    """What holds memory that it can do without."""

    def release(self) -> None: ...


_caches: weakref.WeakSet[Any] = weakref.WeakSet()
_peaks: dict[int, int] = {}


def explain(error: Exception) -> Exception:
    """What is raised where memory runs out; tensors' own module puts its explanation here."""
    return error


def register_cache(cache: Cache) -> None:
    """Let `cache.release()` be called where memory runs out and by `empty_cache`."""
    _caches.add(cache)


def note_peak() -> None:
    """Called behind allocations on the current device, for `max_memory_allocated`."""
    cupy = backend.cupy()
    used, device = cupy.get_default_memory_pool().used_bytes(), cupy.cuda.runtime.getDevice()
    if used > _peaks.get(device, 0):
        _peaks[device] = used


def when_full(make: Callable[[], _Result]) -> _Result:
    """`make()`; where memory runs out, once more after everything unused is given back.

    Where that does not help either, the exception that `explain` makes of CuPy's is raised.
    """
    try:
        return make()
    except MemoryError:
        gc.collect()
        empty_cache()
    try:
        return make()
    except MemoryError as full:
        raise explain(full) from None


def empty_cache() -> None:
    """Give unused memory back to the driver: the pool's blocks, and the arenas of plans."""
    cupy = backend.cupy()
    for cache in list(_caches):
        cache.release()
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.get_default_pinned_memory_pool().free_all_blocks()


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes of a device that tensors and plans take up."""
    return int(_on(device, lambda pool: pool.used_bytes()))


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes of a device that the pool holds, unused ones too."""
    return int(_on(device, lambda pool: pool.total_bytes()))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were taken up behind any operation so far."""
    return max(_peaks.get(index_of(device), 0), memory_allocated(device))


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let `max_memory_allocated` count from now on."""
    _peaks[index_of(device)] = memory_allocated(device)


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Take at most this share, 0 to 1, of a device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"expected a fraction from 0 to 1, got {fraction}")
    _on(device, lambda pool: pool.set_limit(fraction=fraction))


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and all bytes of a device, as its driver tells."""
    free, total = backend.cupy().cuda.Device(index_of(device)).mem_info
    return int(free), int(total)


def _on(device: DeviceLike, ask: Callable[[Any], Any]) -> Any:
    cupy = backend.cupy()
    with cupy.cuda.Device(index_of(device)):
        return ask(cupy.get_default_memory_pool())
