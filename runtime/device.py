"""Devices by name: a small value type, and which one is the default of this thread.

What a device can do lives in `arrays` and `cuda`.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from .records import record

_KINDS = ("cpu", "cuda", "meta")


@record()
class Device:
    """A place where tensors live, such as `cpu` or `cuda:0`; RuntimeError for unknown names.

    `type` is such a name, or a device, of which it is the same one again.
    `cpu:1`, `cpu:2` and so on are devices of their own on the CPU's hardware, and `cpu:0` is the
    CPU itself. Tensors on `meta` have shapes and dtypes, but no elements. As a context manager it
    is the device on which tensors are made that are given none.

    >>> Device("cuda:1") == Device("cuda", 1), Device("cpu:0") == Device("cpu")
    (True, True)
    >>> with Device("cpu"):
    ...     print(default_device())
    cpu
    """

    type: str
    index: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.type, str | int | Device):
            raise TypeError(
                f"device() expected a name such as 'cuda:0', a number or a device, got "
                f"{type(self.type).__name__}"
            )
        given: Any = self.type
        if isinstance(given, Device):
            if self.index is not None:
                raise TypeError(f"device() got an index besides the device {given}")
            object.__setattr__(self, "index", given.index)
            object.__setattr__(self, "type", given.type)
        kind, colon, index = str(self.type).partition(":")
        if kind not in _KINDS or (colon and (self.index is not None or not index.isdigit())):
            raise RuntimeError(
                f"Expected one of {', '.join(_KINDS)} device type at start of device string: "
                f"{self.type!r}"
            )
        if self.index is not None and self.index < 0:
            raise RuntimeError(f"Device index must not be negative, got {self.index}")
        if colon:
            object.__setattr__(self, "type", kind)
            object.__setattr__(self, "index", int(index))
        if self.type == "cpu" and self.index == 0:
            object.__setattr__(self, "index", None)

    @property
    def is_host(self) -> bool:
        """Whether the CPU computes here: `cpu`, and the devices `cpu:1`, `cpu:2`..."""
        return self.type == "cpu"

    @staticmethod
    def parse(device: str | int | Device) -> Device:
        """The device of a name; a device itself; a number is that of a CUDA device."""
        if isinstance(device, int):
            return Device("cuda", device)
        return device if isinstance(device, Device) else Device(device)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __enter__(self) -> Device:
        defaults.outer = (defaults.device, *defaults.outer)
        defaults.device = self
        return self

    def __exit__(self, *exception: object) -> None:
        defaults.device, *outer = defaults.outer
        defaults.outer = tuple(outer)


CPU = Device("cpu")
META = Device("meta")


@cache
def host_device(index: int | None) -> Device:
    """The device `cpu:index`, the same object each time."""
    return Device("cpu", index) if index else CPU


class _Defaults(threading.local):
    device: Device = CPU
    outer: tuple[Device, ...] = ()  # those of the `with` blocks around, the nearest first


defaults = _Defaults()


def default_device() -> Device:
    """The device of tensors that are made without one, in this thread."""
    return defaults.device


def set_default_device(device: str | int | Device | None) -> None:
    """Make tensors on `device` where none is given, in this thread; on the CPU again for None."""
    defaults.device = CPU if device is None else Device.parse(device)
