"""Histograms with their edges, of numbers and of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core import return_types
from ..core.classes import like
from ..core.eager_context import current_context
from ..core.keywords import with_keywords
from ..core.operands import require_tensor
from ..core.out_argument import with_out
from ..core.tensor import Tensor
from . import creation
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .gather_scatter import index_add
from .sorting import searchsorted


def _with_out(function: Callable[..., Any]) -> Callable[..., Any]:
    return with_out(function, exact=True)


@_with_out
def histogram(
    input: Tensor,
    bins: Tensor | int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogram:
    """How many elements lie in each bin, and the edges of the bins; the last one has both ends.

    `bins` is their number, from the least element to the largest or over a `range`, or their
    edges. Elements count as much as `weight` tells; with `density` the integral is 1.

    >>> import tgraph as tg
    >>> tg.histogram(tg.tensor([1.0, 2.0, 1.0]), bins=3, range=(0.0, 3.0)).hist
    tensor([0., 2., 1.])
    """
    points = m.reshape(require_tensor(input, "histogram"), -1, 1)
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram(): `range` is for a number of bins, not for their edges")
    hist, edges = _histogram("histogram", points, [bins], range, weight, density)
    return return_types.histogram(hist, edges[0])


@with_keywords
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogramdd:
    """How many points, the last dimension, lie in each box, and the edges along each axis.

    `bins` are numbers or edges, one for each axis or the same number for all; `range` has the
    ends of all axes.
    """
    if require_tensor(input, "histogramdd").ndim < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions, but got "
            f"{input.ndim}"
        )
    count = input.shape[-1]
    by_axis = [bins] * count if isinstance(bins, int) else _bins_by_axis(bins)
    if len(by_axis) != count:
        raise RuntimeError(
            f"histogramdd: expected {count} sequences of bin edges for a {count}-dimensional "
            f"histogram but got {len(by_axis)}"
        )
    points = m.reshape(input, -1, count)
    return return_types.histogramdd(
        *_histogram("histogramdd", points, by_axis, range, weight, density)
    )


def _bins_by_axis(bins: Any) -> list[Any]:
    """Numbers of bins or their edges; TypeError for anything else."""
    if not isinstance(bins, (list, tuple)):
        raise TypeError(
            "histogramdd(): argument 'bins' must be an int, or a list of ints or of tensors, not "
            f"{type(bins).__name__}"
        )
    for at, each in enumerate(bins):
        if not isinstance(each, (int, Tensor)):
            raise TypeError(
                "histogramdd(): argument 'bins' must have ints or tensors, not "
                f"{type(each).__name__} at index {at}"
            )
    return list(bins)


def _histogram(
    name: str,
    points: Tensor,
    bins: Sequence[Any],
    ends: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    if not points.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{points.dtype}'")
    if weight is not None and weight.numel() != points.shape[0]:
        raise RuntimeError(
            f"{name}(): if weight tensor is provided it should have as many elements as there are "
            f"points, {points.shape[0]}, got {weight.numel()}"
        )
    if ends is not None and len(ends) != 2 * len(bins):
        raise RuntimeError(
            f"{name}(): for a {len(bins)}-dimensional histogram range should have "
            f"{2 * len(bins)} elements, but got {len(ends)}"
        )
    columns = m.unbind(points.detach(), 1)
    edges = tuple(
        like(
            points, _edges(name, column, each, None if ends is None else ends[2 * at : 2 * at + 2])
        )
        for at, (column, each) in enumerate(zip(columns, bins))
    )
    place, inside = creation.zeros_like(columns[0]).long(), None
    for column, line in zip(columns, edges):
        number = line.shape[0] - 1
        found = e.sub(searchsorted(line, column.contiguous(), right=True), 1)
        found = e.where(e.eq(column, line[-1]), number - 1, found)
        fits = e.logical_and(e.ge(found, 0), e.lt(found, number))
        inside = fits if inside is None else e.logical_and(inside, fits)
        place = e.add(e.mul(place, number), found)
    assert inside is not None
    shape = [line.shape[0] - 1 for line in edges]
    ones = creation.ones_like(columns[0])
    counted = ones if weight is None else m.reshape(weight, -1).to(points.dtype)
    counts = creation.zeros(math.prod(shape), dtype=points.dtype, device=points.device)
    counts = index_add(counts, 0, e.where(inside, place, 0), e.where(inside, counted, 0.0))
    hist = m.reshape(counts, shape)
    if density:
        hist = e.div(hist, r.sum(hist))
        for axis, line in enumerate(edges):
            widths = e.sub(line[1:], line[:-1])
            hist = e.div(hist, m.reshape(widths, [-1] + [1] * (len(edges) - axis - 1)))
    return hist, edges


def _edges(name: str, column: Tensor, bins: Any, ends: Sequence[float] | None) -> Tensor:
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or not bins.numel():
            raise RuntimeError(f"{name}(): bins tensor should have one dimension and elements")
        if bins.dtype is not column.dtype:
            raise RuntimeError(
                f"{name}(): input tensor and bins tensors should have the same dtype, but got "
                f"input with {column.dtype} and bins with {bins.dtype}"
            )
        return m.clone(bins)
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")
    if ends is None and column.numel():
        return _from_least_to_largest(name, column, bins)
    if ends is None:
        low, high = 0.0, 1.0
    else:
        low, high = float(ends[0]), float(ends[1])
        if low > high or not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(
                f"{name}(): min should not exceed max, and both be finite, but got min {low} max "
                f"{high}"
            )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return creation.linspace(low, high, bins + 1, dtype=column.dtype, device=column.device)


def _from_least_to_largest(name: str, column: Tensor, bins: int) -> Tensor:
    low, high = r.amin(column), r.amax(column)
    ends = e.sub(high, low)
    if current_context().has_value(ends) and not math.isfinite(float(ends)):
        raise RuntimeError(
            f"{name}(): dimension's range [{float(low)}, {float(high)}] is not finite"
        )
    wider = e.where(e.eq(low, high), 0.5, 0.0)
    return creation.linspace(
        e.sub(low, wider), e.add(high, wider), bins + 1, dtype=column.dtype, device=column.device
    )
