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
    if device.type == "meta":
        raise RuntimeError(
            "compiled code has tensors on the device 'meta', which have no elements to "
            "compute with; call the function as it is (without compile) for shapes and dtypes"
        )
    from .cuda.target import CudaTarget

    return CudaTarget(device)
