"""Tensors in memory that other processes see: `share_memory_`, and how they are sent there.

The memory is a file without a name that lies in memory. Processes that are forked have it as it is;
to others `multiprocessing` sends a handle of it (`tgraph/multiprocessing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..core.dispatch import settled
from ..core.eager_context import current_context
from ..core.public import public
from ..core.tensor import Tensor, intern_type, root_of, wrap
from ..runtime.arrays import address_of
from .memory_places import (
    SharedMemory,
    mapped,
    memory_of,
)
from .storage import UntypedStorage, move_to_shared, untyped_storage


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
    found: dict[int, UntypedStorage] = {}
    for each in tensors:
        if not (each.is_cuda or each.is_meta or is_shared(each)) and each._type.numel:
            storage = untyped_storage(root_of(settled(each)))
            found[storage._cdata] = storage
    move_to_shared(list(found.values()))


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
