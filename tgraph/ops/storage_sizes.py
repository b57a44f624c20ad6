"""Storages that become larger or smaller, with all tensors that show them.

The tensors are moved to the new memory. One that does not fit any more, as after `resize_(0)`,
keeps its shape and shows a single zero that cannot be written, until its storage is large enough
again.
"""

from __future__ import annotations

import weakref

import numpy as np

from ..core.context import use_context
from ..core.eager_context import EAGER
from ..core.grad_mode import no_grad
from ..core.overlap import Span
from ..core.tensor import Tensor, View, storage_of
from ..runtime.arrays import copy_elements, module_of, place
from .memory_places import Place, is_given, shown_within
from .storage import UntypedStorage
from .storage_views import first_over, view_of
from .typed import TypedStorage


def resizable(self: UntypedStorage) -> bool:
    """Whether `resize_` may move this memory: not what NumPy or other processes have, too."""
    array = None if self.root is None else self.root._value
    is_shared = self.device.type == "cpu" and self.is_shared()
    return not is_shared and not is_given(array)


def resize_storage(self: UntypedStorage, nbytes: int) -> UntypedStorage:
    """Make this memory larger or smaller, for all tensors that show it, and return it.

    What was there stays, as far as there is room; what is new is 0 here. Tensors keep their shapes;
    those for which there is no room show zeros until there is, and are not written.

    >>> import tgraph as tg
    >>> x = tg.ones(2)
    >>> x.untyped_storage().resize_(12).nbytes()
    12
    >>> x.set_(x.untyped_storage())
    tensor([1., 1., 0.])
    """
    if not isinstance(nbytes, (int, np.integer)) or isinstance(nbytes, bool):
        raise RuntimeError(f"resize_ expects an int, but got {type(nbytes).__name__}")
    if nbytes < 0:
        raise RuntimeError(f"resize_() of a storage: expected at least 0 bytes, got {nbytes}")
    if not self.resizable():
        raise RuntimeError("Trying to resize storage that is not resizable")
    before, root = self.bytes, self.root
    if nbytes == before.size:
        return self
    start = self._cdata
    shown = shown_within(start, start + before.size, self.device)
    shown += [(each, place) for place in self.released if (each := place.tensor()) is not None]
    self.bytes = after = place(np.zeros(int(nbytes), np.uint8), self.device)
    kept = min(nbytes, before.size)
    copy_elements(after[:kept], before[:kept])
    self.released = []
    places = {id(each): (each, at) for each, at in shown}  # of those that are known, as they were
    with use_context(EAGER), no_grad():
        if root is not None:
            _root_again(self, root, places.get(id(root)))
        for each, at in places.values():
            _put(self, each, at)
    return self


def _root_again(storage: UntypedStorage, old: Tensor, found: tuple[Tensor, Place] | None) -> None:
    """A root that shows all of the new memory, of which the old one is a view from now on."""
    dtype = old._type.dtype
    count = storage.nbytes() // dtype.itemsize
    storage.root, _ = first_over(storage, dtype, Span(0, (count,), (1,)))
    storage.root._storage = shared = storage_of(old)
    shared.memory = lambda: storage  # kept: the root alone does not tell its size, nor who waits
    view = None
    if found is not None and _fits(storage, *found):
        start, *strides = (each // dtype.itemsize for each in (found[1].start, *found[1].strides))
        shown = view_of(storage.root, Span(start, old._type.shape, tuple(strides)))
        view = None if shown is None else shown._view
    old._view = view or View(storage.root, (), differentiable=False)


def _fits(storage: UntypedStorage, tensor: Tensor, at: Place) -> bool:
    shape, dtype, _ = tensor._type
    last = at.start + sum((size - 1) * step for size, step in zip(shape, at.strides))
    return 0 in shape or last + dtype.itemsize <= storage.nbytes()


def _put(storage: UntypedStorage, tensor: Tensor, at: Place) -> None:
    """Let a tensor show its place in the memory that there is now, or nothing."""
    shape, dtype, _ = tensor._type
    strides = at.strides
    if _fits(storage, tensor, at):
        count = max(storage.nbytes() - at.start, 0) // dtype.itemsize
        line = storage.bytes[at.start :][: count * dtype.itemsize].view(dtype.numpy)
    else:
        storage.released.append(at._replace(tensor=weakref.ref(tensor)))
        line, strides = place(np.zeros(1, dtype.numpy), storage.device), (0,) * len(shape)
        if isinstance(line, np.ndarray):
            line.flags.writeable = False
    tensor._value = module_of(line).lib.stride_tricks.as_strided(line, shape, strides)


def _resize_elements(self: TypedStorage, size: int) -> None:
    """`resize_` of the bytes to so many elements."""
    resize_storage(self.untyped(), size * self.dtype.itemsize)


UntypedStorage.resizable = resizable
UntypedStorage.resize_ = resize_storage
TypedStorage.resize_ = _resize_elements
