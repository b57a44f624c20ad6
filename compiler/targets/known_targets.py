"""The targets that there are, by the devices of tensors."""

from __future__ import annotations

from typing import Any

from ...runtime.device import CPU, Device
from .cpu.target import CpuTarget
from .target import Target


def target_of(device: Device) -> Target[Any]:
    """The target that computes on `device`."""
    if device is CPU:
        return CpuTarget()
    from .cuda.target import CudaTarget

    return CudaTarget(device)
