"""The machine behind the fake: two devices, their memory, and streams that run or record.

Device memory is host memory, every allocation between guards that a kernel's stray write breaks.
Work runs at once, unless its stream captures: then it is recorded with the addresses it touches.
A lazy machine does the work of every stream as late as it may, so that what does not wait for it
reads old values. Kernels can be made to fail as they do on a GPU: when they are asked for
(`refused`), or when they run (`deadly`), after which the device can do nothing any more.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..shim import Order

DEVICES = 2
UNIT = 512  # addresses are multiples of it, and sizes are rounded up to it
GUARD = 256
_GUARD_BYTE, _FRESH_BYTE = 0xA5, 0xFF
_INTACT = bytes([_GUARD_BYTE]) * (UNIT + GUARD)
RELAXED = 2  # of the modes of capture

_STATUS = {
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    900: (
        "cudaErrorStreamCaptureUnsupported",
        "operation not permitted when stream is capturing",
    ),
    901: (
        "cudaErrorStreamCaptureInvalidated",
        "operation failed due to a previous error during capture",
    ),
    904: ("cudaErrorStreamCaptureUnmatched", "the capture was not initiated in this stream"),
    905: (
        "cudaErrorStreamCaptureIsolation",
        "dependency created on uncaptured work in another stream",
    ),
    906: (
        "cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream",
    ),
}


class CUDARuntimeError(RuntimeError):
    """As CuPy's: `status` is the number of the error."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(": ".join(_STATUS[status]))


class Violation(AssertionError):
    """What a GPU would not refuse, but where it would read or write what it must not."""


Range = tuple[int, int]  # an address and a number of bytes


class Work(NamedTuple):
    """Something that a device does, and the memory that must be alive when it does."""

    run: Callable[[], None]
    touches: tuple[Range, ...]
    name: str
    hosts: tuple[HostBlock, ...] = ()


@dataclass
class Capture:
    """What a stream has recorded since its capture began, in which thread."""

    mode: int
    thread: int = field(default_factory=threading.get_ident)
    work: list[Work] = field(default_factory=list)
    invalid: bool = False


@dataclass
class Record:
    """A point of a stream that an event has recorded."""

    state: StreamState
    reached: bool = False


@dataclass(eq=False)
class StreamState:
    """What a handle of a stream stands for."""

    pointer: int
    device: int  # -1 for the streams that every device has
    blocking: bool
    capture: Capture | None = None
    # Work that is not done, with the blocks it touches and which of their lives it means.
    pending: deque[tuple[Work, list[tuple[Block | HostBlock, int]]]] = field(default_factory=deque)


class HostBlock:
    """Memory of the host that devices reach: `live` and `life` are those of `Block`.

    What it holds is arbitrary at first, and what was there when it is used again.
    """

    def __init__(self, size: int) -> None:
        self.size, self.live, self.life = size, True, 0
        self._buffer = np.full(size + UNIT, _FRESH_BYTE, np.uint8)
        offset = -self._buffer.ctypes.data % UNIT
        self.bytes = self._buffer[offset : offset + size]
        self.start: int = self.bytes.ctypes.data

    def lost_to(self, stream: int, life: int) -> str:
        """Why work of a stream must not touch it any more; empty where it may."""
        gone = self.life != life or not self.live
        return "pinned memory of the host was freed before it ran" if gone else ""

    def check(self) -> None:
        """Nothing of the host is guarded."""


class Block:
    """An allocation with its guards.

    `live` is whether somebody holds it, and not the pool; `life` counts those who have held it;
    `arena` is the stream for which it was allocated.
    """

    def __init__(self, requested: int, size: int, device: int, arena: int) -> None:
        self.size, self.device, self.arena = size, device, arena
        self.live, self.life, self.requested = True, 0, requested
        self._buffer = np.empty(size + 2 * (UNIT + GUARD), np.uint8)
        offset = GUARD + -(self._buffer.ctypes.data + GUARD) % UNIT
        self.start: int = self._buffer.ctypes.data + offset
        self._whole = self._buffer[offset - GUARD : offset + size + GUARD]
        self.refresh(requested)

    def refresh(self, requested: int) -> None:
        """Make the memory look fresh; the guard begins behind the bytes asked for."""
        self._guarded = requested
        self._whole[:] = _GUARD_BYTE
        self._whole[GUARD : GUARD + requested] = _FRESH_BYTE

    def lost_to(self, stream: int, life: int) -> str:
        """Why work of a stream must not touch it any more; empty where it may."""
        gone = (self.life != life or not self.live) and self.arena != stream
        return "memory of another stream was freed before it ran" if gone else ""

    def check(self) -> None:
        """Violation where something was written before or behind the bytes asked for."""
        behind = self._whole[GUARD + self._guarded :]
        for place, guard in (("before", self._whole[:GUARD]), ("behind", behind)):
            if guard.tobytes() == _INTACT[: len(guard)]:
                continue
            wrong = np.flatnonzero(guard != _GUARD_BYTE)
            far = GUARD - wrong[0] if place == "before" else wrong[-1] + 1
            guard[:] = _GUARD_BYTE
            raise Violation(f"{far} bytes {place} {self._guarded} of an array were written")


