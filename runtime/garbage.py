"""Long work without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY_OBJECTS = 100_000


@contextmanager
def no_collection() -> Iterator[None]:
    """No search for cycles meanwhile.

    Who makes a large graph makes objects that all stay. Looking at them again and again takes a
    third of the time, and a larger share the more there are.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MANY_OBJECTS:
                gc.collect(1)  # the new objects, once; by itself it would look at them twice
            gc.enable()
