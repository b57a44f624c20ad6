"""Reductions: functions that combine the elements along dimensions.

`dim` is one dimension, several, or None for all; `keepdim` leaves reduced ones with size 1.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Primitive, TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same, normalize_axes, normalize_axis, reduce
from ..core import return_types
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply, make_source
from ..core.operands import as_float, as_number, cast, refuse_complex, require_tensor, widened
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import DType, bool_, float32, int64, uint8
from . import elementwise as e

Dims = int | Sequence[int] | None


def _axes(x: Tensor, dim: Dims, operation: str) -> tuple[int, ...]:
    """The axes that `dim` names; none at all, `()`, means all, as in PyTorch."""
    require_tensor(x, operation)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(len(x._type.shape)))
    return normalize_axes(dim, len(x._type.shape))


def _reduce(primitive: Primitive, x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    return apply(primitive, x, axes=axes, keepdims=builtins.bool(keepdim))


# --- sums --------------------------------------------------------------------------------------


@public(method=True, out=True, overlap="any")
def sum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum; integers and booleans sum to int64.

    >>> import tgraph as tg
    >>> tg.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(dim=0)
    tensor([4., 6.])
    """
    return _accumulated("sum", input, _axes(input, dim, "sum"), keepdim, dtype)


def _accumulated(
    name: str, x: Tensor, axes: tuple[int, ...], keepdim: bool, dtype: DType | None
) -> Tensor:
    own = x._type.dtype
    if dtype is None:
        dtype = own if own.is_differentiable else int64
    reduced = _cast_and_reduced if dtype is own else _in_one_kernel
    return reduced(x, name, axes, keepdim, dtype)


def _cast_and_reduced(
    x: Tensor, name: str, axes: tuple[int, ...], keepdim: bool, dtype: DType
) -> Tensor:
    primitive = (_OF_TRUTH if dtype is bool_ else _OF_NUMBERS)[name]
    return _reduce(primitive, cast(x, dtype), axes, keepdim)


_in_one_kernel = planned(_cast_and_reduced)  # which stores no wider elements
_OF_NUMBERS = {"sum": p.sum_, "prod": p.prod}
_OF_TRUTH = {"sum": p.any_, "prod": p.all_}  # whether any is true, or all are


@public(method=True, out=True, overlap="any")
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The product; integers and booleans multiply to int64."""
    return _accumulated("prod", input, _axes(input, dim, "prod"), keepdim, dtype)


@public(method=True, out=True, overlap="any")
@planned
def mean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean of floats; for integers give `dtype` or convert first."""
    require_tensor(input, "mean")
    x = input if dtype is None else cast(input, dtype)
    _require_float(x, "mean")
    axes = _axes(x, dim, "mean")
    count = math.prod(x._type.shape[axis] for axis in axes)
    return cast(e.div(_reduce(p.sum_, widened(x), axes, keepdim), count), x._type.dtype)


def _require_float(x: Tensor, operation: str) -> None:
    if not require_tensor(x, operation)._type.dtype.is_differentiable:
        names = {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char",
                 "uint8": "Byte", "bool": "Bool"}  # fmt: skip
        name = names.get(x._type.dtype.name, x._type.dtype.name)
        raise RuntimeError(
            f"{operation}(): could not infer output dtype. Input dtype must be either a floating "
            f"point or complex dtype. Got: {name}"
        )


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def _split_unbiased(dim: Any, unbiased: bool | None) -> tuple[Dims, bool | None]:
    """`var(False)` gives `unbiased`, not `dim`."""
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


