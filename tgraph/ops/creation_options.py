"""What sizes, `dtype`, `device` and `requires_grad` mean to functions that make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import promotion
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, from_numpy_dtype


def as_dtype(dtype: Any) -> DType | None:
    """A DType, or what Python and NumPy have in its place: `float` is float64, as in PyTorch."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, Tensor):
        raise TypeError(f"expected a dtype, got a tensor of type {dtype._type}")
    return from_numpy_dtype(dtype)


@public()
def set_default_dtype(dtype: DType) -> None:
    """The dtype of floats that come without one: float32 unless set otherwise."""
    if not isinstance(dtype, DType) or not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {dtype}")
    promotion.default_dtype = dtype


@public()
def get_default_dtype() -> DType:
    """The dtype of floats that come without one."""
    return promotion.default_dtype


def finished(result: Tensor, requires_grad: bool) -> Tensor:
    """`result` as a leaf that wants a gradient, where the caller asked for one."""
    return result.requires_grad_() if requires_grad else result


def check_sizes(shape: Sequence[int]) -> None:
    """RuntimeError for a size below zero."""
    if any(size < 0 for size in shape):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )


def options_like(input: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """`options` with the dtype and device of `input` where none are given."""
    given = {name: value for name, value in options.items() if value is not None}
    return {"dtype": input._type.dtype, "device": input._type.device, **given}
