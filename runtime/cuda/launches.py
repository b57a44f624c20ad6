"""Launches of kernels, whose errors tell which kernel it was and what it was to get."""

from __future__ import annotations

from typing import Any

from ..records import NamedTuple
from . import backend

_SHARED_BYTES = 1
"""CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: what a kernel declares."""
_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: without it 48 KiB are the most."""


class LaunchError(RuntimeError):
    """What a device was asked for and refused, or could not do."""


class Launch(NamedTuple):
    """What the driver is told of one kernel, but for the stream.

    `shared` are the bytes of shared memory beside what the kernel declares.
    """

    name: str
    function: int
    grid: int
    block: tuple[int, int]
    shared: int
    table: int  # the address of the addresses of its arguments

    def __str__(self) -> str:
        x, y = self.block
        return (
            f"kernel {self.name}, {self.grid} blocks of {x} x {y} threads, "
            f"{_shared_text(self.function, self.shared)}"
        )


def launch(asked: Launch, stream: int) -> None:
    """Ask a stream for a kernel. LaunchError names it where the driver refuses."""
    x, y = asked.block
    driver = backend.driver()
    try:
        driver.launchKernel(
            asked.function, asked.grid, 1, 1, x, y, 1, asked.shared, stream, asked.table, 0
        )
    except driver.CUDADriverError as error:
        raise LaunchError(f"launch of {asked}: {error}") from error


def allow_shared(name: str, function: Any, nbytes: int) -> None:
    """Let launches of a function of CuPy ask for this much shared memory."""
    driver = backend.driver()
    try:
        driver.funcSetAttribute(function.ptr, _DYNAMIC_SHARED, nbytes)
    except driver.CUDADriverError as error:
        sizes = _shared_text(function.ptr, nbytes)
        raise LaunchError(f"kernel {name} cannot have {sizes}: {error}") from error


def _shared_text(function: int, dynamic: int) -> str:
    driver = backend.driver()
    try:
        declared = driver.funcGetAttribute(_SHARED_BYTES, function)
    except RuntimeError:  # a device that is lost tells nothing
        return f"{dynamic:,} bytes of shared memory beside what it declares"
    return f"{declared + dynamic:,} bytes of shared memory"
