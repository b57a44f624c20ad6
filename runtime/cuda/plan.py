"""Plans on a CUDA device: launches with packed arguments, captured into a graph and replayed.

Memory is named as in `runtime/plan.py`: by slot and offset. The addresses of slots change from call
to call, so a call first writes the addresses of all arguments into one table, of which the driver
copies what a launch needs. A second call with the same addresses is captured as a CUDA graph, and
later ones replay it: one launch for the whole plan. Python functions and CuPy's calls of libraries
cannot be captured, nor what is decided by a value of the device; what stands between is a graph
each (`segments.py`).

Everything is asked of the device and nothing is waited for. A failed check is therefore reported
later, see `failures`. With TGRAPH_CUDA_SYNC=1 each step is waited for, and its error names it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from ..plan_steps import ARENA_SLOT, STATUS_SLOT, BufferRef, CudaStep
from . import backend, failures
from .arrays import ALIGNMENT, current, upload
from .capture import CaptureError, capture_of
from .loaded_modules import loaded_module
from .memory import forgotten, note_peak, register_cache, register_keeper, watch, when_full
from .places import Places
from .plan_layout import Place, aligned_copy, packed
from .segments import Segments, run_segments, stops_of
from .step_runner import StepRunner, products_of, words_of

if TYPE_CHECKING:
    import numpy.typing as npt

Array = Any  # of CuPy

KEPT_FRAMES = 8
"""Streams for which a plan keeps memory and graphs; those that it met first go."""
KEPT_GRAPHS = 8
"""Captured graphs of a plan and stream, one for each set of addresses; the least used goes."""
SYNCHRONOUS = "TGRAPH_CUDA_SYNC"
"""An environment variable: 1 lets plans wait behind each step, and capture nothing."""


class CudaPlan:
    """Steps that are ready to run on one device.

    `source` is the text of the kernels' module. `arena_bytes` is the size of slot 0; slots 1 to
    `num_slots` - 1 are arrays: those in `constants` are copied to the device once, the others are
    given to `run` in the order of their slots. Those in `from_host`, with their bytes, are given as
    arrays of NumPy, and copied to the device by each call. Those in `small`, with their bytes, are
    results that the plan has room for itself, so that a graph need not be captured for each of
    their addresses: a call copies them all to one block. `written` are the slots of inputs that the
    plan overwrites. `on_failure` makes the error of a failed check from what the status says.
    `pointers` are bound to places in other slots by steps.

    One stream runs one call after another; calls on several streams have their own memory.
    """

    def __init__(
        self,
        device: Device,
        source: str,
        steps: Sequence[CudaStep],
        arena_bytes: int,
        num_slots: int,
        constants: Mapping[int, npt.NDArray[Any]],
        from_host: Mapping[int, int] | None = None,
        small: Mapping[int, int] | None = None,
        written: Sequence[int] = (),
        on_failure: Callable[[int, int, int], Exception] | None = None,
        pointers: Sequence[int] = (),
    ) -> None:
        self.device = device
        self.source = source
        self.steps = tuple(steps)
        self.arena_bytes = arena_bytes
        self.num_slots = num_slots
        self.from_host, self.host_bytes = packed(from_host or {})
        self.small, self.small_bytes = packed(small or {})
        self.written = frozenset(written)
        self.on_failure = on_failure
        self.pointers = tuple(pointers)
        with current(device):
            self.constants = {slot: upload(value, device) for slot, value in constants.items()}
            self.module = loaded_module(source, steps, device)
            if self.constants:  # calls on other streams do not wait for this one
                backend.cupy().cuda.get_current_stream().synchronize()
            self.products = products_of(steps, device)
        own = self.constants.keys() | self.small.keys() | set(self.pointers)
        self._call_slots = [s for s in range(1, num_slots) if s not in own]
        self.device_slots = [s for s in self._call_slots if s not in self.from_host]
        self._device_places = [self._call_slots.index(slot) for slot in self.device_slots]
        self._host_places = [self._call_slots.index(slot) for slot in self.from_host]
        self._frames: OrderedDict[int, _Frame] = OrderedDict()
        self._lock = threading.RLock()  # memory may run out, and be released, inside
        register_cache(self)
        register_keeper(self)
        self.synchronous = os.environ.get(SYNCHRONOUS, "0") not in ("", "0")
        self.stops = stops_of(self.steps)
        self.can_capture = len(self.stops) < len(self.steps) and not self.synchronous

    def run(self, arrays: Sequence[Array], block: Any = None) -> None:
        """Ask the device to run all steps on `arrays`, one for each slot that is given at calls.

        `block` is memory of `small_bytes`, in which `small` tells where results lie by their slots.
        The device must be the current one, and the arrays must have the sizes and types that the
        steps were made for: that is the caller's duty. Raises the error of a check that failed in
        an earlier call, where the device has told of one.
        """
        if len(arrays) != len(self._call_slots):
            raise ValueError(f"plan: expected {len(self._call_slots)} arrays, got {len(arrays)}")
        failures.report()
        enter_thread(self.device)
        with self._lock:
            stream = backend.cupy().cuda.get_current_stream()
            frame = self._frames.get(stream.ptr) or self._new_frame(stream)
            if self.from_host:
                frame.upload([arrays[at] for at in self._host_places], stream)
                arrays = [arrays[at] for at in self._device_places]
            addresses = [array.data.ptr for array in arrays]
            if any(address % ALIGNMENT for address in addresses):
                self._run_on_copies(frame, arrays, stream)
            else:
                self._ask(frame, tuple(addresses), stream)
            if block is not None:
                frame.hand_out(block, stream)

    def _ask(self, frame: _Frame, addresses: tuple[int, ...], stream: Any) -> None:
        """Run a frame; without graphs from then on where one cannot be captured."""
        try:
            frame.run(addresses, stream)
        except CaptureError as failed:
            self.can_capture = False
            for each in (frame, *self._frames.values()):
                each.capture_nothing()
            warnings.warn(
                "a compiled function could not be captured as a CUDA graph, and launches its "
                f"kernels one by one from now on: {failed}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _new_frame(self, stream: Any) -> _Frame:
        watch(stream)
        frame = self._frames[stream.ptr] = when_full(lambda: _Frame(self, stream))
        note_peak()
        if len(self._frames) > KEPT_FRAMES:
            self._frames.popitem(last=False)
        return frame

    def _run_on_copies(self, frame: _Frame, arrays: Sequence[Array], stream: Any) -> None:
        """Run on copies of the arrays that no vector can be loaded from."""
        used = [
            when_full(partial(aligned_copy, array)) if array.data.ptr % ALIGNMENT else array
            for array in arrays
        ]
        self._ask(frame, tuple(array.data.ptr for array in used), stream)
        for slot, array, copy in zip(self.device_slots, arrays, used):
            if copy is not array and slot in self.written:
                array[...] = copy

    def release(self) -> None:
        """Give the arenas and captured graphs of all streams back; the next calls make new ones."""
        if self._lock.acquire(blocking=False):  # a plan that runs in another thread keeps its own
            try:
                self._frames.clear()
            finally:
                self._lock.release()

    def forget(self, stream: int) -> bool:
        """Give back what belongs to a stream that is gone; False while the plan runs elsewhere."""
        return forgotten(self._frames, self._lock, stream)


class _Frame:
    """What the calls of a plan on one stream own: arena, status, addresses, captured graphs."""

    def __init__(self, plan: CudaPlan, stream: Any) -> None:
        cuda = backend.cupy().cuda
        # Not the plan itself: both, and the arena, are to go as soon as nobody needs them.
        self.device_slots, self.host_places = plan.device_slots, list(plan.from_host.values())
        self.small_bytes = plan.small_bytes
        self.arena = cuda.alloc(plan.arena_bytes) if plan.arena_bytes else None
        self.status = failures.Status(plan.device, plan.on_failure)
        refs = [ref for step in plan.steps for ref in words_of(step)]
        self.runner = StepRunner(plan.steps, plan.module, plan.products)
        self.places = Places(plan.num_slots, refs, self.runner.words, plan.pointers)
        self.bases = self.places.bases
        self.bases[ARENA_SLOT] = self.arena.ptr if self.arena is not None else 0
        self.bases[STATUS_SLOT] = self.status.address
        for slot, array in plan.constants.items():
            self.bases[slot] = array.data.ptr
        self.uploaded = self._own(plan.from_host, plan.host_bytes)
        self.results = self._own(plan.small, plan.small_bytes)
        self.packed = np.zeros(plan.host_bytes, np.uint8)
        self.runner.known = partial(_given, self.packed, plan.from_host)
        self.runner.memory = self.arena, self.uploaded, self.results, plan.constants
        self.runner.places, self.stops = self.places, plan.stops
        if plan.on_failure is not None:
            self.runner.failed = self.status.take
        self.synchronous = plan.synchronous
        self.graphs: OrderedDict[tuple[int, ...], Segments] = OrderedDict()  # by addresses
        self.capturing = capture_of(plan.device, stream.ptr) if plan.can_capture else None

    def __del__(self) -> None:
        if hasattr(self, "status"):  # else memory ran out before
            self.status.retire()

    def _own(self, places: Mapping[int, Place], nbytes: int) -> Any:
        """Memory for some slots, which lie one behind another."""
        if not nbytes:
            return None
        memory = backend.cupy().cuda.alloc(nbytes)
        for slot, place in places.items():
            self.bases[slot] = memory.ptr + place.start
        return memory

    def upload(self, arrays: Sequence[npt.NDArray[Any]], stream: Any) -> None:
        """Copy arrays of the host to the device, all at once; they may change after that."""
        for array, place in zip(arrays, self.host_places):
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self.packed[place.start : place.stop] = flat
        runtime = backend.cupy().cuda.runtime
        # From memory that is not pinned: the driver has read it when the call returns.
        runtime.memcpyAsync(
            self.uploaded.ptr, self.packed.ctypes.data, self.packed.nbytes,
            runtime.memcpyHostToDevice, stream.ptr,
        )  # fmt: skip

    def hand_out(self, block: Any, stream: Any) -> None:
        """Copy the small results to memory that the caller has."""
        runtime = backend.cupy().cuda.runtime
        runtime.memcpyAsync(
            block.ptr, self.results.ptr, self.small_bytes,
            runtime.memcpyDeviceToDevice, stream.ptr,
        )  # fmt: skip

    def run(self, addresses: tuple[int, ...], stream: Any) -> None:
        """Run the steps on arrays at these addresses, one for each slot of the device's arrays.

        CaptureError where some were to become a graph and cannot; all have run nevertheless.
        """
        self.status.renew(stream.ptr)
        segments = self.graphs.get(addresses)
        if segments is not None:
            self.graphs.move_to_end(addresses)
            if segments.whole is not None:
                segments.whole.launch(stream)
                return
        self.bases[self.device_slots] = addresses
        self.places.fill()
        self.runner.left.clear()
        if self.synchronous:
            self.runner.ask_and_wait(stream)
        elif self.capturing is None:
            self.runner.ask(stream.ptr)
        else:
            if segments is None:
                segments = self.graphs[addresses] = Segments()
                if len(self.graphs) > KEPT_GRAPHS:
                    self.graphs.popitem(last=False)
            run_segments(self.runner, segments, self.stops, self.capturing, stream)

    def capture_nothing(self) -> None:
        """Launch the steps one by one from now on."""
        self.graphs.clear()
        self.capturing = None


def _given(
    packed: npt.NDArray[np.uint8], places: Mapping[int, Place], ref: BufferRef
) -> npt.NDArray[np.uint8] | None:
    """The bytes from a place on, if the host has given them."""
    place = places.get(ref.slot)
    return None if place is None else packed[place.start + ref.offset : place.stop]


class _Threads(threading.local):
    entered: Any = None


_threads = _Threads()


def enter_thread(device: Device) -> None:
    """Make the device's context current in this thread, which launches by the driver need.

    CuPy does so before its own launches; in a new thread nothing else may have done it.
    """
    key = backend.cupy(), device
    if _threads.entered != key:
        backend.cupy().cuda.runtime.setDevice(device.index or 0)
        _threads.entered = key
