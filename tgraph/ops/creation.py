"""Making tensors by rule: of one value, numbers in a row, grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Node, promotion
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import is_open
from ..compiler.ir.layouts import result_strides
from ..compiler.ir.shapes import are_same, contiguous_strides
from ..core.classes import like
from ..core.devices import DeviceLike, as_device
from ..core.dispatch import apply, make_source
from ..core.eager_context import current_context, stored
from ..core.memory_format import MemoryFormat, preserve_format
from ..core.operands import Scalar, cast, is_scalar, on_device, require_tensor
from ..core.overlap import Span
from ..core.public import public
from ..core.sparse_tensor import SPARSE_RULES, NotOnSparseError, SparseTensor
from ..core.tensor import Tensor, strides_of
from ..runtime.device import Device
from ..runtime.dtypes import DType, bool_, complex128, float64, int64
from . import elementwise as e
from .creation_options import as_dtype, check_sizes, finished, options_like
from .movement import as_sizes, permute, reshape, strided, transpose

# --- one value -----------------------------------------------------------------------------------


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
    shape = as_sizes((size,))
    check_sizes(shape)
    wanted = as_dtype(dtype)
    if isinstance(fill_value, Tensor) and not fill_value.ndim:
        value = cast(fill_value, wanted or fill_value._type.dtype)
        value = on_device(value, value._type.device if device is None else as_device(device))
        return finished(apply(p.copy, apply(p.broadcast, value, shape=shape)), requires_grad)
    if not is_scalar(fill_value):
        kind = type(fill_value).__name__
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {kind}")
    wanted = wanted or promotion.scalar_dtype(fill_value)
    return finished(_filled(shape, fill_value, wanted, as_device(device)), requires_grad)


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
    made = zeros(*size, dtype=dtype, device=device)
    if memory_format is not None:
        if memory_format is preserve_format:
            raise RuntimeError("Unsupported memory format: preserve_format")
        made = laid_out(made, memory_format.strides(made._type.shape))
    return finished(made, requires_grad)


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
    """`full` with the shape, dtype, device and order in memory of `input`."""
    if type(input) is SparseTensor:
        raise NotOnSparseError("full_like", input._layout)
    options = options_like(input, {"dtype": dtype, "device": device})
    made = full(input._type.shape, fill_value, **options)
    return finished(made_like(input, made, memory_format), requires_grad)


def made_like(input: Tensor, made: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """A new tensor in the order of `input`, or as `memory_format` says, and of its class."""
    shape, array = input._type.shape, input._value
    if memory_format is None and type(array) is np.ndarray and array.flags.c_contiguous:
        return like(input, made)
    if memory_format is None or memory_format is preserve_format:
        strides = result_strides(p.copy, {}, shape, [(shape, strides_of(input))])
    else:
        strides = memory_format.strides(shape)
    return like(input, laid_out(made, strides))


def laid_out(made: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A new tensor with these strides."""
    shape = made._type.shape
    if are_same(strides, contiguous_strides(shape)) or 0 in shape:
        return made
    return apply(p.copy, made, strides=strides)


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
    return like(input, full(size, fill_value, **options_like(input, options)))


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
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
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
    extent = sum((wide - 1) * step for wide, step in zip(shape, steps)) + 1
    line = zeros(extent if 0 not in shape else 0, dtype=dtype, device=device)
    shown = reshape(line, shape) if 0 in shape else strided(line, Span(0, shape, steps))
    return finished(shown, requires_grad)


@public()
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
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
    made = zeros([shape[axis] for axis in order], dtype=dtype, device=device)
    return finished(permute(made, [order.index(axis) for axis in range(len(order))]), requires_grad)


@public(function=False, method=True)
def new_empty_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], **options: Any
) -> Tensor:
    """As `empty_strided`, with the dtype and device of `input` unless given."""
    return like(input, empty_strided(size, stride, **options_like(input, options)))


