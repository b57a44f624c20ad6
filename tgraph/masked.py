"""Reductions and functions of rows that leave masked elements out: `tgraph.masked`.

`mask` is True where an element counts, and broadcasts to the input. Where none counts the result is
that of no elements: 0 of a sum, -inf of `amax`, NaN of `mean`, `median` and `softmax`. As in
PyTorch, results have the dtype of the input (sums and products of integers are int64) unless
`dtype` says another, positions too. There are no masked tensors: a mask is an argument.

>>> import tgraph as tg
>>> tg.masked.mean(tg.tensor([1.0, 2.0, 9.0]), mask=tg.tensor([True, True, False]))
tensor(1.5000)
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from .core.argument_types import Flag as _Flag
from .core.complex_parts import conjugate as _conjugate
from .core.dtype_info import iinfo as _iinfo
from .core.eager_context import current_context as _current_context
from .core.keywords import publish as _publish
from .core.keywords import with_keywords as _with_keywords
from .core.operands import cast as _cast
from .core.tensor import Tensor
from .nn import functional as _functional
from .ops import creation as _creation
from .ops import elementwise as _e
from .ops import mathematics as _mathematics
from .ops import movement as _movement
from .ops import norms as _norms
from .ops import reductions as _r
from .ops import scans as _scans
from .ops import sorting as _sorting
from .runtime.dtypes import DType, bool_, float32

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
    "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
    "var",
]  # fmt: skip

_Dims = int | Sequence[int] | None


# --- parts ---------------------------------------------------------------------------------------


def _kept(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """`input` with `identity` where it is masked."""
    return input if mask is None else _e.where(_mask_of(input, mask), input, identity)


def _mask_of(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as booleans of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            "input)"
        )
    return _cast(_movement.expand(mask, input._type.shape), bool_)


def _dims(input: Tensor, dim: _Dims) -> tuple[int, ...]:
    """The dimensions that are reduced, from the first; all for None and for ()."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(input.ndim))
    count = builtins.max(input.ndim, 1)
    found: list[int] = []
    for each in (dim,) if isinstance(dim, int) else dim:
        if each in found:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        if not -count <= each < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but "
                f"got {each})"
            )
        found.append(each % count)
    return tuple(sorted(found)) if input.ndim else ()


def _dim(input: Tensor, dim: int) -> int:
    return (*_dims(input, dim), 0)[0]


def _least(input: Tensor) -> Any:
    return _end(input._type.dtype, -math.inf)


def _greatest(input: Tensor) -> Any:
    return _end(input._type.dtype, math.inf)


def _end(dtype: DType, infinity: float) -> Any:
    """What stands in the place of an infinity among the values of `dtype`."""
    if dtype.is_differentiable:
        return infinity
    if dtype is bool_:
        return infinity > 0
    return _iinfo(dtype).max if infinity > 0 else _iinfo(dtype).min


def _as(found: Tensor, input: Tensor, dtype: DType | None) -> Tensor:
    return _cast(found, dtype or input._type.dtype)


# --- reductions ----------------------------------------------------------------------------------


