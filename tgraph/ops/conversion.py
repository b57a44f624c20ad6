"""Tensors to other dtypes, to Python numbers and to arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..compiler.ir import Node
from ..compiler.ir import primitives as p
from ..core.devices import as_device
from ..core.dispatch import apply, settled
from ..core.eager_context import current_context
from ..core.memory_format import MemoryFormat, preserve_format
from ..core.operands import cast, require_tensor
from ..core.public import public
from ..core.tensor import Tensor, wrap
from ..runtime.arrays import transfers_without_waiting
from ..runtime.cuda.arrays import is_pinned, pinned
from ..runtime.cuda.record_stream import record
from ..runtime.cuda.streams import Stream
from ..runtime.device import CPU, Device
from ..runtime.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .creation_options import as_dtype
from .movement import clone, contiguous, unbind
from .typed import type_name, typed

# --- dtypes ------------------------------------------------------------------------------------


@public(function=False, method=True)
def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """This tensor with another dtype or on another device: itself where nothing changes.

    Takes a dtype, a device, both, or another tensor to be like, and the order of its memory. With
    `non_blocking`, copies between the CPU and a device are made without waiting: after
    `tgraph.cuda.synchronize()` the elements of one from a device are there, and what a pinned
    tensor gave to a device may be overwritten. Without it both hold at once.
    """
    if args:
        place, kind, flags = _by_position(args)
        device, dtype = device if place is None else place, dtype if kind is None else kind
        non_blocking, copy = (*flags, *(non_blocking, copy)[len(flags) :])
    wanted = as_dtype(dtype) or self._type.dtype
    there = self._type.device if device is None else as_device(device)
    if memory_format not in (None, preserve_format):
        if copy and there == self._type.device and wanted is self._type.dtype:
            return clone(self, memory_format=memory_format)
        return contiguous(
            to(self, dtype=wanted, device=there, non_blocking=non_blocking),
            memory_format=memory_format,
        )
    if there != self._type.device:
        return _moved(self, wanted, there, non_blocking)
    if wanted is self._type.dtype:
        return apply(p.copy, self) if copy else self
    return cast(self, wanted)


def _by_position(args: tuple[Any, ...]) -> tuple[Any, Any, tuple[bool, ...]]:
    """The device, the dtype and the flags that are meant; TypeError where one has no place."""
    first, *rest = args
    device = dtype = None
    if isinstance(first, bool):
        rest.insert(0, first)
    elif isinstance(first, Tensor):
        dtype, device = first._type.dtype, first._type.device
    elif first is None or isinstance(first, (str, Device)) or type(first) is int:
        device = first
        if rest and not isinstance(rest[0], bool):
            dtype = _as_kind(rest.pop(0), 2)
    else:
        dtype = _as_kind(first, 1)
    for each in rest:
        if not isinstance(each, bool):
            raise TypeError(
                "to(): behind a dtype, a device or a tensor stand non_blocking and copy, which "
                f"must be bool, not {type(each).__name__}"
            )
    if len(rest) > 2:
        raise TypeError(f"to() takes at most 4 positional arguments, but {len(args)} were given")
    return device, dtype, tuple(rest)


def _as_kind(value: Any, position: int) -> DType | None:
    if isinstance(value, (bool, int, float, complex, list, tuple, Tensor)):
        raise TypeError(
            f"to(): argument 'dtype' (position {position}) must be a dtype, not "
            f"{type(value).__name__}"
        )
    return as_dtype(value)


def _moved(x: Tensor, dtype: DType, device: Device, non_blocking: bool) -> Tensor:
    """Casts where fewer bytes then travel."""
    early = dtype.itemsize < x._type.dtype.itemsize
    x = cast(x, dtype) if early else x
    if non_blocking and not current_context().tracing:
        context = transfers_without_waiting()
    else:
        context = nullcontext()
    with context:
        x = apply(p.transfer, x, device=device)
    return cast(x, dtype)


def _as(x: Tensor, dtype: DType, memory_format: MemoryFormat | None) -> Tensor:
    if memory_format is None:
        return cast(x, dtype)
    return to(x, dtype, memory_format=memory_format)


@public(name="type", function=False, method=True)
def type_of(self: Tensor, dtype: Any = None, *, memory_format: MemoryFormat | None = None) -> Any:
    """PyTorch's name of the class of this tensor, or the tensor as another dtype or class.

    >>> import tgraph as tg
    >>> tg.ones(2).type(), tg.ones(2).type(tg.LongTensor).dtype
    ('torch.FloatTensor', tgraph.int64)
    """
    if dtype is None:
        return type_name(self)
    wanted, place = typed(dtype)
    moves = place is not None and place != self._type.device.type
    return to(self, wanted, device=place if moves else None, memory_format=memory_format)


@public(function=False, method=True)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor with the dtype of another, on its device."""
    return to(self, require_tensor(other, "type_as", "other"))


