"""Tensors of what there is: numbers, nested sequences, arrays of NumPy and of other libraries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..compiler.ir import promotion
from ..compiler.ir.dim import SymInt
from ..core.classes import like
from ..core.devices import DeviceLike, as_device
from ..core.dispatch import apply
from ..core.eager_context import array_type, current_context
from ..core.operands import cast, on_device
from ..core.public import public
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.traced_number import TracedNumber
from ..runtime.cuda.arrays import as_cupy, is_cuda_array
from ..runtime.cuda.devices import cuda_device
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType, bfloat16, bool_, from_numpy_dtype, int64
from .creation_options import as_dtype, finished, options_like
from .memory_places import note_given
from .movement import reshape


@public()
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested sequences, arrays or tensors.

    Python floats take the default dtype, ints int64; arrays keep theirs.

    >>> import tgraph as tg
    >>> tg.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        device = data._type.device if device is None else device
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() rather than tgraph.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        data = data.detach()
        data.__class__ = Tensor
    elif device is None and is_cuda_array(data):
        device = from_cuda_array(data)._type.device
    data, dtype = _of_others(data, as_dtype(dtype))
    result = _from_data(data, dtype, as_device(device), copy=True)
    return finished(result.pin_memory() if pin_memory else result, requires_grad)


def _from_data(data: Any, dtype: DType | None, device: Device, copy: bool) -> Tensor:
    if isinstance(data, Tensor):
        moved = on_device(data, device)
        same = dtype is None or dtype is moved._type.dtype
        if same and copy and moved is data:
            return apply(p.copy, data)
        return cast(moved, dtype or moved._type.dtype)
    if is_cuda_array(data):
        shown = from_cuda_array(data)
        return _from_data(shown, dtype, device, copy)
    if holds_tensors(data):
        return on_device(_stacked(data, dtype), device)
    if isinstance(data, SymInt | TracedNumber) and _holds_any(dtype, data):
        wanted = dtype or promotion.scalar_dtype(data)
        return current_context().constant(data, wanted, device)
    return current_context().array_constant(_as_array(data, dtype, copy), device)


def _as_array(data: Any, dtype: DType | None, copy: bool) -> np.ndarray[Any, Any]:
    """`data` as an array that a tensor can hold; without `copy` it may share memory."""
    given = isinstance(data, np.generic) or _has_memory(data)
    if given:
        array = np.asarray(data)
        wanted = dtype or from_numpy_dtype(array.dtype)
    else:
        array = _large_integers(data, _array_of_numbers(data), dtype)
        own = isinstance(_first_leaf(data), np.generic)  # NumPy's numbers keep their dtype
        wanted = dtype or (from_numpy_dtype(array.dtype) if own else _own_dtype(array))
    if wanted is not None and wanted.is_integral and array.dtype.kind in "iu":
        _check_range(array, wanted)
    with np.errstate(all="ignore"):
        made = np.asarray(array, dtype=wanted.numpy)
    if not given or made is not array:
        return made
    return made.copy() if copy or _why_not_shared(made) else made[...]


def _has_memory(data: Any) -> bool:
    """Whether `data` is an array, of NumPy or of a library that shows it to NumPy."""
    return hasattr(data, "__array__") or hasattr(data, "__array_interface__")


def _array_of_numbers(data: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.array(data)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"tensor(): the data is no regular nesting of numbers: {error}") from None
    if array.dtype.kind not in "biufc" and not array.dtype.names and array.size:
        if array.dtype.kind == "O":
            raise RuntimeError("tensor(): could not infer dtype of the data; Overflow or objects")
        raise TypeError(f"tensor(): expected numbers, got {array.dtype.name} data")
    return array


def _large_integers(
    data: Any, array: np.ndarray[Any, Any], dtype: DType | None
) -> np.ndarray[Any, Any]:
    """`array`, which NumPy makes of floats where int64 does not hold one of several integers."""
    if array.dtype.kind != "f" or not (np.abs(array) >= 2.0**63).any():
        return array
    leaves = np.array(data, object)
    if not all(isinstance(each, int) for each in leaves.flat):
        return array
    if leaves.min() >= 0 and leaves.max() < 1 << 64:
        return leaves.astype(np.uint64)
    if dtype is None or dtype.is_integral:
        name = "int64" if dtype is None else dtype.name
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return array


def _first_leaf(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _own_dtype(array: np.ndarray[Any, Any]) -> DType:
    """The dtype that Python numbers take: bool, int64, the default float or complex."""
    if array.size == 0 or array.dtype.kind == "f":
        return promotion.default_dtype
    if array.dtype.kind == "c":
        return promotion.default_complex()
    return bool_ if array.dtype.kind == "b" else int64


def _check_range(array: np.ndarray[Any, Any], dtype: DType) -> None:
    if array.dtype == dtype.numpy:
        return
    info = np.iinfo(dtype.numpy)
    lowest = info.min if dtype.is_signed else -info.max  # unsigned types take -1 as their largest
    if array.size and (array.min() < lowest or array.max() > info.max):
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")


def _holds_any(dtype: DType | None, number: SymInt | TracedNumber) -> bool:
    """Whether no value could be out of range, which is an error that is made by its value."""
    return dtype is None or dtype.is_floating_point or dtype is int64


def holds_tensors(data: Any) -> bool:
    """Whether there are tensors in a nesting, or numbers that only a call knows."""
    while isinstance(data, (list, tuple)) and data:
        if any(issubclass(kind, (Tensor, SymInt, TracedNumber)) for kind in set(map(type, data))):
            return True
        data = data[0]
    return False


def _stacked(data: Sequence[Any], dtype: DType | None) -> Tensor:
    """A nesting with 0-d tensors or such numbers in it: read outside a trace, stacked inside."""
    if not state.context:
        return _from_data(_plain(data), dtype, CPU, copy=True)
    rows = [_from_data(_one_number(each), dtype, CPU, copy=False) for each in data]
    common = dtype or promotion.result_type([row._type.dtype for row in rows])
    lifted = (reshape(cast(row.detach(), common), (1, *row.shape)) for row in rows)
    return apply(p.concatenate, *lifted, axis=0)


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return _one_number(data).item()
    return [_plain(each) for each in data] if isinstance(data, (list, tuple)) else data


def _one_number(data: Any) -> Any:
    """A tensor in a nesting, which stands for its one element."""
    if not isinstance(data, Tensor) or not data._type.shape:
        return data
    if data._type.numel != 1:
        kind = TypeError if data._type.dtype.is_integral else ValueError
        raise kind(
            "tensor(): only one element tensors can be converted to Python scalars, got one of "
            f"shape {list(data._type.shape)} in a sequence. Use tg.stack(sequence) for a tensor of "
            "tensors."
        )
    return reshape(data, ())


@public(aliases=("asarray",))
def as_tensor(data: Any, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """`data` as a tensor, sharing memory and history where no conversion is needed.

    Arrays whose memory a tensor cannot show (see `from_numpy`) are copied. Arrays of CuPy, and
    others that lie on a CUDA device, stay there unless `device` is given. Tensors of other
    libraries come without their history.
    """
    data, dtype = _of_others(data, as_dtype(dtype))
    if isinstance(data, np.ndarray) and data.flags.writeable and not _why_not_shared(data):
        data = from_numpy(data)
    elif not isinstance(data, Tensor) and is_cuda_array(data):
        data = from_cuda_array(data)
    if device is None and isinstance(data, Tensor) and data.is_cuda:
        device = data._type.device
    return _from_data(data, dtype, as_device(device), copy=False)


def _of_others(data: Any, dtype: DType | None) -> tuple[Any, DType | None]:
    """A tensor of another library without history, and as one that NumPy reads; and its dtype."""
    if isinstance(data, (Tensor, np.ndarray)) or not hasattr(data, "__dlpack__"):
        return data, dtype
    if getattr(data, "requires_grad", False):
        data = data.detach()
    if str(getattr(data, "dtype", "")).endswith("bfloat16") and hasattr(data, "float"):
        return data.float(), dtype or bfloat16  # which is exact
    seen = _has_memory(data) or is_cuda_array(data)
    return data if seen else np.from_dlpack(data), dtype


def _why_not_shared(array: Any) -> str | None:
    """What about the memory of an array, of NumPy or CuPy, a tensor cannot show; or None."""
    if min(array.strides, default=0) < 0:
        return (
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not supported. (You can probably work around this by making a copy of "
            "your array with array.copy().)"
        )
    if array.size and any(stride % array.itemsize for stride in array.strides):
        return (
            f"given numpy array strides {array.strides} are not a multiple of the element byte "
            f"size {array.itemsize}, as happens with fields of records. Copy the array to "
            "reallocate the memory: array.copy()"
        )
    if not array.dtype.isnative:
        return (
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    return None


@public()
def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares the memory of an array: writing to one shows in the other.

    Elements may lie at any address. The tensor is a view: changing the shape or the flags of the
    array later does not change it, and it is not written if the array may not be written now.

    TypeError for element types that tensors cannot hold; ValueError for strides that are negative
    or no multiple of the item size, as of a field of packed records, and for another byte order.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    reason = _why_not_shared(ndarray)
    if reason is not None:
        raise ValueError(reason)
    value = ndarray.view(np.ndarray)
    note_given(value)
    return wrap(value, array_type(value))


def from_cuda_array(array: Any) -> Tensor:
    """A tensor that shares the memory of an array on a CUDA device, such as one of CuPy.

    Takes whatever has `__cuda_array_interface__`; TypeError for element types that tensors cannot
    hold; ValueError for strides that are negative or no multiple of the item size, and for
    elements that are not aligned, which a device cannot read.
    """
    shown = as_cupy(array)
    reason = _why_not_shared(shown)
    if reason is not None:
        raise ValueError(reason.replace("numpy array", "array"))
    if shown.data.ptr % shown.itemsize:
        raise ValueError(
            f"the elements of the given array lie at {shown.data.ptr:#x}, no multiple of their "
            f"{shown.itemsize} bytes: a device cannot read them. Copy them as bytes first."
        )
    return wrap(shown, array_type(shown, cuda_device(shown.device.id)))


@public(function=False, method=True)
def new_tensor(input: Tensor, data: Any, **options: Any) -> Tensor:
    """`tensor(data)`, with the dtype and device of `input` unless given."""
    return like(input, tensor(data, **options_like(input, options)))
