"""Compile the runtime's own code while the package is installed.

The first calls on a machine would spend 0.2 seconds of a processor on it otherwise. ``setup.py``
calls this; ``python -m tgraph.runtime.make_prebuilt`` does it anew where the code has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import gemm_native, jit, plan_native, prebuilt, thread_pool, transpose_native

LEVELS = ("x86-64-v3", "x86-64-v4")
"""What nearly all processors of today have; others compile at the first call."""


def write_objects(folder: Path = prebuilt.FOLDER) -> list[Path]:
    """Make `folder` hold the objects of this code and no others; they are listed.

    There are none on machines of other kinds than x86-64.
    """
    folder.mkdir(exist_ok=True)
    paths = []
    for level, source in _wanted():
        paths.append(prebuilt.path_of(folder, level, jit.prebuilt_key(source)))
        prebuilt.put(paths[-1], jit.object_for(level, source))
    for old in set(folder.iterdir()).difference(paths):
        old.unlink()
    return paths


def own_sources(level: str) -> Iterator[jit.Source]:
    """The modules of the runtime's own code that first calls wait for."""
    vector_bytes = jit.level_vector_bytes(level)
    yield thread_pool.source()
    yield from plan_native.sources()
    yield from gemm_native.own_sources(vector_bytes)
    yield from transpose_native.own_sources(vector_bytes)


def is_complete() -> bool:
    """Whether the package has the objects of its code."""
    return all(prebuilt.get(level, jit.prebuilt_key(source)) for level, source in _wanted())


def _wanted() -> Iterator[tuple[str, jit.Source]]:
    for level in LEVELS if jit.supported_levels() else ():
        for source in own_sources(level):
            yield level, source


if __name__ == "__main__" and not is_complete():
    write_objects()
