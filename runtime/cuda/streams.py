"""Streams and events of CUDA devices, with PyTorch's names over CuPy's objects."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..device import Device
from . import backend, failures
from .devices import cuda_device, index_of


class Stream:
    """A queue of work on a device. What is asked for inside `with stream:` goes there.

    Streams run beside each other: memory that one writes is read by another only after
    `wait_stream` or `wait_event`.
    """

    def __init__(self, device: int | str | Device | None = None, *, handle: Any = None) -> None:
        self.device = cuda_device(index_of(device))
        with self._current_device():
            self.handle = handle or backend.cupy().cuda.Stream(non_blocking=True)
        self._entered: Any = None

    def _current_device(self) -> Any:
        """The default stream is that of the current device, events are made on it."""
        return backend.cupy().cuda.Device(self.device.index)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self.handle.ptr)

    def synchronize(self) -> None:
        """Wait until everything asked of this stream is done.

        Raises the error of a check that failed meanwhile, such as an IndexError.
        """
        with self._current_device():
            self.handle.synchronize()
        failures.report()

    def query(self) -> bool:
        """Whether everything asked of this stream is done."""
        with self._current_device():
            return bool(self.handle.done)

    def record_event(self, event: Event | None = None) -> Event:
        """An event, a new one unless given, that is done when this stream has come so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Go on only when `event` is done; at once where it was never recorded."""
        if event.handle is not None:
            with self._current_device():
                self.handle.wait_event(event.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Go on only when what was asked of `stream` so far is done."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._entered = self._current_device()
        self._entered.__enter__()
        self.handle.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.handle.__exit__(kind, error, trace)
        self._entered.__exit__(kind, error, trace)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<tgraph.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream: done when the stream has come so far.

    With `enable_timing`, `elapsed_time` tells the milliseconds between two of them.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing}
        self.handle: Any = None  # made on the device of the stream that it is first recorded in

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind what was asked of `stream`, the current one unless given."""
        stream = current_stream() if stream is None else stream
        with stream._current_device():
            if self.handle is None:
                self.handle = backend.cupy().cuda.Event(**self._options)
            self.handle.record(stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream, the current one unless given, go on only when this event is done."""
        (current_stream() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait until the event is done; not at all where it was never recorded."""
        if self.handle is not None:
            self.handle.synchronize()
        failures.report()

    def query(self) -> bool:
        """Whether the event is done, or was never recorded."""
        return self.handle is None or bool(self.handle.done)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another; both must be done.

        RuntimeError where one of them was never recorded.
        """
        if self.handle is None or end_event.handle is None:
            raise RuntimeError("elapsed_time: both events must be recorded first")
        return float(backend.cupy().cuda.get_elapsed_time(self.handle, end_event.handle))


def current_stream(device: int | str | Device | None = None) -> Stream:
    """The stream on which work is asked of a device, in this thread."""
    index = index_of(device)
    cuda = backend.cupy().cuda
    with cuda.Device(index):
        return Stream(index, handle=cuda.get_current_stream())


def default_stream(device: int | str | Device | None = None) -> Stream:
    """The stream of a device on which work is done unless another is entered."""
    return Stream(index_of(device), handle=backend.cupy().cuda.Stream.null)
