"""Functions that need an order: sort, argsort, topk, kthvalue, medians, searchsorted.

What puts elements in order, or selects one by its rank, are steps of plans between kernels (native
ones, and CuPy's). Values are then gathered by position, so gradients follow them.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core import return_types
from ..core.classes import like
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.eager_context import constant, current_context
from ..core.operands import Scalar, cast, plain_scalar, refuse_complex, result_type
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import DType, float32, float64, int32, int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .channels_last import in_order_of
from .scans import cumsum
from .zero_dim import with_one_element

Array = np.ndarray[Any, Any]


def _first_in_order(input: Tensor, axis: int, count: int, descending: bool) -> Tensor:
    """Where the first `count` elements along an axis are."""
    rows = m.movedim(input.detach(), axis, -1)
    return m.movedim(apply(p.argsort, rows, count=count, descending=bool(descending)), -1, axis)


@public(method=True, out="exact")
@planned
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that put `input` in order along `dim`; equal elements keep their order."""
    axis = normalize_axis(dim, input.ndim)
    if not input._type.shape:
        return make_source(p.full, input._type.device, shape=(), value=0, dtype=int64)
    size = input._type.shape[axis]
    return in_order_of(_first_in_order(input, axis, size, descending), input)


@public(method=True, out="exact")
@planned
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> return_types.sort:
    """The elements in order along `dim`, and where they came from."""
    at = argsort(input, dim, descending)
    if not input._type.shape:
        return return_types.sort(m.clone(input), at)
    axis = normalize_axis(dim, input.ndim)
    values = apply(p.gather, input, at, axis=axis)
    return return_types.sort(in_order_of(values, input), at)


@public(method=True, out="exact")
@with_one_element
@planned
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> return_types.topk:
    """The `k` largest (or smallest) elements along `dim`, in order, and their positions."""
    axis = normalize_axis(dim, input.ndim)
    if not 0 <= k <= input._type.shape[axis]:
        raise RuntimeError("selected index k out of range")
    at = _first_in_order(input, axis, k, largest)
    return return_types.topk(apply(p.gather, input, at, axis=axis), at)


@public(method=True, out="exact")
@with_one_element
@planned
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> return_types.kthvalue:
    """The `k`-th smallest element along `dim` (from 1), and its position."""
    refuse_complex("kthvalue", input)
    axis = normalize_axis(dim, input.ndim)
    if not 1 <= k <= input._type.shape[axis]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(dim))
    rows = m.movedim(input.detach(), axis, -1)
    at = m.movedim(apply(p.select_nth, rows, rank=operator.index(k - 1)), -1, axis)
    values = apply(p.gather, input, at, axis=axis)
    if keepdim:
        return return_types.kthvalue(values, at)
    return return_types.kthvalue(m.squeeze(values, axis), m.squeeze(at, axis))


