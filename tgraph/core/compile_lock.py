"""One compilation at a time, in one lock for all threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..runtime import locks

# Tracing changes tensors of the outside for a while, and compiling is done once: one at a time.
# A fork waits, or the child would find those tensors changed.
COMPILE_LOCK = locks.fork_safe()

_T = TypeVar("_T")


def refuse_at_exit() -> None:
    """RuntimeError where nothing can be compiled any more.

    When Python shuts down, modules cannot be imported, and a thread that was compiling has ended
    with the lock in its hands.
    """
    if sys.is_finalizing():
        raise RuntimeError(
            "tgraph cannot compile while Python shuts down (in a __del__, for example): call the "
            "function, or its backward(), once before"
        )


class made_once(Generic[_T]):
    """An attribute that is computed when it is first read, by one thread, under COMPILE_LOCK.

    Python 3.11's `functools.cached_property` takes a lock of its own first, which a thread that
    already holds COMPILE_LOCK may be waiting for; later versions compute twice.
    """

    def __init__(self, function: Callable[[Any], _T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> _T:
        found, name = vars(instance), self.function.__name__
        refuse_at_exit()
        with COMPILE_LOCK:
            if name not in found:
                found[name] = self.function(instance)
        value: _T = found[name]
        return value
