"""The memory of CUDA devices: CuPy's pool, what it holds, and when it is given back.

That is when memory runs out, when the stream is gone for which it was kept, and when other streams
are done with what is no longer held (record_stream.py, in_flight.py).
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Any, Protocol, TypeVar

from ..device import Device
from . import backend, in_flight, record_stream
from .devices import index_of

_Result = TypeVar("_Result")
DeviceLike = int | str | Device | None


class Cache(Protocol):
    """What holds memory that it can do without."""

    def release(self) -> None: ...


class Keeper(Protocol):
    """What keeps something for each stream that it met."""

    def forget(self, stream: int) -> bool:
        """Give back what is kept for a stream that is gone; False where that cannot be now."""


_caches: weakref.WeakSet[Any] = weakref.WeakSet()
_keepers: weakref.WeakSet[Any] = weakref.WeakSet()
_watched: dict[int, weakref.ref[Any]] = {}
_gone: deque[int] = deque()  # streams by the driver's handles
# What keepers have not forgotten yet. Each does so once: the handle may be a new stream's by then.
_untold: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()
_forgetting = threading.Lock()
_registering = threading.RLock()
_peaks: dict[int, int] = {}
_DEFAULT_STREAMS = (0, 1, 2)
"""The handles of the default stream, also under the names of legacy and of each thread's own."""


def explain(error: Exception) -> Exception:
    """What is raised where memory runs out; tensors' own module puts its explanation here."""
    return error


def register_cache(cache: Cache) -> None:
    """Let `cache.release()` be called where memory runs out and by `empty_cache`."""
    with _registering:
        _caches.add(cache)


def register_keeper(keeper: Keeper) -> None:
    """Let `keeper.forget(stream)` be called some time after a watched stream is gone."""
    with _registering:
        _keepers.add(keeper)


def forgotten(kept: MutableMapping[int, Any], lock: threading.RLock, stream: int) -> bool:
    """Drop what is kept for a stream, by its pointer; False while another thread has the lock."""
    if not lock.acquire(blocking=False):
        return False
    try:
        kept.pop(stream, None)
    finally:
        lock.release()
    return True


def _all(registered: weakref.WeakSet[Any]) -> list[Any]:
    with _registering:
        return list(registered)


def watch(stream: Any) -> None:
    """Let what is kept for a stream of CuPy go with it."""
    key, pointer = id(stream), int(stream.ptr)
    if key in _watched or not _ends_with_its_object(stream):
        return

    watched, gone = _watched, _gone  # which the module may lose before, where Python ends

    def note(_: object) -> None:  # wherever garbage is collected: nothing may be locked here
        watched.pop(key, None)
        gone.append(pointer)

    watched[key] = weakref.ref(stream, note)


def _ends_with_its_object(stream: Any) -> bool:
    """Whether CuPy destroys a stream when its object goes.

    Not so the default ones, and those of other libraries: an ExternalStream, or what
    `Stream.from_external` made.
    """
    if not isinstance(stream, backend.cupy().cuda.Stream) or stream.ptr in _DEFAULT_STREAMS:
        return False
    return getattr(stream, "_foreign_stream_ref", None) is None


def give_back() -> None:
    """Give back what belongs to streams that are gone, and what streams are done with.

    Called before allocations. CuPy's pool gets it, and keeps it as it keeps all freed memory.
    """
    record_stream.collect()
    in_flight.collect()
    if not (_gone or _untold) or not _forgetting.acquire(blocking=False):
        return
    try:
        gone = [_gone.popleft() for _ in range(len(_gone))]
        for keeper in _all(_keepers) if gone else ():
            _untold.setdefault(keeper, set()).update(gone)
        for keeper in list(_untold):
            _tell(keeper)
    finally:
        _forgetting.release()


def _tell(keeper: Keeper) -> None:
    """Let a keeper forget the streams that it has not forgotten yet."""
    left = {pointer for pointer in _untold[keeper] if not keeper.forget(pointer)}
    if left:
        _untold[keeper] = left
    else:
        del _untold[keeper]


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
    give_back()
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
    """Give unused memory back to the driver: the pool's blocks, and the arenas of plans.

    Waits for streams that still use memory that is no longer held (`Tensor.record_stream`).
    """
    cupy = backend.cupy()
    give_back()
    record_stream.release()
    for cache in _all(_caches):
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
    give_back()
    record_stream.collect_all()
    with cupy.cuda.Device(index_of(device)):
        return ask(cupy.get_default_memory_pool())
