"""The accelerator of this machine, which is CUDA or none."""

from __future__ import annotations

from typing import Any

from . import cuda
from .runtime.device import Device

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available",
           "set_device_index", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """Whether there is one."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Device | None:
    """Its kind as a device, None where there is none."""
    return Device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The device in use."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Use another device."""
    cuda.set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait until a device has done all its work."""
    cuda.synchronize(device)
