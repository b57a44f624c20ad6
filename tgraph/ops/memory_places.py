"""Where arrays lie in memory: addresses, memory of several processes, and tensors that move."""

from __future__ import annotations

import gc
import mmap
import os
import weakref
from typing import Any

import numpy as np

from ..compiler.ir import Node
from ..core.tensor import Tensor
from ..runtime.arrays import address_of
from ..runtime.device import Device
from ..runtime.records import NamedTuple


class SharedMemory(mmap.mmap):
    """Bytes that several processes have. `file` is their handle, where the system has such."""

    file: int | None = None


def mapped(file: int | None, nbytes: int) -> SharedMemory:
    """The memory of a handle, which is closed with it; new memory where there is none."""
    made = SharedMemory(-1 if file is None else file, nbytes)
    made.file = file
    if file is not None:
        weakref.finalize(made, os.close, file)
    return made


def new_memory(nbytes: int) -> SharedMemory:
    if not hasattr(os, "memfd_create"):
        return mapped(None, nbytes)
    file = os.memfd_create("tgraph", os.MFD_CLOEXEC)
    os.truncate(file, nbytes)
    return mapped(file, nbytes)


def memory_of(array: Any) -> SharedMemory | None:
    """The shared memory that an array lies in, if it does."""
    while array is not None and not isinstance(array, SharedMemory):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return array


class Place(NamedTuple):
    """Where a tensor lies in its storage, in bytes; `tensor` gives it, or None once it is gone."""

    tensor: Any
    start: int
    strides: tuple[int, ...]


def shown_within(start: int, end: int, device: Device) -> list[tuple[Tensor, Place]]:
    """Every tensor with elements that lie in a range of addresses of a device."""
    found = []
    for each in gc.get_objects():
        # By its type: `__class__` of foreign objects may be code, which warns or raises.
        if not issubclass(type(each), Tensor):
            continue
        array = getattr(each, "_value", None)
        if not hasattr(array, "strides") or type(array) is Node or each._type.device != device:
            continue
        if array.size and start <= (address := address_of(array)) < end:
            found.append((each, Place(None, address - start, tuple(array.strides))))
    return found


_given: dict[int, weakref.ref[Any]] = {}


def note_given(array: np.ndarray[Any, Any]) -> None:
    """Remember that the memory of an array belongs to somebody else."""
    key = id(array)
    _given[key] = weakref.ref(array, lambda gone: _given.pop(key, None))


def is_given(array: Any) -> bool:
    """Whether the memory of an array belongs to somebody else, such as NumPy."""
    return id(array) in _given


def move_all(moved: dict[int, tuple[int, Any]]) -> None:
    """Let every tensor that lies in what was moved lie at its place in the new memory.

    `moved` has addresses, each with the end of the old memory and the new bytes.
    """
    starts = np.array(sorted(moved))
    found: list[tuple[Tensor, Any, int]] = []
    for each in gc.get_objects():
        # By its type: `__class__` of foreign objects may be code, which warns or raises.
        if (
            not issubclass(type(each), Tensor)
            or type(getattr(each, "_value", None)) is not _ndarray
        ):
            continue
        array = each._value
        address = address_of(array)
        at = int(np.searchsorted(starts, address, side="right")) - 1
        if at < 0:
            continue
        start = int(starts[at])
        end, memory = moved[start]
        if address < end and array.size:
            found.append((each, memory, address - start))
    for each, memory, first in found:
        array = each._value
        each._value = np.ndarray(array.shape, array.dtype, memory[first:], 0, array.strides)


_ndarray = np.ndarray
