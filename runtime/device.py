"""Devices by name: a small value type. What a device can do lives in `arrays`."""

from __future__ import annotations

from dataclasses import dataclass

_KINDS = ("cpu", "cuda")


@dataclass(frozen=True)
class Device:
    """A place where tensors live, such as `cpu` or `cuda:0`; RuntimeError for unknown names.

    >>> Device("cuda:1") == Device("cuda", 1)
    True
    """

    type: str
    index: int | None = None

    def __post_init__(self) -> None:
        kind, colon, index = str(self.type).partition(":")
        if kind not in _KINDS or (colon and (self.index is not None or not index.isdigit())):
            raise RuntimeError(
                f"Expected one of {', '.join(_KINDS)} device type at start of device string: "
                f"{self.type!r}"
            )
        if colon:
            object.__setattr__(self, "type", kind)
            object.__setattr__(self, "index", int(index))

    @staticmethod
    def parse(device: str | Device) -> Device:
        """The device of a name; a device itself."""
        return device if isinstance(device, Device) else Device(device)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


CPU = Device("cpu")
