"""Uninitialised arrays whose large blocks are used again.

The kernel hands out fresh memory page by page, and a fault per page costs more than most
elementwise kernels. Large arrays therefore come from a bounded pool of blocks; the memory of an
array returns to the pool when the array and all views of it are gone.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

ALIGNMENT = 64
POOLED_FROM = 256 << 10
"""Arrays of at least this many bytes come from the pool."""


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """A C-contiguous array with arbitrary content; large ones are pooled and 64-byte aligned.

    >>> empty((2, 3), np.int64).shape
    (2, 3)
    """
    dtype = np.dtype(dtype)
    count = shape if isinstance(shape, int) else math.prod(shape)
    nbytes = count * dtype.itemsize
    if nbytes < POOLED_FROM or dtype.hasobject:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, _block(_rounded(nbytes)))


def allocator(nbytes: int) -> Callable[[tuple[int, ...], np.dtype[Any]], npt.NDArray[Any]]:
    """`empty` for arrays of so many bytes, made many times: NumPy's own where they are small."""
    if nbytes < POOLED_FROM:
        return np.empty
    size = _rounded(nbytes)
    return lambda shape, dtype: np.ndarray(shape, dtype, _block(size))


def arena(nbytes: int) -> npt.NDArray[np.uint8]:
    """`nbytes` of uninitialised memory, aligned to 64 bytes whatever its size."""
    if nbytes >= POOLED_FROM:
        return empty(nbytes, np.uint8)
    return _aligned(np.empty(nbytes + ALIGNMENT, np.uint8), nbytes)


def require(nbytes: int, what: str) -> None:
    """MemoryError where the system would not give `nbytes` more, as `what` needs.

    For libraries that end the process when they get no memory.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return
    try:
        mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        raise MemoryError(f"{what} needs about {nbytes >> 20} MiB, which are not there") from None


def empty_cache() -> None:
    """Give the pool's unused blocks back to the system."""
    with _pool.lock:
        _pool.free.clear()
        _pool.held = 0


def cached_bytes() -> int:
    """Bytes that the pool holds unused."""
    return _pool.held


def set_cache_limit(nbytes: int) -> None:
    """Bound the bytes that the pool holds unused (default: 1 GiB or an eighth of the memory)."""
    with _pool.lock:
        _pool.limit = nbytes
        _pool.shrink()


_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])


class _Memory(np.ndarray[Any, Any]):
    """A block of the pool. Not a plain ndarray, so that NumPy keeps a _Block before it as base."""

    __slots__ = ()


class _Block(np.ndarray[Any, Any]):
    """Stands between an array and its _Memory; its end is the end of the array and its views.

    NumPy shortens chains of bases only over arrays of the view's own type, hence every view of a
    user's plain array keeps the _Block alive.
    """

    __slots__ = ()

    def __del__(self) -> None:
        memory = self.base
        # A slice or view of a _Block, which only we could make, has a _Block as its base.
        if type(memory) is _Memory:
            _pool.give(memory)


class _Pool:
    """Free blocks by size; the sizes that were used last stand last."""

    def __init__(self, limit: int) -> None:
        # Reentrant: collecting garbage inside a locked section may end a _Block.
        self.lock = threading.RLock()
        self.free: OrderedDict[int, list[_Memory]] = OrderedDict()
        self.held = 0
        self.limit = limit

    def take(self, size: int) -> _Memory | None:
        if sys.is_finalizing():  # a thread that was cut off may have the lock for ever
            return None
        with self.lock:
            blocks = self.free.get(size)
            if not blocks:
                return None
            self.held -= size
            return blocks.pop()

    def give(self, memory: _Memory) -> None:
        if sys.is_finalizing():
            return
        size = memory.nbytes
        with self.lock:
            blocks = self.free.get(size)
            if blocks is None:
                blocks = self.free[size] = []
            blocks.append(memory)
            self.free.move_to_end(size)
            self.held += size
            if self.held > self.limit:
                self.shrink()

    def shrink(self) -> None:
        while self.held > self.limit:
            size, blocks = next(iter(self.free.items()))
            if blocks:
                blocks.pop()
                self.held -= size
            if not blocks:
                self.free.pop(size, None)


def _block(size: int) -> _Block:
    memory = _pool.take(size)
    if memory is None:
        memory = _aligned(_Memory(size + ALIGNMENT, np.uint8), size)
    return memory.view(_Block)


def _rounded(nbytes: int) -> int:
    """Sizes in steps of at most an eighth, so that arrays of similar size share blocks."""
    step = 1 << max(nbytes.bit_length() - 4, 6)
    return -(-nbytes // step) * step


def _aligned(memory: _Array, nbytes: int) -> _Array:
    start = -int(memory.__array_interface__["data"][0]) % ALIGNMENT
    return cast(_Array, memory[start : start + nbytes])


def _default_limit() -> int:
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system can tell
        return 1 << 30
    return min(1 << 30, memory // 8)


_pool = _Pool(_default_limit())


def _new_lock() -> None:
    _pool.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # Another thread of the parent may have held the lock.
    os.register_at_fork(after_in_child=_new_lock)
