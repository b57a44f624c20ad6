"""Tensors in memory that other processes see: `share_memory_`, and how they are sent there.

The memory is a file without a name that lies in memory. Processes that are forked have it as it is;
to others `multiprocessing` sends a handle of it (`tgraph/multiprocessing.py`).
"""

from __future__ import annotations

import gc
import mmap
import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..core.dispatch import settled
from ..core.eager_context import current_context
from ..core.public import public
from ..core.tensor import Tensor, intern_type, root_of, storage_of, wrap
from .storage import address_of, untyped_storage


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


def _new_memory(nbytes: int) -> SharedMemory:
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


@public(function=False, method=True)
def is_shared(self: Tensor) -> bool:
    """Whether other processes can have this tensor's memory; always so for CUDA tensors.

    >>> import tgraph as tg
    >>> x = tg.zeros(3)
    >>> x.is_shared(), x.share_memory_().is_shared(), x[1:].is_shared()
    (False, True, True)
    """
    if self.is_cuda or self.is_meta:
        return self.is_cuda
    return memory_of(current_context().host_array(self, "is_shared()")) is not None


@public(function=False, method=True)
def share_memory_(self: Tensor) -> Tensor:
    """Move this tensor's memory, with all that shows it, to where other processes see it.

    What a child process writes into a tensor of its parent's is seen there then, and the other way
    round. Arrays of NumPy that showed the memory keep what was there. Nothing happens to a tensor
    that is there already, or lies on a GPU.
    """
    share([self])
    return self


def share(tensors: Sequence[Tensor]) -> None:
    """`share_memory_` of several tensors: all others are looked at once."""
    moved: dict[int, tuple[int, Any]] = {}  # address -> its end, and the new bytes
    for each in tensors:
        if each.is_cuda or each.is_meta or is_shared(each) or not each._type.numel:
            continue
        root = root_of(settled(each))
        storage = untyped_storage(root)
        memory = np.frombuffer(_new_memory(storage.nbytes()), np.uint8)
        memory[:] = storage.bytes
        start = storage.data_ptr()
        moved[start] = start + storage.nbytes(), memory
        storage.bytes = memory
        storage_of(root).memory = weakref.ref(storage)
    if moved:
        _move_all(moved)


def place_of(tensor: Tensor) -> tuple[SharedMemory, int, TensorType, tuple[int, ...]] | None:
    """Where a tensor lies in shared memory: that, its first byte, its type and strides in bytes."""
    array = current_context().host_array(settled(tensor), "pickle")
    memory = memory_of(array)
    if memory is None:
        return None
    first = address_of(np.frombuffer(memory, np.uint8))
    return memory, address_of(array) - first, tensor._type, array.strides


def tensor_at(
    file: int, nbytes: int, start: int, type_: TensorType, strides: tuple[int, ...]
) -> Tensor:
    """The tensor at a place in the memory of a handle."""
    memory = mapped(file, nbytes)
    array: Any = np.ndarray(type_.shape, type_.dtype.numpy, memory, start, strides)
    return wrap(array, intern_type(*type_))


def _move_all(moved: dict[int, tuple[int, Any]]) -> None:
    """Let every tensor that lies in what was moved lie at its place in the new memory."""
    starts = np.array(sorted(moved))
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
            bytes_ = memory[address - start :]
            each._value = np.ndarray(array.shape, array.dtype, bytes_, 0, array.strides)


_ndarray = np.ndarray
