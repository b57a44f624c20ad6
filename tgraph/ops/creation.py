"""Making tensors from data and by rule."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Node, promotion
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import SymInt
from ..core.dispatch import apply, make_source
from ..core.eager_context import array_type, constant, current_context, stored
from ..core.operands import cast, is_scalar, on_device
from ..core.overlap import Span
from ..core.public import public
from ..core.sparse_tensor import SPARSE_RULES, NotOnSparseError, SparseTensor
from ..core.state import state
from ..core.tensor import Tensor, wrap
from ..core.traced_number import TracedNumber
from ..runtime.cuda.arrays import as_cupy, is_cuda_array
from ..runtime.cuda.devices import cuda_device, current_device
from ..runtime.device import CPU, META, Device, defaults, host_device
from ..runtime.dtypes import DType, bfloat16, bool_, complex128, float64, from_numpy_dtype, int64
from . import elementwise as e
from .memory_places import note_given
from .movement import as_sizes, contiguous, permute, reshape, strided, transpose

DeviceLike = Device | str | int | None


def as_device(device: DeviceLike) -> Device:
    """The device that is meant: the default one for None, the current one for "cuda".

    RuntimeError where it is not there.
    """
    if device is None:
        device = defaults.device
    if device is CPU:
        return CPU
    parsed = Device.parse(device)
    if parsed.is_host:
        return host_device(parsed.index)
    if parsed.type == "meta":
        return META
    if parsed.index is None:
        current_context().reads_current_device(current_device)
    return cuda_device(parsed.index)


def as_dtype(dtype: Any) -> DType | None:
    """A DType, or what Python and NumPy have in its place: `float` is float64, as in PyTorch."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    return from_numpy_dtype(dtype)


@public()
def set_default_dtype(dtype: DType) -> None:
    """The dtype of floats that come without one: float32 unless set otherwise."""
    if not isinstance(dtype, DType) or not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {dtype}")
    promotion.default_dtype = dtype


@public()
def get_default_dtype() -> DType:
    """The dtype of floats that come without one."""
    return promotion.default_dtype


