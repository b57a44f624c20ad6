"""Hold Ctrl-C back where something must happen whole or not at all.

A call writes its results; a module is imported, which Python leaves locked otherwise.
"""

from __future__ import annotations

# signal.signal wraps its arguments in enumerations, which costs microseconds.
import _signal  # type: ignore[import-not-found]
import signal
import threading
from types import FrameType
from typing import Any

_MAIN = threading.main_thread().ident
_held: list[FrameType | None] = []


def _note(number: int, frame: FrameType | None) -> None:
    _held.append(frame)


def hold() -> Any:
    """Only note Ctrl-C from now on; gives what `release` needs. Other threads never see it."""
    if threading.get_ident() != _MAIN or _signal.getsignal(signal.SIGINT) is None:
        return None  # only Python's own handlers can be put back
    return _signal.signal(signal.SIGINT, _note)


def release(handler: Any) -> None:
    """Go back to `handler`, and call it if Ctrl-C was pressed meanwhile."""
    if handler is None:
        return
    _signal.signal(signal.SIGINT, handler)
    if _held and handler is not _note:
        frame = _held.pop()
        _held.clear()
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            signal.raise_signal(signal.SIGINT)


class held:
    """`hold` for the length of a `with` block."""

    def __init__(self) -> None:
        self._handler: Any = None

    def __enter__(self) -> None:
        self._handler = hold()

    def __exit__(self, *error: object) -> None:
        release(self._handler)
