"""Files that nobody but this user, or root, can have written.

A folder is opened once and its files are reached through it, so that what was checked is what is
used. Where a system does not tell who owns a file, there are no such files.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

CAN_TELL = hasattr(os, "geteuid") and {os.open, os.unlink, os.rename} <= os.supports_dir_fd

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Untrusted(Exception):
    """Somebody else may have written a folder or file; the message says how."""


def open_folder(path: Path) -> int:
    """A descriptor of a folder that only this user or root can write.

    Raises Untrusted, and OSError where there is no such folder.
    """
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check(os.fstat(folder))
    except BaseException:
        os.close(folder)
        raise
    return folder


def read(folder: int, name: str, limit: int, *, secret: bool = False) -> bytes:
    """The content of a file of at most `limit` bytes; a `secret` one nobody else may read.

    Raises Untrusted for all that is no such file, without following a link or waiting for a pipe;
    OSError where there is none.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # what systems say of a link
            raise Untrusted("it is a link") from None
        raise
    try:
        size = _checked_size(os.fstat(descriptor), limit, secret)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(size)
    finally:
        os.close(descriptor)


def _checked_size(status: os.stat_result, limit: int, secret: bool) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise Untrusted("it is no regular file")
    _check(status)
    if secret and status.st_mode & _OTHERS:
        raise Untrusted("others can read it")
    if status.st_size > limit:
        raise Untrusted(f"it has {status.st_size} bytes, more than {limit}")
    return status.st_size


def write(folder: int, name: str, content: bytes) -> None:
    """Make or replace a file that only this user can read; others see all of it or none."""
    temporary = _write_aside(folder, content)
    try:
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def write_new(folder: int, name: str, content: bytes) -> None:
    """As `write`, for a file that is not there; FileExistsError where another was faster."""
    temporary = _write_aside(folder, content)
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _write_aside(folder: int, content: bytes) -> str:
    """The name of a new file with this content."""
    name = f"{os.urandom(16).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    return name


def _check(status: os.stat_result) -> None:
    user = os.geteuid()
    if status.st_uid not in (user, 0):
        raise Untrusted(f"it belongs to user {status.st_uid}, and this process to user {user}")
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise Untrusted(f"others can write it (mode {mode:04o}; `chmod go-w` mends that)")
