"""Locks that survive a fork."""

from __future__ import annotations

import os
import threading
from typing import Any


def fork_safe() -> Any:
    """A re-entrant lock that a fork waits for, as its holder would be missing in the child.

    Locks that are held together are made in the reverse of the order in which they are taken, as
    what is registered last is called first before a fork.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
