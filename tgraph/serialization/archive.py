"""The zip files of PyTorch's checkpoints: named records, stored as they are, with checksums.

PyTorch aligns records to 64 bytes, so that a mapped file can be used as memory. The reader trusts
nothing: all positions are checked against the file before anything is read, records may not
overlap, and no byte is given away whose checksum is wrong (but of a mapped file, which is read when
it is used). So no file makes it take more memory than the file is long.

The format: PKWARE, ".ZIP File Format Specification" (APPNOTE.TXT) 6.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..runtime.records import NamedTuple
from .errors import LoadError

ALIGNMENT = 64
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_NO_DATE = 33  # the first of January 1980
_CHUNK = 1 << 24


# --- writing -----------------------------------------------------------------------------------


class _Written(NamedTuple):
    name: bytes
    size: int
    crc: int
    offset: int


class ArchiveWriter:
    """Writes records one behind the other; `file` needs nothing but `write`."""

    def __init__(self, file: Any, folder: str = "archive/") -> None:
        self._file = file
        self._folder = folder
        self._offset = 0
        self._records: list[_Written] = []

    def _write(self, *parts: Any) -> None:
        for part in parts:
            self._file.write(part)
            self._offset += len(part)

    def record(self, name: str, content: Any) -> None:
        """A record of bytes, or of what lets its bytes be read."""
        view = memoryview(content).cast("B")
        written = _Written(f"{self._folder}{name}".encode(), len(view), _crc_of(view), self._offset)
        large = written.size >= _FULL32
        sizes = struct.pack("<HHQQ", 1, 16, written.size, written.size) if large else b""
        start = self._offset + _LOCAL.size + len(written.name) + len(sizes) + 4
        extra = sizes + _padding(-start % ALIGNMENT)
        short = _FULL32 if large else written.size
        header = _LOCAL.pack(
            b"PK\x03\x04", 45 if large else 20, 0, 0, 0, _NO_DATE, written.crc, short, short,
            len(written.name), len(extra),
        )  # fmt: skip
        self._write(header, written.name, extra)
        for at in range(0, len(view), _CHUNK):
            self._write(view[at : at + _CHUNK])
        self._records.append(written)

    def close(self) -> None:
        """Write the directory behind the records."""
        start = self._offset
        for each in self._records:
            self._write(_central_header(each))
        count, size = len(self._records), self._offset - start
        if count >= _FULL16 or start >= _FULL32 or size >= _FULL32:
            end64 = self._offset
            self._write(
                _END64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start),
                _LOCATOR.pack(b"PK\x06\x07", 0, end64, 1),
            )
        shown = min(count, _FULL16)
        self._write(
            _END.pack(b"PK\x05\x06", 0, 0, shown, shown, min(size, _FULL32), min(start, _FULL32), 0)
        )


def _padding(size: int) -> bytes:
    """An extra field of `size` and 4 bytes, with the mark that PyTorch gives it."""
    return struct.pack("<2sH", b"FB", size) + b"Z" * size


def _crc_of(view: memoryview) -> int:
    crc = 0
    for at in range(0, len(view), _CHUNK):
        crc = zlib.crc32(view[at : at + _CHUNK], crc)
    return crc


def _central_header(each: _Written) -> bytes:
    wide = [each.size, each.size] if each.size >= _FULL32 else []
    wide += [each.offset] if each.offset >= _FULL32 else []
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    size, offset = min(each.size, _FULL32), min(each.offset, _FULL32)
    version = 45 if wide else 20
    head = _CENTRAL.pack(
        b"PK\x01\x02", version, version, 0, 0, 0, _NO_DATE, each.crc, size, size, len(each.name),
        len(extra), 0, 0, 0, 0, offset,
    )  # fmt: skip
    return head + each.name + extra


# --- reading -----------------------------------------------------------------------------------


class Source(Protocol):
    """Bytes of a known number that are read at any place."""

    size: int

    def read_into(self, offset: int, target: memoryview) -> None: ...

    def mapped(self, offset: int, size: int) -> Any: ...


class Entry(NamedTuple):
    """A record as the directory tells of it."""

    name: str
    raw_name: bytes
    size: int
    stored_size: int
    method: int
    crc: int
    offset: int
    limit: int  # where the next record, or the directory, begins


class Archive:
    """The records of a zip file by their names."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.entries = {each.name: each for each in _directory(source)}

    @property
    def folder(self) -> str:
        """The folder that all records lie in."""
        return next(iter(self.entries), "").partition("/")[0]

    def read(self, name: str) -> Any:
        """A new vector of the bytes of a record; LoadError where they are not what was written."""
        entry, start = self._placed(name)
        found = np.empty(entry.size, np.uint8)
        self._source.read_into(start, memoryview(found))
        if _crc_of(memoryview(found)) != entry.crc:
            raise LoadError(
                f"record '{name}' is damaged: its checksum is not the one that was written with it"
            )
        return found

    def map(self, name: str) -> Any:
        """The bytes of a record in the mapped file, which nobody has looked at."""
        entry, start = self._placed(name)
        return self._source.mapped(start, entry.size)

    def inflated(self, name: str) -> Any:
        """`read` of a record that may be compressed."""
        entry, start = self._placed(name, compressed=True)
        stored = bytearray(entry.stored_size)
        self._source.read_into(start, memoryview(stored))
        content = stored
        if entry.method:
            expander = zlib.decompressobj(-15)
            try:
                content = bytearray(expander.decompress(stored, max(entry.size, 1)))
            except zlib.error as error:
                raise LoadError(f"record '{name}' is damaged: {error}") from error
        if len(content) != entry.size or _crc_of(memoryview(content)) != entry.crc:
            raise LoadError(
                f"record '{name}' is damaged: its size or its checksum is not the one that was "
                "written with it"
            )
        return np.frombuffer(content, np.uint8)

    def _placed(self, name: str, compressed: bool = False) -> tuple[Entry, int]:
        """A record, and where its bytes begin."""
        if name not in self.entries:
            raise LoadError(f"there is no record '{name[:100]}' in the file")
        entry = self.entries[name]
        if entry.method and not compressed:
            raise LoadError(
                f"record '{name}' is compressed, as PyTorch never writes it; unpack the file and "
                "pack it again without compression (zip -0)"
            )
        head = bytearray(_LOCAL.size + len(entry.raw_name))
        if entry.offset + len(head) > entry.limit:
            raise LoadError(f"record '{name}' overlaps the next one: the file is damaged")
        self._source.read_into(entry.offset, memoryview(head))
        mark, *_, name_size, extra_size = _LOCAL.unpack_from(head)
        if mark != b"PK\x03\x04" or head[_LOCAL.size :] != entry.raw_name:
            raise LoadError(f"record '{name}' is not where the directory says: the file is damaged")
        start = entry.offset + _LOCAL.size + name_size + extra_size
        if name_size != len(entry.raw_name) or start + entry.stored_size > entry.limit:
            raise LoadError(f"record '{name}' overlaps the next one: the file is damaged")
        return entry, start


