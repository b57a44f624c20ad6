"""What is read: a file of the disk, an open file, or bytes, at any place."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from .errors import LoadError


class FileSource:
    """A file-like object that can `seek`, from where it stands to its end."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._map: mmap.mmap | None = None
        try:
            self._start = file.tell()
            self.size = file.seek(0, os.SEEK_END) - self._start
            file.seek(self._start)
        except (AttributeError, OSError) as error:
            raise AttributeError(
                f"load() needs a file that can seek and tell, got {type(file).__name__} ({error}). "
                "Read it into an io.BytesIO first, and load from that."
            ) from error

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fill `target` from a place on; LoadError where there are too few bytes."""
        if offset < 0 or offset + len(target) > self.size:
            raise LoadError("the file ends too early: it was cut off")
        self._file.seek(self._start + offset)
        read_into = getattr(self._file, "readinto", None)
        done = 0
        while done < len(target):
            if read_into is not None:
                count = read_into(target[done:])
            else:
                part = self._file.read(len(target) - done)
                count = len(part)
                target[done : done + count] = part
            if not count:
                raise LoadError("the file ends too early: it was cut off while it was read")
            done += count

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Bytes at a place, as many as there are."""
        found = bytearray(max(0, min(size, self.size - offset)))
        self.read_into(offset, memoryview(found))
        return bytes(found)

    def mapped(self, offset: int, size: int) -> Any:
        """Bytes of the file as memory of this process alone: what is written stays here."""
        if not size:
            return np.empty(0, np.uint8)
        if self._map is None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_COPY)
        if offset + size > len(self._map):
            raise LoadError("the file ends too early: it was cut off")
        return np.frombuffer(self._map, np.uint8, size, offset)
