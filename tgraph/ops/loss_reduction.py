"""What losses have in common: how they are reduced, and how 16-bit floats are treated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.operands import cast, refuse_complex, require_tensor, result_type, widened
from ..core.tensor import Tensor
from . import elementwise as e
from . import reductions as r


def in_float32(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`loss` of 16-bit floats in float32, so that it and each share of its gradient round once."""

    @wraps(loss)
    def computed(input: Tensor, target: Tensor, *args: Any, **options: Any) -> Tensor:
        if not isinstance(input, Tensor) or not isinstance(target, Tensor):
            return loss(input, target, *args, **options)  # which tells what is wrong
        dtype, name = result_type(input, target), loss.__name__.lstrip("_")
        if name not in ("l1_loss", "triplet_margin_loss"):  # which are made of absolute values
            refuse_complex(name, input, target)
        if not dtype.is_half:
            return loss(input, target, *args, **options)
        wide = loss(*map(_widened, (input, target, *args)),
                    **{name: _widened(value) for name, value in options.items()})  # fmt: skip
        return cast(wide, dtype)

    return computed


def _widened(value: Any) -> Any:
    return widened(value) if isinstance(value, Tensor) else value


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that is asked for, by name or by PyTorch's older arguments."""
    if size_average is None and reduce is None:
        if reduction not in ("none", "mean", "sum", "batchmean"):  # the last one is kl_div's
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return reduction
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
        stacklevel=3,
    )
    return found


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of a loss, or the loss itself."""
    if reduction == "mean":
        return r.mean(loss)
    if reduction == "sum":
        return r.sum(loss)
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss


def as_input(loss: Tensor, input: Tensor) -> Tensor:
    """A loss of another float type than its input in that of the input."""
    dtype = input._type.dtype
    return cast(loss, dtype) if dtype.is_floating_point else loss


def mean_over(loss: Tensor, weights: Tensor) -> Tensor:
    """The sum over that of the weights, which half types could not count."""
    total = r.sum(widened(loss))
    whole = cast(r.sum(widened(weights)), total._type.dtype)
    return cast(e.div(total, whole), loss._type.dtype)


def warn_sizes(input: Tensor, target: Tensor, name: str) -> None:
    """Warn where a loss broadcasts its target."""
    require_tensor(input, name), require_tensor(target, name, "target")
    if input._type.shape != target._type.shape:
        warnings.warn(
            f"{name}: using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(input.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )
