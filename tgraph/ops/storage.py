"""Storages: the memory that tensors share.

An `UntypedStorage` is the bytes of a tensor that is no view, and of all views of it. Files and
pickles write each storage once, and tensors as places in it (`storage_views.py`), so that what was
shared is shared when it is read again.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.devices import DeviceLike, as_device
from ..core.dispatch import settled
from ..core.eager_context import current_context
from ..core.inplace import count_writes
from ..core.overlap import origin_of, span_of
from ..core.public import public
from ..core.tensor import Tensor, root_of, storage_of
from ..runtime.arrays import (
    address_of,
    copy_elements,
    copy_of,
    module_of,
    place,
    to_host,
    transferred,
)
from ..runtime.cuda.arrays import is_pinned
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType
from ..runtime.meta import MetaArray
from .memory_places import Place, memory_of, move_all, new_memory


class UntypedStorage:
    """The bytes that a tensor and its views share, as `tensor.untyped_storage()` gives them.

    `UntypedStorage(n)` are n new bytes, `UntypedStorage([1, 2])` these. Two are equal that are the
    same memory.

    >>> import tgraph as tg
    >>> x = tg.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage() == x.untyped_storage()
    (24, True)
    """

    # root: the tensor whose views the others are, of those that show this memory; None until then.
    # released: the places of tensors for which `resize_` left no room.
    __slots__ = ("__weakref__", "bytes", "device", "released", "root")

    if TYPE_CHECKING:  # what storage_sizes.py adds

        def resizable(self) -> bool: ...

        def resize_(self, nbytes: int) -> UntypedStorage: ...

    def __init__(self, size: int | Sequence[int] = 0, *, device: DeviceLike = "cpu") -> None:
        if isinstance(size, int) and size < 0:
            raise RuntimeError(f"UntypedStorage(): expected at least 0 bytes, got {size}")
        given = np.zeros(size, np.uint8) if isinstance(size, int) else np.array(size, np.uint8)
        self.device = as_device(device)
        self.bytes: Any = place(given.reshape(-1), self.device)
        self.root: Tensor | None = None
        self.released: list[Place] = []

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        return address_of(self.bytes) if self.bytes.size else 0

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.bytes.size)

    size = __len__ = nbytes

    @property
    def _cdata(self) -> int:
        """What tells one memory from another."""
        return address_of(self.bytes)

    def element_size(self) -> int:
        """Of a byte: 1."""
        return 1

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_sparse(self) -> bool:
        """False: parts of sparse tensors have storages of their own."""
        return False

    is_sparse_csr = is_hpu = is_sparse
    filename = None

    def get_device(self) -> int:
        """The number of the device; -1 for the CPU."""
        return -1 if self.device.index is None else self.device.index

    def is_pinned(self, device: DeviceLike = "cuda") -> bool:
        """Whether devices reach this memory by themselves."""
        return not self.is_cuda and is_pinned(self.bytes)

    def byteswap(self, dtype: DType) -> None:
        """Turn the bytes of each element of a dtype round; of complex numbers, of both parts."""
        whole = self.bytes.view(dtype.to_real().numpy)
        self.bytes[:] = whole.byteswap().view(np.uint8)
        self.written()

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str, *, dtype: DType, offset: int = 0, count: int = -1
    ) -> UntypedStorage:
        """A copy of the bytes of elements of a dtype, which lie in "little" or "big" order."""
        if byte_order not in ("little", "big", "native"):
            raise ValueError(
                f"from_buffer(): expected 'little', 'big' or 'native', got {byte_order!r}"
            )
        length = count * dtype.itemsize if count >= 0 else -1
        made = cls(np.frombuffer(buffer, np.uint8, length, offset))
        if byte_order not in (sys.byteorder, "native"):
            made.byteswap(dtype)
        return made

    def tolist(self) -> list[int]:
        """All bytes as numbers."""
        found: list[int] = to_host(self.bytes).tolist()
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return storage_over(self.bytes[key], self.device)
        return int(self.bytes[self._at(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = int(value) % 256 if isinstance(value, (int, np.integer)) else value
        self.bytes[key if isinstance(key, slice) else self._at(key)] = value
        self.written()

    def _at(self, key: Any) -> int:
        if not isinstance(key, (int, np.integer)):
            raise TypeError(f"can't index a tgraph.UntypedStorage with {type(key).__name__}")
        if not -len(self) <= key < len(self):
            raise IndexError(f"index {key} out of range for storage of size {len(self)}")
        return int(key)

    def fill_(self, value: int) -> UntypedStorage:
        """Write one value over all bytes."""
        self[:] = value
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Write the bytes of another storage over these; there must be as many."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        copy_elements(self.bytes, source.to(self.device).bytes)
        self.written()
        return self

    def is_shared(self) -> bool:
        """Whether other processes can have this memory; always so on CUDA devices."""
        return self.is_cuda or memory_of(self.bytes) is not None

    def share_memory_(self) -> UntypedStorage:
        """Move this memory, with tensors that show it, to where other processes see it."""
        if not self.is_shared() and self.nbytes() and self.device.type == "cpu":
            move_to_shared([self])
        return self

    def written(self) -> None:
        """Count a write, for tensors that look here."""
        if self.root is not None:
            count_writes(self.root, 1)

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return storage_over(copy_of(self.bytes), self.device)

    def to(self, device: DeviceLike = None, *, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a device: itself where it is there."""
        there = as_device(device)
        if there == self.device:
            return self
        return storage_over(transferred(self.bytes, there), there)

    def cpu(self) -> UntypedStorage:
        """This storage on the CPU."""
        return self.to(CPU)

    def cuda(self, device: DeviceLike = None, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a CUDA device, the current one unless given."""
        return self.to("cuda" if device is None else device)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[int, int, Device]:
        return self._cdata, self.nbytes(), self.device

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild_storage, (to_host(self.bytes), str(self.device))

    def type(self) -> str:
        """PyTorch's name of this class."""
        return "torch.storage.UntypedStorage"

    def __repr__(self) -> str:
        kind = f"[tgraph.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"
        return "\n".join([*lines_of(self), kind])


def move_to_shared(storages: Sequence[UntypedStorage]) -> None:
    """Let storages on the CPU, with all tensors that show them, lie where other processes see them.

    Tensors are looked for once, however many storages there are.
    """
    moved: dict[int, tuple[int, Any]] = {}  # address -> its end, and the new bytes
    for each in storages:
        start, count = each._cdata, each.nbytes()
        memory = np.frombuffer(new_memory(count), np.uint8)
        memory[:] = each.bytes
        moved[start] = start + count, memory
        each.bytes = memory
        if each.root is not None:
            storage_of(each.root).memory = weakref.ref(each)
    if moved:
        move_all(moved)


def lines_of(storage: Any) -> list[str]:
    """The elements as `repr` shows them: each on a line, of many the first and the last."""
    count = len(storage)
    if count <= 1000:
        return [f" {each}" for each in storage]
    shown = [f" {storage[at]}" for at in (0, 1, 2, count - 3, count - 2, count - 1)]
    return [*shown[:3], " ...", *shown[3:]]


def rebuild_storage(array: Any, device: str) -> UntypedStorage:
    """What a pickled storage becomes."""
    if not (array.flags.writeable and array.flags.aligned):
        array = array.copy()
    there = as_device(device)
    return storage_over(place(array, there), there)


def storage_over(array: Any, device: Device) -> UntypedStorage:
    """The storage of a vector of bytes, which it shares."""
    made = object.__new__(UntypedStorage)
    made.bytes, made.device, made.root, made.released = array, device, None, []
    return made


def _bytes_of(array: Any) -> Any:
    """All memory between the first and the last element, as a vector of bytes."""
    itemsize, steps = array.itemsize, zip(array.shape, array.strides)
    extent = sum((size - 1) * step for size, step in steps) + itemsize if array.size else 0
    if type(array) is MetaArray:
        return MetaArray((extent,), np.dtype(np.uint8))
    as_strided = module_of(array).lib.stride_tricks.as_strided
    return as_strided(array, (extent // itemsize,), (itemsize,)).view(np.uint8)


# --- of a tensor -------------------------------------------------------------------------------


@public(function=False, method=True)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory that this tensor and its views share, as bytes.

    >>> import tgraph as tg
    >>> x = tg.tensor([1, 2, 3], dtype=tg.uint8)
    >>> x[1:].untyped_storage().tolist()
    [1, 2, 3]
    """
    root = root_of(settled(self))
    array = _eager_value(root, "untyped_storage()")
    shared = storage_of(root)
    found: UntypedStorage | None = shared.memory() if shared.memory is not None else None
    shown = _bytes_of(array)
    is_known = found is not None and found._cdata == address_of(shown)
    # One that was resized may end with a part of an element.
    if not (is_known and 0 <= len(found) - shown.size < root._type.dtype.itemsize):
        found = storage_over(shown, root._type.device)
        found.root = root
        shared.memory = weakref.ref(found)
    return found


@public(function=False, method=True)
def storage_offset(self: Tensor) -> int:
    """Where this tensor begins in its storage, in elements.

    >>> import tgraph as tg
    >>> tg.zeros(2, 3)[1].storage_offset()
    3
    """
    context = current_context()
    if context.tracing:
        return span_of(self).start + context.origin_of(root_of(self)).offset
    _eager_value(self, "storage_offset()")  # refused where there is none
    return origin_of(self).offset


def _eager_value(tensor: Tensor, operation: str) -> Any:
    context = current_context()
    if context.tracing or context.lifts:
        return context.host_array(tensor, operation)
    return context.value_of(tensor)
