"""Devices by name: a small value type. What a device can do lives in `arrays`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """A place where tensors live, such as `cpu` or `cuda:0`.

    >>> Device.parse("cuda:1")
    device(type='cuda', index=1)
    """

    type: str
    index: int | None = None

    @staticmethod
    def parse(device: str | Device) -> Device:
        """Read a device from its name; RuntimeError names what is accepted."""
        if isinstance(device, Device):
            return device
        kind, _, index = str(device).partition(":")
        if kind not in ("cpu", "cuda") or (index and not index.isdigit()):
            raise RuntimeError(
                f"Expected one of cpu, cuda device type at start of device string: {device!r}"
            )
        return Device(kind, int(index) if index else None)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


CPU = Device("cpu")
