"""PyTorch's checkpoints: an archive of a pickle and of the storages that it speaks of."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.storage import UntypedStorage, storage_over
from ..ops.typed import STORAGES, TypedStorage
from ..runtime.arrays import to_host
from ..runtime.device import CPU
from .archive import Archive, ArchiveWriter
from .errors import LoadError
from .locations import Restore
from .pickler import Pickler, Storages
from .sources import FileSource

VERSION = 3
Unpickle = Callable[[bytes, Callable[[Any], Any]], Any]


def write(obj: Any, file: Any, pickle_module: Any, protocol: int) -> None:
    """Write `obj` to a file."""
    storages, content = Storages(), io.BytesIO()
    _pickler(content, pickle_module, protocol, storages).dump(obj)
    archive = ArchiveWriter(file)
    archive.record("data.pkl", content.getbuffer())
    archive.record("byteorder", sys.byteorder.encode())
    for key, storage in storages:
        archive.record(f"data/{key}", to_host(storage.bytes))
    archive.record("version", f"{VERSION}\n".encode())
    archive.close()


def _pickler(file: Any, module: Any, protocol: int, storages: Storages) -> Any:
    if module is None or module.__name__ in ("pickle", "_pickle"):
        return Pickler(file, protocol, storages)

    class OtherPickler(module.Pickler):
        """Of another module, which writes our own names: such a file is for tgraph alone."""

        def persistent_id(self, obj: Any) -> Any:
            return storages.persistent_id(obj)

    return OtherPickler(file, protocol=protocol)


class _Reader:
    """The storages of a checkpoint, each read when the pickle first speaks of it."""

    def __init__(self, archive: Archive, restore: Restore, mapped: bool) -> None:
        self._archive = archive
        self._folder = archive.folder
        self._restore = restore
        self._mapped = mapped
        self._loaded: dict[str, UntypedStorage] = {}
        self._orders: dict[str, int] = {}  # bytes of the parts whose order was turned
        self._swapped = self._is_swapped()

    def text(self, name: str) -> bytes:
        return bytes(self._archive.read(f"{self._folder}/{name}"))

    def has(self, name: str) -> bool:
        return f"{self._folder}/{name}" in self._archive.entries

    def _is_swapped(self) -> bool:
        order = self.text("byteorder") if self.has("byteorder") else b"little"
        if order not in (b"little", b"big"):
            raise LoadError("the file does not tell the order of bytes: it is damaged")
        return order.decode() != sys.byteorder

    def persistent_load(self, given: Any) -> Any:
        """The storage that a persistent id speaks of."""
        cls, key, location, count = checked_id(given, 5)
        if key not in self._loaded:
            self._loaded[key] = self._read(cls, key, location)
        storage = self._loaded[key]
        if self._swapped and self._orders.setdefault(key, _part(cls)) != _part(cls):
            raise LoadError(
                f"storage '{key}' is read as two types, of which the order of bytes of one is not "
                "that of the other: the file is damaged"
            )
        size = 1 if cls is UntypedStorage else cls.dtype.itemsize
        if count * size > storage.nbytes():
            raise LoadError(
                f"storage '{key}' has {storage.nbytes()} bytes and should have {count * size}: the "
                "file is damaged"
            )
        return storage if cls is UntypedStorage else cls(storage)

    def _read(self, cls: Any, key: str, location: str) -> UntypedStorage:
        name = f"{self._folder}/data/{key}"
        if self._swapped and cls is UntypedStorage:
            raise LoadError("storages without a type cannot be read on a machine of another order")
        itemsize = 1 if cls is UntypedStorage else cls.dtype.itemsize
        content = self._archive.map(name) if self._mapped else self._archive.read(name)
        if content.ctypes.data % itemsize:
            content = content.copy()
        if self._swapped:
            content = swapped(content, cls)
        return self._restore(storage_over(content, CPU), location)


def _part(cls: Any) -> int:
    """The bytes of a number in a storage, of which complex ones have two."""
    return 1 if cls is UntypedStorage else int(cls.dtype.to_real().itemsize)


def swapped(content: Any, cls: type[TypedStorage]) -> Any:
    """The bytes of elements in the other order; complex numbers by their parts."""
    parts = _part(cls)
    if parts == 1:
        return content
    return content.view(np.dtype(f"u{parts}")).byteswap().view(np.uint8)


def checked_id(given: Any, parts: int) -> tuple[Any, str, str, int]:
    """What a persistent id says, behind its first word."""
    fits = type(given) is tuple and len(given) == parts and given[0] == "storage"
    if fits:
        _, cls, key, location, count, *_ = given
        known = cls is UntypedStorage or any(cls is each for each in STORAGES.values())
        fits = known and tuple(map(type, (key, location, count))) == (str, str, int) and count >= 0
    if not fits:
        raise LoadError("the pickle speaks of a storage in an unknown way: the file is damaged")
    return cls, key, location, count


def read(source: FileSource, unpickle: Unpickle, restore: Restore, mapped: bool) -> Any:
    """The object that a checkpoint holds."""
    reader = _Reader(Archive(source), restore, mapped)
    if reader.has("constants.pkl"):
        raise LoadError(
            "the file is a TorchScript archive, which holds code: in PyTorch, "
            "torch.save(torch.jit.load(file).state_dict(), ...) writes its values alone"
        )
    if not reader.has("data.pkl") or not reader.has("version"):
        raise LoadError("the zip file is no checkpoint: it has no record 'data.pkl' and 'version'")
    version = reader.text("version").strip()
    if not version.isdigit() or not 1 <= int(version[:9]) <= 10:
        raise LoadError(f"the checkpoint has version {version[:20]!r}; 1 to 10 are known")
    return unpickle(reader.text("data.pkl"), reader.persistent_load)
