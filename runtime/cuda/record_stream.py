"""Memory that other streams use than the one it was made for.

CuPy's pool gives a freed block to the stream it was allocated on, which may write to it at once,
while another stream still reads what was there. Memory of which `record` was told is therefore
held here as well. When nobody else holds it, an event is put into each of the other streams; when
they have come so far, the pool gets it.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from itertools import islice
from typing import Any, Protocol

from . import backend

A_FEW = 4
"""How much of what is held an allocation looks at: it takes turns, so that none takes long."""


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

    def is_forgotten(self) -> bool:
        """Whether nobody else holds the memory; its events are in their streams then."""
        if _references(self) != _ALONE:
            return False
        if self.events is None:  # nothing new can be asked of the memory
            self.events = [each.record_event() for each in self.streams if not each.query()]
        return True

    def is_free(self) -> bool:
        """Whether nobody holds the memory, and all streams are done with it."""
        return self.is_forgotten() and all(event.query() for event in self.events or ())


class _Table:
    """What is held, by the identity of the memory; what was looked at last stands last."""

    def __init__(self) -> None:
        self.held: OrderedDict[int, _Held] = OrderedDict()
        self.lock = threading.RLock()

    def collect(self, most: int) -> None:
        """Give back what is free among those of `most` entries whose turn it is."""
        for key in list(islice(self.held, most)):
            each = self.held.get(key)
            if each is None:  # garbage was collected in between, and that collected here
                continue
            if each.is_free():
                self.held.pop(key, None)
            else:
                self.held.move_to_end(key)


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


def collect(most: int = A_FEW) -> None:
    """Give back what all streams are done with, of `most` that are held; waits for nothing."""
    table: _Table | None = backend.kept().get(_Table)
    if table is None or not table.held:
        return
    with table.lock:
        table.collect(most)


def collect_all() -> None:
    """Give back all that all streams are done with; waits for nothing."""
    collect(sys.maxsize)


def release() -> None:
    """Wait until streams are done with what nobody else holds, and give it back."""
    table: _Table | None = backend.kept().get(_Table)
    if table is None or not table.held:
        return
    with backend.capturing, table.lock:
        for key, each in list(table.held.items()):
            if each.is_forgotten():
                for event in each.events or ():
                    event.handle.synchronize()
                table.held.pop(key, None)
