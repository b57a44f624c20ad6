"""Locks that survive a fork, and the runtime's own."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any


def ending() -> bool:
    """Whether Python has waited for its threads: one that begins now is cut off anywhere."""
    return sys.is_finalizing() or not threading.main_thread().is_alive()


def fork_safe() -> Any:
    """A re-entrant lock that a fork waits for, as its holder would be missing in the child.

    Locks that are held together are made in the reverse of the order in which they are taken, as
    what is registered last is called first before a fork. Modules are imported in many orders, so
    there are two only: RUNTIME, made here, and one of a higher floor, taken before it.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


RUNTIME = fork_safe()
"""Held while something is made once for the process: BLAS, the thread pool, compiled code."""
