"""What tells the code of this compiler from any other, for what is kept on disk of its work."""

from __future__ import annotations

import os
import sys
import time
from _blake2 import blake2b  # see `cache`
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from . import cache

enabled = True
"""Tests, which change what is made of the same things, turn this off."""

_FLOORS = tuple(Path(__file__).parent.parent / name for name in ("compiler", "runtime"))
_CLOCK_SECONDS = 0.1
"""By so much the times of files may be behind the clock."""

_began = time.time()


def own_code() -> str:
    """A digest of the files of compiler and runtime; "" where nothing may be kept under it.

    Every file counts with all that a system tells of its changes, whatever its content. Where one
    is younger than this process, that may run what was there before.
    """
    return _digest() if enabled and cache.folder() is not None else ""


def kept(key: str, make: Callable[[], str]) -> str:
    """A text that this code makes of a key, from the disk if it is there."""
    code = own_code()
    if not code:
        return make()
    found = cache.get(f"text {code} {key}")
    if found is not None:
        return found.decode()
    text = make()
    cache.put(f"text {code} {key}", text.encode())
    return text


@lru_cache(maxsize=1)
def _digest() -> str:
    try:
        files = sorted(each for floor in _FLOORS for each in _files(str(floor)))
    except OSError:  # imported from an archive
        return ""
    told = [sys.version, np.__version__]
    for path, status in files:
        if max(status.st_mtime, status.st_ctime) > _began - _CLOCK_SECONDS:
            return ""
        of = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        told.append(f"{path} {of}")
    return blake2b("\n".join(told).encode(), digest_size=16).hexdigest()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """The Python files below a folder; OSError where there is none."""
    with os.scandir(folder) as entries:
        for each in entries:
            if each.name.endswith(".py"):
                yield each.path, each.stat()
            elif each.is_dir() and each.name != "__pycache__":
                yield from _files(each.path)