def _directory(source: Source) -> Sequence[Entry]:
    count, size, start = _end_of(source)
    if start + size > source.size or count * _CENTRAL.size > size:
        raise LoadError("the directory of the zip file lies outside of it: the file is damaged")
    content = bytearray(size)
    source.read_into(start, memoryview(content))
    found, at = [], 0
    for _ in range(count):
        if at + _CENTRAL.size > size:
            raise LoadError("the directory of the zip file ends too early: the file is damaged")
        entry, at = _entry(content, at)
        found.append(entry)
    if at != size or len({each.name for each in found}) != count:
        raise LoadError("the directory of the zip file is damaged")
    offsets = sorted(each.offset for each in found)
    limits = dict(zip(offsets, [*offsets[1:], start]))
    if len(limits) != count or (offsets and offsets[-1] > start):
        raise LoadError("records of the zip file overlap: the file is damaged")
    return [each._replace(limit=limits[each.offset]) for each in found]


def _end_of(source: Source) -> tuple[int, int, int]:
    """How many records there are, and the size and place of the directory."""
    tail = bytearray(min(source.size, _END.size + _FULL16))
    source.read_into(source.size - len(tail), memoryview(tail))
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise LoadError("the file has no end of a zip file: it was cut off, or is none")
    _, disk, other, here, count, size, start, comment = _END.unpack_from(tail, at)
    place = source.size - len(tail) + at
    if disk or other or here != count or len(tail) - at - _END.size != comment:
        raise LoadError("the end of the zip file is damaged")
    wide = _end64_of(source, place)
    if wide is not None:
        place, count, size, start = wide
    if start + size != place:
        raise LoadError("the directory of the zip file is not where its end says: it is damaged")
    return count, size, start


def _end64_of(source: Source, place: int) -> tuple[int, int, int, int] | None:
    """The end with numbers of 64 bits, which PyTorch always writes; None where there is none."""
    parts = bytearray(_END64.size + _LOCATOR.size)
    if place < len(parts):
        return None
    source.read_into(place - len(parts), memoryview(parts))
    mark, _, _, _, _, _, _, count, size, start = _END64.unpack_from(parts)
    locator, _, end64, _ = _LOCATOR.unpack_from(parts, _END64.size)
    if locator != b"PK\x06\x07":
        return None
    if mark != b"PK\x06\x06" or end64 != place - len(parts):
        raise LoadError("the end of the zip file is damaged")
    return end64, count, size, start


def _entry(content: bytearray, at: int) -> tuple[Entry, int]:
    head = _CENTRAL.unpack_from(content, at)
    mark, _, _, flags, method, _, _, crc, stored, size, name_size, extra_size, note = head[:13]
    offset, end = head[16], at + _CENTRAL.size + name_size + extra_size + note
    if mark != b"PK\x01\x02" or end > len(content):
        raise LoadError("the directory of the zip file is damaged")
    at += _CENTRAL.size
    raw_name = bytes(content[at : at + name_size])
    extra = content[at + name_size : at + name_size + extra_size]
    size, stored, offset = _wide(extra, size, stored, offset)
    try:
        name = raw_name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LoadError("the name of a record is no text: the file is damaged") from error
    if flags & 1 or method not in (0, 8) or (method == 0 and size != stored):
        raise LoadError(f"record '{name}' is encrypted, compressed in an unknown way, or damaged")
    return Entry(name, raw_name, size, stored, method, crc, offset, 0), end


def _wide(extra: bytearray, *values: int) -> list[int]:
    """Sizes and places, of which those that need 64 bits are in the extra field of number 1."""
    found, at = list(values), 0
    missing = [index for index, value in enumerate(values) if value == _FULL32]
    while missing and at + 4 <= len(extra):
        number, size = struct.unpack_from("<HH", extra, at)
        if number == 1 and size >= 8 * len(missing) and at + 4 + size <= len(extra):
            for index, value in zip(
                missing, struct.unpack_from(f"<{len(missing)}Q", extra, at + 4)
            ):
                found[index] = value
            return found
        at += 4 + size
    if missing:
        raise LoadError("the directory of the zip file is damaged: the size of a record is missing")
    return found
