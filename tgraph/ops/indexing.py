"""Reading and writing at positions: `x[...]`, gather, scatter, masks.

Indexing follows PyTorch: integers and slices make views and come first; integer tensors and masks
then pick elements and make copies. Steps of slices are positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same, broadcastable_to, is_one
from ..core.classes import like
from ..core.composite import composite
from ..core.dispatch import apply, attach, link_view, settled
from ..core.eager_context import constant, current_context, stored
from ..core.inplace import assign, prepare_direct_write, replace, write_directly
from ..core.operands import cast, is_scalar, on_device, plain_scalar
from ..core.overlap import refuse_overlap
from ..core.public import public
from ..core.state import state
from ..core.tensor import Tensor, ViewStep, intern_type, wrap
from ..core.vjp_rules import input_vjp
from ..runtime.array_functions_indexing import write_at
from ..runtime.arrays import array_module, current
from ..runtime.dtypes import bool_, int32, int64
from . import elementwise as e
from . import movement as m
from .index_items import IndexPlan, is_row, plan_of_tensors, slice_bounds, take_apart
from .rules_movement import slice_vjp

_ndarray = np.ndarray
Ints = tuple[int, ...]


def _basic(x: Tensor, plan: IndexPlan) -> Tensor:
    """The view that integers, slices, None and Ellipsis select."""
    shape = x._type.shape
    if (
        not are_same(plan.starts, (0,) * len(shape))
        or not are_same(plan.stops, shape)
        or any(step != 1 for step in plan.steps)
    ):
        x = apply(p.slice_, x, starts=plan.starts, stops=plan.stops, steps=plan.steps)
    if not are_same(x._type.shape, plan.shape):
        return apply(p.reshape, x, shape=plan.shape)
    return x


@composite("select")
def _select(x: Tensor, starts: Ints, stops: Ints, steps: Ints, shape: Ints) -> Tensor:
    """A slice without some of its axes of one element."""
    return apply(
        p.reshape, apply(p.slice_, x, starts=starts, stops=stops, steps=steps), shape=shape
    )


@input_vjp(_select)
def _select_vjp(
    g: Tensor, out: TensorType, x: TensorType, starts: Ints, stops: Ints, steps: Ints, shape: Ints
) -> Any:
    spans = tuple(-(-(stop - start) // step) for start, stop, step in zip(starts, stops, steps))
    g = apply(p.reshape, g, shape=spans)
    return slice_vjp(g, g._type, x, starts, stops, steps)


def _shown(x: Tensor, index: Any) -> Tensor | None:
    """`x[index]` for whole numbers and slices, in one go where nothing is traced."""
    array, (shape, dtype, device) = settled(x)._value, x._type
    items = index if type(index) is tuple else (index,)
    if type(array) is not _ndarray or state.context is not None or len(items) > len(shape):
        return None
    starts: tuple[int, ...] = ()
    stops, steps, left = starts, starts, starts
    for item, size in zip(items, shape):
        if type(item) is int and -size <= item < size:
            start, step = item % size, 1
            stop = start + 1
        elif type(item) is slice:
            start, stop, step = slice_bounds(item, size)
            left += (-(-(stop - start) // step),)
        elif item is ... and len(items) > 1:
            at = len(starts)
            before, behind = items[:at], items[at + 1 :]
            if any(each is ... for each in behind):
                return None
            return _shown(x, before + (slice(None),) * (len(shape) - len(items) + 1) + behind)
        else:
            return None
        starts += (start,)
        stops += (stop,)
        steps += (step,)
    rest = shape[len(items) :]
    if rest:
        starts, stops, steps = starts + (0,) * len(rest), stops + rest, steps + (1,) * len(rest)
    span = {"starts": starts, "stops": stops, "steps": steps}
    made: tuple[ViewStep, ...] = (ViewStep(p.slice_, span),)
    shown = left + rest
    if len(left) < len(items):
        if 1 in shown and (left or not array.flags.c_contiguous):
            return None  # a reshape may give other strides to axes of one element
        made += (ViewStep(p.reshape, {"shape": shown}),)
    result = like(x, wrap(array[(*items, ...)], intern_type(shown, dtype, device)))
    link_view(x, made, result)
    if x._requires_grad and state.grad_enabled:
        if len(made) == 1:
            attach(p.slice_, (x,), span, (result,))
        else:
            attach(_select, (x,), {**span, "shape": shown}, (result,))
    return result


def getitem(input: Tensor, index: Any) -> Tensor:
    """`input[index]`."""
    shown = _shown(input, index)
    if shown is not None:
        return shown
    if isinstance(index, Tensor) and not is_row(index):
        return _picked(input, plan_of_tensors(input, (index,)).picks)
    plan = take_apart(input, index)
    part = _basic(input, plan)
    if plan.rows or plan.picks:
        part, picks = _row(part, plan)
        return _picked(part, picks) if picks else part
    if part is input:
        return apply(p.reshape, input, shape=input._type.shape)  # a view of its own
    return part


# --- index tensors -----------------------------------------------------------------------------


def _positions(x: Tensor, picks: Sequence[tuple[int, Tensor]]) -> list[tuple[int, Tensor]]:
    """The picks with masks turned into positions, negative ones wrapped, broadcast together."""
    flat: list[tuple[int, Tensor]] = []
    for axis, index in picks:
        if index._type.dtype is bool_:
            _check_mask(x, axis, index)
            flat.extend((axis + at, each) for at, each in enumerate(nonzero_tuple(index)))
        else:
            flat.append((axis, wrap_negative(index, axis, x._type.shape[axis])))
    dtype = int32 if all(each._type.dtype is int32 for _, each in flat) else int64
    return [(axis, cast(each, dtype)) for axis, each in zip(
        (axis for axis, _ in flat), _broadcast_positions([each for _, each in flat]))]  # fmt: skip


def _broadcast_positions(indices: list[Tensor]) -> tuple[Tensor, ...]:
    if all(each._type is indices[0]._type for each in indices):
        return tuple(indices)
    try:
        return m.broadcast_tensors(*indices)
    except RuntimeError:
        shapes = ", ".join(str(list(each._type.shape)) for each in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def _check_mask(x: Tensor, axis: int, mask: Tensor) -> None:
    for at, size in enumerate(mask._type.shape):
        if size != x._type.shape[axis + at]:
            raise IndexError(
                f"The shape of the mask {list(mask._type.shape)} at index {at} does not match the "
                f"shape of the indexed tensor {list(x._type.shape)} at index {axis + at}"
            )


def wrap_negative(index: Tensor, axis: int, size: int) -> Tensor:
    """Positions counted from the front; those outside stay as they are, for the error's sake."""
    if not state.context and index._type.device.is_host:  # look before computing
        array = index._value
        if array.size == 0 or (lowest := np.minimum.reduce(array, axis=None)) >= 0:
            return index
        if lowest < -size:
            raise IndexError(
                f"index {lowest} is out of bounds for dimension {axis} with size {size}"
            )
        return apply(p.where, e.lt(index, 0), e.add(index, size), index)
    from_the_end = e.logical_and(e.lt(index, 0), e.ge(index, -size))
    return apply(p.where, from_the_end, e.add(index, size), index)


