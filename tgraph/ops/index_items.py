"""What an index of `x[...]` asks for: a part that is a view, and index tensors at its axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from ..compiler.ir.dim import SymInt
from ..compiler.ir.shapes import slice_indices
from ..core.carried_number import CarriedNumber
from ..core.dispatch import settled
from ..core.eager_context import current_context
from ..core.operands import cast, on_device
from ..core.tensor import Tensor
from ..runtime.device import CPU, META, Device
from ..runtime.dtypes import bool_, int32, int64, uint8
from ..runtime.records import NamedTuple
from . import elementwise as e
from .from_data import holds_tensors, tensor


class IndexPlan(NamedTuple):
    """An index taken apart: a slice and a reshape, then index tensors at axes of the result.

    `rows` are those of one element whose value is not there yet, as in traced code: they take their
    axis away, as integers do. `picks` are the others.
    """

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]
    picks: list[tuple[int, Tensor]]
    rows: list[tuple[int, Tensor]]


def _is_pick(item: Any) -> bool:
    return isinstance(item, (Tensor, list, tuple, np.ndarray, range))


def _is_truth(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_))


def is_row(index: Tensor) -> bool:
    """Whether an index tensor stands for one integer."""
    dtype = index._type.dtype
    return not index._type.shape and dtype.is_integral and dtype not in (bool_, uint8)


def _as_index(item: Any) -> Any:
    """What a list, array or tensor stands for: an index tensor, or an integer or a truth."""
    if isinstance(item, Tensor):
        index = item
    elif holds_tensors(item):
        index = _as_index(tensor(item))
    else:
        array = np.asarray(item)
        if array.size == 0 and not isinstance(item, np.ndarray):
            array = array.astype(np.int64)
        if array.dtype.kind not in "biu":
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, got {item!r}"
            )
        if array.dtype.kind != "b" and array.dtype != np.uint8:
            array = array.astype(np.int64, copy=False)
        if not array.ndim:
            return int(array) if array.dtype == np.int64 else bool(array)
        index = current_context().array_constant(np.ascontiguousarray(array))
    if is_row(index):
        context = current_context()
        if index._type.device is META or not context.has_value(index):
            return index if index._type.dtype is int32 else cast(index, int64)
        return int(context.host_array(settled(index), "an index"))
    return _positions_or_mask(index)


def _positions_or_mask(index: Tensor) -> Tensor:
    if index._type.dtype not in (int64, int32, bool_, uint8):
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors, got a tensor of "
            f"{index._type.dtype}"
        )
    return e.ne(index, 0) if index._type.dtype is uint8 else index


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """The items of an index. Lists of more than numbers are taken for tuples, as PyTorch does."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(map(_is_no_number, index)):
        warnings.warn(
            "x[[...]] with a list of slices, tensors or lists is read as x[...] with a tuple, as "
            "PyTorch reads it. Write x[tuple(seq)] for that, or x[np.array(seq)] for one index "
            "tensor.",
            UserWarning,
            stacklevel=5,
        )
        return tuple(index)
    return (index,)


def _is_no_number(item: Any) -> bool:
    return item is None or _is_pick(item) or isinstance(item, (slice, EllipsisType))


def _items(index: Any, ndim: int) -> list[Any]:
    """The index as one item for each axis, masks counting for theirs; Ellipsis written out."""
    index = (item.tensor if type(item) is CarriedNumber else item for item in _as_tuple(index))
    items = [_as_index(item) if _is_pick(item) else item for item in index]
    used = sum(_axes_used(item) for item in items)
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    dots = [at for at, item in enumerate(items) if isinstance(item, EllipsisType)]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    fill = [slice(None)] * (ndim - used)
    at = dots[0] if dots else len(items)
    return items[:at] + fill + items[at + 1 :]


def _axes_used(item: Any) -> int:
    if item is None or _is_truth(item) or isinstance(item, EllipsisType):
        return 0
    if isinstance(item, Tensor):
        return len(item._type.shape) if item._type.dtype is bool_ else 1
    return 1


def slice_bounds(item: slice, size: int) -> tuple[int, int, int]:
    try:
        start, stop, step = slice_indices(item, size)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None
    except ValueError:
        step = 0
    if step <= 0:
        raise ValueError("step must be greater than zero")
    return start, stop if stop >= start else start, step


def _integer(item: Any, axis: int, size: int) -> int:
    try:
        at = item if type(item) is SymInt else item.__index__()
    except (AttributeError, TypeError):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {type(item).__name__})"
        ) from None
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of bounds for dimension {axis} with size {size}")
    return at + size if at < 0 else at  # type: ignore[no-any-return]


def plan_of_tensors(x: Tensor, indices: Sequence[Any]) -> IndexPlan:
    """The plan of index tensors alone, one for each axis from the first on."""
    shape, axis = x._type.shape, 0
    picks: list[tuple[int, Tensor]] = []
    for each in indices:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"index_put(): indices must be a tuple of tensors, got {type(each).__name__} as "
                f"element {len(picks)}"
            )
        index = _positions_or_mask(each)
        picks.append((axis, on_device(index, x._type.device)))
        axis += _axes_used(index)
    if not picks:
        raise RuntimeError("index_put(): expected at least one index tensor, got an empty tuple")
    if axis > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {axis})")
    return IndexPlan((0,) * len(shape), shape, (1,) * len(shape), shape, picks, [])


def take_apart(x: Tensor, index: Any) -> IndexPlan:
    shape = x._type.shape
    starts, stops, steps = [0] * len(shape), list(shape), [1] * len(shape)
    result: list[int] = []
    picks: list[tuple[int, Tensor]] = []
    rows: list[tuple[int, Tensor]] = []
    axis = 0
    for item in _items(index, len(shape)):
        if item is None:
            result.append(1)
        elif _is_truth(item):
            picks.append((len(result), constant_index([0] if item else [], x._type.device)))
            result.append(1)
        elif isinstance(item, Tensor):
            found = rows if is_row(item) else picks
            found.append((len(result), on_device(item, x._type.device)))
            used = _axes_used(item)
            result.extend(shape[axis : axis + used])
            axis += used
        elif isinstance(item, slice):
            starts[axis], stops[axis], steps[axis] = slice_bounds(item, shape[axis])
            result.append(-(-(stops[axis] - starts[axis]) // steps[axis]))
            axis += 1
        else:
            starts[axis] = _integer(item, axis, shape[axis])
            stops[axis] = starts[axis] + 1
            axis += 1
    return IndexPlan(tuple(starts), tuple(stops), tuple(steps), tuple(result), picks, rows)


def constant_index(positions: Sequence[int], device: Device = CPU) -> Tensor:
    """An int64 tensor of given positions."""
    return current_context().array_constant(np.array(positions, np.int64), device)
