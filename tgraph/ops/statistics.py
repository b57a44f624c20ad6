"""Statistics of samples: quantiles, moments without NaN, covariances, counts in bins."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core import return_types
from ..core.complex_parts import conjugate
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import Scalar, as_float, cast, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import DType, bool_, float32, float64, int64
from . import creation, from_data
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .gather_scatter import scatter_add
from .linalg import matmul
from .reductions import Dims
from .sorting import searchsorted, sort

# --- without NaN ---------------------------------------------------------------------------------


@public(method=True, out=True, overlap="any")
def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum of what is not NaN.

    >>> import tgraph as tg
    >>> tg.nansum(tg.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    require_tensor(input, "nansum")
    return r.sum(e.where(e.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@public(method=True, out=True, overlap="any")
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean of what is not NaN; NaN where there is nothing else.

    >>> import tgraph as tg
    >>> tg.nanmean(tg.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    if not require_tensor(input, "nanmean")._type.dtype.is_differentiable:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got "
            f"{input._type.dtype.name}"
        )
    count = r.sum(e.logical_not(e.isnan(input)), dim, keepdim)
    return e.div(nansum(input, dim, keepdim, dtype=dtype), count)


# --- quantiles -----------------------------------------------------------------------------------


@public(method=True, out="exact", overlap="any")
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """What a share `q` of the elements along `dim` are below; of all, without `dim`.

    Between two elements `interpolation` decides: "linear", "lower", "higher", "midpoint" or
    "nearest". Several `q` are the first dimension of the result. NaN where there is one.

    >>> import tgraph as tg
    >>> tg.quantile(tg.tensor([0.0, 1.0, 2.0, 3.0]), 0.25)
    tensor(0.7500)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@public(method=True, out="exact", overlap="any")
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """`quantile` of what is not NaN.

    >>> import tgraph as tg
    >>> tg.nanquantile(tg.tensor([0.0, float("nan"), 2.0]), 0.5)
    tensor(1.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(
    name: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, how: str, without_nan: bool
) -> Tensor:
    if require_tensor(x, name)._type.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if how not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {how}"
        )
    if not x._type.numel:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = creation.full_like(x, q) if not x.ndim else creation.new_full(x, (), q)
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q._type.dtype is not x._type.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q._type.device is not x._type.device:
        raise RuntimeError(
            f"{name}() q tensor must be on the same device as the input tensor, which is on "
            f"{x.device}, but it is on {q.device}"
        )
    ndim, axis = x.ndim, None if dim is None else normalize_axis(dim, x.ndim)
    rows = m.reshape(x, -1) if axis is None or not ndim else m.movedim(x, axis, -1)
    found = _of_rows(rows, m.reshape(q, -1), how, without_nan)
    if keepdim:
        if axis is None:
            found = m.reshape(found, (*([1] * ndim), found._type.shape[-1]))
        else:
            found = m.unsqueeze(found, axis) if ndim else found
    return m.movedim(found, -1, 0) if q.ndim else m.squeeze(found, -1)


@planned
def _of_rows(rows: Tensor, q: Tensor, how: str, without_nan: bool) -> Tensor:
    """Quantiles of rows, as the last axis; sorting puts NaN behind all else."""
    ordered, size = sort(rows).values, rows._type.shape[-1]
    unknown = e.isnan(ordered)
    last: Any = size - 1
    if without_nan:
        count = r.sum(e.logical_not(unknown), -1, True)
        last = e.clamp(e.sub(cast(count, rows._type.dtype), 1), min=0)
    place = e.mul(q, last)
    if not without_nan:
        place = m.expand(place, (*rows._type.shape[:-1], q._type.numel))
        whole = m.select(unknown, -1, size - 1)
        place = e.where(m.unsqueeze(whole, -1), size - 1.0, place)
    if how in ("lower", "higher", "nearest"):
        place = {"lower": e.floor, "higher": e.ceil, "nearest": e.round}[how](place)
    below = e.floor(place)
    first = apply(p.gather, ordered, cast(below, int64), axis=rows.ndim - 1)
    if how in ("lower", "higher", "nearest"):
        return first
    second = apply(p.gather, ordered, cast(e.ceil(place), int64), axis=rows.ndim - 1)
    weight: Any = 0.5 if how == "midpoint" else e.sub(place, below)
    return e.lerp(first, second, weight)


# --- covariances ---------------------------------------------------------------------------------


@public(method=True)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of variables, which are rows, over observations, which are columns.

    `fweights` says how often each observation is there, `aweights` how much it counts.

    >>> import tgraph as tg
    >>> tg.cov(tg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if require_tensor(input, "cov").ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    if input._type.dtype is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = as_float(input, "cov")
    rows = m.reshape(x, 1, -1) if x.ndim < 2 else x
    count = rows._type.shape[1]
    _check_weights("fweights", fweights, count, "integral")
    _check_weights("aweights", aweights, count, "floating point")
    weights: Any = fweights
    if aweights is not None:
        weights = aweights if fweights is None else e.mul(aweights, fweights)
    total: Any = count if weights is None else r.sum(weights)
    if weights is None:
        center = r.mean(rows, 1, True) if count else r.sum(rows, 1, True)
    else:
        center = e.div(r.sum(e.mul(rows, weights), 1, True), total)
    if aweights is not None and correction:
        lost = e.div(r.sum(e.mul(weights, aweights)), total)
        norm: Any = e.sub(total, e.mul(lost, correction))
    elif weights is None:
        norm = max(count - correction, 0)
    else:
        norm = e.sub(total, correction)
    apart = e.sub(rows, center)
    right = apart if weights is None else e.mul(apart, weights)
    if isinstance(norm, Tensor):
        norm = e.clamp(norm, min=0)
    found = e.div(matmul(apart, conjugate(m.transpose(right, 0, 1))), norm)
    return found if input.ndim == 2 and rows._type.shape[0] != 1 else m.squeeze(found)


def _check_weights(name: str, weights: Tensor | None, count: Any, kind: str) -> None:
    """RuntimeError unless there is one for each observation, none of them negative.

    What traced code computes is taken for no negative numbers.
    """
    if weights is None:
        return
    dtype = require_tensor(weights, "cov", name)._type.dtype
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{weights.ndim} dimensions"
        )
    if dtype.is_floating_point is (kind == "integral") or dtype.is_complex or dtype is bool_:
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {dtype.name} dtype"
        )
    if weights._type.numel != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {weights._type.numel} != {count}"
        )
    context = current_context()
    if not context.tracing and (context.host_array(weights, "cov()") < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The coefficients of correlation of variables, which are rows; see `cov`.

    >>> import tgraph as tg
    >>> tg.corrcoef(tg.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if require_tensor(input, "corrcoef").ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    found = cov(input)
    if not found.ndim:
        return e.div(found, found)
    scale = e.sqrt(m.diagonal(found))
    found = e.div(e.div(found, m.unsqueeze(scale, -1)), m.unsqueeze(scale, 0))
    return found if found._type.dtype.is_complex else e.clamp(found, -1, 1)


# --- order ---------------------------------------------------------------------------------------


@public(out="exact", method=True)
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension."""
    return sort(input, 0).values if input.ndim else m.clone(input)


