"""Objects of the runtime's own code that an installation made (`make_prebuilt.py`).

They are for a level of x86-64, not for a processor, and are found by the text that they were
compiled from: code that has changed since, or a machine that they are not for, finds none, and
compiles. Whoever could write them could write this file.
"""

from __future__ import annotations

import sys
from _blake2 import blake2b  # see `cache`
from pathlib import Path

FOLDER = Path(__file__).parent / "prebuilt"
_DIGEST_BYTES = 16


def get(level: str, key: str) -> bytes | None:
    """The object of a module that was compiled for `level`; None where there is none, or a part."""
    path = path_of(FOLDER, level, key)
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    data = stored[_DIGEST_BYTES:]
    return data if stored[:_DIGEST_BYTES] == _digest(data) else None


def put(path: Path, data: bytes) -> None:
    """Write an object for `get` where the folder of `path` is installed."""
    path.write_bytes(_digest(data) + data)


def path_of(folder: Path, level: str, key: str) -> Path:
    """The file of an object."""
    of = blake2b(key.encode(), digest_size=16).hexdigest()
    return folder / f"{sys.platform}-{level}-{of}.o"


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()
