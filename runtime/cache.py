"""Disk cache of compiled objects, shared by processes and safe against damaged files.

One file per key in ``$TGRAPH_CACHE_DIR`` (default: ``$XDG_CACHE_HOME/tgraph`` or
``~/.cache/tgraph``; an empty ``TGRAPH_CACHE_DIR`` turns the cache off). Every file carries a
digest of its key and content, so that a truncated, damaged or foreign file is seen and dropped.
The cache can only cost time: where the folder cannot be read or written, nothing is cached.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 512 << 20
_MAGIC = b"tgraph1\n"
_DIGEST_BYTES = 32
_PUTS_BETWEEN_PRUNES = 64
_puts = 0


def folder() -> Path | None:
    """The cache's folder, or None where the cache is off (it may not exist yet)."""
    chosen = os.environ.get("TGRAPH_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home directory "~" stays as it is: never make a folder of that name.
    return Path(base, "tgraph") if os.path.isabs(base) else None


def get(key: str) -> bytes | None:
    """The bytes stored under `key`, or None. A damaged entry is deleted."""
    path = _path(key)
    if path is None:
        return None
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    data = stored[head:]
    if stored[:head] != _MAGIC + _digest(key, data):
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)  # the age of an entry is the time of its last use
    return data


def put(key: str, data: bytes) -> None:
    """Store `data` under `key`; another process sees the whole entry or none."""
    path = _path(key)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, _MAGIC + _digest(key, data) + data)
        _prune_sometimes(path.parent)


def prune(limit: int = MAX_BYTES) -> None:
    """Delete the entries that were unused longest until three quarters of `limit` bytes remain."""
    where = folder()
    if where is not None:
        with suppress(OSError):
            _prune(where, limit)


def _path(key: str) -> Path | None:
    where = folder()
    if where is None:
        return None
    return where / (hashlib.blake2b(key.encode(), digest_size=20).hexdigest() + ".bin")


def _digest(key: str, data: bytes) -> bytes:
    digest = hashlib.blake2b(key.encode(), digest_size=_DIGEST_BYTES)
    digest.update(b"\0")
    digest.update(data)
    return digest.digest()


def _write(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _prune_sometimes(where: Path) -> None:
    global _puts
    _puts += 1
    if _puts % _PUTS_BETWEEN_PRUNES == 1:
        _prune(where, MAX_BYTES)


def _prune(where: Path, limit: int) -> None:
    entries = []
    with os.scandir(where) as found:
        for entry in found:
            with suppress(OSError):  # another process prunes too
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith((".bin", ".tmp")) and entry.is_file(follow_symlinks=False):
                    entries.append((status.st_mtime, status.st_size, entry.path))
    excess = sum(size for _, size, _ in entries) - limit
    if excess <= 0:
        return
    excess += limit // 4
    for _, size, path in sorted(entries):
        if excess <= 0:
            return
        with suppress(OSError):
            os.unlink(path)
            excess -= size
