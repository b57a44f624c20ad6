"""What the standard lets programs ask of a namespace: `__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import promotion
from ..core.devices import DeviceLike
from ..runtime.cuda.devices import device_count
from ..runtime.device import CPU, Device, default_device
from ..runtime.dtypes import DType, int64
from .data_types import KINDS, isdtype


class Info:
    """Capabilities, devices and dtypes of the namespace.

    >>> from tgraph import array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    tgraph.int64
    """

    def capabilities(self) -> dict[str, Any]:
        """Sizes may depend on data, and tensors have up to 64 dimensions, as NumPy's arrays."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where tensors are made."""
        return default_device()

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, DType]:
        """The dtypes of numbers that come without one."""
        return {
            "real floating": promotion.default_dtype,
            "complex floating": promotion.default_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(
        self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes by name, of all kinds or of some."""
        known = KINDS["bool"] + KINDS["numeric"]
        return {each.name: each for each in known if kind is None or isdtype(each, kind)}

    def devices(self) -> list[Device]:
        """The CPU, and the CUDA devices that are there."""
        return [CPU, *(Device("cuda", index) for index in range(device_count()))]


def array_namespace_info() -> Info:
    """What the namespace can do: an object with `capabilities()`, `dtypes()` and others."""
    return Info()
