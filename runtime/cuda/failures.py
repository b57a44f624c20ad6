"""Checks that fail on a device: how Python learns of them.

Nobody waits for a plan to end, so its checks cannot raise at once. Each plan has a status on the
device, whose first word is 0 as long as all is well. A kernel whose check fails writes there what
it found, and into memory of the host that the device can reach; the plan's further kernels then
overwrite nothing that lives on. The error is raised by the next call of a plan, or by what waits
for the device (`item()`, `cpu()`, `synchronize()`), whichever comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from . import backend

if TYPE_CHECKING:
    import numpy.typing as npt

WORDS = 8
"""The status: code, position, size; the last words are where the host has its flag and copy."""
NBYTES = 8 * WORDS
_FLAG, _COPY = 6, 7
REPORT = """\
// The first report of a plan's call is kept. A function of its own, since it is hardly ever called.
__device__ __noinline__ void tg_report(long long position, long long size, int site,
                                       long long* status) {
  if (atomicCAS((unsigned long long*)status, 0ULL, (unsigned long long)site) != 0) return;
  status[1] = position;
  status[2] = size;
  // The last words say where the host looks, if it does: at a flag, then at a copy of this.
  if (volatile long long* host = (volatile long long*)status[7]) {
    host[1] = position;
    host[2] = size;
    host[0] = site;
    __threadfence_system();
    *(volatile long long*)status[6] = 1;
  }
}
"""
"""CUDA C of what writes to a status."""
MAX_RETIRED = 64
"""Statuses of plans that are gone, beyond which the device is waited for."""


class _Board:
    """What the host looks at: one flag for all plans, and their statuses, in the order of making.

    A status stays here after its plan is gone until the device is waited for: kernels may still
    write to it, and a failure must not get lost.
    """

    def __init__(self) -> None:
        self.pinned, self.flag = host_words(1)
        self.statuses: dict[Status, None] = {}
        self.lock = threading.RLock()  # a status may retire wherever garbage is collected


class Status:
    """The status of one plan on one stream.

    `renew` puts a fresh one there. It is asked before each call: who reports a failure may be
    another thread, and know nothing of what the stream is being asked for. A status that is not
    `shared` only its plan looks at, which waits for every call.
    """

    def __init__(
        self,
        device: Device,
        error: Callable[[int, int, int], Exception] | None,
        shared: bool = True,
    ) -> None:
        self.device = device
        self.error = error
        self.address = 0
        self.retired = self._used = False
        if error is None:
            return
        board = _board()
        self.memory = backend.cupy().cuda.alloc(NBYTES)
        self.pinned, words = host_words(2 * WORDS + 1)
        self.words, self._fresh, flag = words[:WORDS], words[WORDS:-1], words[-1:]
        self._fresh[_FLAG] = board.flag.ctypes.data if shared else flag.ctypes.data
        self._fresh[_COPY] = self.words.ctypes.data
        self.address = int(self.memory.ptr)
        self._used = True
        if not shared:
            return
        with board.lock:
            retired = sum(each.retired for each in board.statuses)
            board.statuses[self] = None
        if retired > MAX_RETIRED:
            wait_and_report(device)

    def renew(self, stream: int) -> None:
        """Let the stream's next work find that all is well, where the last failure was reported."""
        if not self._used:
            return
        self._used = False
        runtime = backend.cupy().cuda.runtime
        # In the order of the stream. Pinned, and never changed: it may be read whenever that comes.
        runtime.memcpyAsync(
            self.address, self._fresh.ctypes.data, NBYTES, runtime.memcpyHostToDevice, stream
        )

    def retire(self) -> None:
        """Called when the plan's calls on the stream are over for Python, if not for the device."""
        self.retired = True

    def take(self) -> Exception | None:
        """The error of a check that failed, once; None where all is well."""
        code, position, size = (int(word) for word in self.words[:3])
        if not code:
            return None
        assert self.error is not None
        found = self.error(code, position, size)
        self.words[:] = 0
        self._used = True
        return found


def wait_and_report(device: Device) -> None:
    """Wait until a device has done what it was asked for, and raise the error of a failed check."""
    with backend.capturing:
        backend.cupy().cuda.Device(device.index or 0).synchronize()
    board: _Board | None = backend.kept().get(_Board)
    if board is None:
        return
    report()
    with board.lock:
        for status in list(board.statuses):
            if status.retired and status.device == device and not status.words[0]:
                del board.statuses[status]


def report() -> None:
    """Raise the error of a check that failed, if a device has told of one; others come next."""
    board: _Board | None = backend.kept().get(_Board)
    if board is None or not board.flag[0]:
        return
    with board.lock:
        board.flag[0] = 0
        failed = [status for status in board.statuses if status.words[0]]
        if len(failed) > 1:
            board.flag[0] = 1
    if failed and (error := failed[0].take()) is not None:
        raise error


def _board() -> _Board:
    found: _Board | None = backend.kept().get(_Board)
    if found is None:
        found = backend.kept()[_Board] = _Board()
    return found


def host_words(count: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """Words of the host that devices reach by the same address, and the memory that has them."""
    pinned = backend.cupy().cuda.alloc_pinned_memory(8 * count)
    words = np.frombuffer(pinned, np.int64, count)
    words[:] = 0
    return pinned, words
