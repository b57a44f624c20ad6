"""What users ask of a tensor as an object: its kind, its memory, and the order of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..core.classes import refuse_overrides
from ..core.dispatch import settled
from ..core.memory_format import MemoryFormat, contiguous_format
from ..core.operands import require_tensor, result_type
from ..core.public import public
from ..core.tensor import InferenceStorage, Tensor, strides_of
from ..runtime.arrays import address_of
from .conversion import array_of
from .movement import view
from .storage import untyped_storage
from .typed import STORAGES, TypedStorage

_AnyTensor = TypeVar("_AnyTensor", bound=Tensor)
public()(result_type)  # which lies below `public`


@public(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0: RuntimeError of more or none."""
    if require_tensor(input, "is_nonzero").numel() != 1:
        what = "no values" if not input.numel() else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(input)


@public(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are equal."""
    return input.shape == require_tensor(other, "is_same_size", "other").shape


@public()
def is_signed(input: Tensor) -> bool:
    """Whether the type of the elements has negative numbers."""
    return require_tensor(input, "is_signed").is_signed()


@public()
def typename(obj: Any) -> str:
    """The full name of the type of an object, as "torch.FloatTensor" of a tensor."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "builtins")
    name = str(kind.__qualname__)
    return name if module in (None, "builtins") else f"{module}.{name}"


@public(function=False, method=True)
def as_subclass(self: Tensor, cls: type[_AnyTensor]) -> _AnyTensor:
    """This tensor as one of a class derived from Tensor: a view, through which gradients pass.

    What operations give of it is of the class, too, unless that is derived from Parameter or
    Buffer. Its `__init__` does not run. See `core/classes.py`.

    >>> import tgraph as tg
    >>> class Celsius(tg.Tensor):
    ...     def fahrenheit(self):
    ...         return self * 1.8 + 32
    >>> tg.tensor([0.0, 100.0]).as_subclass(Celsius)[1:].fahrenheit()
    Celsius([212.])
    """
    refuse_overrides(cls)
    shown: Any = view(self, self._type.shape)
    shown.__class__ = cls
    return shown  # type: ignore[no-any-return]


@public(method=True)
def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made under `inference_mode`, or shows the memory of one that was.

    >>> import tgraph as tg
    >>> with tg.inference_mode():
    ...     x = tg.ones(2)
    >>> x.is_inference(), x[0].is_inference(), (x + 1).is_inference()
    (True, True, False)
    """
    return isinstance(require_tensor(input, "is_inference")._storage, InferenceStorage)


@public(method=True)
def is_distributed(input: Tensor) -> bool:
    """False: there is one process."""
    require_tensor(input, "is_distributed")
    return False


@public(method=True)
def is_conj(input: Tensor) -> bool:
    """False: `conj` gives a tensor of its own here, not one that is read conjugated."""
    require_tensor(input, "is_conj", "input")
    return False


@public(method=True)
def is_neg(input: Tensor) -> bool:
    """False: no tensor is one that is read negated."""
    require_tensor(input, "is_neg", "input")
    return False


@public(function=False, method=True)
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, for those who only read; 0 without elements."""
    return address_of(array_of(self, "const_data_ptr()")) if self._type.numel else 0


@public(function=False, method=True)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether `tensor` shows the same memory in the same way.

    >>> import tgraph as tg
    >>> x = tg.arange(4)
    >>> x.is_set_to(x.view(4)), x.is_set_to(x[1:]), x.is_set_to(x.view(2, 2))
    (True, False, False)
    """
    other = require_tensor(tensor, "is_set_to", "tensor")
    if settled(self)._type != settled(other)._type or strides_of(self) != strides_of(other):
        return False
    same_place = const_data_ptr(self) == const_data_ptr(other)
    return same_place and untyped_storage(self) == untyped_storage(other)


@public(function=False, method=True)
def storage_type(self: Tensor) -> type[TypedStorage]:
    """The class of the storage: `FloatStorage` for float32, and so on."""
    return STORAGES[self._type.dtype]


@public(function=False, method=True)
def dim_order(
    self: Tensor, *, ambiguity_check: bool | Sequence[MemoryFormat] = False
) -> tuple[int, ...]:
    """The dimensions in the order of memory, the slowest first.

    With `ambiguity_check` a RuntimeError where another order would be right, too; or, given memory
    formats, where not exactly one of them is that of the tensor.

    >>> import tgraph as tg
    >>> tg.ones(2, 3).t().dim_order()
    (1, 0)
    """
    steps, sizes = strides_of(settled(self)), self._type.shape
    order = tuple(sorted(range(len(steps)), key=lambda axis: -steps[axis]))
    if not ambiguity_check:
        return order
    if ambiguity_check is True:
        is_one = len({*steps}) == len(steps) and 1 not in sizes
    else:
        formats = list(ambiguity_check)
        if not all(isinstance(each, MemoryFormat) for each in formats):
            raise TypeError("dim_order(): expected a bool or a list of memory formats")
        fitting = [
            each for each in formats
            if each.fits(len(sizes)) and self.is_contiguous(memory_format=each)
        ]  # fmt: skip
        is_one = len(fitting) == 1
        if is_one and fitting[0] is not contiguous_format:
            order = fitting[0].axes(sizes)
    if not is_one:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    return order
