"""PyTorch's format from before 1.6: pickles one behind the other, and then the storages.

It has no checksums: damage among the elements goes unseen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.storage import UntypedStorage, storage_over
from ..runtime.device import CPU
from .checkpoint import checked_id, swapped
from .errors import LoadError
from .locations import Restore
from .sources import FileSource

MAGIC = 0x1950A86A20F9469CFC6C
START = b"\x8a\x0a" + MAGIC.to_bytes(10, "little")
"""What the first bytes of such a file hold, behind the protocol and its like."""
_PROTOCOL = 1001

Load = Callable[[Callable[[Any], Any] | None], Any]
"""Gives the next pickle of the file; with what gives storages for persistent ids."""
Position = Callable[[], int]
"""Tells where the pickle that was read last ends."""


class _Storages:
    """Storages that the pickle speaks of before their bytes come."""

    def __init__(self, most: int, restore: Restore) -> None:
        self.found: dict[str, tuple[Any, UntypedStorage, UntypedStorage]] = {}
        self._left = most
        self._restore = restore

    def persistent_load(self, given: Any) -> Any:
        if type(given) is tuple and given[:1] == ("module",):
            raise LoadError("the file holds the source of modules, which is not loaded")
        if type(given) is tuple and len(given) == 6 and given[5] is not None:
            raise LoadError("the file has storages that are parts of others, of PyTorch 0.3")
        cls, key, location, count = checked_id(given[:5] if type(given) is tuple else given, 5)
        if key not in self.found:
            self._make(cls, key, location, count)
        storage = self.found[key][2]
        return storage if cls is UntypedStorage else cls(storage)

    def _make(self, cls: Any, key: str, location: str, count: int) -> None:
        size = count if cls is UntypedStorage else count * cls.dtype.itemsize
        self._left -= size
        if self._left < 0:
            raise LoadError("the file is shorter than its storages: it was cut off")
        here = storage_over(np.zeros(size, np.uint8), CPU)
        self.found[key] = cls, here, self._restore(here, location)


def read(source: FileSource, start: Callable[[], tuple[Load, Position]], restore: Restore) -> Any:
    """The object of a file. `start` begins to read its pickles, and tells where they end.

    They are read twice: tensors that are to be read conjugated or negated are made of the bytes of
    their storages, and which of these there are, and where, is known behind the pickles alone.
    """
    storages = _Storages(source.size, restore)
    _, keys, system, at = _pickles(storages, *start())
    fits = type(keys) is list and all(type(key) is str for key in keys)
    if not fits or sorted(storages.found) != sorted(keys):
        raise LoadError("the file does not hold the storages that it speaks of: it is damaged")
    order = "little" if system.get("little_endian", True) else "big"
    for key in keys:
        at = _fill(source, at, *storages.found[key], order != sys.byteorder)
    return _pickles(storages, *start())[0]


def _pickles(storages: _Storages, load: Load, position: Position) -> tuple[Any, Any, Any, int]:
    """The object, the names of its storages, facts of the system, and where the pickles end."""
    magic, protocol, system = load(None), load(None), load(None)
    if magic != MAGIC or protocol != _PROTOCOL or type(system) is not dict:
        raise LoadError("the file is no checkpoint of PyTorch: its first words are others")
    found = load(storages.persistent_load)
    return found, load(None), system, position()


def _fill(
    source: FileSource, at: int, cls: Any, here: UntypedStorage, there: UntypedStorage, swap: bool
) -> int:
    """Read the bytes of a storage; gives where the next one begins."""
    itemsize = 1 if cls is UntypedStorage else cls.dtype.itemsize
    count = int.from_bytes(source.bytes_at(at, 8), "big" if swap else "little")
    if count * itemsize != here.nbytes():
        raise LoadError("a storage has another size than the file says: it is damaged")
    source.read_into(at + 8, memoryview(here.bytes))
    if swap and cls is not UntypedStorage:
        here.bytes[:] = swapped(here.bytes, cls)
    if there != here:
        there.copy_(here)
    return at + 8 + here.nbytes()