class Machine:
    """All that the fake knows, but the current device and streams of threads.

    `order` and `seed` are those of `Library.launch`. `memory` is what a device has; an allocation
    above it fails as cudaMalloc does. `strict_capture` refuses those of a thread that captures even
    in relaxed mode, where CUDA would make them. `launches` has the names of the kernels that ran,
    in order, and `sync_count` tells how often the host has waited. `refused` and `deadly` have the
    status with which kernels fail, by their names; `broken` is that of a device that is lost.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._handles = 0x5F000000  # never anew: what is left of an old machine may free its own
        self.reset()

    def reset(
        self, order: Order = "forward", seed: int = 0, memory: int = 1 << 30, lazy: bool = False
    ) -> None:
        """A machine as it is at the start; what holds memory of the old one may still free it."""
        self.order, self.seed, self.memory, self.lazy = order, seed, memory, lazy
        self.strict_capture = True
        self.launches: list[str] = []
        self.sync_count = 0
        self._blocks: dict[int, Block] = {}
        self._starts: list[int] = []
        self.allocated = [0] * DEVICES
        self.streams = {pointer: StreamState(pointer, -1, True) for pointer in (0, 1, 2)}
        self._destroyed: list[StreamState] = []
        self.functions: dict[int, tuple[Any, str, int]] = {}  # library, name, device
        self.dynamic_shared: dict[int, int] = {}  # what launches of a function may ask for
        self.pinned: dict[int, HostBlock] = {}
        self.refused: dict[str, int] = {}
        self.deadly: dict[str, int] = {}
        self.broken = 0

    def handle(self) -> int:
        """A number for a new stream, event, module or function."""
        with self.lock:
            self._handles += 0x40
            return self._handles

    # -- memory ------------------------------------------------------------------------------

    def allocate(self, requested: int, size: int, device: int, arena: int = 0) -> Block:
        """cudaMalloc."""
        with self.lock:
            if self._growth_refused(device):
                raise CUDARuntimeError(900)
            if self.allocated[device] + size > self.memory:
                raise CUDARuntimeError(2)
            block = Block(requested, size, device, arena)
            self.allocated[device] += size
            self._blocks[block.start] = block
            bisect.insort(self._starts, block.start)
            return block

    def release(self, block: Block) -> None:
        """cudaFree, which waits for the device; nothing for a block of an old machine."""
        with self.lock:
            if self._blocks.get(block.start) is not block:
                return
            self._finish(self._of_device(block.device))
            del self._blocks[block.start]
            self._starts.remove(block.start)
            self.allocated[block.device] -= block.size

    def block_at(self, address: int) -> Block | None:
        """The allocation that holds an address."""
        with self.lock:
            place = bisect.bisect_right(self._starts, address) - 1
            block = self._blocks[self._starts[place]] if place >= 0 else None
        return block if block and address < block.start + block.size else None

    def pinned_at(self, address: int) -> HostBlock | None:
        """The memory of the host that devices reach and that holds an address."""
        blocks = list(self.pinned.values())
        return next((b for b in blocks if b.start <= address < b.start + b.size), None)

    def require(self, touches: Iterable[Range], what: str) -> list[Block]:
        """The allocations of ranges; Violation where one is not within memory in use."""
        found = []
        for address, nbytes in touches:
            block = self.block_at(address)
            if block is None:
                raise Violation(f"{what}: {address:#x} is no address of a device")
            if not block.live:
                raise Violation(f"{what}: the memory at {address:#x} has been freed")
            if address + nbytes > block.start + block.requested:
                raise Violation(
                    f"{what}: {nbytes} bytes at {address:#x} end "
                    f"{address + nbytes - block.start - block.requested} bytes behind their array"
                )
            found.append(block)
        return found

    def check_guards(self) -> None:
        """Violation where something was written outside of an allocation."""
        with self.lock:
            blocks = list(self._blocks.values())
        for block in blocks:
            block.check()

    # -- streams -----------------------------------------------------------------------------

    def stream(self, pointer: int) -> StreamState:
        """The stream of a handle."""
        if pointer not in self.streams:
            raise CUDARuntimeError(400)
        return self.streams[pointer]

    def destroy(self, pointer: int) -> None:
        """cudaStreamDestroy: what the stream has to do will be done."""
        state = self.streams.pop(pointer, None)
        if state is not None and state.pending:
            self._destroyed.append(state)

    def enqueue(self, pointer: int, work: Work) -> None:
        """Let a stream do something: now, later where the machine is lazy, or record it."""
        state = self.stream(pointer)
        self.require_device()
        if state.capture is not None:
            if state.capture.invalid:
                raise CUDARuntimeError(901)
            state.capture.work.append(work)
            return
        if pointer in (0, 1):
            self.refuse(lambda other: other.blocking, 906)
        if state.blocking:
            self._finish_others(state)
        touched = [*self.require(work.touches, work.name), *work.hosts]
        state.pending.append((work, [(block, block.life) for block in touched]))
        if not self.lazy:
            self._finish([state])

    def reach(self, record: Record) -> None:
        """Let a stream work until it is where an event was recorded."""
        while not record.reached:
            self._step(record.state)

    def progress(self, state: StreamState) -> bool:
        """Whether a stream has done all; if not, it does one thing more."""
        if state.pending:
            self._step(state)
            return False
        return True

    def finish_all(self) -> None:
        """Let all streams do what they have to do."""
        self._finish(self._all_streams())

    def _finish_others(self, state: StreamState) -> None:
        """What is before new work: the null stream and blocking ones wait for each other."""
        null = state.pointer in (0, 1)
        others = [each for each in self._all_streams() if each.blocking and each is not state]
        self._finish(each for each in others if null or each.pointer in (0, 1))

    def _finish(self, states: Iterable[StreamState]) -> None:
        with self.lock:  # also until another thread has done what it is at
            for state in list(states):
                while state.pending:
                    self._step(state)

    def _step(self, state: StreamState) -> None:
        """The next work of a stream: its memory must be what it was, or be ordered behind it.

        The machine does one thing at a time, whichever threads ask for it.
        """
        with self.lock:
            if not state.pending:
                return
            try:
                self._do(state, *state.pending.popleft())
            except BaseException:
                # As on a GPU nothing works after that. What is left may be copies to memory of the
                # host, which goes when the error is on its way up.
                for each in self._all_streams():
                    each.pending.clear()
                raise

    def _do(
        self, state: StreamState, work: Work, blocks: list[tuple[Block | HostBlock, int]]
    ) -> None:
        for block, life in blocks:
            if why := block.lost_to(state.pointer, life):
                raise Violation(f"{work.name}: {why}")
        work.run()
        for block, _ in blocks:
            block.check()

    def _all_streams(self) -> list[StreamState]:
        return [*self.streams.values(), *self._destroyed]

    def _of_device(self, device: int) -> list[StreamState]:
        return [state for state in self._all_streams() if state.device in (-1, device)]

    def break_by(self, kernel: str) -> None:
        """Lose the device where a kernel that runs is deadly: all that was asked of it is gone."""
        if kernel in self.deadly:
            self.broken = self.deadly[kernel]
            raise CUDARuntimeError(self.broken)

    def require_device(self) -> None:
        """The error of a device that is lost, which every call gives from then on."""
        if self.broken:
            raise CUDARuntimeError(self.broken)

    def synchronize(self, device: int, pointer: int | None = None) -> None:
        """Wait for a stream, or for all of a device; refused where one of them captures."""
        self.require_device()
        if pointer is None:
            self.refuse(lambda state: state.device == device, 900)
            self._finish(self._of_device(device))
        else:
            state = self.stream(pointer)
            self.refuse(lambda other: other is state, 900)
            if pointer in (0, 1):
                self.refuse(lambda other: other.blocking, 906)
            self.catch_up(pointer)
        self.sync_count += 1

    def catch_up(self, pointer: int) -> None:
        """Let a stream do all that it was asked for, and what is before that."""
        state = self.stream(pointer)
        if state.blocking:
            self._finish_others(state)
        self._finish([state])

    def refuse_synchronous(self, device: int) -> None:
        """What synchronous calls do while a stream captures: they fail."""
        self.refuse(lambda state: state.device == device, 900)

    def refuse(self, which: Callable[[StreamState], bool], status: int) -> None:
        """The error of a call that captures of some streams forbid; they are invalid then."""
        states = [state for state in list(self.streams.values()) if which(state)]
        found = [state.capture for state in states if state.capture is not None]
        for capture in found:
            capture.invalid = True
        if found:
            raise CUDARuntimeError(status)

    def _growth_refused(self, device: int) -> bool:
        states = list(self.streams.values())
        captures = [state.capture for state in states if state.device == device]
        own = threading.get_ident() if self.strict_capture else 0
        return any(each and (each.mode != RELAXED or each.thread == own) for each in captures)


machine = Machine()


def bytes_at(address: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Memory as a NumPy array, which does not keep it alive."""
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
    found: np.ndarray[Any, Any] = np.frombuffer(memory, np.uint8)
    return found


class Context(threading.local):
    """What is current in a thread. `streams` holds the stream object of every device."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Any] = {}
        self.hooks: dict[str, Any] = {}

    def stream_pointer(self) -> int:
        """The handle of the current stream; 0 is the null stream."""
        stream = self.streams.get(self.device)
        return 0 if stream is None else int(stream.ptr)


context = Context()