def sum(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False, dtype: DType | None = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The sum of the elements that count.

    >>> import tgraph as tg
    >>> tg.masked.sum(tg.ones(2, 2), 0, mask=tg.tensor([True, False]))
    tensor([2., 0.])
    """
    kept = _kept(input, mask, 0)
    return _r.sum(kept, _dims(kept, dim), keepdim, dtype=dtype)


def prod(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False, dtype: DType | None = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The product of the elements that count."""
    kept = _kept(input, mask, 1)
    return _r.prod(kept, _dims(kept, dim), keepdim, dtype=dtype)  # type: ignore[arg-type]


def amax(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False, dtype: DType | None = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The greatest of the elements that count."""
    kept = _kept(input, mask, _least(input))
    return _as(_r.amax(kept, _dims(kept, dim), keepdim), input, dtype)


def amin(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False, dtype: DType | None = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The least of the elements that count."""
    kept = _kept(input, mask, _greatest(input))
    return _as(_r.amin(kept, _dims(kept, dim), keepdim), input, dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: _Flag = False,
           dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The position of the greatest of the elements that count; of the input's dtype.

    >>> import tgraph as tg
    >>> x, mask = tg.tensor([1.0, 3.0, 2.0]), tg.tensor([True, False, True])
    >>> tg.masked.argmax(x, 0, mask=mask, dtype=tg.int64)
    tensor(2)
    """
    kept = _kept(input, mask, _least(input))
    return _as(_r.argmax(kept, dim, keepdim), input, dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: _Flag = False,
           dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The position of the least of the elements that count; of the input's dtype."""
    kept = _kept(input, mask, _greatest(input))
    return _as(_r.argmin(kept, dim, keepdim), input, dtype)


def _count(input: Tensor, dim: _Dims, keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements count."""
    if mask is None:
        return math.prod(input._type.shape[each] for each in _dims(input, dim))
    return _r.sum(_mask_of(input, mask), _dims(input, dim), keepdim)


def mean(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False, dtype: DType | None = None,
         mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The mean of the elements that count."""
    wanted = dtype or input._type.dtype
    if not wanted.is_differentiable:
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Optional' if dtype else 'Input'} dtype must "
            f"be either a floating point or complex dtype. Got: {wanted}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return _e.div(total, _count(input, dim, keepdim, mask))


def median(input: Tensor, dim: int = -1, *, keepdim: _Flag = False, dtype: DType | None = None,
           mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The lower median of the elements that count; NaNs do not count."""
    is_float = input._type.dtype.is_floating_point
    kept = _kept(input if is_float else _cast(input, float32), mask, math.nan)
    found: Tensor = _sorting.nanmedian(kept, _dim(input, dim), keepdim).values
    if is_float:
        return found
    context = _current_context()
    if not context.tracing and context.host_array(_e.isnan(found), "masked.median()").any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return _as(found, input, dtype)


def norm(input: Tensor, ord: float = 2.0, dim: _Dims = None, *, keepdim: _Flag = False,
         dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """`tgraph.linalg.vector_norm` of the elements that count."""
    kept = _kept(input, mask, math.inf if ord == -math.inf else 0)
    return _norms.vector_norm(kept, ord, _dims(kept, dim), keepdim, dtype=dtype)


def logsumexp(input: Tensor, dim: _Dims = None, *, keepdim: _Flag = False,
              dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The logarithm of the sum of exponentials of the elements that count."""
    kept = _kept(input, mask, _least(input))
    return _as(_r.logsumexp(kept, _dims(kept, dim), keepdim), input, dtype)


def var(input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: _Flag = False, dtype: DType | None = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The variance of the elements that count, divided by their number less `correction`."""
    assert unbiased is None or correction is None, (
        "Only one of unbiased and correction may be given"
    )
    lost = 1.0 if correction is None else float(correction)
    lost = lost if unbiased is None else float(unbiased)
    own = input._type.dtype
    wanted = dtype or (own if own.is_differentiable else float32)
    wide = wanted if wanted.is_differentiable else float32
    total = sum(input, dim, keepdim=True, dtype=wanted, mask=mask)
    apart = _e.sub(input, _e.div(total, _count(input, dim, True, mask)))
    squares = _e.mul(apart, _conjugate(apart) if wide.is_complex else apart)
    total = sum(squares, dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = _count(input, dim, keepdim, mask)
    if isinstance(count, Tensor):
        divisor: Any = _e.clamp(_e.sub(_cast(count, wide.to_real()), lost), min=0)
    else:
        divisor = builtins.max(count - lost, 0)
    return _cast(_e.div(total, divisor), wanted)


def std(input: Tensor, dim: _Dims = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: _Flag = False, dtype: DType | None = None,
        mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The root of `var`."""
    return _e.sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


# --- rows ----------------------------------------------------------------------------------------


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None,
           mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """Sums of the elements so far that count."""
    kept = _kept(input, mask, 0)
    return _as(_scans.cumsum(kept, _dim(kept, dim), dtype=dtype), input, dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None,
            mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """Products of the elements so far that count."""
    kept = _kept(input, mask, 1)
    return _as(_scans.cumprod(kept, _dim(kept, dim), dtype=dtype), input, dtype)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None,
            mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """`tgraph.softmax` of the elements that count, 0 at the others.

    >>> import tgraph as tg
    >>> tg.masked.softmax(tg.zeros(3), 0, mask=tg.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    kept = _kept(input, mask, _least(input))
    return _functional.softmax(kept, _dim(kept, dim), dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None,
                mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The logarithm of `softmax`."""
    kept = _kept(input, mask, _least(input))
    return _functional.log_softmax(kept, _dim(kept, dim), dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None,
            mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """`softmax` of the negative elements."""
    kept = _kept(input, mask, _greatest(input))
    return _functional.softmin(kept, _dim(kept, dim), dtype=dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12,
              dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:  # fmt: skip
    """The elements that count over their norm, or over `eps` where that is less; else 0."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    least = _creation.full((), eps, dtype=size._type.dtype, device=size.device)
    return _e.div(_kept(input, mask, 0), _e.maximum(size, least))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`tgraph.logaddexp`; what is masked counts as -inf.

    >>> import tgraph as tg
    >>> tg.masked.logaddexp(tg.ones(2), tg.ones(2), other_mask=tg.tensor([True, False]))
    tensor([1.6931, 1.0000])
    """
    first = _kept(input, input_mask, _least(input))
    second = _kept(other, other_mask, _least(other))
    return _as(_mathematics.logaddexp(first, second), input, dtype)


_publish(
    globals(),
    {_name: _with_keywords(globals()[_name], name=f"masked.{_name}") for _name in __all__},
)
