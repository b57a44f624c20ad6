"""Writes pickles as PyTorch does: tensors as places in storages, under PyTorch's names."""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any, ClassVar

from ..core.tensor import Size, Tensor
from ..ops.pickling import rebuild_from_type, rebuild_meta_tensor, rebuild_tensor_as
from ..ops.storage import UntypedStorage
from ..ops.typed import STORAGES
from ..runtime.device import Device
from ..runtime.dtypes import DType, uint16, uint32, uint64
from .allowed import WRITTEN

_STORAGES = {UntypedStorage, *STORAGES.values()}
PersistentId = tuple[str, Any, str, str, int]


class Storages:
    """The storages that a file needs, each once, and what they are called in it."""

    def __init__(self) -> None:
        self._keys: dict[UntypedStorage, str] = {}
        self._dtypes: dict[UntypedStorage, DType] = {}

    def persistent_id(self, given: Any) -> PersistentId | None:
        """What stands for a storage in a pickle; None for all else."""
        if type(given) not in _STORAGES:
            return None
        untyped = given.untyped()
        key = self._keys.setdefault(untyped, str(len(self._keys)))
        cls = type(given)
        return "storage", cls, key, str(untyped.device), len(given)

    def is_read_as(self, storage: UntypedStorage, dtype: DType) -> bool:
        """Whether the tensors of a storage are of this dtype: of that of the first one."""
        return self._dtypes.setdefault(storage, dtype) is dtype

    def __iter__(self) -> Any:
        return iter((key, storage) for storage, key in self._keys.items())


class Pickler(pickle._Pickler):
    """Python's pickler, with other names for what is ours: those of PyTorch.

    It is the one in Python, as that one's names need not be importable here.
    """

    def __init__(self, file: Any, protocol: int, storages: Storages) -> None:
        super().__init__(file, protocol)
        self._storages = storages

    def persistent_id(self, obj: Any) -> PersistentId | None:
        return self._storages.persistent_id(obj)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is Tensor:
            return self._tensor(obj)
        if kind is Size:
            return Size, (tuple(obj),)
        if kind is DType:
            return obj.name
        if kind is Device:
            return Device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def _tensor(self, tensor: Tensor) -> Any:
        """As ever, or by its dtype, where others read the storage as another one.

        So it is with types that have no storage in PyTorch.
        """
        rebuild, arguments = tensor.__reduce_ex__(2)
        if rebuild is rebuild_from_type:
            rebuild, cls, inner, own = arguments
            return rebuild_from_type, (*self._by_dtype(rebuild, inner, cls), own)
        return self._by_dtype(rebuild, arguments)

    def _by_dtype(self, rebuild: Any, arguments: tuple[Any, ...], *cls: type) -> Any:
        if rebuild is rebuild_meta_tensor:
            return rebuild, *cls, arguments
        storage, *place = arguments
        untyped = storage.untyped()
        has_storage = storage.dtype not in (uint16, uint32, uint64)
        if has_storage and self._storages.is_read_as(untyped, storage.dtype):
            return rebuild, *cls, arguments
        return rebuild_tensor_as, *cls, (untyped, *place, storage.dtype)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if id(obj) not in _IDS:
            super().save_global(obj, name=name)
            return
        module, own = WRITTEN[obj]
        self.write(pickle.GLOBAL + f"{module}\n{own}\n".encode("ascii"))
        self.memoize(obj)

    dispatch: ClassVar[dict[type, Any]] = {
        **pickle._Pickler.dispatch,
        FunctionType: save_global,
    }


_IDS = {id(each) for each in WRITTEN}
