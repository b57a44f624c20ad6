"""Scans: running sums, products, extremes and logarithms of sums along a dimension."""

from __future__ import annotations

import math
from typing import Any

from ..compiler.ir import Primitive, TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core import return_types
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.operands import cast, require_tensor, widened
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, Attrs, Cotangents, Wanted, input_vjp, vjp
from ..runtime.dtypes import DType, bool_, int64, uint8
from . import comparison as c
from . import creation
from . import elementwise as e
from . import movement as m
from .creation_options import as_dtype


@public(method=True, inplace=True, out="exact")
@planned
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running sums along `dim`, of elements as `dtype`, where given; integers add up as int64.

    Floats are added in float64 and rounded when stored, so that the error of a long sum of float32
    is one rounding.

    >>> import tgraph as tg
    >>> tg.cumsum(tg.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  3,  6, 10])
    """
    return _accumulated(p.cumsum, input, dim, dtype)


@public(method=True, inplace=True, out="exact")
@planned
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Running products along `dim`, of elements as `dtype`, where given; integers as int64.

    Floats are multiplied in float64 and rounded when stored. The gradient does not divide: it is
    right where elements are zero, too, and so are gradients of it (infinite elements give no NaN,
    as PyTorch's division does).

    >>> import tgraph as tg
    >>> tg.cumprod(tg.tensor([1, 2, 3, 4]), 0)
    tensor([ 1,  2,  6, 24])
    """
    return _accumulated(p.cumprod, input, dim, dtype)


def _accumulated(primitive: Primitive, input: Tensor, dim: int, dtype: DType | None) -> Tensor:
    dtype = as_dtype(dtype)
    input = input if dtype is None else cast(input, dtype)
    x = input if input._type.dtype.is_differentiable else cast(input, int64)
    axis = normalize_axis(dim, max(1, x.ndim))
    found = apply(primitive, x, axis=axis, reverse=False) if x._type.shape else m.clone(x)
    return found if dtype is None or dtype is bool_ else cast(found, dtype)


@public(method=True, out="exact")
def cummax(input: Tensor, dim: int) -> return_types.cummax:
    """`(values, indices)`: the largest elements so far along `dim`, and where they are.

    Of equal ones the last; NaN is larger than any number. The gradient goes where the indices say.

    >>> import tgraph as tg
    >>> tg.cummax(tg.tensor([3, 1, 3, 5, 4]), 0)
    tgraph.return_types.cummax(
    values=tensor([3, 3, 3, 5, 5]),
    indices=tensor([0, 0, 2, 3, 3]))
    """
    return return_types.cummax(*_extremes(p.cummax, input, dim, "cummax"))


@public(method=True, out="exact")
def cummin(input: Tensor, dim: int) -> return_types.cummin:
    """`(values, indices)`: the smallest elements so far along `dim`, and where they are.

    Of equal ones the last; NaN is smaller than any number. The gradient goes where the indices say.

    >>> import tgraph as tg
    >>> tg.cummin(tg.tensor([3, 1, 3, 0, 4]), 0).values
    tensor([3, 1, 1, 0, 0])
    """
    return return_types.cummin(*_extremes(p.cummin, input, dim, "cummin"))


def _extremes(primitive: Primitive, input: Tensor, dim: int, name: str) -> tuple[Tensor, Tensor]:
    require_tensor(input, name)
    axis = normalize_axis(dim, max(1, input.ndim))
    if not input._type.shape:
        zero = creation.zeros((), dtype=int64, device=input._type.device)
        return m.clone(input), zero
    return _values_and_indices(input, primitive.name, axis)


@planned
def _values_and_indices(input: Tensor, name: str, axis: int) -> tuple[Tensor, Tensor]:
    is_bool = input._type.dtype is bool_
    x = cast(input, uint8) if is_bool else input
    values = apply(getattr(p, name), x, axis=axis, reverse=False)
    known = x.detach()
    is_extreme = c.logical_or(c.eq(known, values.detach()), c.ne(known, known))
    size = input._type.shape[axis]
    place = creation.arange(size, device=input._type.device)
    place = m.reshape(place, tuple(size if at == axis else 1 for at in range(input.ndim)))
    found = e.where(is_extreme, place, 0)
    indices = apply(p.cummax, found, axis=axis, reverse=False)
    return (cast(values, bool_) if is_bool else values), indices


