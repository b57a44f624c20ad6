"""What the functions of the standard do with their arguments before tgraph's see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import promotion
from ..core.operands import cast, is_scalar, require_tensor
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, int64, uint64


def together(name: str, *tensors: Any) -> list[Tensor]:
    """The tensors as their common dtype, to which those without dimensions count like others.

    PyTorch, and the functions of `tgraph`, go by the tensors that have dimensions.
    """
    given = [require_tensor(each, name, "x") for each in tensors]
    dtypes = {each._type.dtype for each in given}
    if len(dtypes) == 1:
        return given
    common = promotion.result_type(each._type.dtype for each in given)
    return [cast(each, common) for each in given]


def pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, of which one may be a number; TypeError where both are."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        x1, x2 = together(name, x1, x2)
        return x1, x2
    if is_scalar(x1) and is_scalar(x2):
        raise TypeError(f"{name}(): at least one of x1 and x2 must be a tensor, not two numbers")
    for each in (x1, x2):
        if not is_scalar(each):
            require_tensor(each, name, "x")
    return x1, x2


def axes_of(x: Tensor, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """Axes as numbers from 0; all of them for None. IndexError for one that is not there."""
    ndim = len(x._type.shape)
    if axis is None:
        return tuple(range(ndim))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in given:
        if not -ndim <= each < ndim:
            raise IndexError(f"axis {each} is out of range for a tensor of {ndim} dimensions")
    found = tuple(each % ndim for each in given)
    if len(set(found)) < len(found):
        raise ValueError(f"an axis is named twice in {given}")
    return found


def axis_of(x: Tensor, axis: int) -> int:
    """One axis as a number from 0."""
    return axes_of(x, axis)[0]


def only_axis(x: Tensor, axis: int | None, name: str) -> int:
    """`axis`, which may be left out for tensors of one dimension; ValueError for others."""
    if axis is not None:
        return axis_of(x, axis)
    if len(x._type.shape) != 1:
        raise ValueError(
            f"{name}(): expected axis for a tensor of {len(x._type.shape)} dimensions; only one of "
            "one dimension does without"
        )
    return 0


def accumulated_as(x: Tensor, dtype: DType | None) -> DType:
    """The dtype of sums and products: integers as 64 bits of their own kind, others as they are."""
    own = x._type.dtype
    if dtype is not None:
        return dtype
    if own.kind == "uint":
        return uint64
    return own if own.is_differentiable else int64