@public(method=True, out="exact")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> return_types.mode:
    """The least of the elements that are there most often along `dim`, and where its last one is.

    >>> import tgraph as tg
    >>> tg.mode(tg.tensor([2, 1, 2, 1, 3])).values
    tensor(1)
    """
    axis = normalize_axis(dim, require_tensor(input, "mode").ndim)
    if not input.ndim:
        return return_types.mode(m.clone(input), creation.zeros_like(input, dtype=int64))
    rows = m.movedim(input, axis, -1)
    at = _most_frequent(rows.detach())
    values = apply(p.gather, rows, at, axis=rows.ndim - 1)
    values, at = m.movedim(values, -1, axis), m.movedim(at, -1, axis)
    if not keepdim:
        values, at = m.squeeze(values, axis), m.squeeze(at, axis)
    return return_types.mode(values, at)


@planned
def _most_frequent(rows: Tensor) -> Tensor:
    """By comparing all elements of a row with all others."""
    same = e.eq(m.unsqueeze(rows, -1), m.unsqueeze(rows, -2))
    counts = r.sum(same, -1)
    often = e.eq(counts, r.amax(counts, -1, True))
    ordered = sort(rows)
    often = apply(p.gather, often, ordered.indices, axis=rows.ndim - 1)
    first = r.argmax(cast(often, int64), -1, True)
    value = apply(p.gather, ordered.values, first, axis=rows.ndim - 1)
    places = creation.arange(rows._type.shape[-1], device=rows.device)
    return r.amax(e.where(e.eq(rows, value), places, 0), -1, True)


@public(out="exact")
def bucketize(
    input: Tensor | Scalar, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Which interval between ascending `boundaries` each element is in: see `searchsorted`.

    >>> import tgraph as tg
    >>> tg.bucketize(tg.tensor([0.5, 2.0]), tg.tensor([1.0, 2.0, 3.0]))
    tensor([0, 1])
    """
    if require_tensor(boundaries, "bucketize", "boundaries").ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    values = input if isinstance(input, Tensor) else from_data.tensor(input)
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)


@public(out="exact")
def isin(
    elements: Tensor | Scalar,
    test_elements: Tensor | Scalar,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Where an element is one of `test_elements`; with `invert`, where it is none of them.

    >>> import tgraph as tg
    >>> tg.isin(tg.tensor([1, 2, 3]), tg.tensor([2, 5]))
    tensor([False,  True, False])
    """
    x, y = (
        each if isinstance(each, Tensor) else from_data.tensor(each)
        for each in (elements, test_elements)
    )
    found = r.any(e.eq(m.unsqueeze(x, -1), m.reshape(y, -1)), -1)
    found = cast(found, bool_)
    return e.logical_not(found) if invert else found


def _finite_end(number: Scalar) -> Scalar:
    """An end of a range; a boolean as the number that it is."""
    if isinstance(number, complex):
        raise RuntimeError(f"histc(): expected ends that are real numbers, got {number}")
    return int(number) if isinstance(number, bool) else number


@public(method=True, out="exact", overlap="any")
def histc(input: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor:
    """How many elements are in each of `bins` equal intervals from `min` to `max`.

    Where the two are equal, from the least element to the largest.

    >>> import tgraph as tg
    >>> tg.histc(tg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    min, max = (_finite_end(each) for each in (min, max))
    x = m.reshape(require_tensor(input, "histc").detach(), -1)
    low: Any = min
    high: Any = max
    if min == max:
        if x._type.numel:
            low, high = r.amin(x), r.amax(x)
        same = e.eq(e.sub(high, low), 0) if isinstance(low, Tensor) else True
        if isinstance(low, Tensor):
            low, high = e.where(same, e.sub(low, 1), low), e.where(same, e.add(high, 1), high)
        else:
            low, high = low - 1, high + 1
    elif min > max:
        raise RuntimeError("max must be larger than min")
    wide = e.div(e.mul(e.sub(cast(x, float64), low), bins), e.sub(high, low))
    inside = e.logical_and(e.ge(x, low), e.le(x, high))
    at = e.clamp(e.floor(e.where(inside, wide, 0.0)), 0, bins - 1)
    zeros = creation.new_zeros(x, (bins,))
    return scatter_add(zeros, 0, cast(at, int64), cast(inside, x._type.dtype))
