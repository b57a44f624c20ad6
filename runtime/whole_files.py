"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO


@contextmanager
def written_whole(path: Any) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` once the block is left without an error.

    Until then it has another name in the same folder. A process that ends at any moment leaves what
    was there before, or all that is new; one that is killed may leave the other name, too. A link
    is followed, a file keeps its mode, and what is no regular file (a pipe, a device) is written as
    it is.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x")
    >>> with written_whole(path) as file:
    ...     _ = file.write(b"all of it")
    >>> with open(path, "rb") as file:
    ...     file.read()
    b'all of it'
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode_of(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, _NEW, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """So that a name is on the disk, too, where a system can tell."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):  # some file systems do not sync folders
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