def _are_neighbours(axes: list[int]) -> bool:
    return axes == list(range(axes[0], axes[0] + len(axes)))


def _place_of(axes: list[int]) -> int:
    """Where the result has the axes of index tensors, which stand at `axes`."""
    return axes[0] if axes and _are_neighbours(axes) else 0


def _in_front(x: Tensor, axes: list[int]) -> tuple[Tensor, tuple[int, ...] | None, int]:
    """Bring the indexed axes side by side: already neighbours, or moved to the front."""
    if _are_neighbours(axes):
        return x, None, axes[0]
    order = (*axes, *(axis for axis in range(x.ndim) if axis not in axes))
    return apply(p.permute, x, axes=order), order, 0


def _with_axes_of_truths(
    x: Tensor, picks: Sequence[tuple[int, Tensor]]
) -> tuple[Tensor, list[tuple[int, Tensor]]]:
    """Masks without axes choose along axes of their own, of one element or none."""
    found: list[tuple[int, Tensor]] = []
    added = 0
    for axis, index in picks:
        is_truth = index._type.dtype is bool_ and not index.ndim
        if is_truth:
            x, index = m.unsqueeze(x, axis + added), m.reshape(index, 1)
        found.append((axis + added, index))
        added += is_truth
    return x, found


def _row(x: Tensor, plan: IndexPlan) -> tuple[Tensor, list[tuple[int, Tensor]]]:
    """What the rows of a plan leave of its part `x`, a view; and the picks at the axes of that."""
    context = current_context()
    is_view = context.tracing and not context.lifts
    for axis, index in reversed(plan.rows):
        at = wrap_negative(index, axis, x._type.shape[axis])
        row = apply(p.index, x, at, axis=axis)
        if is_view:
            link_view(x, (ViewStep(p.index, {"axis": axis}, (at,)),), row)
        x = row
    return x, [(at - sum(axis < at for axis, _ in plan.rows), index) for at, index in plan.picks]


