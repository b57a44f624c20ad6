"""Plans of eager mode on a CUDA device: a few launches, asked for one by one.

Eager code calls a plan now and then, with arrays that were made just before. So nothing is captured
as a graph or kept from call to call but what the driver reads the arguments of launches from: the
arena comes from the pool and goes back to it, in the order of the stream, results are written where
the caller has them, and small values of the host go along with the launches that read them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from ..plan_steps import ARENA_SLOT, STATUS_SLOT, CudaStep
from . import backend, failures
from .arrays import ALIGNMENT, current, upload
from .loaded_modules import loaded_module
from .memory import forgotten, register_keeper, watch, when_full
from .places import NUMBER_SLOT
from .plan import SYNCHRONOUS, enter_thread
from .plan_layout import aligned_copy, packed
from .step_runner import StepRunner, products_of, words_of

if TYPE_CHECKING:
    import numpy.typing as npt

Array = Any  # of CuPy

_VALUE_BYTES = 16
"""What a value that goes along with launches may have."""


class DirectPlan:
    """Steps that are ready to run on one device; otherwise as `CudaPlan`, but for these.

    The arrays in `by_value`, of NumPy too, are what kernels get in their launches: of at most 16
    bytes each. `needs_alignment` tells that kernels access vectors; arrays that begin elsewhere are
    copied then. A plan whose steps check something waits for them.
    """

    def __init__(
        self,
        device: Device,
        source: str,
        steps: Sequence[CudaStep],
        arena_bytes: int,
        num_slots: int,
        constants: Mapping[int, npt.NDArray[Any]],
        from_host: Mapping[int, int],
        by_value: Collection[int],
        written: Collection[int] = (),
        needs_alignment: bool = True,
        on_failure: Callable[[int, int, int], Exception] | None = None,
    ) -> None:
        self.device, self.source, self.steps = device, source, tuple(steps)
        self.arena_bytes = arena_bytes
        self.needs_alignment, self.on_failure = needs_alignment, on_failure
        self._from_host, self._host_bytes = packed(
            {slot: nbytes for slot, nbytes in from_host.items() if slot not in by_value}
        )
        self._packed = np.zeros(self._host_bytes, np.uint8)
        with current(device):
            self._constants = {slot: upload(value, device) for slot, value in constants.items()}
            self._module = loaded_module(source, steps, device)
            self._runner = StepRunner(self.steps, self._module, products_of(steps, device))
            if self._constants:  # calls on other streams do not wait for this one
                backend.cupy().cuda.get_current_stream().synchronize()
        called = [slot for slot in range(1, num_slots) if slot not in self._constants]
        at = {slot: place for place, slot in enumerate(called)}
        self._device_places = [at[s] for s in called if s not in from_host]
        self._host_places = [at[slot] for slot in self._from_host]
        self._written = {at[slot] for slot in written}
        starts = {slot: _VALUE_BYTES * number for number, slot in enumerate(by_value)}
        self._values = np.zeros(_VALUE_BYTES * len(starts), np.uint8)
        self._bytes = self._values.data
        self._value_places = [(start, at[slot]) for slot, start in starts.items()]
        self._statuses: dict[int, failures.Status] = {}
        self._lock = threading.RLock()  # memory may run out, and be released, inside
        register_keeper(self)
        self._synchronous = os.environ.get(SYNCHRONOUS, "0") not in ("", "0")
        self._from_arrays: list[tuple[int, int, int]] = []  # word, place in the call, offset
        self._from_memory: list[tuple[int, int]] = []  # word, offset in the memory of a call
        self._from_status: list[tuple[int, int]] = []
        self._name_words(at, starts)

    def _name_words(self, at: Mapping[int, int], values: Mapping[int, int]) -> None:
        """Write the words that are the same in all calls, and note where the others come from."""
        words, table = self._runner.words, self._runner.table
        for word, ref in enumerate(ref for step in self.steps for ref in words_of(step)):
            if ref.slot in values:
                assert not ref.offset
                table[word] = self._values.ctypes.data + values[ref.slot]
            elif ref.slot == NUMBER_SLOT:
                words[word] = ref.offset
            elif ref.slot in self._constants:
                words[word] = self._constants[ref.slot].data.ptr + ref.offset
            elif ref.slot == ARENA_SLOT:
                self._from_memory.append((word, self._host_bytes + ref.offset))
            elif ref.slot in self._from_host:
                start = self._from_host[ref.slot].start
                self._from_memory.append((word, start + ref.offset))
            elif ref.slot == STATUS_SLOT:
                self._from_status.append((word, ref.offset))
            else:
                self._from_arrays.append((word, at[ref.slot], ref.offset))

    def run(self, arrays: Sequence[Array]) -> None:
        """Ask the device to run all steps on `arrays`, one for each slot that is given at calls.

        The device must be the current one, and the arrays must have the sizes and types that the
        steps were made for: that is the caller's duty. Raises the error of a check that failed.
        """
        enter_thread(self.device)
        copies: dict[int, Array] = {}
        if self.needs_alignment:
            for place in self._device_places:
                if arrays[place].data.ptr % ALIGNMENT:
                    copies[place] = when_full(partial(aligned_copy, arrays[place]))
        stream = backend.cupy().cuda.get_current_stream()
        with self._lock:
            self._fill(arrays, copies, stream)
            if self._synchronous:
                self._runner.ask_and_wait(stream)
            else:
                self._runner.ask(stream.ptr)
            self._runner.memory = None  # work of this stream comes first, whoever gets it
            if self.on_failure is not None:
                self._wait(stream)
        for place in self._written.intersection(copies):
            arrays[place][...] = copies[place]

    def _fill(self, arrays: Sequence[Array], copies: Mapping[int, Array], stream: Any) -> None:
        """Write the words of a call."""
        words = self._runner.words
        if self._from_memory:
            nbytes = self._host_bytes + self.arena_bytes
            memory = when_full(partial(backend.cupy().cuda.alloc, nbytes))
            self._runner.memory = memory, self._constants
            for word, offset in self._from_memory:
                words[word] = memory.ptr + offset
            if self._host_places:
                self._upload([arrays[place] for place in self._host_places], memory, stream)
        for word, place, offset in self._from_arrays:
            array = copies[place] if place in copies else arrays[place]
            words[word] = array.data.ptr + offset
        for start, place in self._value_places:
            value = arrays[place].tobytes()
            self._bytes[start : start + len(value)] = value
        if self.on_failure is not None:
            status = self._status(stream)
            status.renew(stream.ptr)
            for word, offset in self._from_status:
                words[word] = status.address + offset

    def _upload(self, arrays: Sequence[npt.NDArray[Any]], memory: Any, stream: Any) -> None:
        """Copy arrays of the host to the device, all at once; they may change after that."""
        for array, place in zip(arrays, self._from_host.values()):
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._packed[place.start : place.stop] = flat
        runtime = backend.cupy().cuda.runtime
        # From memory that is not pinned: the driver has read it when the call returns.
        runtime.memcpyAsync(
            memory.ptr, self._packed.ctypes.data, self._packed.nbytes,
            runtime.memcpyHostToDevice, stream.ptr,
        )  # fmt: skip

    # -- checks --------------------------------------------------------------------------

    def _wait(self, stream: Any) -> None:
        """Wait for a stream, and raise the error of a check of the last call that failed there."""
        with backend.capturing:
            stream.synchronize()
        error = self._statuses[stream.ptr].take()
        if error is not None:
            raise error

    def _status(self, stream: Any) -> failures.Status:
        found = self._statuses.get(stream.ptr)
        if found is None:
            watch(stream)
            found = when_full(lambda: failures.Status(self.device, self.on_failure, shared=False))
            self._statuses[stream.ptr] = found
        return found

    def forget(self, stream: int) -> bool:
        """Give back what belongs to a stream that is gone; False while the plan runs elsewhere."""
        return forgotten(self._statuses, self._lock, stream)
