"""Objects between processes: what is large travels as memory that both have, not through a pipe.

Arrays go out of the pickle (PEP 574) into a file that lies in memory and has no name, of which the
other side is given a handle: nothing is left behind, however a process ends.
"""

from __future__ import annotations

import mmap
import os
import pickle
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

_SMALL = 1 << 11
"""Bytes that go through the pipe, which has room for a hundred such messages that nobody has read:
neither side waits for the other one to read while that one waits, too."""

_ALIGNMENT = 64
_HAS_FILES = hasattr(os, "memfd_create")


def send(connection: Connection, value: Any) -> None:
    """Send what can be pickled; nothing is sent where that raises."""
    out_of_band: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=out_of_band.append)
    parts = [memoryview(data), *(each.raw() for each in out_of_band)]
    if not _HAS_FILES or sum(each.nbytes for each in parts) <= _SMALL:
        connection.send_bytes(pickle.dumps([bytes(each) for each in parts]))
        return
    starts, end = [], 0
    for each in parts:
        starts.append(end)
        end += -(-each.nbytes // _ALIGNMENT) * _ALIGNMENT
    file = os.memfd_create("tgraph", os.MFD_CLOEXEC)
    try:
        os.truncate(file, end)
        for start, each in zip(starts, parts, strict=True):
            _write(file, each, start)
        places = [(start, each.nbytes) for start, each in zip(starts, parts, strict=True)]
        connection.send_bytes(pickle.dumps((end, places)))
        reduction.send_handle(connection, file, None)
    finally:
        os.close(file)


def _write(file: int, data: memoryview, at: int) -> None:
    while data.nbytes:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


def receive(connection: Connection) -> Any:
    """What the other side sent; EOFError or OSError where it is gone."""
    found = pickle.loads(connection.recv_bytes())
    if isinstance(found, list):
        data, *buffers = found
        return pickle.loads(data, buffers=[bytearray(each) for each in buffers])
    end, places = found
    file = reduction.recv_handle(connection)
    try:
        memory = memoryview(mmap.mmap(file, end))
    finally:
        os.close(file)
    parts = [memory[start : start + size] for start, size in places]
    return pickle.loads(parts[0], buffers=parts[1:])
