"""Methods that change the shape of a tensor object itself: `unsqueeze_`, `t_`, `resize_`...

They leave memory alone, so what other tensors show of it stays as it is. Where such tensors are
views of the one that changes, a tensor of the old shape takes its place as what they are views of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..core.dispatch import settled
from ..core.eager_context import current_context
from ..core.grad_mode import recorded
from ..core.inplace import check_leaf, is_recorded
from ..core.memory_format import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from ..core.provenance import user_site
from ..core.public import public
from ..core.tensor import Tensor, View, refuse_inference, storage_of
from . import movement as m
from .creation import zeros
from .storage import untyped_storage
from .storage_sizes import resizable, resize_storage
from .storage_views import adopt, as_strided, tensor_over, twin_below, views_of


@public(function=False, method=True)
def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """`squeeze` of this tensor object itself, which is returned.

    >>> import tgraph as tg
    >>> x = tg.zeros(2, 1)
    >>> x.squeeze_().shape, x.shape
    (tgraph.Size([2]), tgraph.Size([2]))
    """
    return _become(self, lambda x: m.squeeze(x, dim), "squeeze_")


@public(function=False, method=True)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze` of this tensor object itself, which is returned. Views of it keep their shape.

    >>> import tgraph as tg
    >>> x = tg.zeros(2)
    >>> x.unsqueeze_(1)
    tensor([[0.],
            [0.]])
    """
    return _become(self, lambda x: m.unsqueeze(x, dim), "unsqueeze_")


