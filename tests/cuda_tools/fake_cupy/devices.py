"""Devices, streams, events, graphs and modules of the fake, with the names of `cupy.cuda`."""

from __future__ import annotations

import time
import weakref
from typing import Any

from ..shim import Library
from .machine import (
    DEVICES,
    RELAXED,
    Capture,
    CUDARuntimeError,
    Record,
    StreamState,
    Work,
    context,
    machine,
)

CAPABILITY = (9, 0)
_ATTRIBUTES = {
    "ComputeCapabilityMajor": CAPABILITY[0],
    "ComputeCapabilityMinor": CAPABILITY[1],
    "MultiProcessorCount": 132,
    "MaxThreadsPerBlock": 1024,
    "MaxThreadsPerMultiProcessor": 2048,
    "MaxSharedMemoryPerBlock": 48 * 1024,
    "MaxSharedMemoryPerBlockOptin": 227 * 1024,
    "MaxSharedMemoryPerMultiprocessor": 228 * 1024,
    "WarpSize": 32,
    "L2CacheSize": 60 * 1024 * 1024,
}


class Device:
    """A device by its number; the current one without."""

    def __init__(self, device: Any = None) -> None:
        self.id = context.device if device is None else int(device)
        self._entered: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> Device:
        self._entered.append(context.device)
        set_device(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        set_device(self._entered.pop())

    def use(self) -> Device:
        set_device(self.id)
        return self

    def synchronize(self) -> None:
        _known(self.id)
        machine.synchronize(self.id)

    @property
    def compute_capability(self) -> str:
        _known(self.id)
        return "".join(map(str, CAPABILITY))

    @property
    def attributes(self) -> dict[str, int]:
        _known(self.id)
        return dict(_ATTRIBUTES)

    @property
    def mem_info(self) -> tuple[int, int]:
        _known(self.id)
        return machine.memory - machine.allocated[self.id], machine.memory

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"


def _known(device: int) -> None:
    if not 0 <= device < DEVICES:
        raise CUDARuntimeError(101)


def set_device(device: int) -> None:
    """cudaSetDevice."""
    _known(device)
    context.device = device


# -- streams ---------------------------------------------------------------------------------


class _BaseStream:
    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr, self.device_id = ptr, device_id
        self._before: list[tuple[int, Any]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return self.ptr

    def __enter__(self) -> Any:
        device = self._check_device()
        self._before.append((device, context.streams.get(device)))
        context.streams[device] = self
        return self

    def __exit__(self, *_: object) -> None:
        device, before = self._before.pop()
        context.streams[device] = before

    def _check_device(self) -> int:
        if self.device_id not in (-1, context.device):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match "
                f"with the current device ({context.device})"
            )
        return context.device

    def use(self) -> Any:
        context.streams[self._check_device()] = self
        return self

    @property
    def done(self) -> bool:
        state = machine.stream(self.ptr)
        machine.refuse(lambda other: other is state, 900)
        return machine.progress(state)

    def synchronize(self) -> None:
        machine.synchronize(context.device, self.ptr)

    def record(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        state = machine.stream(self.ptr)
        if event._capture is not None and event._capture is not state.capture:
            raise NotImplementedError("the fake has no captures of several streams")
        if state.capture is not None and event._capture is None:
            state.capture.invalid = True
            raise CUDARuntimeError(905)
        record = event._record
        if state.capture is None and record is not None and record.state is not state:
            machine.enqueue(self.ptr, Work(lambda: machine.reach(record), (), "a wait"))

    def begin_capture(self, mode: int | None = None) -> None:
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        state = machine.stream(self.ptr)
        if state.capture is not None:
            raise CUDARuntimeError(1)
        state.capture = Capture(RELAXED if mode is None else mode)

    def end_capture(self) -> Graph:
        state = machine.stream(self.ptr)
        capture, state.capture = state.capture, None
        if capture is None:
            raise CUDARuntimeError(904)
        if capture.invalid:
            raise CUDARuntimeError(901)
        return Graph._made(capture.work)

    def is_capturing(self) -> bool:
        capture = machine.stream(self.ptr).capture
        if capture is not None and capture.invalid:
            raise CUDARuntimeError(901)
        return capture is not None

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    @property
    def is_non_blocking(self) -> bool:
        return not machine.stream(self.ptr).blocking


class Stream(_BaseStream):
    """As CuPy's; work of it is done at once, or recorded while it captures."""

    null: Stream
    ptds: Stream

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        self._foreign_stream_ref: Any = None
        if null or ptds:
            super().__init__(0 if null else 2, -1)
            return
        super().__init__(machine.handle(), context.device)
        machine.streams[self.ptr] = StreamState(self.ptr, context.device, not non_blocking)
        weakref.finalize(self, machine.destroy, self.ptr)

    @classmethod
    def from_external(cls, obj: Any) -> Stream:
        """An object for another library's stream, which is kept, and does not end with this."""
        if not hasattr(obj, "__cuda_stream__"):
            raise TypeError(
                f"Object of type {type(obj).__name__} does not implement the CUDA stream protocol "
                "(__cuda_stream__ method)"
            )
        version, pointer = obj.__cuda_stream__()
        if version != 0:
            raise TypeError(
                f"__cuda_stream__() returned unsupported version {version}, only version 0 is "
                "supported"
            )
        stream = cls.__new__(cls)
        _BaseStream.__init__(stream, pointer, -1)
        stream._foreign_stream_ref = obj
        return stream


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id: int = -1) -> Any:
    """The current stream of a device in this thread."""
    found = context.streams.get(context.device if device_id == -1 else device_id)
    return Stream.null if found is None else found


class Event:
    """A point of a stream; times are those of the host."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self.ptr = machine.handle()
        self._timed, self._time = not disable_timing, 0.0
        self._capture: Capture | None = None
        self._record: Record | None = None

    def record(self, stream: Any = None) -> None:
        pointer = context.stream_pointer() if stream is None else stream.ptr
        state = machine.stream(pointer)
        self._capture, record = state.capture, Record(state)
        if self._capture is None:
            self._record = record
        machine.enqueue(pointer, Work(lambda: self._note(record), (), "an event"))

    def _note(self, record: Record) -> None:
        record.reached, self._time = True, time.perf_counter()

    def _refuse_captured(self) -> None:
        if self._capture is not None:
            self._capture.invalid = True
            raise CUDARuntimeError(900)

    def synchronize(self) -> None:
        self._refuse_captured()
        if self._record is not None:
            machine.reach(self._record)
        machine.sync_count += 1

    @property
    def done(self) -> bool:
        self._refuse_captured()
        machine.require_device()
        if self._is_reached:
            return True
        assert self._record is not None
        machine.progress(self._record.state)
        return False

    @property
    def _is_reached(self) -> bool:
        return self._record is None or self._record.reached


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two recorded events."""
    for event in (start_event, end_event):
        event._refuse_captured()
        if event._record is None or not event._timed:
            raise CUDARuntimeError(400)
        if not event._record.reached:
            raise CUDARuntimeError(600)
    return 1e3 * (end_event._time - start_event._time)


class Graph:
    """What a stream has recorded; made by `Stream.end_capture` only. It keeps no memory alive."""

    _work: list[Work]

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via "
            "stream capture"
        )

    @staticmethod
    def _made(work: list[Work]) -> Graph:
        graph = Graph.__new__(Graph)
        graph._work = work
        return graph

    def launch(self, stream: Any = None) -> None:
        pointer = context.stream_pointer() if stream is None else stream.ptr
        for work in self._work:
            machine.enqueue(pointer, work)

    def upload(self, stream: Any = None) -> None:
        machine.stream(context.stream_pointer() if stream is None else stream.ptr)


# -- modules ---------------------------------------------------------------------------------


class Module:
    """Code of the current device. The fake's is CUDA C as bytes, which the shim compiles."""

    def __init__(self) -> None:
        self.ptr = 0
        self._library: Library | None = None
        self._device = -1

    def load(self, cubin: bytes) -> None:
        if not isinstance(cubin, bytes):
            raise TypeError(f"Expected bytes, got {type(cubin).__name__}")
        self._library = Library(cubin.decode().rstrip("\0"), later=True)
        self._device = context.device
        self.ptr = machine.handle()

    def get_function(self, name: str | bytes) -> Function:
        return Function(self, name.decode() if isinstance(name, bytes) else name)


class Function:
    """A kernel of a module, which it keeps loaded; `ptr` is what `driver.launchKernel` takes."""

    def __init__(self, module: Module, funcname: str) -> None:
        from .driver import CUDADriverError

        if module._library is None:
            raise CUDADriverError(400)
        if funcname not in module._library.names:
            raise CUDADriverError(500)
        self.module = module
        self.ptr = machine.handle()
        machine.functions[self.ptr] = (module._library, funcname, module._device)
        weakref.finalize(self, machine.functions.pop, self.ptr, None)