@public(name="float", function=False, method=True)
def float_(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as float32, in an order of memory that is asked for.

    >>> import tgraph as tg
    >>> tg.ones(1, 2, 3, 3).float(memory_format=tg.channels_last).stride()
    (18, 1, 6, 2)
    """
    return _as(self, float32, memory_format)


@public(function=False, method=True)
def double(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as float64."""
    return _as(self, float64, memory_format)


@public(function=False, method=True)
def cfloat(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as complex64."""
    return _as(self, complex64, memory_format)


@public(function=False, method=True)
def cdouble(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as complex128."""
    return _as(self, complex128, memory_format)


@public(function=False, method=True)
def half(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as float16."""
    return _as(self, float16, memory_format)


@public(name="bfloat16", function=False, method=True)
def to_bfloat16(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as bfloat16."""
    return _as(self, bfloat16, memory_format)


@public(function=False, method=True)
def long(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as int64."""
    return _as(self, int64, memory_format)


@public(name="int", function=False, method=True)
def int_(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as int32."""
    return _as(self, int32, memory_format)


@public(function=False, method=True)
def short(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as int16."""
    return _as(self, int16, memory_format)


@public(function=False, method=True)
def char(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as int8."""
    return _as(self, int8, memory_format)


@public(function=False, method=True)
def byte(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor as uint8."""
    return _as(self, uint8, memory_format)


@public(name="bool", function=False, method=True)
def to_bool(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """Where elements are nonzero."""
    return _as(self, bool_, memory_format)


@public(function=False, method=True)
def cpu(self: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """This tensor on the CPU: itself where it is there, in that order of memory."""
    return to(self, CPU, memory_format=memory_format)


@public(function=False, method=True)
def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    *,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """This tensor on a CUDA device, the current one unless given; itself where it is there.

    RuntimeError says what is missing where CUDA is not available.
    """
    there = "cuda" if device is None else device
    return to(self, device=there, non_blocking=non_blocking, memory_format=memory_format)


@public(function=False, method=True)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in memory that devices reach by themselves, from which `cuda()` is faster.

    Itself where it is there. RuntimeError where CUDA is not available, or for a tensor on a device.
    """
    if not self._type.device.is_host:
        raise RuntimeError(
            f"cannot pin a tensor on '{self._type.device}': only tensors of the CPU can be pinned"
        )
    array = current_context().host_array(self, "pin_memory()")
    return self if is_pinned(array) else wrap(pinned(array), self._type)


@public(name="is_pinned", function=False, method=True)
def is_pinned_tensor(self: Tensor, device: Any = None) -> bool:
    """Whether this tensor lies in memory that devices reach by themselves."""
    on_host = self._type.device.is_host
    return on_host and is_pinned(current_context().host_array(self, "is_pinned()"))


@public(function=False, method=True)
def record_stream(self: Tensor, stream: Stream) -> None:
    """Tell that `stream` uses this tensor, which was made on another stream.

    Memory that is let go is used again by the stream on which it was made, at once. What was
    recorded is kept until `stream` has done all that it was asked to do by then. Views share it.
    It needs no call where the stream that made the tensor waits for the other one before that.

    NotImplementedError for tensors of the CPU.
    """
    if self.is_cpu:
        raise NotImplementedError(
            "Could not run 'record_stream' on a tensor of the 'cpu' device: only memory of CUDA "
            "devices is used by streams"
        )
    if not isinstance(stream, Stream):
        raise TypeError(
            f"record_stream(): expected a tgraph.cuda.Stream, got {type(stream).__name__}"
        )
    record(array_of(self, "record_stream()"), stream)


def array_of(self: Tensor, operation: str) -> Any:
    """The array of NumPy or CuPy, for an operation; TraceError where there is none yet."""
    context = current_context()
    return context.host_array(self, operation) if context.tracing else context.value_of(self)


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """What other libraries need to see this tensor's memory on its device, without a copy.

    AttributeError for tensors of the CPU.
    """
    if not self.is_cuda:
        raise AttributeError(
            "Can't get __cuda_array_interface__ on non-CUDA tensor; use tensor.cuda() first"
        )
    if settled(self)._requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Tensor that requires grad. Use tensor.detach() "
            "first."
        )
    found: dict[str, Any] = current_context().value_of(self).__cuda_array_interface__
    return found


# --- numbers and arrays ------------------------------------------------------------------------


def _single(self: Tensor, operation: str) -> Any:
    """The element, for Python's own conversions, which have an error of their own."""
    if self._type.numel != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return current_context().host_array(self, operation).item()


@public(function=False, method=True)
def item(self: Tensor) -> Any:
    """The element of a tensor of one element, as a Python number; RuntimeError for others."""
    if self._type.numel != 1:
        raise RuntimeError(
            f"a Tensor with {self._type.numel} elements cannot be converted to Scalar"
        )
    return _single(self, "item()")


@public(function=False, method=True)
def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    array = current_context().host_array(self, "tolist()")
    return (array.astype(np.float32) if self._type.dtype is bfloat16 else array).tolist()


@public(function=False, method=True)
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """The elements as an array that shares this tensor's memory.

    RuntimeError for a tensor that requires grad, whose history the array would not have; `force`
    detaches it, and copies it from a device, for which it is a TypeError otherwise.
    """
    has_value = type(self._value) is not Node
    if settled(self)._requires_grad and not force and has_value:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if self._type.device is not CPU and not force:
        raise TypeError(
            f"can't convert {self._type.device} device type tensor to numpy. Use Tensor.cpu() to "
            "copy the tensor to host memory first."
        )
    return current_context().host_array(self, "numpy()")[...]


def to_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """For `np.asarray(tensor)`."""
    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"a copy is needed to make {np.dtype(dtype)} of {array.dtype}")
        return array.astype(dtype)
    return array.copy() if copy else array


def to_python_bool(self: Tensor) -> bool:
    """The truth of a tensor of one element; RuntimeError for more."""
    if self._type.numel != 1:
        count = "no values" if self._type.numel == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(current_context().host_array(self, "bool(): Python control flow").item())


def to_python_int(self: Tensor) -> int:
    """For `int(tensor)`."""
    return int(_real(_single(self, "int()"), "int64_t"))


def to_python_float(self: Tensor) -> float:
    """For `float(tensor)`."""
    return float(_real(_single(self, "float()"), "double"))


def _real(value: Any, wanted: str) -> Any:
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {wanted} without overflow")
    return value.real


def to_python_complex(self: Tensor) -> complex:
    """For `complex(tensor)`."""
    return complex(_single(self, "complex()"))


def to_index(self: Tensor) -> int:
    """For use as an index or size: an integer tensor of one element."""
    is_whole = self._type.dtype.is_integral or self._type.dtype is bool_
    if not is_whole or self._type.numel != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_single(self, "use as a Python integer"))


def length(self: Tensor) -> int:
    """The size of the first dimension."""
    if not self._type.shape:
        raise TypeError("len() of a 0-d tensor")
    return self._type.shape[0]


def iterate(self: Tensor) -> Iterator[Tensor]:
    """Views of the places of the first dimension."""
    if not self._type.shape:
        raise TypeError("iteration over a 0-d tensor")
    current_context().allow_iteration()
    return iter(unbind(self, 0))


def backwards(self: Tensor) -> Tensor:
    """For `reversed(tensor)`: the last place of the first dimension comes first."""
    return self.flip(0) if self._type.shape else self


def contains(self: Tensor, element: Any) -> bool:
    """Whether any element equals `element`, a number or tensor."""
    if not isinstance(element, (Tensor, int, float, complex, np.generic)):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool((self == element).any())


@public(method=True)
def get_device(input: Tensor) -> int:
    """The number of this tensor's device; -1, as in PyTorch, for the CPU and meta."""
    index = input._type.device.index
    return -1 if index is None else index