def _picked(x: Tensor, picks: Sequence[tuple[int, Tensor]]) -> Tensor:
    if len(picks) == 1 and picks[0][1]._type.dtype is not bool_:
        axis, index = picks[0]
        return apply(p.index, x, wrap_negative(index, axis, x._type.shape[axis]), axis=axis)
    x, picks = _with_axes_of_truths(x, picks)
    found = _positions(x, picks)
    moved, _, axis = _in_front(x, [at for at, _ in found])
    return apply(p.index, moved, *(each for _, each in found), axis=axis)


# --- assignment --------------------------------------------------------------------------------


def setitem(input: Tensor, index: Any, value: Any) -> None:
    """`input[index] = value`, in place; the value broadcasts.

    Numbers, and tensors written to slices or as one element to a mask, are cast to the tensor's
    dtype; other tensors must have it.
    """
    shown = _shown(input, index)
    if shown is not None:
        _write_shown(shown, as_value(value, input))
        return
    plan = take_apart(input, index)
    part = _basic(input, plan)
    new = as_value(value, input)
    if not plan.picks and not plan.rows:
        _write_shown(part, new)
        return
    if plan.rows:
        _write_row(part, plan, new, value)
        return
    _write_picks(part, plan.picks, new, value, is_one_truth=index is True or index is False)


def _write_shown(part: Tensor, new: Tensor) -> None:
    """Write over what an index without tensors shows."""
    if are_same(new._type.shape, part._type.shape):  # others are expanded first
        refuse_overlap(part, (new,))
    new = on_device(_without_leading_ones(new, part._type.shape), part._type.device)
    replace(part, new, "__setitem__")


def _write_row(part: Tensor, plan: IndexPlan, new: Tensor, value: Any) -> None:
    """Write where rows and picks say: with a mask, to a copy of the row and that to its place."""
    if any(index._type.dtype is bool_ for _, index in plan.picks):
        row, picks = _row(part, plan)
        _write_picks(row, picks, new, value)
        _put(part, plan.rows, row)
        return
    together = sorted(plan.rows + plan.picks, key=itemgetter(0))
    new = _with_picks_in_front(part, plan, together, new)
    _put(part, together, new, value if plan.picks else None)


