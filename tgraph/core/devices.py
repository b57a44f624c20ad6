"""Which device is meant by a name, a number or None."""

from __future__ import annotations

from ..runtime.cuda.devices import cuda_device, current_device
from ..runtime.device import CPU, META, Device, defaults, host_device
from .eager_context import current_context

DeviceLike = Device | str | int | None


def as_device(device: DeviceLike) -> Device:
    """The device that is meant: the default one for None, the current one for "cuda".

    RuntimeError where it is not there.
    """
    if device is None:
        device = defaults.device
    if device is CPU:
        return CPU
    parsed = Device.parse(device)
    if parsed.is_host:
        return host_device(parsed.index)
    if parsed.type == "meta":
        return META
    if parsed.index is None:
        current_context().reads_current_device(current_device)
    return cuda_device(parsed.index)