def _finished(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


# --- from data ---------------------------------------------------------------------------------


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
    elif device is None and is_cuda_array(data):
        device = from_cuda_array(data)._type.device
    data, dtype = _of_others(data, as_dtype(dtype))
    result = _from_data(data, dtype, as_device(device), copy=True)
    return _finished(result.pin_memory() if pin_memory else result, requires_grad)


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


# --- by rule -----------------------------------------------------------------------------------


@public(out="exact")
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of `size` in which every element is `fill_value`, a number or a 0-d tensor."""
    shape = as_sizes((size,)) if not isinstance(size, int) else (size,)
    check_sizes(shape)
    wanted = as_dtype(dtype)
    if isinstance(fill_value, Tensor):
        value = cast(fill_value, wanted or fill_value._type.dtype)
        value = on_device(value, value._type.device if device is None else as_device(device))
        return _finished(apply(p.copy, apply(p.broadcast, value, shape=shape)), requires_grad)
    if not is_scalar(fill_value):
        kind = type(fill_value).__name__
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {kind}")
    wanted = wanted or promotion.scalar_dtype(fill_value)
    return _finished(_filled(shape, fill_value, wanted, as_device(device)), requires_grad)


def _filled(shape: tuple[int, ...], value: Any, dtype: DType, device: Device) -> Tensor:
    if type(value) not in (
        int,
        float,
        bool,
        complex,
    ):  # an input of a trace in the guise of a number
        scalar = current_context().constant(value, dtype, device)
        return apply(p.copy, apply(p.broadcast, scalar, shape=shape))
    value = stored(value, dtype)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    return make_source(p.full, device, shape=shape, value=value, dtype=dtype)


def check_sizes(shape: Sequence[int]) -> None:
    if any(size < 0 for size in shape):
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )


@public(out="exact")
def zeros(
    *size: Any, dtype: Any = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of zeros, of the default float type unless `dtype` says otherwise."""
    return full(as_sizes(size), 0, dtype=as_dtype(dtype) or promotion.default_dtype,
                device=device, requires_grad=requires_grad)  # fmt: skip


@public(out="exact")
def ones(
    *size: Any, dtype: Any = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of ones, of the default float type unless `dtype` says otherwise."""
    return full(as_sizes(size), 1, dtype=as_dtype(dtype) or promotion.default_dtype,
                device=device, requires_grad=requires_grad)  # fmt: skip


@public(out=True)
def empty(
    *size: Any,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose elements have no particular value: here, zeros."""
    return zeros(*size, dtype=dtype, device=device, requires_grad=requires_grad)


@public()
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`full` with the shape, dtype and device of `input`."""
    if type(input) is SparseTensor:
        raise NotOnSparseError("full_like", input._layout)
    options = _like(input, {"dtype": dtype, "device": device})
    return full(input._type.shape, fill_value, requires_grad=requires_grad, **options)


@public()
def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros with the shape, dtype and device of `input`, and its layout."""
    if type(input) is SparseTensor:
        empty: Tensor = SPARSE_RULES["zeros_like"](input, **options)
        return empty
    return full_like(input, 0, **options)


@public()
def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones with the shape, dtype and device of `input`."""
    return full_like(input, 1, **options)


@public()
def empty_like(input: Tensor, **options: Any) -> Tensor:
    """As `empty`, with the shape, dtype and device of `input`."""
    if type(input) is SparseTensor:
        return zeros_like(input, **options)
    return full_like(input, 0, **options)


@public(function=False, method=True)
def new_full(input: Tensor, size: Any, fill_value: Any, **options: Any) -> Tensor:
    """A tensor of `size` and one value, with the dtype and device of `input` unless given."""
    return full(size, fill_value, **_like(input, options))


@public(function=False, method=True)
def new_zeros(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of `size`, with the dtype and device of `input` unless given."""
    return new_full(input, as_sizes(size), 0, **options)


@public(function=False, method=True)
def new_ones(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of `size`, with the dtype and device of `input` unless given."""
    return new_full(input, as_sizes(size), 1, **options)


@public(function=False, method=True)
def new_empty(input: Tensor, *size: Any, **options: Any) -> Tensor:
    """As `empty`, with the dtype and device of `input` unless given."""
    return new_full(input, as_sizes(size), 0, **options)


@public()
def empty_strided(size: Any, stride: Any, **options: Any) -> Tensor:
    """As `empty`, with these strides in elements; memory reaches as far as the last element.

    >>> import tgraph as tg
    >>> tg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = as_sizes((size,)), as_sizes((stride,))
    if len(shape) != len(steps):
        raise RuntimeError(
            f"empty_strided: mismatch in length of strides and shape: {len(steps)} and {len(shape)}"
        )
    requires_grad = options.pop("requires_grad", False)
    extent = sum((wide - 1) * step for wide, step in zip(shape, steps)) + 1
    line = zeros(extent if 0 not in shape else 0, **options)
    shown = reshape(line, shape) if 0 in shape else strided(line, Span(0, shape, steps))
    return _finished(shown, requires_grad)


@public()
def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """As `empty`, with its dimensions in this order in memory.

    >>> import tgraph as tg
    >>> tg.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    shape, order = as_sizes((size,)), tuple(physical_layout)
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(
            f"empty_permuted: expected an order of {len(shape)} dimensions, got {list(order)}"
        )
    requires_grad = options.pop("requires_grad", False)
    made = zeros([shape[axis] for axis in order], **options)
    return _finished(
        permute(made, [order.index(axis) for axis in range(len(order))]), requires_grad
    )


@public(function=False, method=True)
def new_empty_strided(input: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """As `empty_strided`, with the dtype and device of `input` unless given."""
    return empty_strided(size, stride, **_like(input, options))


@public(function=False, method=True)
def new_tensor(input: Tensor, data: Any, **options: Any) -> Tensor:
    """`tensor(data)`, with the dtype and device of `input` unless given."""
    return tensor(data, **_like(input, options))


def _like(input: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """`options` with the dtype and device of `input` where none are given."""
    given = {name: value for name, value in options.items() if value is not None}
    return {"dtype": input._type.dtype, "device": input._type.device, **given}


@public()
def scalar_tensor(
    value: Any, *, dtype: Any = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of a number."""
    return full((), value, dtype=as_dtype(dtype) or promotion.default_dtype,
                device=device, requires_grad=requires_grad)  # fmt: skip


@public(out="exact")
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` (0) up to `end`, which is left out, `step` apart.

    >>> import tgraph as tg
    >>> tg.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    start, end = (0, start) if end is None else (start or 0, end)
    if end is None:
        raise TypeError("arange() missing the end of the numbers: arange(end), arange(start, end)")
    given = [_number(each) for each in (start, end, step)]
    first, last, by = given
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not all(map(_is_finite, (first, last))):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * by < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    is_float = any(isinstance(each, float) for each in given)
    wanted = as_dtype(dtype) or (promotion.default_dtype if is_float else int64)
    count = math.ceil((last - first) / by) if is_float else -((first - last) // by)
    return _finished(_sequence(count, first, by, wanted, as_device(device)), requires_grad)


def _is_finite(number: Any) -> bool:
    return not isinstance(number, float) or math.isfinite(number)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


def _sequence(count: int, first: Any, by: Any, dtype: DType, device: Device) -> Tensor:
    whole = isinstance(first, int) and isinstance(by, int)
    exact = whole and (dtype.is_integral or count < 256)
    if exact and first == 0 and by == 1:
        return make_source(p.iota, device, size=count, dtype=dtype)
    if whole and dtype.is_integral:
        counted = make_source(p.iota, device, size=count, dtype=dtype)
        return e.add(counted if by == 1 else e.mul(counted, by), first)
    values = first + np.arange(count, dtype=np.float64) * by  # rounded once, as in PyTorch
    return current_context().array_constant(values.astype(dtype.numpy), device)


@public(out="exact")
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, equally far apart."""
    _check_steps(steps)
    wanted = as_dtype(dtype) or promotion.default_dtype
    if _is_unknown(start) or _is_unknown(end):
        return _finished(cast(_line(start, end, steps, as_device(device)), wanted), requires_grad)
    values = np.linspace(_number(start), _number(end), steps)
    result = current_context().array_constant(values.astype(wanted.numpy), as_device(device))
    return _finished(result, requires_grad)


def _check_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def _is_unknown(value: Any) -> bool:
    """Whether it is a tensor of a traced function, which compiled code computes."""
    return isinstance(value, Tensor) and type(value._value) is Node


def _line(start: Any, end: Any, steps: int, device: Device) -> Tensor:
    """The numbers of `linspace`, in double precision, of ends that are not known yet."""
    share = current_context().array_constant(np.linspace(1.0, 0.0, steps), device)
    double = complex128 if any(_is_complex(each) for each in (start, end)) else float64
    first, last = (
        cast(each.detach(), double) if isinstance(each, Tensor) else each for each in (start, end)
    )
    return e.add(e.mul(first, share), e.mul(last, e.sub(1.0, share)))


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)


@public(out="exact")
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`."""
    _check_steps(steps)
    wanted = as_dtype(dtype) or promotion.default_dtype
    if _is_unknown(start) or _is_unknown(end):
        powers = e.pow(base, _line(start, end, steps, as_device(device)))
        return _finished(cast(powers, wanted), requires_grad)
    values = np.logspace(_number(start), _number(end), steps, base=base)
    result = current_context().array_constant(values.astype(wanted.numpy), as_device(device))
    return _finished(result, requires_grad)


@public(out="exact")
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere."""
    for name, size in (("n", n), ("m", m)):
        if type(size) is int and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    wanted, place = as_dtype(dtype) or promotion.default_dtype, as_device(device)
    on = e.eq(_column(n, place), _row(n if m is None else m, place))
    return _finished(cast(on, wanted), requires_grad)


def _row(size: int, device: Device) -> Tensor:
    return make_source(p.iota, device, size=size, dtype=int64)


def _column(size: int, device: Device) -> Tensor:
    return apply(p.reshape, _row(size, device), shape=(size, 1))


# --- parts of matrices, grids ------------------------------------------------------------------


@public(method=True, inplace=True, overlap="any", out="exact")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal of (a batch of) matrices; the others become 0."""
    rows, columns = _matrix_sizes(input, "tril")
    device = input._type.device
    return _kept(e.le(_row(columns, device), e.add(_column(rows, device), diagonal)), input)


@public(method=True, inplace=True, overlap="any", out="exact")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal of (a batch of) matrices; the others become 0."""
    rows, columns = _matrix_sizes(input, "triu")
    device = input._type.device
    return _kept(e.ge(_row(columns, device), e.add(_column(rows, device), diagonal)), input)


def _kept(where: Tensor, x: Tensor) -> Tensor:
    return apply(p.where, where, contiguous(x), constant(0, x._type.dtype, x._type.device))


def _matrix_sizes(x: Tensor, operation: str) -> tuple[int, int]:
    if len(x._type.shape) < 2:
        raise RuntimeError(f"{operation}: input tensor must have at least 2 dimensions")
    return x._type.shape[-2], x._type.shape[-1]


@public(method=True, out="exact")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with a vector on its diagonal."""
    if input.ndim == 2:
        from_matrix = input.diagonal(diagonal)
        return apply(p.copy, from_matrix)
    if input.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    size = input._type.shape[0] + abs(diagonal)
    before = max(-diagonal, 0)
    pads = {"low": (before,), "high": (size - before - input._type.shape[0],), "interior": (0,)}
    rows = apply(p.reshape, apply(p.pad, input, **pads, value=0), shape=(size, 1))
    device = input._type.device
    return _kept(e.eq(_row(size, device), e.add(_column(size, device), diagonal)), rows)


@public()
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Vectors as coordinates of a grid: one tensor of the grid's shape for each."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    shape = tuple(each._type.numel for each in vectors)
    grids = [
        apply(
            p.broadcast,
            reshape(each, (1,) * at + (-1,) + (1,) * (len(shape) - at - 1)),
            shape=shape,
        )
        for at, each in enumerate(vectors)
    ]
    if indexing == "xy" and len(shape) > 1:
        return tuple(transpose(each, 0, 1) for each in grids)
    return tuple(grids)
