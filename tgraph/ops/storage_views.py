"""Tensors at places in a storage: made from nothing else, as views of another, or pointed there."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Sequence
from typing import Any

from ..compiler.ir.shapes import contiguous_strides
from ..core.classes import like
from ..core.context import use_context
from ..core.dispatch import detached, settled
from ..core.eager_context import EAGER, current_context
from ..core.grad_mode import no_grad
from ..core.overlap import Span, span_of
from ..core.public import public
from ..core.state import state
from ..core.tensor import (
    Tensor,
    View,
    intern_type,
    refuse_inference,
    root_of,
    storage_of,
    wrap,
)
from ..core.views import detach
from ..runtime.arrays import module_of
from ..runtime.device import Device
from ..runtime.dtypes import DType
from ..runtime.meta import MetaArray
from . import movement as m
from .bits import bits_as
from .movement import as_sizes, in_order_of_memory, seen_from_base, slice_axis, strided
from .storage import UntypedStorage, untyped_storage

_MOST = 1 << 62


def tensor_over(
    storage: UntypedStorage,
    dtype: DType,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """The elements at a place in `storage`, which they share; offset and strides are in elements.

    RuntimeError where some would lie outside of it.
    """
    span = Span(offset, tuple(size), tuple(stride))
    _check_bounds(storage.nbytes(), dtype, span)
    with use_context(EAGER), no_grad():
        if storage.root is None or untyped_storage(storage.root) != storage:
            storage.root, shows_all = first_over(storage, dtype, span)
            storage_of(storage.root).memory = weakref.ref(storage)
            if shows_all:
                return storage.root
        found = None
        if storage.root._type.dtype is dtype:
            found = view_of(storage.root, span)
        return _beside(storage, dtype, span) if found is None else _with_strides(found, span)


def _with_strides(shown: Tensor, span: Span) -> Tensor:
    """A new view with all strides of `span`: it has lost those of axes of one element."""
    value = shown._value
    steps = tuple(step * value.itemsize for step in span.strides)
    if value.strides != steps and value.size and type(value) is not MetaArray:
        as_strided = module_of(value).lib.stride_tricks.as_strided
        shown._value = as_strided(value, value.shape, steps)
    return shown


@public(function=False, method=True)
def view(input: Tensor, *shape: Any, dtype: DType | None = None) -> Tensor:
    """`reshape` that never copies: RuntimeError where the memory does not allow a view.

    `view(dtype)` reads the same memory as elements of another type, whose sizes may differ by the
    last dimension.

    >>> import tgraph as tg
    >>> tg.tensor([1.0, -2.0]).view(tg.int32)
    tensor([ 1065353216, -1073741824], dtype=tgraph.int32)
    """
    if len(shape) == 1 and isinstance(shape[0], DType):
        dtype, shape = shape[0], ()
    if dtype is None:
        return m.view(input, *shape)
    if shape:
        raise TypeError("view() takes sizes or a dtype, not both")
    if dtype is input._type.dtype:
        return m.view(input, input._type.shape)
    return _view_of_dtype(input, dtype)


def _view_of_dtype(input: Tensor, dtype: DType) -> Tensor:
    """The memory of `input` as elements of `dtype`: other sizes of elements change the last size.

    Nothing of it has a gradient, as in PyTorch.
    """
    shape, old, _ = input._type
    context = current_context()
    has_memory = not (context.tracing or context.lifts or input._type.device.type == "meta")
    span = span_of(settled(input))
    if old.itemsize == dtype.itemsize:
        if not has_memory:
            return bits_as(detach(input), dtype)
        return like(input, tensor_over(untyped_storage(input), dtype, *span))
    said = f"to view {old} as {dtype} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 {said}")
    if span.strides[-1] != 1 and input._type.numel and shape[-1] > 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {said}, but got {span.strides[-1]}")
    start, sizes, strides = span.start, list(span.shape), list(span.strides)
    if old.itemsize > dtype.itemsize:
        ratio = old.itemsize // dtype.itemsize
        start, sizes[-1] = start * ratio, sizes[-1] * ratio
        strides = [step * ratio for step in strides[:-1]]
    else:
        ratio = dtype.itemsize // old.itemsize
        outer = enumerate(strides[:-1] if input._type.numel else ())
        for number, what in (
            (sizes[-1], "self.size(-1)"),
            (start, "self.storage_offset()"),
            *((step, f"self.stride({at})") for at, step in outer),
        ):
            if number % ratio:
                raise RuntimeError(f"{what} must be divisible by {ratio} {said}, but got {number}")
        start, sizes[-1] = start // ratio, sizes[-1] // ratio
        strides = [step // ratio for step in strides[:-1]]
    if not has_memory:
        return bits_as(detach(input), dtype)
    shown = tensor_over(untyped_storage(input), dtype, start, sizes, [*strides, 1])
    return like(input, shown)


def _check_bounds(nbytes: int, dtype: DType, span: Span) -> None:
    numel = math.prod(span.shape)
    steps = list(zip(span.shape, span.strides))
    last = span.start + sum((size - 1) * step for size, step in steps if size)
    needed = (last + 1) * dtype.itemsize if numel else 0
    fits = needed <= nbytes and numel * dtype.itemsize < _MOST
    if not fits or max((abs(step) for _, step in steps), default=0) * dtype.itemsize >= _MOST:
        raise RuntimeError(
            f"sizes {list(span.shape)}, strides {list(span.strides)}, storage offset {span.start} "
            f"and itemsize {dtype.itemsize} requiring a storage size of {needed} are out of bounds "
            f"for storage of size {nbytes}"
        )
    if span.start < 0 or any(size < 0 for size in span.shape):
        raise RuntimeError(
            f"expected sizes and a storage offset of at least 0, got sizes {list(span.shape)} and "
            f"offset {span.start}"
        )
    if any(step < 0 for step in span.strides):
        raise RuntimeError(f"negative strides are not supported, got {list(span.strides)}")


def first_over(storage: UntypedStorage, dtype: DType, span: Span) -> tuple[Tensor, bool]:
    """What all later tensors are views of: the tensor at `span`, where that shows all."""
    itemsize = dtype.itemsize
    whole = storage.bytes[: storage.nbytes() // itemsize * itemsize].view(dtype.numpy)
    is_all = span.start == 0 and span.is_dense and math.prod(span.shape) == whole.size
    if not is_all and whole.size:
        span = Span(0, whole.shape, (1,))
    return _shown(whole, dtype, storage.device, span), is_all or not whole.size


def _shown(line: Any, dtype: DType, device: Device, span: Span) -> Tensor:
    steps = tuple(step * line.itemsize for step in span.strides)
    as_strided = module_of(line).lib.stride_tricks.as_strided
    array = as_strided(line[span.start if line.size else 0 :], span.shape, steps)
    return wrap(array, intern_type(span.shape, dtype, device))


def view_of(root: Tensor, span: Span) -> Tensor | None:
    """A tensor that shares memory with `root`, but no history; None where `root` has gaps."""
    plain: Tensor | None = detached(root)
    if 0 in span.shape:
        plain = slice_axis(plain.reshape(-1), 0, 0, 0).reshape(span.shape)
    else:
        plain = seen_from_base(plain, span)
    if plain is None:
        return None
    result = detached(plain)
    result._storage = storage_of(root)
    return result


def _beside(storage: UntypedStorage, dtype: DType, span: Span) -> Tensor:
    """A tensor that reads the bytes of a storage as another type than its first one does."""
    assert storage.root is not None
    count = storage.nbytes() // dtype.itemsize
    line = storage.bytes[: count * dtype.itemsize].view(dtype.numpy)
    made = _shown(line, dtype, storage.device, span)
    made._storage = storage_of(storage.root)
    return made


# --- public ------------------------------------------------------------------------------------


@public(method=True)
def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """The elements of the storage of `input` at these sizes, strides and offset, as a view.

    Strides and offset are in elements. Elements may be shown several times, or left out.
    RuntimeError where some would lie outside of the storage.

    >>> import tgraph as tg
    >>> x = tg.arange(6)
    >>> x.as_strided((3, 2), (1, 2))
    tensor([[0, 2],
            [1, 3],
            [2, 4]])
    """
    shape, strides = as_sizes((size,)), as_sizes((stride,))
    if len(shape) != len(strides):
        raise RuntimeError(
            f"as_strided: mismatch in length of strides and shape: sizes {list(shape)}, "
            f"strides {list(strides)}"
        )
    own = span_of(settled(input))
    if 0 in shape:
        return slice_axis(input.reshape(-1), 0, 0, 0).reshape(shape)
    context = current_context()
    has_no_memory = context.tracing or context.lifts
    storage = None if has_no_memory else untyped_storage(input)
    start = own.start if storage_offset is None else storage_offset
    if storage is not None:
        span = Span(start, shape, strides)
        _check_bounds(storage.nbytes(), input._type.dtype, span)
    else:
        root = root_of(input)
        if storage_offset is not None:
            start -= context.origin_of(root).offset
        span = Span(start, shape, strides)
        _check_shown(root, span)
    found = seen_from_base(input, span)
    if found is None:
        found = _seen_from_itself(input, own, span)
    if found is not None:
        return found if storage is None else _with_strides(found, span)
    if storage is None or input._requires_grad:
        raise RuntimeError(
            "as_strided: the memory of this tensor has gaps, or its history is not that of the "
            "tensor that it is a view of. Please clone() the tensor first."
        )
    return like(input, tensor_over(storage, input._type.dtype, *span))


def _check_shown(root: Tensor, span: Span) -> None:
    """RuntimeError for places that a tensor without memory, as an argument of a traced function,
    does not show."""
    dtype, extent = root._type.dtype, span_of(root).end
    last = span.start + sum((size - 1) * step for size, step in zip(span.shape, span.strides))
    if span.start >= 0 and last < extent:
        _check_bounds(extent * dtype.itemsize, dtype, span)
        return
    origin = current_context().origin_of(root)
    _check_bounds(origin.nbytes, dtype, Span(span.start + origin.offset, *span[1:]))
    raise RuntimeError(
        "as_strided: reads memory of the tensor that an argument of this compiled function is a "
        "view of, outside of what the argument shows. Pass that tensor instead of the view."
    )


def _seen_from_itself(input: Tensor, own: Span, span: Span) -> Tensor | None:
    """The elements at `span` as a view of `input`; None where it does not show all of them."""
    flat = in_order_of_memory(input)
    last = span.start + sum((size - 1) * step for size, step in zip(span.shape, span.strides))
    if flat is None or span.start < own.start or last >= own.end:
        return None
    return strided(slice_axis(flat, 0, span.start - own.start, flat._type.shape[0]), span)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let this tensor show the memory of `source`, a storage or another tensor; returns it.

    Of a storage all elements in one dimension, unless `size` is given; nothing without a source.

    >>> import tgraph as tg
    >>> x, y = tg.zeros(0), tg.arange(6.0)
    >>> x.set_(y.untyped_storage(), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if current_context().tracing:
        raise RuntimeError(
            "set_() in a traced function: a trace has no memory to point to. Call it outside, or "
            "write values with copy_()"
        )
    if self._record is not None or (self._view is not None and self._requires_grad):
        raise RuntimeError("set_() of a tensor with a history; detach() it first")
    if self._requires_grad and state.grad_enabled:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    refuse_inference(self)
    dtype = self._type.dtype
    if source is None:
        source = UntypedStorage(device=self._type.device)
    if isinstance(source, Tensor):
        _check_dtype(source._type.dtype, dtype)
        storage = untyped_storage(source)
        if size is None:
            storage_offset, size = source.storage_offset(), source._type.shape
            stride = source.stride()
    else:
        if not hasattr(source, "untyped"):
            kind = type(source).__name__
            raise TypeError(f"set_(): expected a Tensor or a storage as source, got {kind}")
        if hasattr(source, "dtype"):
            _check_dtype(source.dtype, dtype)
        storage = source.untyped()
    shape = (storage.nbytes() // dtype.itemsize - storage_offset,) if size is None else tuple(size)
    strides = contiguous_strides(shape) if stride is None else tuple(stride)
    adopt(self, tensor_over(storage, dtype, storage_offset, shape, strides))
    return self


def _check_dtype(given: DType, wanted: DType) -> None:
    if given is not wanted:
        raise RuntimeError(
            f"set_(): expected a source of {wanted}, got {given}; an UntypedStorage is read as "
            "whatever the tensor is"
        )


def adopt(tensor: Tensor, shown: Tensor) -> None:
    """Let a handle be what `shown` is: its memory, shape and dtype; the handle's class stays."""
    views = views_of(tensor) if tensor._storage is not None else []
    if views:  # `shown` may be among them
        twin_below(tensor, views)
    tensor._value, tensor._type = shown._value, shown._type
    tensor._view, tensor._storage = shown._view, storage_of(shown)
    held = storage_of(shown).memory
    storage = None if held is None else held()
    if storage is not None and storage.root is shown:
        storage.root = tensor  # whoever comes later is a view of what the user has


def views_of(tensor: Tensor) -> list[View]:
    """How other tensors look at this one."""
    found = gc.get_referrers(tensor)
    return [each for each in found if type(each) is View and each.base is tensor]


def twin_below(tensor: Tensor, views: Sequence[View]) -> Tensor:
    """What a tensor is now, as a tensor that `views` of it are views of instead."""
    twin = wrap(tensor._value, tensor._type)
    twin._record, twin._index = tensor._record, tensor._index
    twin._requires_grad, twin._view = tensor._requires_grad, tensor._view
    twin._storage = shared = storage_of(tensor)
    for each in views:
        each.base = twin
    held = None if shared.memory is None else shared.memory()
    if held is not None and held.root is tensor:
        held.root = twin
    return twin