def _with_picks_in_front(
    part: Tensor, plan: IndexPlan, together: list[tuple[int, Tensor]], new: Tensor
) -> Tensor:
    """The value with the axes of picks where they are once rows are picks, too."""
    ndim = max((index.ndim for _, index in plan.picks), default=0)
    of_rows = [axis for axis, _ in plan.rows]
    left = [axis for axis in range(part.ndim) if axis not in of_rows]
    before = _place_of([left.index(axis) for axis, _ in plan.picks])
    after = _place_of([axis for axis, _ in together])
    wanted, sizes = part.ndim - len(together) + ndim, new._type.shape
    while len(sizes) > wanted and sizes[0] == 1:
        sizes = sizes[1:]
    if before == after or len(sizes) > wanted:
        return new
    new = m.reshape(new, ((1,) * (wanted - len(sizes)) + sizes))
    order = [axis for axis in range(wanted) if not before <= axis < before + ndim]
    order[after:after] = range(before, before + ndim)
    return apply(p.permute, new, axes=tuple(order))


def _write_picks(
    part: Tensor,
    picks: list[tuple[int, Tensor]],
    new: Tensor,
    value: Any,
    is_one_truth: bool = False,
) -> None:
    source = None if is_one_truth or _is_one_for_a_mask(picks, new) else value
    part, picks = _with_axes_of_truths(part, picks)
    masked = _masked(part, picks, new)
    if masked is not None:
        _check_dtype(part, source)
        if not is_one(new._type.numel):
            refuse_overlap(part, (new,), whole=True)
        _assign_whole(part, masked, picks, new)
        return
    _put(part, picks, new, source)


def _is_one_for_a_mask(picks: Sequence[tuple[int, Tensor]], new: Tensor) -> bool:
    """Whether one number is written where a mask holds: it is cast, as numbers are."""
    first = picks[0][1]._type
    return (
        len(picks) == 1 and first.dtype is bool_ and bool(first.shape) and is_one(new._type.numel)
    )


def _check_dtype(target: Tensor, value: Any) -> None:
    if isinstance(value, Tensor) and value._type.dtype is not target._type.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{target._type.dtype} for the destination and {value._type.dtype} for the source. "
            "Convert the source with .to() first."
        )


def as_value(value: Any, target: Tensor) -> Tensor:
    """What is assigned to `target`, with its dtype: from a tensor, number or array."""
    _, dtype, device = target._type
    if isinstance(value, Tensor):
        return cast(value if value._type.shape else on_device(value, device), dtype)
    if is_scalar(value):
        return constant(stored(plain_scalar(value), dtype), dtype, device)
    array = np.asarray(value)
    if array.dtype.kind not in "biufV":
        raise TypeError(f"can't assign a {type(value).__name__} to a tensor of {dtype}")
    return cast(current_context().array_constant(np.array(array), device), dtype)


def _without_leading_ones(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    sizes = value._type.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    if not broadcastable_to(sizes, shape):
        return m.expand(value, shape)  # says which size does not fit
    return value if sizes == value._type.shape else apply(p.reshape, value, shape=sizes)


def _masked(part: Tensor, picks: Sequence[tuple[int, Tensor]], new: Tensor) -> Tensor | None:
    """The mask over the whole of `part`, if the value does not depend on how many it selects."""
    if len(picks) != 1 or picks[0][1]._type.dtype is not bool_:
        return None
    axis, mask = picks[0]
    _check_mask(part, axis, mask)
    trailing = part.ndim - axis - mask.ndim
    if axis and new.ndim > trailing:
        return None
    if new.ndim > trailing and not is_one(new._type.numel):
        return None
    return m.reshape(mask, (*mask._type.shape, *(1,) * trailing))


def _assign_whole(
    part: Tensor, mask: Tensor, picks: Sequence[tuple[int, Tensor]], new: Tensor
) -> None:
    if new.ndim and is_one(new._type.numel):
        new = m.reshape(new, ())
    is_here = part._type.device is new._type.device and part._type.device.is_host
    if is_here and write_directly(part, new):
        axis, chosen = picks[0]
        if new.ndim:
            count = int(chosen._value.sum())
            shape = (*part.shape[:axis], count, *part.shape[axis + chosen.ndim :])
            _check_value(new, shape)
        prepare_direct_write(part)
        part._value[(slice(None),) * axis + (chosen._value,)] = new._value
        return
    if not broadcastable_to(new._type.shape, part._type.shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(new._type.shape)} cannot be broadcast to "
            f"indexing result of {list(part._type.shape)}"
        )
    assign(part, apply(p.where, mask, new, part), "__setitem__")