@public(function=False, method=True, aliases=("swapaxes_", "swapdims_"))
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` of this tensor object itself, which is returned.

    >>> import tgraph as tg
    >>> tg.zeros(2, 3).transpose_(0, 1).shape
    tgraph.Size([3, 2])
    """
    return _become(self, lambda x: m.transpose(x, dim0, dim1), "transpose_")


@public(function=False, method=True)
def t_(self: Tensor) -> Tensor:
    """`t` of this tensor object itself, which is returned.

    >>> import tgraph as tg
    >>> tg.zeros(2, 3).t_().shape
    tgraph.Size([3, 2])
    """
    return _become(self, m.t, "t_")


@public(function=False, method=True)
def as_strided_(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`as_strided` of this tensor object itself, which is returned.

    >>> import tgraph as tg
    >>> tg.arange(6).as_strided_((2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]])
    """
    return _become(self, lambda x: as_strided(x, size, stride, storage_offset), "as_strided_", True)


@public(function=False, method=True)
def resize_(self: Tensor, *sizes: Any, memory_format: MemoryFormat = contiguous_format) -> Tensor:
    """Give this tensor object other sizes, over its own memory; returns it.

    What was there stays in the order of memory, and what is new is 0 here. Memory that is too small
    becomes larger, with all tensors that show it: see `UntypedStorage.resize_`.

    >>> import tgraph as tg
    >>> x = tg.tensor([1, 2, 3])
    >>> x.resize_(2, 1)
    tensor([[1],
            [2]])
    >>> x.resize_(3)
    tensor([1, 2, 3])
    """
    shape = m.as_sizes(sizes)
    if any(size < 0 for size in shape):
        raise RuntimeError(f"resize_(): expected sizes of at least 0, got {list(shape)}")
    if self._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if settled(self)._type.shape == shape and memory_format is contiguous_format:
        return self
    strides = _strides(shape, memory_format)
    if current_context().tracing or current_context().lifts:
        raise RuntimeError(
            "resize_() in a traced function: a trace has no memory to resize. Use reshape(), "
            "slices or new_zeros(), or call it outside"
        )
    refuse_inference(self)
    dtype, is_alone = self._type.dtype, self._view is None and self._storage is None
    storage = untyped_storage(self)
    start = self.storage_offset()
    end = (start + math.prod(shape)) * dtype.itemsize
    if 0 not in shape and end > storage.nbytes():
        if not resizable(storage):
            raise RuntimeError("Trying to resize storage that is not resizable")
        if is_alone:  # nobody else has to be looked for
            made = zeros(math.prod(shape), dtype=dtype, device=self._type.device)
            old = tensor_over(storage, dtype, 0, (storage.nbytes() // dtype.itemsize,), (1,))
            made[: old._type.numel] = old
            storage, self._storage = untyped_storage(made), None
            storage_of(made).version = 0
        else:
            resize_storage(storage, end)
    adopt(self, tensor_over(storage, dtype, start, shape, strides))
    _count(self)
    return self


def _strides(shape: tuple[int, ...], memory_format: MemoryFormat) -> tuple[int, ...]:
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory format: preserve_format")
    return memory_format.strides(shape)


@public(function=False, method=True)
def resize_as_(
    self: Tensor, other: Tensor, *, memory_format: MemoryFormat = contiguous_format
) -> Tensor:
    """`resize_` to the sizes of `other`; with `preserve_format` in its order of memory, too.

    >>> import tgraph as tg
    >>> tg.arange(4).resize_as_(tg.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if memory_format is preserve_format:
        fits = (channels_last, channels_last_3d)
        found = [each for each in fits if each.fits(other.ndim) and _has_order(other, each)]
        memory_format = (*found, contiguous_format)[0]
    return resize_(self, other._type.shape, memory_format=memory_format)


def _has_order(x: Tensor, order: MemoryFormat) -> bool:
    return m.is_contiguous(x, memory_format=order) and not m.is_contiguous(x)


def _become(
    tensor: Tensor, show: Callable[[Tensor], Tensor], operation: str, shows_less: bool = False
) -> Tensor:
    """Let a tensor object be what `show` gives for it, a view; `shows_less` if not all of it."""
    _refuse_outside(tensor, operation)
    refuse_inference(tensor)
    own = settled(tensor)._view
    if is_recorded(tensor, tensor):
        check_leaf(tensor)
    may_have_views = tensor._storage is not None and (own is None or not own.differentiable)
    has_history = tensor._record is not None  # which is that of the new shape, whatever the mode
    with recorded() if has_history else nullcontext():
        shown = show(tensor)
    if shown is not tensor:
        _take_shape(tensor, shown, may_have_views, shows_less)
    _count(tensor)
    return tensor


def _take_shape(tensor: Tensor, shown: Tensor, may_have_views: bool, shows_less: bool) -> None:
    view, own = shown._view, tensor._view
    views = [each for each in views_of(tensor) if each is not view] if may_have_views else []
    if shows_less and tensor._requires_grad and views:
        raise RuntimeError(
            "as_strided_(): a tensor that requires grad, and has views, keeps its shape, since "
            "gradients of places that they share would be in doubt. Use x = x.as_strided(...)"
        )
    if views and tensor._requires_grad and tensor._record is None:
        raise RuntimeError("a leaf that requires grad, and has views, keeps its shape")
    if view is None or view.base is not tensor:
        if views:
            twin_below(tensor, views)
    elif views or shows_less:
        twin_below(tensor, [*views, view])
    else:
        view = None if own is None else _extended(own, view.steps)
    tensor._value, tensor._type, tensor._view = shown._value, shown._type, view
    tensor._record, tensor._index = shown._record, shown._index
    tensor._requires_grad = tensor._requires_grad or shown._requires_grad


def _extended(view: View, steps: Any) -> View:
    made = View(view.base, (*view.steps, *steps), view.differentiable, view.without_grad)
    made.apart = view.apart
    return made


def _count(tensor: Tensor) -> None:
    """Backward passes refuse what they saved of another shape, by its version."""
    shared = storage_of(tensor)
    shared.version += 1
    shared.written = user_site()


def _refuse_outside(tensor: Tensor, operation: str) -> None:
    if not current_context().may_reshape(tensor):
        raise RuntimeError(
            f"{operation}() in a traced or transformed function: a tensor from outside of it (or "
            "of its branch or loop) keeps its shape. Use what gives a new tensor: "
            f"x = x.{operation[:-1]}(...)"
        )
