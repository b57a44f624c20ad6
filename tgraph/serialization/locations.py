"""Where storages go that are read: `map_location`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.devices import as_device
from ..ops.storage import UntypedStorage
from ..runtime.cuda.devices import device_count, is_available
from ..runtime.device import Device
from .errors import LoadError

Restore = Callable[[UntypedStorage, str], UntypedStorage]
Location = str | Device | Mapping[Any, Any] | Callable[[Any, str], Any] | None


def _restored(storage: UntypedStorage, location: str) -> UntypedStorage:
    """A storage of the CPU on the device that it was saved from."""
    if location == "cpu":
        return storage
    kind, colon, index = location.partition(":")
    if kind not in ("cpu", "cuda") or (colon and not (index.isascii() and index.isdigit())):
        raise LoadError(
            f"the file has a tensor of the device '{location[:50]}', which tgraph does not have; "
            "use map_location='cpu' to load it to the CPU"
        )
    device = Device(kind, int(index[:6]) if index else None)
    if device.is_host:
        return storage.to(device)
    if not is_available():
        raise LoadError(
            "Attempting to deserialize object on a CUDA device but tgraph.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use tgraph.load with "
            "map_location='cpu' to map your storages to the CPU."
        )
    if device.index is not None and device.index >= device_count():
        raise LoadError(
            f"Attempting to deserialize object on CUDA device {device.index} but "
            f"tgraph.cuda.device_count() is {device_count()}. Please use tgraph.load with "
            "map_location to map your storages to an existing device."
        )
    return storage.to(device)


def restore(map_location: Location) -> Restore:
    """What puts a storage of the CPU where `map_location` says, given where it was."""
    if map_location is None:
        return _restored
    if isinstance(map_location, Mapping):
        names = {str(key): str(value) for key, value in map_location.items()}
        return lambda storage, location: _restored(storage, names.get(location, location))
    if isinstance(map_location, str | Device):
        there = as_device(map_location)
        return lambda storage, location: storage.to(there)
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, its name, a dict of names or a function, got "
            f"{type(map_location).__name__}"
        )

    def ask(storage: UntypedStorage, location: str) -> UntypedStorage:
        found = map_location(storage, location)
        if found is None:
            return _restored(storage, location)
        if not hasattr(found, "untyped"):
            raise TypeError(
                "the function given as map_location must return a storage or None, got "
                f"{type(found).__name__}"
            )
        untyped: UntypedStorage = found.untyped()
        return untyped

    return ask


def to_one_device(map_location: Location, kind: str) -> Device | None:
    """The device that `map_location` names, for files that tell no devices; None for the CPU."""
    if map_location is None:
        return None
    if not isinstance(map_location, str | Device):
        raise TypeError(f"map_location must be a device or its name for {kind} files")
    return as_device(map_location)