def _put(
    part: Tensor,
    picks: Sequence[tuple[int, Tensor]],
    new: Tensor,
    source: Any = None,
    accumulate: bool = False,
) -> None:
    """Write `new`, which was made of `source`: of one dtype with `part`, if a tensor."""
    refuse_overlap(part, (new,), whole=True)
    found = _positions(part, picks)
    _check_dtype(part, source)
    moved, _, axis = _in_front(part, [at for at, _ in found])
    indices = [each for _, each in found]
    count = axis + len(indices)
    if moved is not part:
        count = len(indices)
    shape = (*moved.shape[:axis], *indices[0]._type.shape, *moved.shape[count:])
    values = _value_like(new, shape)
    together = moved._type.device is values._type.device
    if together and not accumulate and write_directly(moved, values):
        prepare_direct_write(moved)
        if not moved._type.device.is_host:
            _write_on_device(moved, indices, values, axis)
            return
        for at, each in enumerate(indices):
            _check_bounds(each, axis + at, moved._type.shape[axis + at])
        at_positions = tuple(each._value for each in indices)
        moved._value[(slice(None),) * axis + at_positions] = values._value
        return
    put = apply(p.index_put, moved, *indices, values, axis=axis, accumulate=accumulate)
    assign(moved, put, "index_put_")


def _write_on_device(target: Tensor, indices: Sequence[Tensor], values: Tensor, axis: int) -> None:
    device = target._type.device
    with current(device):
        positions = [each._value for each in indices]
        write_at(array_module(device), target._value, positions, values._value, axis)


def _check_bounds(index: Tensor, axis: int, size: int) -> None:
    array = index._value
    if array.size and array.max() >= size:
        raise IndexError(
            f"index {array.max()} is out of bounds for dimension {axis} with size {size}"
        )


def _check_value(new: Tensor, shape: tuple[int, ...], sizes: tuple[int, ...] | None = None) -> None:
    if not broadcastable_to(new._type.shape if sizes is None else sizes, shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(new._type.shape)} cannot be broadcast to "
            f"indexing result of shape {list(shape)}"
        )


def _value_like(new: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A value broadcast to the shape of what an index selects."""
    sizes = new._type.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    _check_value(new, shape, sizes)
    new = new if sizes == new._type.shape else apply(p.reshape, new, shape=sizes)
    return new if are_same(new._type.shape, shape) else apply(p.broadcast, new, shape=shape)


@public(method=True)
def index_put(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`input` with `values` written, or added, at the index tensors `indices`."""
    result = m.clone(input)
    index_put_(result, indices, values, accumulate)
    return result


@public(function=False, method=True)
def index_put_(
    input: Tensor, indices: Sequence[Tensor], values: Any, accumulate: bool = False
) -> Tensor:
    """`index_put` in place."""
    plan = plan_of_tensors(input, indices)
    new = as_value(values, input)
    is_cast = _is_one_for_a_mask(plan.picks, new) and not accumulate
    part, picks = _with_axes_of_truths(_basic(input, plan), plan.picks)
    _put(part, picks, new, None if is_cast else values, accumulate)
    return input


def nonzero_tuple(input: Tensor) -> tuple[Tensor, ...]:
    """The positions of nonzero elements, one int64 vector for each dimension."""
    return current_context().positions(input, "nonzero(): a mask of unknown count")
