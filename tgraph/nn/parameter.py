"""Tensors that a module learns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NoReturn, SupportsIndex, TypeVar

import numpy as np

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.eager_context import array_type, current_context
from ..core.printing import tensor_repr
from ..core.tensor import PASSED_ON, Tensor, blank, refuse_inference_leaf, storage_of
from ..ops.creation import empty
from ..ops.pickling import deepcopy_alone, rebrand, rebuild_from_type
from ..runtime.device import Device
from ..runtime.dtypes import DType, bfloat16, float16, float32, float64

Self = TypeVar("Self", bound="UninitializedTensorMixin")


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module whose attribute it is.

    It takes over the memory of `data` (a copy of it where `data` is a view) and requires grad
    unless told otherwise.

    >>> import tgraph as tg
    >>> tg.nn.Parameter(tg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    _is_passed_on = False

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        self = blank(cls)
        if data is None:
            self._value = np.empty(0, np.float32)
            self._type = array_type(self._value)
        elif isinstance(data, Tensor):
            _refuse_class("Parameter", data)
            replace_value(self, data)
        else:
            raise TypeError(f"Parameter expected a Tensor as data, got {type(data).__name__}")
        if requires_grad and not self._type.dtype.is_differentiable:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if requires_grad:
            refuse_inference_leaf(self)
        self._requires_grad = requires_grad
        current_context().made(self)
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        hooks: OrderedDict[str, Any] = OrderedDict()  # which PyTorch's files have room for
        arguments = (self.detach(), self._requires_grad, hooks)
        own = self.__dict__
        if type(self) is Parameter:
            if own:
                return rebuild_parameter_with_state, (*arguments, own)
            return rebuild_parameter, arguments
        return rebuild_from_type, (rebuild_parameter, type(self), arguments, own)

    __deepcopy__ = deepcopy_alone

    def __repr__(self) -> str:
        if type(self) is Parameter:
            return "Parameter containing:\n" + tensor_repr(self)
        return f"Parameter containing:\nParameter({tensor_repr(self, type(self).__name__)})"

    __str__ = __repr__


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any = None) -> Parameter:
    """The Parameter that was pickled, which shares the memory of `data` in any case."""
    if requires_grad and not data._type.dtype.is_differentiable:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    result = rebrand(data, Parameter, requires_grad)
    assert isinstance(result, Parameter)
    current_context().made(result)
    return result


def rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: dict[str, Any]
) -> Parameter:
    """The Parameter that was pickled with attributes."""
    result = rebuild_parameter(data, requires_grad, backward_hooks)
    result.__dict__.update(state)
    return result


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module whose attribute it is.

    >>> import tgraph as tg
    >>> layer = tg.nn.Module()
    >>> layer.seen = tg.nn.Buffer(tg.zeros(1))
    >>> list(layer.state_dict())
    ['seen']
    """

    __slots__ = ("persistent",)
    _is_passed_on = False

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        self = blank(cls)
        if data is None:
            self._value = np.empty(0, np.float32)
            self._type = array_type(self._value)
        else:
            _refuse_class("Buffer", data)
            replace_value(self, data.detach())
        self.persistent = persistent
        self._requires_grad = data is not None and data.requires_grad
        return self


def _refuse_class(kind: str, data: Tensor) -> None:
    """TypeError for data of a class of a user's: a parameter has a class of its own."""
    if type(data) in PASSED_ON:
        name = type(data).__name__
        raise TypeError(
            f"{kind}() expected a plain Tensor, got {name}: a tensor has one class. Use "
            f"data.as_subclass(tgraph.Tensor), or derive {name} from {kind}"
        )


def replace_value(tensor: Tensor, data: Tensor) -> None:
    """Let `tensor` be what `data` is: its memory, shape and dtype, without its history."""
    if is_lazy(tensor) and is_lazy(data):
        _TYPE.__set__(tensor, _TYPE.__get__(data))
        return
    if data._view is not None:
        data = apply(p.copy, data.detach())
    tensor._value = current_context().state_of(data)
    tensor._type = data._type
    tensor._storage = storage_of(data)
    tensor._view = None


_TYPE: Any = Tensor.__dict__["_type"]
"""Where all tensors keep their type; those below hide it."""


class UninitializedTensorMixin:
    """A tensor that has a dtype and a device, and no shape yet.

    Only these two may be asked for and changed; the first call of the module that it belongs to
    gives it a shape.
    """

    __slots__ = ()
    cls_to_become: type[Tensor]

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: DType | None = None
    ) -> Any:
        self: Any = blank(cls)  # type: ignore[type-var]
        like = empty(0, device=device, dtype=dtype)
        _TYPE.__set__(self, like._type)
        self._value = like._value
        self._requires_grad = requires_grad
        return self

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of `shape`, whose values are still to be given."""
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        made = empty(tuple(shape), device=device, dtype=dtype)
        become(self, self.cls_to_become)
        replace_value(self, made)  # type: ignore[arg-type]

    def _refuse(self) -> NoReturn:
        raise ValueError(
            f"Attempted to use an uninitialized parameter: a {type(self).__name__} has no shape "
            "yet. Call the lazy module that it belongs to with a batch first"
        )

    _type: Any = property(_refuse)

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> DType:
        found: DType = _TYPE.__get__(self).dtype
        return found

    @property
    def device(self) -> Device:
        found: Device = _TYPE.__get__(self).device
        return found

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def detach(self: Self) -> Self:
        """Itself: it has no history."""
        return self

    def to(self: Self, *args: Any, device: Any = None, dtype: DType | None = None) -> Self:
        """One for another device, or of another dtype."""
        for each in args:
            if isinstance(each, DType):
                dtype = each
            elif each is not None:
                device = each
        device = self.device if device is None else device
        return type(self)(self._requires_grad, device, self.dtype if dtype is None else dtype)

    def half(self: Self) -> Self:
        return self.to(dtype=float16)

    def float(self: Self) -> Self:
        return self.to(dtype=float32)

    def double(self: Self) -> Self:
        return self.to(dtype=float64)

    def bfloat16(self: Self) -> Self:
        return self.to(dtype=bfloat16)

    def cpu(self: Self) -> Self:
        return self.to("cpu")

    def cuda(self: Self, device: Any = None) -> Self:
        return self.to("cuda" if device is None else device)

    def share_memory_(self) -> NoReturn:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        copied = self.to()
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._requires_grad, str(self.device), self.dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is decided by the first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> weight = tg.nn.UninitializedParameter(dtype=tg.float64)
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> weight.shape, weight.dtype
    (tgraph.Size([2, 3]), tgraph.float64)
    """

    __slots__ = ()
    cls_to_become = Parameter


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is decided by the first input; see `LazyModuleMixin`."""

    __slots__ = ()
    _is_passed_on = False
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: DType | None = None
    ) -> Any:
        return super().__new__(cls, requires_grad, device, dtype)


def become(what: Any, kind: type[Any]) -> None:
    """Make an object one of another class, which has the same slots."""
    object.__setattr__(what, "__class__", kind)


def is_lazy(param: Any) -> bool:
    """Whether `param` has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
