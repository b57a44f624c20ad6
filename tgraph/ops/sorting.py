"""Functions that need an order: sort, argsort, topk, unique, searchsorted, median.

Those that put elements in order run on the host, in compiled code too, where they are a step
between kernels. Values are then gathered by position, so gradients follow them.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.dispatch import apply, make_source
from ..core.eager_context import current_context
from ..core.operands import cast, refuse_complex, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, float64, int32, int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .zero_dim import with_one_element

Array = np.ndarray[Any, Any]


class Sorted(NamedTuple):
    """What `sort`, `topk` and `kthvalue` return."""

    values: Tensor
    indices: Tensor


def _ordered(keys: Array) -> Array:
    """Keys that NumPy puts in order with NaN last: not those of bfloat16 themselves."""
    return keys.astype(np.float32) if keys.dtype.kind == "V" else keys


def _first_in_order(input: Tensor, axis: int, count: int, descending: bool) -> Tensor:
    """Where the first `count` elements along an axis are."""
    rows = m.movedim(input.detach(), axis, -1)
    return m.movedim(apply(p.argsort, rows, count=count, descending=bool(descending)), -1, axis)


@public(method=True)
@planned
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that put `input` in order along `dim`; equal elements keep their order."""
    if not input._type.shape:
        return make_source(p.full, input._type.device, shape=(), value=0, dtype=int64)
    axis = normalize_axis(dim, input.ndim)
    size = input._type.shape[axis]
    return _first_in_order(input, axis, size, descending)


@public(method=True)
@planned
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Sorted:
    """The elements in order along `dim`, and where they came from."""
    at = argsort(input, dim, descending)
    if not input._type.shape:
        return Sorted(m.clone(input), at)
    axis = normalize_axis(dim, input.ndim)
    return Sorted(apply(p.gather, input, at, axis=axis), at)


@public(method=True)
@with_one_element
@planned
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """The `k` largest (or smallest) elements along `dim`, in order, and their positions."""
    axis = normalize_axis(dim, input.ndim)
    if not 0 <= k <= input._type.shape[axis]:
        raise RuntimeError("selected index k out of range")
    at = _first_in_order(input, axis, k, largest)
    return Sorted(apply(p.gather, input, at, axis=axis), at)


@public(method=True)
@with_one_element
@planned
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """The `k`-th smallest element along `dim` (from 1), and its position."""
    refuse_complex("kthvalue", input)
    axis = normalize_axis(dim, input.ndim)
    if not 1 <= k <= input._type.shape[axis]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(dim))
    rows = m.movedim(input.detach(), axis, -1)
    at = m.movedim(apply(p.select_nth, rows, rank=operator.index(k - 1)), -1, axis)
    values = apply(p.gather, input, at, axis=axis)
    if keepdim:
        return Sorted(values, at)
    return Sorted(m.squeeze(values, axis), m.squeeze(at, axis))


@public(method=True)
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the middle elements: of all, or `(values, indices)` along `dim`.

    NaN where there is one among them; of no elements at all NaN, or the least integer.
    """
    refuse_complex("median", input)
    dtype = input._type.dtype
    if dim is None:
        if input._type.numel == 0:
            if dtype.is_floating_point:
                return e.mul(r.sum(input), math.nan)  # of which there is a gradient
            none = np.iinfo(dtype.numpy).min
            return make_source(p.full, input._type.device, shape=(), value=none, dtype=dtype)
        return median(m.reshape(input, -1), 0).values
    if not input._type.shape:
        zero = make_source(p.full, input._type.device, shape=(), value=0, dtype=int64)
        return Sorted(m.clone(input), zero)
    axis = normalize_axis(dim, input.ndim)
    middle = kthvalue(input, (input._type.shape[axis] + 1) // 2, axis, keepdim)
    if not dtype.is_floating_point:
        return middle
    unknown = e.isnan(input)
    at = e.where(r.any(unknown, axis, keepdim), r.argmax(unknown, axis, keepdim), middle.indices)
    kept = at if keepdim else m.unsqueeze(at, axis)
    values = apply(p.gather, input, kept, axis=axis)
    return Sorted(values if keepdim else m.squeeze(values, axis), at)


@public()
def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Tensor:
    """Where `values` belong in an ascending vector: before equal elements, or after (`right`).

    `side`, "left" or "right", says the same. Positions are int64, or int32 (`out_int32`).
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise RuntimeError(f"searchsorted(): side='{side}' does not go with right={right}")
    right = right or side == "right"
    if sorted_sequence.ndim != 1:
        raise NotImplementedError("searchsorted(): the sorted sequence must be a vector")
    found = _searched(sorted_sequence, values, right)
    return found if out_int32 else cast(found, int64)


