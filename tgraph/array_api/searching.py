"""The standard's functions that search, sort, and make sets."""

from __future__ import annotations

from typing import Any

from ..core.operands import cast, require_tensor
from ..core.tensor import Tensor
from ..ops import creation, distinct, gather_scatter, movement, scatter_reductions, sorting
from ..ops import elementwise as e
from ..ops import reductions as r
from ..ops.complex_numbers import view_as_real
from ..runtime.dtypes import int64
from ..runtime.records import NamedTuple
from .arguments import axis_of, pair


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def _position(find: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is not None:
        return find(x, axis_of(x, axis), keepdims)
    found = find(movement.reshape(x, -1), 0)
    return movement.reshape(found, (1,) * x.ndim) if keepdims else found


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first largest element, of all or along an axis."""
    return _position(r.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element, of all or along an axis."""
    return _position(r.argmin, x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, a tensor for each axis."""
    if not require_tensor(x, "nonzero", "x")._type.shape:
        raise ValueError("nonzero(): a tensor without dimensions has no indices")
    return gather_scatter.nonzero(x, as_tuple=True)


def searchsorted(
    x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where values of `x2` belong into `x1`, which is in order, or is so by `sorter`.

    >>> from tgraph import array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]), side="right")
    tensor([2, 2])
    """
    x1, x2 = pair("searchsorted", x1, x2)
    order = None if sorter is None else cast(sorter, int64)
    return sorting.searchsorted(x1, x2, side=side, sorter=order)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition holds, and of `x2` elsewhere."""
    return e.where(condition, *pair("where", x1, x2))


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The places of elements in order along an axis; equal ones stay in theirs."""
    return sorting.argsort(x, axis_of(x, axis), descending, stable=True)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Elements in order along an axis."""
    return sorting.sort(x, axis_of(x, axis), descending, stable=True).values


def _distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct values, and for each element its value; complex numbers are pairs in order."""
    if not x._type.dtype.is_complex:
        found: tuple[Tensor, Tensor, Tensor] = distinct.unique(
            x, return_inverse=True, return_counts=True
        )
        return found
    flat = movement.reshape(x, -1)
    _, inverse, counts = distinct.unique(
        view_as_real(flat), return_inverse=True, return_counts=True, dim=0
    )
    return flat[_first(inverse, counts)], movement.reshape(inverse, x.shape), counts


def _first(inverse: Tensor, counts: Tensor) -> Tensor:
    """For each distinct value the place where it comes first."""
    flat = movement.reshape(inverse, -1)
    places = creation.arange(flat.numel(), device=flat._type.device)
    last = creation.full(counts.shape, flat.numel(), dtype=int64, device=flat._type.device)
    return scatter_reductions.scatter_reduce(last, 0, flat, places, "amin")


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """Distinct values, where each comes first, which one each element is, and how often it comes.

    Each NaN is a value of its own.

    >>> from tgraph import array_api as xp
    >>> xp.unique_all(xp.asarray([7, 5, 7])).indices
    tensor([1, 0])
    """
    values, inverse, counts = _distinct(require_tensor(x, "unique_all", "x"))
    return UniqueAllResult(values, _first(inverse, counts), inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """Distinct values, and how often each comes."""
    values, _, counts = _distinct(require_tensor(x, "unique_counts", "x"))
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """Distinct values, and which one each element is."""
    values, inverse, _ = _distinct(require_tensor(x, "unique_inverse", "x"))
    return UniqueInverseResult(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct values."""
    return _distinct(require_tensor(x, "unique_values", "x"))[0]


__all__ = [
    "argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "where",
]  # fmt: skip
