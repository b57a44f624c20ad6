"""Disk cache of compiled objects, shared by the processes of one user.

One file per key in ``$TGRAPH_CACHE_DIR`` (default: ``$XDG_CACHE_HOME/tgraph`` or
``~/.cache/tgraph``; an empty ``TGRAPH_CACHE_DIR`` turns the cache off). What is read is machine
code that will run, so folder and files are used only where nobody but this user or root can have
written them (see `trusted_files`); elsewhere there is one warning, and no cache. Every entry
carries a digest of its key and content, keyed with a secret of the folder: a truncated, damaged,
exchanged or foreign one is seen and dropped. ``SECURITY.md`` tells what this protects against.

The cache can only cost time: where the folder cannot be read or written, nothing is cached.
"""

from __future__ import annotations

import os
import re
import warnings

# What `hashlib` and `hmac` give; these would load OpenSSL first, which takes milliseconds.
from _blake2 import blake2b
from _operator import _compare_digest
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from . import trusted_files
from .trusted_files import Untrusted

MAX_BYTES = 512 << 20
MAX_ENTRY_BYTES = 128 << 20
SECRET = "key"
_MAGIC = b"tgraph2\n"
_DIGEST_BYTES = 32
_SECRET_BYTES = 32
_SECRET_LIMIT = 4096
_ENTRY = re.compile(r"[0-9a-f]{40}\.bin|[0-9a-f]{32}\.tmp")
_PUTS_BETWEEN_PRUNES = 64
_puts = 0
_warned: set[Path | None] = set()


def folder() -> Path | None:
    """The cache's folder, or None where the cache is off (it may not exist yet)."""
    if not trusted_files.CAN_TELL:
        return None
    chosen = os.environ.get("TGRAPH_CACHE_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home directory "~" stays as it is: never make a folder of that name.
    return Path(base, "tgraph") if os.path.isabs(base) else None


def get(key: str) -> bytes | None:
    """The bytes stored under `key`, or None. A damaged entry is deleted."""
    with suppress(OSError), _opened() as opened:
        if opened is None:
            return None
        name = _name(key)
        stored = _read(opened, name)
        if stored is None:
            return None
        head = len(_MAGIC) + _DIGEST_BYTES
        data = stored[head:]
        wanted = _MAGIC + _digest(_secret(opened), key, data)
        if not _compare_digest(stored[:head], wanted):
            os.unlink(name, dir_fd=opened)
            return None
        with suppress(OSError):
            os.utime(name, dir_fd=opened)  # the age of an entry is the time of its last use
        return data
    return None


def put(key: str, data: bytes) -> None:
    """Store `data` under `key`; another process sees the whole entry or none."""
    if len(data) > MAX_ENTRY_BYTES - len(_MAGIC) - _DIGEST_BYTES:
        return
    with suppress(OSError), _opened(make=True) as opened:
        if opened is not None:
            content = _MAGIC + _digest(_secret(opened), key, data) + data
            trusted_files.write(opened, _name(key), content)
            _prune_sometimes(opened)


def prune(limit: int = MAX_BYTES) -> None:
    """Delete the entries that were unused longest until three quarters of `limit` bytes remain."""
    with suppress(OSError), _opened() as opened:
        if opened is not None:
            _prune(opened, limit)


# --- what is trusted ------------------------------------------------------------------------------


@contextmanager
def _opened(make: bool = False) -> Iterator[int | None]:
    """The cache's folder, open; None, with a warning, where others may have written in it."""
    where = folder()
    if where is None:
        yield None
        return
    if make:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        opened = trusted_files.open_folder(where)
    except Untrusted as reason:
        _warn(where, f"the folder {where} is not used as a cache: {reason}")
        yield None
        return
    try:
        yield opened
    except Untrusted as reason:
        _warn(
            where, f"the folder {where} is not used as a cache, for its file {SECRET!r}: {reason}"
        )
    finally:
        os.close(opened)


def _warn(where: Path | None, message: str) -> None:
    """Say once for a folder why it, or a part of it, is not used."""
    if where not in _warned:
        text = f"{message}. Compiled code that is not used is made anew."
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        _warned.add(where)  # a warning that is an error is told to whoever comes next, too


def _read(opened: int, name: str) -> bytes | None:
    """An entry; None, with a warning, where others may have written it."""
    try:
        return trusted_files.read(opened, name, MAX_ENTRY_BYTES)
    except FileNotFoundError:
        return None
    except Untrusted as reason:
        where = folder()
        _warn(where, f"the file {name} in the cache {where} is not used: {reason}")
        return None


def _secret(opened: int) -> bytes:
    """What entries of this folder are signed with; made by who comes first."""
    found = _known_secret(opened)
    if len(found) != _SECRET_BYTES:
        _make_secret(opened, replace=bool(found))
        found = _known_secret(opened)  # another process may have been faster
    if len(found) != _SECRET_BYTES:
        raise OSError("the cache's secret changes under our hands")
    return found


def _known_secret(opened: int) -> bytes:
    try:
        return trusted_files.read(opened, SECRET, _SECRET_LIMIT, secret=True) or b"damaged"
    except FileNotFoundError:
        return b""


def _make_secret(opened: int, replace: bool) -> None:
    made = os.urandom(_SECRET_BYTES)
    if not replace:
        try:
            trusted_files.write_new(opened, SECRET, made)
            return
        except FileExistsError:
            return
        except OSError:
            pass  # a file system without links: of two that are made at once, one is lost
    trusted_files.write(opened, SECRET, made)


def _name(key: str) -> str:
    return blake2b(key.encode(), digest_size=20).hexdigest() + ".bin"


def _digest(secret: bytes, key: str, data: bytes) -> bytes:
    """BLAKE2b is keyed by itself: an HMAC around it would be no safer, and slower."""
    text = key.encode()
    digest = blake2b(len(text).to_bytes(8), digest_size=_DIGEST_BYTES, key=secret)
    digest.update(text)
    digest.update(data)
    return digest.digest()


def _prune_sometimes(opened: int) -> None:
    global _puts
    _puts += 1
    if _puts % _PUTS_BETWEEN_PRUNES == 1:
        _prune(opened, MAX_BYTES)


def _prune(opened: int, limit: int) -> None:
    entries = []
    with os.scandir(opened) as found:
        for entry in found:
            with suppress(OSError):  # another process prunes too
                status = entry.stat(follow_symlinks=False)
                if _ENTRY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    entries.append((status.st_mtime, status.st_size, entry.name))
    excess = sum(size for _, size, _ in entries) - limit
    if excess <= 0:
        return
    excess += limit // 4
    for _, size, name in sorted(entries):
        if excess <= 0:
            return
        with suppress(OSError):
            os.unlink(name, dir_fd=opened)
            excess -= size
