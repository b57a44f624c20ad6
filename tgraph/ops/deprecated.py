"""What PyTorch has of former times, and warns of, or has newer names for."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.devices import DeviceLike
from ..core.keywords import with_keywords
from ..core.public import public
from ..core.tensor import Size, Tensor
from ..runtime.device import Device
from ..runtime.dtypes import DType, int64
from . import creation, creation_options, from_data
from . import movement as m
from .typed import check_device_type


@with_keywords
def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    device: Device | str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` to `end`, which is one of them; deprecated for `arange`."""
    warnings.warn("range is deprecated and will be removed in a future release because its "
                  "behavior is inconsistent with Python's range builtin. Instead, use arange, "
                  "which produces values in [start, end).", stacklevel=3)  # fmt: skip
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    like = creation_options.get_default_dtype() if out is None else out.dtype
    wanted = like if dtype is None else dtype
    if wanted is int64:
        start, end, step = creation.whole_numbers(start, end, step)
    count = int((end - start) / step) + 1
    places = creation.arange(count, dtype=wanted, device=device)
    made = places * step + start
    if out is not None:
        return out.resize_(count).copy_(made)
    return made.to(wanted).requires_grad_(requires_grad)


@public(function=False, method=True)
def new(self: Tensor, *args: Any, device: DeviceLike = None) -> Tensor:
    """A tensor of this one's type and device: of sizes, of data, or without elements.

    RuntimeError for a `device` of another type than this tensor's.
    """
    check_device_type(device, self.device.type)
    like = {"dtype": self.dtype, "device": self.device if device is None else device}
    if len(args) == 1 and not isinstance(args[0], int):
        is_sizes = isinstance(args[0], Size)
        return creation.empty(*args[0], **like) if is_sizes else from_data.tensor(args[0], **like)
    return creation.empty(*(args or (0,)), **like)


@public(function=False, method=True)
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """`reshape`; deprecated, as in PyTorch."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return m.reshape(self, *sizes)


@public(function=False, method=True)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`reshape_as`; deprecated, as in PyTorch."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return m.reshape(self, tensor.shape)
