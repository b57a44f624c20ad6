"""How a plan for CUDA lies in memory, and which of its steps become graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..plan_steps import ArrayRef, CudaStep, PythonStep, RoutineStep
from ..records import NamedTuple
from . import backend
from .arrays import bounds

Array = Any  # of CuPy

_PIECE = 256


class Place(NamedTuple):
    """Bytes of a slot in a piece of memory that several share."""

    start: int
    stop: int


class Part(NamedTuple):
    """Steps from `start` to `stop`: captured as one graph, or asked for one by one."""

    start: int
    stop: int
    is_captured: bool


def parts_of(steps: Sequence[CudaStep]) -> tuple[Part, ...]:
    """What can be captured, cut where it cannot; a single step between others is not worth it."""
    parts: list[Part] = []
    for at, step in enumerate(steps):
        can = not isinstance(step, (PythonStep, RoutineStep))
        if parts and parts[-1].is_captured is can:
            parts[-1] = parts[-1]._replace(stop=at + 1)
        else:
            parts.append(Part(at, at + 1, can))
    if len(parts) == 1:
        return tuple(parts)
    return tuple(
        part._replace(is_captured=part.is_captured and part.stop > part.start + 1) for part in parts
    )


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