@public(method=True, out=True, overlap="any")
@planned
def var(
    input: Tensor,
    dim: bool | int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance: squared deviations from the mean over n - `correction` (by default 1)."""
    _require_float(input, "var")
    dims, unbiased = _split_unbiased(dim, unbiased)
    variance, _ = _moments(input, dims, _correction(unbiased, correction), keepdim)
    return cast(variance, input._type.dtype.to_real())


def _moments(x: Tensor, dim: Dims, correction: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance and mean, in two passes; of half types in float32.

    What rounding took from the mean is taken from the squares (Chan, Golub and LeVeque, "Algorithms
    for Computing the Sample Variance", 1983, equation 1.7); as it is nothing but rounding, it has
    no gradient.
    """
    if x._type.dtype.is_complex:
        parts = [_moments(part(x, at), dim, correction, keepdim) for at in (0, 1)]
        (spread, center), (other_spread, other_center) = parts
        return e.add(spread, other_spread), apply(p.complex_, center, other_center)
    axes = _axes(x, dim, "var")
    shape, x = x._type.shape, widened(x)
    count = math.prod(shape[axis] for axis in axes)
    center = e.div(_reduce(p.sum_, x, axes, True), count)
    apart = e.sub(x, center)
    squares = _reduce(p.sum_, e.mul(apart, apart), axes, keepdim)
    off = _reduce(p.sum_, apart.detach(), axes, keepdim)
    # Not infinite where squares are: their difference would be NaN.
    most = e.minimum(squares.detach(), float(np.finfo(x._type.dtype.numpy).max))
    error = e.minimum(e.div(e.mul(off, off), count), most)
    variance = e.div(e.sub(squares, error), builtins.max(count - correction, 0))
    if not keepdim:
        center = apply(p.reshape, center, shape=reduce(shape, axes, False))
    return variance, center


@public(method=True, out=True, overlap="any")
@planned
def std(
    input: Tensor,
    dim: bool | int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation: the square root of `var`."""
    _require_float(input, "std")
    dims, unbiased = _split_unbiased(dim, unbiased)
    variance, _ = _moments(input, dims, _correction(unbiased, correction), keepdim)
    return cast(safe_sqrt(variance), input._type.dtype.to_real())


@public()
@planned
def var_mean(
    input: Tensor,
    dim: bool | int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    _require_float(input, "var_mean")
    dims, unbiased = _split_unbiased(dim, unbiased)
    variance, center = _moments(input, dims, _correction(unbiased, correction), keepdim)
    return cast(variance, input._type.dtype.to_real()), cast(center, input._type.dtype)


@public()
@planned
def std_mean(
    input: Tensor,
    dim: bool | int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    _require_float(input, "std_mean")
    dims, unbiased = _split_unbiased(dim, unbiased)
    variance, center = _moments(input, dims, _correction(unbiased, correction), keepdim)
    return cast(safe_sqrt(variance), input._type.dtype.to_real()), cast(center, input._type.dtype)


# --- extremes ----------------------------------------------------------------------------------


def _check_not_empty(x: Tensor, axes: tuple[int, ...], operation: str) -> None:
    for axis in axes:
        if x._type.shape[axis] == 0:
            raise IndexError(f"{operation}(): Expected reduction dim {axis} to have non-zero size.")


def _check_extreme(x: Tensor, dim: Dims, axes: tuple[int, ...], operation: str) -> None:
    if (dim is None or dim == ()) and x._type.numel == 0:
        raise RuntimeError(
            f"{operation}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    _check_not_empty(x, axes, operation)


@public(method=True, out="exact", overlap="any")
def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest elements; all places that hold one share the gradient evenly."""
    axes = _axes(input, dim, "amax")
    _check_extreme(input, dim, axes, "amax")
    return _reduce(p.max_, input, axes, keepdim)


@public(method=True, out="exact", overlap="any")
def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest elements; all places that hold one share the gradient evenly."""
    axes = _axes(input, dim, "amin")
    _check_extreme(input, dim, axes, "amin")
    return _reduce(p.min_, input, axes, keepdim)


@public(method=True, out="exact")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Smallest and largest elements."""
    return return_types.aminmax(amin(input, dim, keepdim), amax(input, dim, keepdim))


@public(method=True, out=True)
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; along `dim`, `(values, indices)`; of two tensors, `maximum`.

    >>> import tgraph as tg
    >>> tg.tensor([[1, 5], [7, 2]]).max(dim=1).indices
    tensor([1, 0])
    """
    return _extreme(input, dim, keepdim, "max", p.max_, p.argmax, e.maximum)


@public(method=True, out=True)
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; along `dim`, `(values, indices)`; of two tensors, `minimum`."""
    return _extreme(input, dim, keepdim, "min", p.min_, p.argmin, e.minimum)


def _extreme(
    x: Tensor,
    dim: Any,
    keepdim: bool,
    name: str,
    whole: Primitive,
    position: Primitive,
    of_two: Any,
) -> Any:
    require_tensor(x, name)
    refuse_complex(name, x)
    if isinstance(dim, Tensor):
        if keepdim and not dim._type.shape:
            return _extreme(x, int(dim), keepdim, name, whole, position, of_two)
        return of_two(x, dim)
    if dim is None:
        axes = tuple(range(len(x._type.shape)))
        _check_extreme(x, None, axes, name)
        return _reduce(whole, x, axes, False)
    if not isinstance(dim, int) or isinstance(dim, bool):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}; a{name} "
                        "takes several dimensions")  # fmt: skip
    made = return_types.max if position is p.argmax else return_types.min
    if not x._type.shape:
        normalize_axis(dim, 0)
        zero = make_source(p.full, x._type.device, shape=(), value=0, dtype=int64)
        return made(apply(p.copy, x), zero)
    axis = normalize_axis(dim, len(x._type.shape))
    _check_not_empty(x, (axis,), name)
    return made(*(_greatest if position is p.argmax else _least)(x, axis, keepdim))