@public()
def scalar_tensor(
    value: Any, *, dtype: Any = None, device: DeviceLike = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of a number."""
    return full((), value, dtype=as_dtype(dtype) or promotion.default_dtype,
                device=device, requires_grad=requires_grad)  # fmt: skip


# --- numbers in a row ----------------------------------------------------------------------------


@public(out="exact")
def arange(
    start: Scalar | None = None,
    end: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` (0) up to `end`, which is left out, `step` apart.

    >>> import tgraph as tg
    >>> tg.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])

    Of a `dtype` of integers the start and the step are cut to such.
    """
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    if end is None:
        raise TypeError("arange() missing the end of the numbers: arange(end), arange(start, end)")
    given = [_number(each) for each in (start, end, step)]
    for each in given:
        if isinstance(each, complex):
            raise RuntimeError(f"arange(): expected real numbers, got {each}")
    first, last, by = given
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not all(map(_is_finite, (first, last))):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * by < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    is_float = any(isinstance(each, float) for each in given)
    wanted = as_dtype(dtype) or (promotion.default_dtype if is_float else int64)
    if wanted is bool_:
        raise NotImplementedError("\"arange\" not implemented for 'Bool'")
    if wanted is int64:
        first, last, by = whole_numbers(first, last, by)
    count = math.ceil((last - first) / by) if is_float else -((first - last) // by)
    if wanted.is_integral and is_float:
        first, by = int(first), int(by)  # but as many as of the others, as in PyTorch
    return finished(_sequence(count, first, by, wanted, as_device(device)), requires_grad)


def whole_numbers(first: Any, last: Any, by: Any) -> tuple[int, int, int]:
    """What PyTorch counts with where int64 is wanted; ValueError where the step is less than 1.

    Open sizes stay open: they are whole already.
    """
    first, last, by = (each if is_open(each) else int(each) for each in (first, last, by))
    if by == 0:
        raise ValueError("step must be nonzero")
    return first, last, by


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
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: int,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, equally far apart."""
    wanted = _dtype_of_steps("linspace", start, end, steps, as_dtype(dtype))
    if _is_unknown(start) or _is_unknown(end):
        return finished(cast(_line(start, end, steps, as_device(device)), wanted), requires_grad)
    values = _line_of_numbers(_number(start), _number(end), steps)
    result = current_context().array_constant(values.astype(wanted.numpy), as_device(device))
    return finished(result, requires_grad)


def _line_of_numbers(start: Any, end: Any, steps: int) -> np.ndarray:
    """The numbers of `linspace`, in double precision: from both ends to the middle, as PyTorch
    has them, so that those cut to integers are the same."""
    step = (end - start) / max(steps - 1, 1)
    number = np.arange(steps)
    return np.where(
        number < max(steps // 2, 1), start + number * step, end - (steps - 1 - number) * step
    )


def _dtype_of_steps(name: str, start: Any, end: Any, steps: int, dtype: DType | None) -> DType:
    """The type of the numbers; an error for ends, a count or a type that give none."""
    for which, each in (("start", start), ("end", end)):
        if isinstance(each, Tensor) and each.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with "
                f"{each.ndim} dimension(s)"
            )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is bool_:
        raise NotImplementedError(f"{name}() is not implemented for bool")
    if not (_is_complex(start) or _is_complex(end)):
        return dtype or promotion.default_dtype
    if dtype is not None and not dtype.is_complex:
        raise RuntimeError(f"{name}(): numbers between complex ends do not fit into {dtype.name}")
    return dtype or promotion.default_dtype.to_complex()


def _is_unknown(value: Any) -> bool:
    """Whether it is a tensor of a traced function, which compiled code computes."""
    return isinstance(value, Tensor) and type(value._value) is Node


def _line(start: Any, end: Any, steps: int, device: Device) -> Tensor:
    """`_line_of_numbers` between ends that are not known yet."""
    double = complex128 if any(_is_complex(each) for each in (start, end)) else float64
    first, last = (
        cast(each.detach(), double) if isinstance(each, Tensor) else each for each in (start, end)
    )
    number = current_context().array_constant(np.arange(float(steps)), device)
    step = e.div(e.sub(last, first), max(steps - 1, 1))
    below = e.add(first, e.mul(number, step))
    above = e.sub(last, e.mul(e.sub(steps - 1, number), step))
    return e.where(e.lt(number, max(steps // 2, 1)), below, above)


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)


@public(out="exact")
def logspace(
    start: Tensor | Scalar,
    end: Tensor | Scalar,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`base` to the powers `linspace(start, end, steps)`."""
    wanted = _dtype_of_steps("logspace", start, end, steps, as_dtype(dtype))
    if _is_unknown(start) or _is_unknown(end):
        powers = e.pow(base, _line(start, end, steps, as_device(device)))
        return finished(cast(powers, wanted), requires_grad)
    values = np.logspace(_number(start), _number(end), steps, base=base)
    result = current_context().array_constant(values.astype(wanted.numpy), as_device(device))
    return finished(result, requires_grad)


# --- matrices and grids --------------------------------------------------------------------------


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
    on = e.eq(counted_column(n, place), counted_row(n if m is None else m, place))
    return finished(cast(on, wanted), requires_grad)


def counted_row(size: int, device: Device) -> Tensor:
    """The integers below `size`, as a row that stands for columns of a matrix."""
    return make_source(p.iota, device, size=size, dtype=int64)


def counted_column(size: int, device: Device) -> Tensor:
    """The integers below `size`, one above the other."""
    return apply(p.reshape, counted_row(size, device), shape=(size, 1))


def _check_vectors(vectors: Sequence[Tensor]) -> None:
    """RuntimeError for what makes no grid."""
    if not len(vectors):
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    first = vectors[0]
    for each in vectors:
        if require_tensor(each, "meshgrid", "tensors").ndim > 1:
            raise RuntimeError(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape "
                f"{list(each._type.shape)}"
            )
        if each._type.dtype is not first._type.dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, got "
                f"{first._type.dtype.name} and {each._type.dtype.name}"
            )
        if each._type.device is not first._type.device:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same device, got "
                f"{first._type.device} and {each._type.device}"
            )


@public()
def meshgrid(*tensors: Any, indexing: str | None = "ij") -> tuple[Tensor, ...]:
    """Vectors as coordinates of a grid: one tensor of the grid's shape for each."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    if indexing not in ("ij", "xy", None):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    _check_vectors(vectors)
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
