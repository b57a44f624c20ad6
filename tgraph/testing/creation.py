"""`make_tensor`: random tensors for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.dtype_info import finfo, iinfo
from ..core.tensor import Tensor
from ..ops.creation import empty
from ..ops.random import randint
from ..runtime.dtypes import DType, bool_, int64, uint64


def make_tensor(
    *shape: int | Sequence[int], dtype: DType, device: Any, low: float | None = None,
    high: float | None = None, requires_grad: bool = False, noncontiguous: bool = False,
    exclude_zero: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of random numbers in [low, high), evenly spread.

    Without `low` and `high`, bools are either, unsigned integers below 10, all other numbers from
    -9 to 9. Limits that the dtype does not reach are cut to its own. Of a `noncontiguous` one,
    every second element of the last dimension is taken. `exclude_zero` replaces zeros: by 1, or the
    smallest normal number.

    ValueError for limits that are NaN or leave nothing between them, for gradients of integers, and
    for both `noncontiguous` and `memory_format`.

    >>> import tgraph as tg
    >>> x = tg.testing.make_tensor(2, 3, dtype=tg.float32, device="cpu", low=1, high=2)
    >>> x.shape, bool((x >= 1).all()), bool((x < 2).all())
    (tgraph.Size([2, 3]), True, True)
    """
    sizes: tuple[int, ...] = tuple(
        shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape  # type: ignore[arg-type]
    )
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude each other")
    is_whole = not (dtype.is_floating_point or dtype.is_complex)
    if requires_grad and is_whole:
        raise ValueError(
            f"make_tensor: requires_grad=True needs a floating point or complex dtype, got {dtype}"
        )
    noncontiguous = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous else sizes
    result = _whole(drawn, dtype, device, low, high) if is_whole else (
        _uniform(drawn, dtype, device, low, high))  # fmt: skip
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if is_whole else finfo(dtype).tiny
    return result.requires_grad_() if requires_grad else result


def _whole(
    shape: tuple[int, ...], dtype: DType, device: Any, low: float | None, high: float | None
) -> Tensor:
    if dtype is bool_:
        limits = _limits(low, high, 0, 2, (0, 2), dtype)
    else:
        info = iinfo(dtype)
        # What is above all that is drawn has to be an int64 itself.
        most = info.max + (dtype not in (int64, uint64))
        limits = _limits(low, high, info.min, min(most, iinfo(int64).max), (-9, 10), dtype)
    return randint(*map(math.ceil, limits), shape, dtype=dtype, device=device)


def _uniform(
    shape: tuple[int, ...], dtype: DType, device: Any, low: float | None, high: float | None
) -> Tensor:
    info = finfo(dtype)
    first, last = _limits(low, high, info.min, info.max, (-9, 9), dtype)
    result = empty(shape, dtype=dtype, device=device)
    for part in (result.real, result.imag) if dtype.is_complex else (result,):
        if last - first <= info.max:
            part.uniform_(first, last)
        else:  # the difference is no number of the type
            part.uniform_(first / 2, last / 2).mul_(2)
    return result


def _limits(
    low: float | None, high: float | None, lowest: float, highest: float,
    usual: tuple[float, float], dtype: DType,
) -> tuple[float, float]:  # fmt: skip
    first, last = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(first) or math.isnan(last):
        raise ValueError(f"make_tensor: low and high must be numbers, got {first} and {last}")
    is_whole = not (dtype.is_floating_point or dtype.is_complex)
    if first > last or (first == last and is_whole):
        raise ValueError(f"make_tensor: low must be below high, got {first} and {last}")
    if last < lowest or first >= highest:
        raise ValueError(
            f"make_tensor: {dtype} has numbers from {lowest} to {highest}, "
            f"got the limits {first} and {last}"
        )
    return min(max(first, lowest), highest), min(max(last, lowest), highest)