@public(method=True, out="exact")
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
        return _middle(input, median(m.reshape(input.detach(), -1), 0).values)
    axis = normalize_axis(dim, input.ndim)
    if not input._type.shape:
        zero = make_source(p.full, input._type.device, shape=(), value=0, dtype=int64)
        return return_types.median(m.clone(input), like(input, zero))
    middle = kthvalue(input, (input._type.shape[axis] + 1) // 2, axis, keepdim)
    if not dtype.is_floating_point:
        return return_types.median(*middle)
    unknown = e.isnan(input)
    at = e.where(r.any(unknown, axis, keepdim), r.argmax(unknown, axis, keepdim), middle.indices)
    at = at if keepdim else m.unsqueeze(at, axis)
    return return_types.median(*_gathered(input, at, axis, keepdim))


@composite("median")
def _middle(input: Tensor, value: Tensor) -> Tensor:
    """`value`, which is the median of all elements: those that have it share the gradient."""
    return m.clone(value)


@input_vjp(_middle, saves=(0, 1))
@planned
def _middle_vjp(g: Tensor, out: TensorType, input: Tensor, value: Tensor) -> Tensor:
    is_middle = e.logical_or(e.eq(input, value), e.logical_and(e.isnan(input), e.isnan(value)))
    shares = cast(is_middle, g._type.dtype)
    return e.mul(e.div(g, r.sum(shares)), shares)


def _gathered(input: Tensor, at: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The elements at positions that keep the axis."""
    values = apply(p.gather, input, at, axis=axis)
    return (values, at) if keepdim else (m.squeeze(values, axis), m.squeeze(at, axis))


@public(method=True, out="exact")
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of what is not NaN: of all, or `(values, indices)` along `dim`.

    NaN where there is nothing else.

    >>> import tgraph as tg
    >>> tg.nanmedian(tg.tensor([3.0, float("nan"), 1.0, 2.0]))
    tensor(2.)
    """
    refuse_complex("nanmedian", input)
    if not input._type.dtype.is_floating_point or not input._type.shape or not input._type.numel:
        found = median(input, dim, keepdim)
        return found if dim is None else return_types.nanmedian(*found)
    if dim is None:
        return _middle(input, nanmedian(m.reshape(input.detach(), -1), 0).values)
    axis = normalize_axis(dim, input.ndim)
    at = _middle_of_numbers(input.detach(), axis)
    return return_types.nanmedian(*_gathered(input, at, axis, keepdim))


@planned
def _middle_of_numbers(x: Tensor, axis: int) -> Tensor:
    """Where the lower of the middle elements that are not NaN is.

    One rank selects it in every row: so many NaN count as the least number, the others as the
    largest. Where the least number itself is in the middle, it is found by its value.
    """
    size = x._type.shape[axis]
    unknown = e.isnan(x)
    seen = cumsum(cast(unknown, int64), axis)
    numbers = e.sub(size, r.amax(seen, axis, True))
    before = e.sub((size - 1) // 2, e.floor_divide(e.sub(numbers, 1), 2))
    spread = e.where(e.logical_and(unknown, e.le(seen, before)), -math.inf, x)
    at = kthvalue(spread, (size + 1) // 2, axis, keepdim=True).indices
    is_least = e.logical_and(apply(p.gather, unknown, at, axis=axis), e.gt(numbers, 0))
    return e.where(is_least, r.argmax(e.eq(x, -math.inf), axis, True), at)


@public(out="exact")
def searchsorted(
    sorted_sequence: Tensor,
    values: Tensor | Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where `values` belong in an ascending vector: before equal elements, or after (`right`).

    `side`, "left" or "right", says the same. Positions are int64, or int32 (`out_int32`). Of
    several sequences, along the last dimension, each is searched for the values in its place; they
    need not be in order where `sorter` has the positions that put them there.

    >>> import tgraph as tg
    >>> tg.searchsorted(tg.tensor([[1, 3], [2, 4]]), tg.tensor([[3], [3]]), right=True)
    tensor([[2],
            [1]])
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise RuntimeError(f"searchsorted(): side='{side}' does not go with right={right}")
    right = right or side == "right"
    refuse_complex("searchsorted", sorted_sequence, values)
    if not isinstance(values, Tensor):
        if isinstance(values, complex):
            raise NotImplementedError("searchsorted is not implemented for complex numbers")
        values = constant(
            plain_scalar(values), sorted_sequence._type.dtype, sorted_sequence._type.device
        )
    if sorter is not None:
        if sorter._type.shape != sorted_sequence._type.shape:
            raise RuntimeError(
                "searchsorted(): boundary and sorter must have the same size, but got boundary "
                f"{list(sorted_sequence._type.shape)} and sorter {list(sorter._type.shape)}"
            )
        sorted_sequence = apply(p.gather, sorted_sequence, sorter, axis=sorter.ndim - 1)
    outer = sorted_sequence._type.shape[:-1]
    if not sorted_sequence.ndim or (outer and values._type.shape[:-1] != outer):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
            "of boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sorted_sequence._type.shape)} and input value tensor "
            f"{list(values._type.shape)}"
        )
    found = _searched(sorted_sequence, values, right)
    return found if out_int32 else cast(found, int64)


@planned
def _searched(sorted_sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """How many elements precede each value: the count grows by halves of what is left.

    NaN belongs behind everything.
    """
    common = _common_type(sorted_sequence, values)
    sequence, values = cast(sorted_sequence, common), cast(values, common)
    size, axis = sequence._type.shape[-1], sequence.ndim - 1
    found = m.expand(make_source(p.full, values._type.device, shape=(), value=0, dtype=int32),
                     values._type.shape)  # fmt: skip
    step = 1 << size.bit_length() >> 1
    while step:
        last = e.add(found, step - 1)
        at = e.minimum(last, size - 1)
        seen = apply(p.gather if axis else p.index, sequence, at, axis=axis)
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
    if input._type.dtype.is_differentiable:
        raise NotImplementedError(
            f"bincount(): expected integers, got {input._type.dtype.name}; convert with .long()"
        )
    if input.ndim != 1:
        raise RuntimeError(f"bincount(): expected a vector, got {list(input._type.shape)}")
    if weights is not None and weights._type.shape != input._type.shape:
        raise RuntimeError(
            f"bincount(): input and weights must have the same length, got {len(input)} and "
            f"weights of shape {list(weights._type.shape)}"
        )
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength should be >= 0, got {minlength}")
    highest = current_context().host_array(input, "bincount()").max(initial=-1)
    size = max(int(highest) + 1, minlength)
    counted = e.eq(input, input) if weights is None else weights
    amounts = cast(counted, int64) if weights is None else weights
    if weights is not None and weights._type.dtype is not float32:
        amounts = cast(weights, float64)
    kind = amounts._type
    zeros = make_source(p.full, kind.device, shape=(size,), value=0, dtype=kind.dtype)
    return apply(p.scatter_add, zeros, cast(input, int64), amounts, axis=0)
