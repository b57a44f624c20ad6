"""Tensors through copy and pickle: each is a place in a storage, and storages are kept once.

So tensors that shared memory share it again. The files of `tgraph.save` use the same functions,
under PyTorch's names for them.
"""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, SupportsIndex

from ..compiler.ir import Node
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import contiguous_strides
from ..core.complex_parts import conjugate
from ..core.dispatch import apply, settled
from ..core.eager_context import current_context
from ..core.state import state
from ..core.tensor import Tensor, blank, strides_of
from ..runtime.device import META
from ..runtime.dtypes import DType
from . import elementwise as e
from .creation import empty_strided
from .storage import storage_offset, untyped_storage
from .storage_views import adopt, set_, tensor_over
from .typed import TypedStorage
from .typed import storage as typed_storage

Place = tuple[DType, int, tuple[int, ...], tuple[int, ...]]


def _place_of(self: Tensor) -> Place:
    """Where a tensor lies in its storage: the arguments of `tensor_over` behind that."""
    shape = tuple(self._type.shape)
    strides = strides_of(self) if self._type.numel else contiguous_strides(shape)
    return self._type.dtype, storage_offset(self), shape, tuple(strides)


# --- copy --------------------------------------------------------------------------------------


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with memory of its own, and copies of `.grad` and of attributes; for leaves only.

    Views become views of a copy of all that they show a part of, which is made once.
    """
    if id(self) in memo:
        found: Tensor = memo[id(self)]
        return found
    _check_leaf(self)
    result = memo[id(self)] = rebrand(_copied(self, memo), type(self), self._requires_grad)
    if self._grad is not None:
        result._grad = deepcopy(self._grad, memo)
    if state.recorder is not None:
        state.recorder.all_attributes(self)
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def deepcopy_alone(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of the elements, as PyTorch copies a parameter: without gradient and attributes."""
    if id(self) not in memo:
        _check_leaf(self)
        memo[id(self)] = rebrand(_elements_of(self), type(self), self._requires_grad)
    found: Tensor = memo[id(self)]
    return found


def _check_leaf(tensor: Tensor) -> None:
    if settled(tensor)._record is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment. Use detach() first."
        )


def _elements_of(self: Tensor) -> Tensor:
    is_outside = type(self._value) is not Node
    with current_context().making_state() if is_outside else nullcontext():
        return apply(p.copy, self.detach())


def _copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if state.context is not None or type(self._value) is Node or self._type.device is META:
        return _elements_of(self)
    storage = untyped_storage(self)
    if id(storage) not in memo:
        memo[id(storage)] = storage.clone()
        memo.setdefault(id(memo), []).append(storage)  # what `copy` keeps, so that ids stay theirs
    return tensor_over(memo[id(storage)], *_place_of(self))


def rebrand(value: Tensor, cls: type[Tensor], requires_grad: bool) -> Tensor:
    """A handle of a class in the place of a fresh one."""
    result = blank(cls)
    adopt(result, value)
    result._requires_grad = requires_grad
    return result


# --- pickle ------------------------------------------------------------------------------------


def reduce_for_pickle(self: Tensor, protocol: SupportsIndex) -> tuple[Any, ...]:
    """Pickle as a place in a storage; history and `.grad` are left out."""
    if current_context().tracing:
        current_context().host_array(self, "pickle")
    for hook in (self._hooks or {}).values():
        if not getattr(hook, "__torch_unserializable__", False):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @tgraph.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )
    if self._type.device is META:
        shape, dtype, _ = self._type
        rebuild: Any = rebuild_meta_tensor
        arguments: Any = (dtype, tuple(shape), strides_of(self), self._requires_grad)
    else:
        rebuild, arguments = reduced(self)
    own = self.__dict__
    if type(self) is Tensor and not own:
        return rebuild, arguments
    return rebuild_from_type, (rebuild, type(self), arguments, own)


def reduced(self: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """How a tensor is made again, its class and its own attributes aside."""
    _, *place = _place_of(settled(self))
    hooks: OrderedDict[str, Any] = OrderedDict()  # which PyTorch's files have room for
    return rebuild_tensor, (typed_storage(self), *place, self._requires_grad, hooks)


def rebuild_meta_tensor(
    dtype: DType, size: tuple[int, ...], stride: tuple[int, ...], requires_grad: bool
) -> Tensor:
    """A tensor on `meta`, which has no storage."""
    options = {"dtype": dtype, "device": META, "requires_grad": requires_grad}
    return empty_strided(size, stride, **options)


def set_state(self: Tensor, state: tuple[Any, ...]) -> None:
    """Become what old pickles of PyTorch tell: a place in a storage, or data and flags."""
    if settled(self)._record is not None:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        set_(self, *state)
        return
    if len(state) == 5:
        self.data = state[0]
        state = state[3], state[4], state[2]
    self._requires_grad = bool(state[0])


def rebuild_tensor(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool = False,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """The tensor at a place in a storage."""
    return rebuild_tensor_as(
        storage,
        storage_offset,
        size,
        stride,
        requires_grad,
        backward_hooks,
        storage.dtype,
        metadata,
    )


def rebuild_tensor_as(
    storage: Any,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    dtype: DType,
    metadata: Any = None,
) -> Tensor:
    """The tensor of `dtype` at a place in a storage.

    `metadata` may say that the memory is to be read conjugated ("conj") or negated ("neg").
    """
    if requires_grad and not dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    result = tensor_over(storage.untyped(), dtype, storage_offset, size, stride)
    for name, holds in (metadata or {}).items():
        if name not in _METADATA:
            raise RuntimeError(f"metadata {name!r} of a tensor is not known")
        if holds:
            result = _METADATA[name](result)
    result._requires_grad = bool(requires_grad)
    return result


_METADATA: dict[str, Callable[[Tensor], Tensor]] = {"conj": conjugate, "neg": e.neg}


def rebuild_from_type(
    rebuild: Callable[..., Tensor], cls: type[Tensor], arguments: tuple[Any, ...], own: Any
) -> Tensor:
    """A tensor of a class of the user's, or with attributes of its own."""
    result = rebuild(*arguments)
    if cls is not type(result):
        result = rebrand(result, cls, result._requires_grad)
    if own:
        result.__dict__.update(own)
    return result
