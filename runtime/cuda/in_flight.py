"""Memory of the host that copies still use: kept until the device is done with it.

CuPy's pool gives pinned memory to the next taker as soon as nobody holds it, whatever a device
still reads from it or writes to it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from . import backend


class _Table:
    """By stream, as its work ends in order: events, and what may go when they are done."""

    def __init__(self) -> None:
        self.held: dict[int, deque[tuple[Any, Any]]] = {}
        self.lock = threading.RLock()


def keep(memory: Any, stream: Any) -> None:
    """Keep memory until a stream of CuPy has done what it was asked to do so far."""
    collect()
    event = backend.cupy().cuda.Event(disable_timing=True)
    event.record(stream)
    table: _Table = backend.kept().setdefault(_Table, _Table())
    with table.lock:
        table.held.setdefault(stream.ptr, deque()).append((event, memory))


def collect() -> None:
    """Let go of what devices are done with; waits for nothing."""
    table: _Table | None = backend.kept().get(_Table)
    if table is None or not table.held:
        return
    with table.lock:
        for stream, entries in list(table.held.items()):
            while entries and entries[0][0].done:
                entries.popleft()
            if not entries:
                table.held.pop(stream, None)
