"""CUDA devices: which there are, which one is current, and what memory they have."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..device import Device
from ..records import NamedTuple
from . import backend, failures

ARCHITECTURES = {
    "sm_75": 64 << 10,
    "sm_80": 163 << 10,
    "sm_86": 99 << 10,
    "sm_89": 99 << 10,
    "sm_90": 227 << 10,
    "sm_100": 227 << 10,
    "sm_120": 99 << 10,
}
"""Architectures, and the most shared memory that a block may ask for on each, in bytes (CUDA C++
Programming Guide, "Technical Specifications per Compute Capability")."""


class DeviceProperties(NamedTuple):
    """What a device is: its name, compute capability, and sizes (bytes, processors)."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    l2_cache_size: int


def is_available() -> bool:
    """Whether CUDA can be used: CuPy is installed, and there is a driver and a device."""
    return backend.why_unavailable() is None


def device_count() -> int:
    """The number of CUDA devices; 0 where CUDA is not available."""
    return int(backend.cupy().cuda.runtime.getDeviceCount()) if is_available() else 0


def current_device() -> int:
    """The number of the device that "cuda" means in this thread."""
    return int(backend.cupy().cuda.runtime.getDevice())


def set_device(device: int | str | Device) -> None:
    """Let "cuda" mean this device, in this thread."""
    backend.cupy().cuda.Device(index_of(device)).use()


def index_of(device: int | str | Device | None) -> int:
    """The number of a CUDA device, of the current one for None; RuntimeError for another kind."""
    if device is None:
        return current_device()
    parsed = Device.parse(device)
    if parsed.type != "cuda":
        raise RuntimeError(f"expected a CUDA device, got '{parsed}'")
    return cuda_device(parsed.index).index or 0


def cuda_device(index: int | None) -> Device:
    """The CUDA device of this number, the same object each time; None means the current one.

    RuntimeError where CUDA is not available or has no such device.
    """
    if index is None:
        return _device(current_device())
    if index >= (count := device_count()):
        backend.cupy()  # says why, where there is none at all
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: 'cuda:{index}' of {count} CUDA devices"
        )
    return _device(index)


@cache
def _device(index: int) -> Device:
    return Device("cuda", index)


def architecture(device: Device) -> str:
    """What code for a device is compiled for, such as "sm_90".

    That is the newest known architecture whose code it runs: one of the same major version.
    RuntimeError where there is none.
    """
    return _architecture(backend.cupy(), device.index or 0)


@cache
def _architecture(cupy: Any, index: int) -> str:
    capability = int(cupy.cuda.Device(index).compute_capability)
    known = [int(arch.removeprefix("sm_")) for arch in ARCHITECTURES]
    fitting = [each for each in known if each // 10 == capability // 10 and each <= capability]
    if not fitting:
        majors = ", ".join(str(major) for major in sorted({each // 10 for each in known}))
        raise RuntimeError(
            f"cuda:{index}: expected a device of compute capability {majors}.x, "
            f"got {capability // 10}.{capability % 10}; compute on the CPU, or on another device"
        )
    return f"sm_{max(fitting)}"


def properties(device: int | str | Device | None = None) -> DeviceProperties:
    """What a device is; the current one unless given."""
    found = backend.cupy().cuda.runtime.getDeviceProperties(index_of(device))
    return DeviceProperties(
        found["name"].decode(),
        found["major"],
        found["minor"],
        found["totalGlobalMem"],
        found["multiProcessorCount"],
        found["l2CacheSize"],
    )


def synchronize(device: int | str | Device | None = None) -> None:
    """Wait until a device has done everything that was asked of it.

    Raises the error of a check that failed meanwhile, such as an IndexError.
    """
    failures.wait_and_report(_device(index_of(device)))
