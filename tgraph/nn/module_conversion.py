"""Moving and converting modules: `to` and what is like it."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.devices import as_device
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation import empty_like
from ..ops.shared_memory import share
from ..runtime.device import Device
from ..runtime.dtypes import DType, bfloat16, float16, float32, float64
from .making import at_once
from .parameter import is_lazy, replace_value

Self = TypeVar("Self", bound="Convertible")


class Convertible:
    """The part of a Module that moves and converts all its parameters and buffers."""

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the value of each parameter, its gradient and each buffer by `fn` of it.

        Parameters stay the same objects, so that optimizers keep knowing them. A module with
        tensors that are neither converts them here.
        """
        own: Any = self
        if recurse:
            for child in own.children():
                child._apply(fn)
        held = self.__dict__
        for name in held["_parameter_names"]:
            if held[name] is not None:
                _replace(held[name], fn)
                if held[name]._grad is not None:
                    _replace(held[name]._grad, fn)
        for name in held["_buffer_names"]:
            if held[name] is not None:
                new = fn(held[name])
                if new is not held[name]:
                    setattr(self, name, new)
        return self

    @at_once
    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, or move all to a device.

        `to(tg.float64)`, `to("cuda")`, both, or a tensor whose dtype and device to use; also as
        `dtype=` and `device=`. The parameters stay the same objects, so that optimizers keep
        knowing them.
        """
        dtype, device = _conversion(args, kwargs)

        def convert(tensor: Tensor) -> Tensor:
            own, place = tensor.dtype, tensor.device
            wanted = dtype if dtype is not None and own.is_differentiable else own
            there = place if device is None else device
            return tensor if wanted is own and there == place else tensor.to(there, wanted)

        return self._apply(convert)

    @at_once
    def _floats_to(self: Self, dtype: DType) -> Self:
        return self._apply(lambda each: each.to(dtype) if each.is_floating_point() else each)

    @at_once
    def type(self: Self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self._floats_to(float32)

    def double(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self._floats_to(float64)

    def half(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self._floats_to(float16)

    def bfloat16(self: Self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._floats_to(bfloat16)

    def cpu(self: Self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self.to(device="cpu")

    def cuda(self: Self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device, the current one unless given."""
        return self.to(device="cuda" if device is None else device)

    @at_once
    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device, without their values."""
        place = None if device is None else as_device(device)
        return self._apply(lambda tensor: empty_like(tensor, device=place), recurse)

    def share_memory(self: Self) -> Self:
        """Move the memory of parameters and buffers to where other processes see it."""
        own: Any = self
        held = [*own.parameters(), *own.buffers()]
        for each in held:
            if is_lazy(each):
                each.share_memory_()  # raises
        share([*held, *(each.grad for each in held if each.grad is not None)])
        return self


def _replace(tensor: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    with no_grad():
        new = fn(tensor)
    if new is not tensor:
        replace_value(tensor, new.detach())


def _conversion(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[DType | None, Device | None]:
    """The dtype and the device that the arguments of `Module.to` ask for."""
    unknown = set(kwargs) - {"dtype", "device", "tensor", "non_blocking"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{unknown.pop()}'")
    dtype: DType | None = kwargs.get("dtype")
    place: Any = kwargs.get("device")
    for given in (*args, *([kwargs["tensor"]] if "tensor" in kwargs else ())):
        if isinstance(given, DType):
            dtype = given
        elif isinstance(given, Tensor):
            dtype, place = given._type.dtype, given._type.device
        elif isinstance(given, bool) or given is None:
            continue  # non_blocking, by position
        elif isinstance(given, (str, int, Device)):
            place = given
        else:
            raise TypeError(
                f"to() expected a dtype, device or tensor, got {builtins.type(given).__name__}"
            )
    if dtype is not None and not dtype.is_differentiable:
        raise TypeError(
            "nn.Module.to only accepts floating point or complex dtypes, but got desired "
            f"dtype={dtype}"
        )
    return dtype, None if place is None else as_device(place)
