"""The standard's statistics and utilities: along axes, one result or running ones."""

from __future__ import annotations

from typing import Any

from ..core.operands import cast, require_tensor
from ..core.tensor import Tensor
from ..ops import concatenation, creation, differences, movement, scans
from ..ops import reductions as r
from ..runtime.dtypes import DType, bool_
from .arguments import accumulated_as, axes_of, axis_of, only_axis, together

Axes = int | tuple[int, ...] | None


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: Any = False
) -> Tensor:
    """Sums; integers add up as 64 bits, unsigned ones as uint64.

    >>> from tgraph import array_api as xp
    >>> xp.sum(xp.ones((2, 3), dtype=xp.uint8), axis=1)
    tensor([3, 3], dtype=tgraph.uint64)
    """
    wanted = accumulated_as(require_tensor(x, "sum", "x"), dtype)
    axes = axes_of(x, axis)
    return r.sum(x, axes, keepdims, dtype=wanted) if axes else cast(x, wanted)


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: Any = False
) -> Tensor:
    """Products; integers as 64 bits, unsigned ones as uint64."""
    wanted = accumulated_as(require_tensor(x, "prod", "x"), dtype)
    found = cast(x, wanted)
    axes = axes_of(x, axis)
    for each in axes:
        found = r.prod(found, each, True, dtype=wanted)
    return found if keepdims else _without(found, axes)


def _without(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return movement.squeeze(x, axes) if axes else x


def max(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """The largest elements; NaN, where there is one."""
    axes = axes_of(x, axis)
    return r.amax(x, axes, keepdims) if axes else x.clone()


def min(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """The smallest elements; NaN, where there is one."""
    axes = axes_of(x, axis)
    return r.amin(x, axes, keepdims) if axes else x.clone()


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """Means of floats or complex numbers."""
    axes = axes_of(x, axis)
    return r.mean(x, axes, keepdims) if axes else x.clone()


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: Any = False
) -> Tensor:
    """Variances: squared distances from the mean, over their number less `correction`.

    >>> from tgraph import array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0])), xp.var(xp.asarray([1.0, 3.0]), correction=1)
    (tensor(1.), tensor(2.))
    """
    axes = axes_of(x, axis)
    if not axes:  # of which tgraph takes all
        return r.var(movement.unsqueeze(x, 0), 0, correction=correction)
    return r.var(x, axes, keepdim=keepdims, correction=correction)


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: Any = False
) -> Tensor:
    """Standard deviations: square roots of `var`."""
    axes = axes_of(x, axis)
    if not axes:
        return r.std(movement.unsqueeze(x, 0), 0, correction=correction)
    return r.std(x, axes, keepdim=keepdims, correction=correction)


def _running(
    scan: Any, start: int, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool
) -> Tensor:
    along = only_axis(x, axis, scan.__name__)
    wanted = accumulated_as(x, dtype)
    found = cast(scan(x, along, dtype=wanted), wanted)
    if not include_initial:
        return found
    shape = list(found._type.shape)
    shape[along] = 1
    first = creation.full(shape, start, dtype=wanted, device=found._type.device)
    return concatenation.cat([first, found], along)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: Any = False,
) -> Tensor:
    """Running sums along an axis, which tensors of one dimension need not tell; 0 first, if asked.

    >>> from tgraph import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _running(scans.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: Any = False,
) -> Tensor:
    """Running products along an axis; 1 first, if asked."""
    return _running(scans.cumprod, 1, x, axis, dtype, include_initial)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """Whether all elements are true (not zero)."""
    axes = axes_of(x, axis)
    return cast(r.all(x, axes, keepdims) if axes else x, bool_)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """Whether any element is true (not zero)."""
    axes = axes_of(x, axis)
    return cast(r.any(x, axes, keepdims) if axes else x, bool_)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: Any = False) -> Tensor:
    """How many elements are not zero."""
    return sum(cast(require_tensor(x, "count_nonzero", "x"), bool_), axis=axis, keepdims=keepdims)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, `n` times, of `x` between two other tensors."""
    along = axis_of(x, axis)
    parts = [each for each in (prepend, x, append) if each is not None]
    whole = concatenation.cat(together("diff", *parts), along) if len(parts) > 1 else x
    return differences.diff(whole, n, along) if n else whole


__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip
