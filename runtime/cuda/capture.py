"""Capturing what a stream is asked for as a CUDA graph."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..device import Device
from . import backend
from .products import workspaces_of


class CaptureError(Exception):
    """A capture that failed. The message has all that went wrong."""


class Capture:
    """The stream on which the plans of a stream are captured, with a workspace of its own.

    Their frames hold it: the graphs use the workspace, which goes with the last of them.
    """

    def __init__(self, device: Device) -> None:
        self.stream = backend.cupy().cuda.Stream(non_blocking=True)
        workspaces = workspaces_of(device.index or 0)
        workspaces.hold(self.stream.ptr)
        self.workspaces = workspaces

    def __del__(self) -> None:
        if hasattr(self, "workspaces"):
            self.workspaces.let_go(self.stream.ptr)

    def graph(self, prepare: Callable[[Any], None], ask: Callable[[Any], None]) -> Any:
        """What `ask` asks of a stream, as a graph.

        `prepare` may do what captures do not allow. CaptureError where any of that does not work.
        """
        with backend.capturing:
            try:
                prepare(self.stream)
                self.stream.begin_capture()
            except Exception as cause:
                raise CaptureError(f"{told(cause)} (before it began)") from cause
            try:
                ask(self.stream)
            except BaseException as cause:
                ending = _error_of(self.stream.end_capture)
                if not isinstance(cause, Exception):
                    raise
                also = f"; ending it: {told(ending)}" if ending else ""
                raise CaptureError(f"{told(cause)}{also}") from cause
            try:
                return self.stream.end_capture()
            except Exception as cause:
                raise CaptureError(f"{told(cause)} (when it ended)") from cause


def _error_of(run: Callable[[], Any]) -> Exception | None:
    try:
        run()
    except Exception as error:
        return error
    return None


def told(error: Exception) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}"


def capture_of(device: Device, stream: int) -> Capture:
    """What captures the plans of a stream."""
    kept: weakref.WeakValueDictionary[Any, Capture]
    kept = backend.kept().setdefault(Capture, weakref.WeakValueDictionary())
    found = kept.get((device, stream))
    if found is None:
        found = kept[device, stream] = Capture(device)
    return found