@public(method=True, out="exact")
@planned
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of running sums of exponentials along `dim`, which never overflow.

    Each sum is kept relative to the largest element so far (as in Milakov and Gimelshein, "Online
    normalizer calculation for softmax", 2018).

    >>> import tgraph as tg
    >>> tg.logcumsumexp(tg.tensor([0.0, 0.0, 90.0]), 0)
    tensor([ 0.0000,  0.6931, 90.0000])
    """
    require_tensor(input, "logcumsumexp")
    axis = normalize_axis(dim, max(1, input.ndim))
    if not input._type.dtype.is_differentiable:
        raise NotImplementedError(
            f"logcumsumexp(): expected a floating point tensor, but got {input._type.dtype.name}; "
            "convert it with .float()"
        )
    if not input._type.shape or not input._type.shape[axis]:
        return m.clone(input)
    return cast(_logcumsumexp(widened(input), axis=axis), input._type.dtype)


@composite("logcumsumexp")
@planned
def _logcumsumexp(x: Tensor, axis: int) -> Tensor:
    real = part(x, 0) if x._type.dtype.is_complex else x
    largest = apply(p.cummax, real, axis=axis, reverse=False)
    shrinks = e.exp(_difference(shifted(largest, axis, True, -math.inf), largest))
    sums = _linear(cast(shrinks, x._type.dtype), e.exp(_difference(x, largest)), axis, False)
    found = e.add(e.log(sums), largest)
    return _unwound(found, x, axis) if x._type.dtype.is_complex else found


def _unwound(found: Tensor, x: Tensor, axis: int) -> Tensor:
    """Logarithms of running sums on the branch that adding up number by number comes to.

    A sum is the larger number, the sum so far or the next element, times what turns it by no more
    than a right angle.
    """
    before = shifted(found, axis, True, -math.inf)
    goes_on = c.gt(part(before, 0), part(x, 0))
    largest = e.where(goes_on, part(before, 1), part(x, 1))
    turned = e.sub(part(found, 1), largest)
    turned = e.sub(turned, e.mul(e.round(e.div(turned, 2 * math.pi)), 2 * math.pi))
    steps = e.where(goes_on, turned, e.add(largest, turned))
    angles = _linear(cast(goes_on, steps._type.dtype), steps, axis, False)
    rounds = e.round(e.div(e.sub(angles, part(found, 1)), 2 * math.pi))
    imaginary = e.add(part(found, 1), e.mul(rounds, 2 * math.pi))
    return apply(p.complex_, m.clone(part(found, 0)), imaginary)


def _difference(x: Tensor, y: Tensor) -> Tensor:
    """`x - y`, and 0 where they are the same infinity."""
    return e.where(c.eq(x, y), 0.0, e.sub(x, y))


@input_vjp(_logcumsumexp, saves=(0, OUTPUT))
@planned
def _logcumsumexp_vjp(g: Tensor, out: Tensor, x: Tensor, axis: int) -> Tensor:
    """The sum over i of g_i exp(x - out_i), whose terms are those of the next one, made smaller."""
    shrinks = e.exp(_difference(out, shifted(out, axis, False, math.inf)))
    terms = _linear(conjugate(shrinks), g, axis, True)
    return e.mul(terms, conjugate(e.exp(e.sub(x, out))))


def _linear(a: Tensor, b: Tensor, axis: int, reverse: bool) -> Any:
    return apply(p.linear_scan, a, b, axis=axis, reverse=reverse)


# --- gradients ----------------------------------------------------------------------------------


@vjp(p.cumsum)
def _cumsum(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """An element is in all sums behind it, what they start with in all of them."""
    (g,), (_, *start) = cotangents, inputs
    axis, reverse = attrs["axis"], attrs["reverse"]
    found = [apply(p.cumsum, g, axis=axis, reverse=not reverse) if wanted[0] else None]
    return found + [_total(g, each, axis) if wanted[1] else None for each in start]


def _total(g: Tensor, start: TensorType, axis: int) -> Tensor:
    return apply(p.sum_, cast(g, start.dtype), axes=(axis,), keepdims=True)


@vjp(p.cumprod, saves=(0, 1), saves_outputs=lambda wanted: (0,) if len(wanted) == 1 else ())
def _cumprod(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """What is before an element times what is behind it, without dividing: zeros are right too.

    The latter, sum over i of g_i times the product of x from the next element to i, is a scan.
    """
    (x, *start), (axis, reverse) = inputs, (attrs["axis"], attrs["reverse"])
    dtype = x._type.dtype
    g, x = (widened(each) for each in (*cotangents, conjugate(x)))
    found: list[Tensor | None] = []
    if start:
        out = apply(p.cumprod, x, axis=axis, reverse=reverse)
        found = [_total(e.mul(g, out), start[0]._type, axis) if wanted[1] else None]
        g = e.mul(g, cast(conjugate(start[0]), g._type.dtype))
    else:
        out = conjugate(widened(*outputs))
    if not wanted[0]:
        return [None, *found]
    before = shifted(out, axis, not reverse, 1)
    behind = _linear(shifted(x, axis, reverse, 0), g, axis, not reverse)
    return [cast(e.mul(before, behind), dtype), *found]


@vjp(p.cummax, saves=(0,), saves_outputs=(0,))
@vjp(p.cummin, saves=(0,), saves_outputs=(0,))
def _cumulative_extreme(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """To the last of equal extremes so far, where NaN is more extreme than any number."""
    (x, *start), (axis, reverse) = inputs, (attrs["axis"], attrs["reverse"])
    is_extreme = apply(p.logical_or, apply(p.eq, x, *outputs), apply(p.ne, x, x))
    (g,) = map(widened, cotangents)
    stays = cast(apply(p.logical_not, is_extreme), g._type.dtype)
    until_next = _linear(shifted(stays, axis, reverse, 0), g, axis, not reverse)
    found: list[Tensor | None] = [None]
    if wanted[0]:
        found = [cast(e.where(is_extreme, until_next, 0.0), x._type.dtype)]
    first = x._type.shape[axis] - 1 if reverse else 0
    for each in start:
        reaches_start = m.narrow(e.mul(stays, until_next), axis, first, 1)
        found.append(cast(reaches_start, each.dtype) if wanted[1] else None)
    return found


@vjp(p.linear_scan, saves=(0,), saves_outputs=lambda wanted: (0,) if wanted[0] else ())
def _linear_scan(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """What comes back to an element: its own cotangent, and that of the next one times its `a`."""
    (g,), (out,), (a, _) = cotangents, outputs, inputs
    axis, reverse = attrs["axis"], attrs["reverse"]
    back = _linear(shifted(conjugate(a), axis, reverse, 0), g, axis, not reverse)
    return [e.mul(back, shifted(conjugate(out), axis, not reverse, 0)) if wanted[0] else None, back]


def shifted(x: Tensor, axis: int, forwards: bool, value: float) -> Any:
    """Elements one place further along an axis, or back, with `value` coming in."""
    shape, zero = x._type.shape, (0,) * x._type.ndim
    one = tuple(int(at == axis) for at in range(len(shape)))
    if not shape[axis]:
        return x
    stops = tuple(size - by * forwards for size, by in zip(shape, one))
    starts = zero if forwards else one
    kept = apply(p.slice_, x, starts=starts, stops=stops, steps=(1,) * len(shape))
    low, high = (one, zero) if forwards else (zero, one)
    return apply(p.pad, kept, low=low, high=high, interior=zero, value=value)
