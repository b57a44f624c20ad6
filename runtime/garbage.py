"""Long work without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY_OBJECTS = 10_000
"""New objects that are set aside; fewer are left to the collector."""
TOO_MANY_OBJECTS = 1_000_000
"""So many that were set aside are looked at."""


class _SetAside:
    """How many objects were set aside since the last full collection."""

    objects = 0
    collections = 0


@contextmanager
def no_collection() -> Iterator[None]:
    """No search for cycles meanwhile, nor behind it among the objects that were made.

    Who makes a large graph makes objects most of which stay. To look at them takes a third of the
    time, again and again, and a fifteenth, once. So they go to the oldest generation at once, as
    if they had been looked at, and cycles among them wait for a collection of everything.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MANY_OBJECTS:
                _set_aside(gc.get_count()[0])
            gc.enable()


def _set_aside(count: int) -> None:
    full = gc.get_stats()[-1]["collections"]
    if full != _SetAside.collections:
        _SetAside.objects, _SetAside.collections = 0, full
    _SetAside.objects += count
    if _SetAside.objects > TOO_MANY_OBJECTS:
        gc.collect()
    elif gc.get_freeze_count():
        gc.collect(1)  # what the program has frozen itself stays so
    else:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation
