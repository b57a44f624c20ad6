"""Arrays in the memory of CUDA devices, and their way there and back."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from . import backend, failures, in_flight
from .memory import when_full

if TYPE_CHECKING:
    import numpy.typing as npt

Array = Any  # of CuPy
ALIGNMENT = 16
"""Kernels access vectors of this many bytes; arrays that begin elsewhere have none."""
FOREIGN = object()
"""What stands for the owner of memory of other libraries."""


class _Waiting(threading.local):
    on = True


waiting = _Waiting()
"""Whether copies between the host and a device wait for it, in this thread."""


def module() -> Any:
    """CuPy; RuntimeError says what is missing where CUDA cannot be used."""
    return backend.cupy()


def current(device: Device) -> AbstractContextManager[Any]:
    """Makes a device the one on which CuPy allocates and computes."""
    context: AbstractContextManager[Any] = backend.cupy().cuda.Device(device.index or 0)
    return context


def upload(array: npt.NDArray[Any], device: Device) -> Array:
    """A contiguous copy of a NumPy array on a device."""
    with current(device):
        return uploaded(array)


def uploaded(array: npt.NDArray[Any]) -> Array:
    """A contiguous copy of a NumPy array on the current device.

    Pinned memory has been read when this returns, unless transfers do not wait; other memory has in
    any case.
    """
    # Of an array without dimensions CuPy takes the number, and -0.0 for 0.0.
    elements = array.reshape(-1) if array.ndim == 0 else array
    cupy = backend.cupy()
    copy = when_full(lambda: cupy.array(elements, order="C"))
    # CuPy keeps pinned memory until it was read, but anybody may write to it.
    if waiting.on and cupy.cuda.pinned_memory.is_memory_pinned(elements.ctypes.data):
        cupy.cuda.get_current_stream().synchronize()
        failures.report()
    return copy.reshape(array.shape)


def download(array: Array, wait: bool = True) -> npt.NDArray[Any]:
    """A copy of an array of a device as a NumPy array.

    Without `wait` it is there once the current stream has come so far.
    """
    found: npt.NDArray[Any]
    with array.device:
        if wait:
            found = array.get()
        else:
            found, memory = _pinned_empty(array.shape, array.dtype)
            array.get(out=found, blocking=False)
            in_flight.keep(memory, backend.cupy().cuda.get_current_stream())
    if wait:
        failures.report()
    return found


def device_of(array: Array) -> Device:
    """Where an array of CuPy lies."""
    return Device("cuda", array.device.id)


def bounds(array: Array) -> tuple[int, int]:
    """The addresses between which the elements of an array lie."""
    first = last = int(array.data.ptr)
    if not array.size:
        return first, first
    for size, stride in zip(array.shape, array.strides):
        if stride < 0:
            first += (size - 1) * stride
        else:
            last += (size - 1) * stride
    return first, last + array.itemsize


def may_share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays of CuPy lie in overlapping ranges of memory."""
    (a_first, a_end), (b_first, b_end) = bounds(a), bounds(b)
    return a_first < b_end and b_first < a_end


def writes_meet(written: Sequence[Array], read: Sequence[Array]) -> bool:
    """As `runtime.arrays.writes_meet`; arrays of NumPy have memory of their own."""
    spans = [_span(each) for each in written]
    others = [_span(each) for each in read if not isinstance(each, np.ndarray)]
    for number, (first, end) in enumerate(spans):
        for start, stop in (*spans[number + 1 :], *others):
            if first < stop and start < end:
                return True
    return False


def _span(array: Array) -> tuple[int, int]:
    if not array.flags.c_contiguous:
        return bounds(array)
    first = int(array.data.ptr)
    return first, first + int(array.nbytes)


def cupy_array() -> type[Any]:
    """The class of CuPy's arrays."""
    found: type[Any] = backend.cupy().ndarray
    return found


def is_cuda_array(value: object) -> bool:
    """Whether `value` is an array in the memory of a CUDA device, of any library."""
    return hasattr(value, "__cuda_array_interface__")


def as_cupy(array: Any) -> Array:
    """An array of CuPy over the same memory."""
    found = backend.cupy()
    return array if type(array) is found.ndarray else found.asarray(array)


def to_dlpack(array: Array, stream: int | None, max_version: tuple[int, int] | None) -> Any:
    """A capsule of DLPack with an array, for whose current work the stream of the reader waits.

    ValueError for stream 0, which the protocol forbids: it could be two streams.
    """
    if stream == 0:
        raise ValueError("__dlpack__(): expected a valid stream (-1, 1, 2 or its pointer), got 0")
    with array.device:
        return array.__dlpack__(stream=stream, max_version=max_version)


def dlpack_device(array: Array) -> tuple[int, int]:
    """Where DLPack says that an array lies: the kind of device, and its number."""
    kind, index = array.__dlpack_device__()
    return int(kind), int(index)


def from_dlpack(source: Any) -> Array:
    """An array of CuPy over the memory of another library's array on a CUDA device."""
    return backend.cupy().from_dlpack(source)


def pinned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous copy in memory that a device can reach by itself, for faster transfers."""
    copy, _ = _pinned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _pinned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Any]:
    """An array with arbitrary content, and the pinned memory that it lies in."""
    in_flight.collect()  # what devices are done with may be used again
    count = math.prod(shape)
    memory = backend.cupy().cuda.alloc_pinned_memory(max(count * dtype.itemsize, 1))
    return np.frombuffer(memory, dtype, count).reshape(shape), memory


def is_pinned(array: npt.NDArray[Any]) -> bool:
    """Whether an array lies in memory that `pinned` made."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return buffer_owner(base) is not FOREIGN


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A contiguous array with arbitrary content on the current device."""
    return backend.cupy().empty(shape, dtype)


def memory_block(nbytes: int) -> Any:
    """Memory of the current device: it has an address, and offsets can be added to it."""
    return backend.cupy().cuda.alloc(nbytes)


def array_over(memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A contiguous array over memory, which it keeps alive."""
    return backend.cupy().ndarray(shape, dtype, memory)


def buffer_owner(buffer: object) -> object:
    """The pinned memory behind a NumPy array that begins at a buffer; FOREIGN for other buffers."""
    held: Any = buffer.obj if isinstance(buffer, memoryview) else buffer
    return held.mem if type(held).__name__ == "PinnedMemoryPointer" else FOREIGN


def owner_of(array: Array) -> object:
    """The object whose memory an array shows: one and the same for all of other libraries.

    Theirs may share memory without saying so.
    """
    cuda = backend.cupy().cuda
    memory = array.data.mem
    return memory if isinstance(memory, (cuda.memory.PooledMemory, cuda.Memory)) else FOREIGN
