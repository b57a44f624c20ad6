"""Memory that other streams use than the one it was made for.

CuPy's pool gives a freed block to the stream it was allocated on, which may write to it at once,
while another stream still reads what was there. Memory of which `record` was told is therefore
held here as well. When nobody else holds it, an event is put into each of the other streams; when
they have come so far, the pool gets it.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Protocol

from . import backend


class Event(Protocol):
    """A mark in a stream; `handle` is CuPy's."""

    handle: Any

    def query(self) -> bool: ...


class Stream(Protocol):
    """A queue of work; equal ones are the same."""

    def query(self) -> bool: ...

    def record_event(self) -> Any: ...


class _Held:
    """Memory, the streams that use it, and the events behind what they were asked to do with it."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.streams: set[Stream] = set()
        self.events: list[Event] | None = None

    def mark(self) -> None:
        """Called when nobody else holds the memory: nothing new can be asked of it then."""
        if self.events is None:
            self.events = [each.record_event() for each in self.streams if not each.query()]

    def is_free(self) -> bool:
        assert self.events is not None
        return all(event.query() for event in self.events)


class _Table:
    """What is held, by the identity of the memory."""

    def __init__(self) -> None:
        self.held: dict[int, _Held] = {}
        self.lock = threading.RLock()

    def forgotten(self) -> list[_Held]:
        """What nobody but this table holds, with its events in their streams."""
        found = [each for each in self.held.values() if _references(each) == _ALONE]
        for each in found:
            each.mark()
        return found


def _references(held: _Held) -> int:
    # Arrays, views and capsules of DLPack all hold the one object that stands for their memory.
    return sys.getrefcount(held.memory)


_ALONE = _references(_Held(object()))


def record(array: Any, stream: Stream) -> None:
    """Keep the memory of an array of CuPy until `stream` is done with it.

    What counts is all that the stream was asked to do until the last array over the memory dies.
    """
    collect()
    table: _Table = backend.kept().setdefault(_Table, _Table())
    memory = array.data.mem
    with table.lock:
        held = table.held.get(id(memory)) or table.held.setdefault(id(memory), _Held(memory))
        held.streams.add(stream)


def collect() -> None:
    """Give back what all streams are done with; waits for nothing."""
    table: _Table | None = backend.kept().get(_Table)
    if table is None or not table.held:
        return
    with table.lock:
        for each in table.forgotten():
            if each.is_free():
                del table.held[id(each.memory)]


def release() -> None:
    """Wait until streams are done with what nobody else holds, and give it back."""
    table: _Table | None = backend.kept().get(_Table)
    if table is None or not table.held:
        return
    with backend.capturing, table.lock:
        for each in table.forgotten():
            for event in each.events or ():
                event.handle.synchronize()
            del table.held[id(each.memory)]