@planned
def _greatest(x: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _at_extreme(p.argmax, x, axis, keepdim)


@planned
def _least(x: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _at_extreme(p.argmin, x, axis, keepdim)


def _at_extreme(position: Primitive, x: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    at = _reduce(position, _ordered(x), (axis,), True)
    values = apply(p.gather, x, at, axis=axis)
    if keepdim:
        return values, at
    shape = reduce(x._type.shape, (axis,), False)
    return apply(p.reshape, values, shape=shape), apply(p.reshape, at, shape=shape)


def _ordered(x: Tensor) -> Tensor:
    return as_number(x)


@public(method=True, out="exact")
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The first position of the largest element, along `dim` or in the flattened tensor."""
    return _position(p.argmax, input, dim, keepdim)


@public(method=True, out="exact")
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The first position of the smallest element, along `dim` or in the flattened tensor."""
    return _position(p.argmin, input, dim, keepdim)


def _position(primitive: Primitive, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    shape = require_tensor(x, primitive.name)._type.shape
    x = _ordered(x)
    if dim is None or not shape:
        if dim is not None:
            normalize_axis(dim, 0)
        if x._type.numel == 0:
            raise IndexError(
                f"{primitive.name}(): Expected reduction dim to be specified for input.numel() == "
                "0. Specify the reduction dim with the 'dim' argument."
            )
        found = _reduce(primitive, apply(p.reshape, x, shape=(x._type.numel,)), (0,), False)
        return apply(p.reshape, found, shape=(1,) * len(shape)) if keepdim else found
    axis = normalize_axis(dim, len(shape))
    _check_not_empty(x, (axis,), primitive.name)
    return _reduce(primitive, x, (axis,), keepdim)


# --- logic -------------------------------------------------------------------------------------


def _truth(x: Tensor) -> Tensor:
    return x if x._type.dtype is bool_ else e.ne(x, 0)


def _logical(primitive: Primitive, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    axes = () if dim == () or dim == [] else _axes(x, dim, primitive.name)  # not all of them
    found = _reduce(primitive, _truth(x), axes, keepdim)
    return cast(found, uint8) if x._type.dtype is uint8 else found


@public(method=True, out="exact")
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is nonzero, as bool (uint8 of uint8, as in PyTorch)."""
    return _logical(p.any_, input, dim, keepdim)


@public(method=True, out="exact")
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are nonzero, as bool (uint8 of uint8, as in PyTorch)."""
    return _logical(p.all_, input, dim, keepdim)


@public(method=True)
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are nonzero, as int64."""
    return sum(_truth(input), dim)


@public(method=True, out=True)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Where `|input - other| <= atol + rtol * |other|`."""
    require_tensor(input, "isclose"), require_tensor(other, "isclose", "other")
    if input._type.dtype is not other._type.dtype:
        raise RuntimeError(f"{input._type.dtype.name} did not match {other._type.dtype.name}")
    for name, number in (("rtol", rtol), ("atol", atol)):
        if number < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {number}")
    close = e.eq(input, other)
    if equal_nan and input._type.dtype.is_differentiable:
        close = e.logical_or(close, e.logical_and(e.isnan(input), e.isnan(other)))
    x, y = (each if each._type.dtype.is_differentiable else cast(each, float32)
            for each in (input, other))  # fmt: skip
    near = e.le(e.abs(e.sub(x, y)), e.add(e.mul(e.abs(y), rtol), atol))
    return e.logical_or(close, e.logical_and(e.isfinite(e.sub(x, y)), near))


@public(method=True)
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close; see `isclose`."""
    return builtins.bool(all(isclose(input, other, rtol, atol, equal_nan)))


@public(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    require_tensor(input, "equal"), require_tensor(other, "equal", "other")
    if input._type.shape != other._type.shape:
        return False
    return builtins.bool(all(e.eq(input, other)))


# --- sums of exponentials, roots ---------------------------------------------------------------


@public(method=True, out=True, overlap="any")
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))), without overflow; -inf where all elements are -inf."""
    x = as_float(input, "logsumexp")
    axes = _axes(x, dim, "logsumexp")
    if builtins.any(x._type.shape[axis] == 0 for axis in axes):
        return e.log(_reduce(p.sum_, x, axes, keepdim))
    wide = _logsumexp(widened(x), axes=axes, keepdims=builtins.bool(keepdim))
    return cast(wide, x._type.dtype)


@composite("logsumexp")
@planned
def _logsumexp(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    peak = _reduce(p.max_, part(x, 0) if x._type.dtype.is_complex else x, axes, True)
    peak = e.where(e.isfinite(peak), peak, 0.0)
    total = e.add(e.log(_reduce(p.sum_, e.exp(e.sub(x, peak)), axes, True)), peak)
    shape = reduce(x._type.shape, axes, keepdims)
    return total if are_same(total._type.shape, shape) else apply(p.reshape, total, shape=shape)


@input_vjp(_logsumexp, saves=(0, OUTPUT))
@planned
def _logsumexp_vjp(g: Tensor, out: Tensor, x: Tensor, axes: Any, keepdims: bool) -> Tensor:
    shape = reduce(x._type.shape, axes, True)
    total, cotangent = (apply(p.reshape, each, shape=shape) for each in (out, g))
    return e.mul(cotangent, conjugate(e.exp(e.sub(x, total))))


@composite("sqrt")
def safe_sqrt(x: Tensor) -> Tensor:
    """The square root, whose gradient is 0 at 0."""
    return apply(p.sqrt, x)


@input_vjp(safe_sqrt, saves=(OUTPUT,))
@planned
def safe_sqrt_vjp(g: Tensor, out: Tensor, x: TensorType) -> Tensor:
    """As of sqrt, and 0 at 0, as PyTorch's std has it."""
    return e.where(e.eq(out, 0), 0, e.div(g, e.mul(out, 2)))
