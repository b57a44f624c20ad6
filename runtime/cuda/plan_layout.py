"""How a plan for CUDA lies in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan_steps import ArrayRef
from ..records import NamedTuple
from . import backend
from .arrays import bounds

Array = Any  # of CuPy

_PIECE = 256


class Place(NamedTuple):
    """Bytes of a slot in a piece of memory that several share."""

    start: int
    stop: int


def packed(sizes: Mapping[int, int]) -> tuple[dict[int, Place], int]:
    """Places for slots of these bytes one behind another, and the bytes of all."""
    places, end = {}, 0
    for slot, nbytes in sizes.items():
        places[slot] = Place(end, end + nbytes)
        end += -(-nbytes // _PIECE) * _PIECE
    return places, end


def view_of(array: ArrayRef, address: int, owner: object) -> Array:
    """An array of CuPy over a plan's memory, which keeps `owner` alive."""
    cupy = backend.cupy()
    if 0 in array.shape:
        return cupy.empty(array.shape, array.dtype)
    strides = array.strides
    extent = array.dtype.itemsize * (1 + sum(
        (size - 1) * stride // array.dtype.itemsize
        for size, stride in zip(array.shape, strides or _contiguous(array))
    ))  # fmt: skip
    memory = cupy.cuda.UnownedMemory(address, extent, owner)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return cupy.ndarray(array.shape, array.dtype, pointer, strides)


def _contiguous(array: ArrayRef) -> tuple[int, ...]:
    strides, step = [], array.dtype.itemsize
    for size in reversed(array.shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def aligned_copy(array: Array) -> Array:
    """A copy that lies as the array does, at an address that vectors can be loaded from."""
    cupy = backend.cupy()
    first, end = bounds(array)
    whole = cupy.cuda.alloc(end - first)
    runtime = cupy.cuda.runtime
    stream = cupy.cuda.get_current_stream().ptr
    runtime.memcpyAsync(whole.ptr, first, end - first, runtime.memcpyDeviceToDevice, stream)
    return cupy.ndarray(array.shape, array.dtype, whole, array.strides)
