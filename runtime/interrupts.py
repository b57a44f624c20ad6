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
_handlers: list[Any] = []  # of those who hold, outermost first


def _note(number: int, frame: FrameType | None) -> None:
    _held.append(frame)


def hold() -> Any:
    """Only note Ctrl-C from now on; gives what `release` needs. Other threads never see it."""
    if threading.get_ident() != _MAIN or _signal.getsignal(signal.SIGINT) is None:
        return None  # only Python's own handlers can be put back
    _handlers.append(_signal.signal(signal.SIGINT, _note))
    return _handlers[-1]


def release(handler: Any) -> None:
    """Go back to `handler`, and call it if Ctrl-C was pressed meanwhile."""
    if handler is None:
        return
    _signal.signal(signal.SIGINT, handler)
    _handlers.pop()
    if _held and handler is not _note:
        frame = _take_note()
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            signal.raise_signal(signal.SIGINT)


def deliver() -> None:
    """Call the handler if Ctrl-C was pressed while it is held back.

    For who runs for long and has not begun with what must happen as a whole.
    """
    if _held and threading.get_ident() == _MAIN:
        handler = next((each for each in reversed(_handlers) if each is not _note), None)
        if callable(handler):
            handler(signal.SIGINT, _take_note())


def _take_note() -> FrameType | None:
    frame = _held.pop()
    _held.clear()
    return frame


class held:
    """`hold` for the length of a `with` block."""

    def __init__(self) -> None:
        self._handler: Any = None

    def __enter__(self) -> None:
        self._handler = hold()

    def __exit__(self, *error: object) -> None:
        release(self._handler)