@planned
def _searched(sorted_sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """How many elements precede each value: the count grows by halves of what is left.

    NaN belongs behind everything.
    """
    common = _common_type(sorted_sequence, values)
    sequence, values = cast(sorted_sequence, common), cast(values, common)
    size = sequence._type.shape[0]
    found = m.expand(make_source(p.full, values._type.device, shape=(), value=0, dtype=int32),
                     values._type.shape)  # fmt: skip
    step = 1 << size.bit_length() >> 1
    while step:
        last = e.add(found, step - 1)
        seen = apply(p.index, sequence, e.minimum(last, size - 1), axis=0)
        precedes = e.le(seen, values) if right else e.lt(seen, values)
        found = e.where(e.logical_and(precedes, e.lt(last, size)), e.add(last, 1), found)
        step >>= 1
    return e.where(e.isnan(values), size, found) if common.is_floating_point else found


def _common_type(a: Tensor, b: Tensor) -> DType:
    """A type that keeps the order of both: of whole numbers beside others, float64."""
    one, other = a._type.dtype, b._type.dtype
    if one is other:
        return one
    if one.is_floating_point is not other.is_floating_point:
        return float64
    return result_type(a, b)


@public(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights."""
    refuse_complex("bincount", input)
    highest = current_context().host_array(input, "bincount()").max(initial=-1)
    size = max(int(highest) + 1, minlength)
    counted = e.eq(input, input) if weights is None else weights
    amounts = cast(counted, int64) if weights is None else weights
    kind = amounts._type
    zeros = make_source(p.full, kind.device, shape=(size,), value=0, dtype=kind.dtype)
    return apply(p.scatter_add, zeros, cast(input, int64), amounts, axis=0)


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, with positions and counts on request.

    Of the slices along `dim`, where one is given, in lexicographic order; positions then are those
    of slices. NaN comes last, each one by itself, as none equals another.

    >>> import tgraph as tg
    >>> tg.unique(tg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    >>> tg.unique(tg.tensor([[2, 1], [0, 5], [2, 1]]), dim=0)
    tensor([[0, 5],
            [2, 1]])
    """
    refuse_complex("unique", input)
    array, wanted = current_context().host_array(input, "unique()"), (return_inverse, return_counts)
    if dim is not None:
        axis, rows = _slices("unique", array, dim)
        order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
        return _placed(input, *_distinct(array, axis, order, rows), wanted)
    values, inverse, counts = np.unique(
        _ordered(array), return_inverse=True, return_counts=True, equal_nan=False
    )
    values = values.astype(array.dtype, copy=False)
    return _placed(input, values, inverse.reshape(array.shape), counts, wanted)


@public(method=True)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements without those that equal the one before, with positions and counts on request.

    Of the slices along `dim`, where one is given; else of all elements in their order.

    >>> import tgraph as tg
    >>> tg.unique_consecutive(tg.tensor([2, 2, 1, 2]), return_counts=True)
    (tensor([2, 1, 2]), tensor([2, 1, 1]))
    """
    refuse_complex("unique_consecutive", input)
    array = current_context().host_array(input, "unique_consecutive()")
    wanted = return_inverse, return_counts
    if dim is not None:
        axis, rows = _slices("unique_consecutive", array, dim)
        return _placed(input, *_distinct(array, axis, np.arange(len(rows)), rows), wanted)
    flat = array.reshape(-1)
    positions = np.arange(flat.size)
    values, inverse, counts = _distinct(flat, 0, positions, _ordered(flat)[:, None])
    return _placed(input, values, inverse.reshape(array.shape), counts, wanted)


def _slices(name: str, array: Array, dim: int) -> tuple[int, Array]:
    """The axis, and the slices along it as rows."""
    axis = normalize_axis(dim, array.ndim)
    others = array.size // array.shape[axis] if array.shape[axis] else None
    empty = [size for at, size in enumerate(array.shape) if at != axis and size == 0]
    if empty:
        raise RuntimeError(
            f"{name}: there are 0 sized dimensions other than dim={dim} in {array.shape}, so that "
            "slices along it have no elements"
        )
    moved = np.moveaxis(_ordered(array), axis, 0)
    return axis, moved.reshape(array.shape[axis], others or 1)


def _distinct(array: Array, axis: int, order: Array, rows: Array) -> tuple[Array, Array, Array]:
    """What differs from its predecessor among slices of `array`, which are `rows`, in this order.

    With the number of the run that each slice is in, and how many are in each.
    """
    lined = rows[order]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (lined[1:] != lined[:-1]).any(1)
    starts = np.flatnonzero(is_new)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    counts = np.diff(np.append(starts, len(rows)))
    return np.take(array, order[starts], axis), inverse, counts


def _placed(
    input: Tensor, values: Array, inverse: Array, counts: Array, wanted: tuple[bool, bool]
) -> Any:
    """The values, and which of the others are wanted, where the input lies."""
    made = [values]
    made += [each.astype(np.int64) for each, is_wanted in zip((inverse, counts), wanted)
             if is_wanted]  # fmt: skip
    place = current_context().array_constant
    tensors = tuple(place(each, input._type.device) for each in made)
    return tensors if len(tensors) > 1 else tensors[0]
