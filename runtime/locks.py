"""Locks that survive a fork, and the runtime's own."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def ending() -> bool:
    """Whether Python has waited for its threads: one that begins now is cut off anywhere."""
    return sys.is_finalizing() or not threading.main_thread().is_alive()


def fork_safe() -> Any:
    """A re-entrant lock that a fork waits for, as its holder would be missing in the child.

    Locks that are held together are made in the reverse of the order in which they are taken, as
    what is registered last is called first before a fork. Modules are imported in many orders, so
    all are made here but one of a higher floor, which is taken before these.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_LOOK_SECONDS = 0.002
"""How long one waits for the same lock before one looks for another."""


@contextmanager
def one_of(choice: Sequence[Any]) -> Iterator[None]:
    """Hold one lock of several, whichever is free first."""
    taken = None
    while taken is None:
        taken = next((each for each in choice if each.acquire(blocking=False)), None)
        if taken is None and choice[-1].acquire(timeout=_LOOK_SECONDS):
            taken = choice[-1]
    try:
        yield
    finally:
        taken.release()


COMPILING = tuple(fork_safe() for _ in range(min(_processors(), 4)))
"""One of them is held while a module is compiled; RUNTIME is never taken inside."""

RUNTIME = fork_safe()
"""Held while something is made once for the process: BLAS, the thread pool, compiled code."""
