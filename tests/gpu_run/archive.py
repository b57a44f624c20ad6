"""The logs of a run as one file, of a size that can be carried away."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

MOST_BYTES = 15 << 20
"""Of the archive."""
MOST_OF_FILE = 8 << 20
"""Of a file: of a longer one the end is kept."""


def write(path: Path, folder: Path, most: int = MOST_BYTES) -> Path:
    """All files below a folder as `path`, a .tar.gz; the ends of files only, where it is too large.

    The archive replaces an older one at once, when it is complete.
    """
    made = path.with_name(f"{path.name}.part")
    end = MOST_OF_FILE
    while True:
        _write(made, folder, end)
        if made.stat().st_size <= most or end <= 1:
            break
        end //= 4
    made.replace(path)
    return path


def _write(path: Path, folder: Path, end: int) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for each in _files(folder):
            data = _end_of(each, end)
            entry = tarfile.TarInfo(f"{folder.name}/{each.relative_to(folder).as_posix()}")
            entry.size, entry.mtime = len(data), int(each.stat().st_mtime)
            archive.addfile(entry, io.BytesIO(data))


def _files(folder: Path) -> Iterable[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())


def _end_of(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - most))
        return file.read()
