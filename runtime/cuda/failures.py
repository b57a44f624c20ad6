"""Checks that fail on a device: how Python learns of them.

Nobody waits for a plan to end, so its checks cannot raise at once. Each plan has a status on the
device, whose first word is 0 as long as all is well. A kernel whose check fails writes there what
it found, and into memory of the host that the device can reach; the plan's further kernels then
overwrite nothing that lives on. The error is raised by the next call of a plan, or by what waits
for the device (`item()`, `cpu()`, `synchronize()`), whichever comes first.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

import numpy as np

from ..device import Device
from . import backend

WORDS = 8
"""The status: code, position, size; the last word is the address of the host's copy."""
NBYTES = 8 * WORDS

_lock = threading.Lock()
_KEY = "statuses"


class Status:
    """The status of one plan on one stream."""

    def __init__(self, device: Device, error: Callable[[int, int, int], Exception] | None) -> None:
        cupy = backend.cupy()
        self.device = device
        self.error = error
        self.address = 0
        if error is None:
            return
        self.memory = cupy.cuda.alloc(NBYTES)
        self.pinned = cupy.cuda.alloc_pinned_memory(NBYTES)
        self.words = np.frombuffer(self.pinned, np.int64, WORDS)
        self.address = int(self.memory.ptr)
        self._reset()
        with _lock:
            backend.kept().setdefault(_KEY, weakref.WeakSet()).add(self)

    def _reset(self) -> None:
        self.words[:] = 0
        fresh = np.zeros(WORDS, np.int64)
        fresh[-1] = self.words.ctypes.data
        cupy = backend.cupy()
        runtime = cupy.cuda.runtime
        with cupy.cuda.Device(self.device.index or 0):
            cupy.cuda.Device().synchronize()
            runtime.memcpy(self.address, fresh.ctypes.data, NBYTES, runtime.memcpyHostToDevice)

    def take(self) -> Exception | None:
        """The error of a check that failed, once; None where all is well."""
        code, position, size = (int(word) for word in self.words[:3])
        if not code:
            return None
        assert self.error is not None
        found = self.error(code, position, size)
        self._reset()
        return found


def wait_and_report(device: Device) -> None:
    """Wait until a device has done what it was asked for, and raise the error of a failed check."""
    backend.cupy().cuda.Device(device.index or 0).synchronize()
    report()


def report() -> None:
    """Raise the error of a check that failed, if a device has told of one."""
    found = backend.kept().get(_KEY)
    if not found:
        return
    with _lock:
        statuses = list(found)
    for status in statuses:
        error = status.take()
        if error is not None:
            raise error
