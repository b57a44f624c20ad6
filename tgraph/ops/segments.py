"""Reductions of consecutive parts of an axis."""

from __future__ import annotations

import math

from ..core.operands import require_tensor
from ..core.tensor import Tensor
from ..core.values import known_values
from . import creation, differences
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .gather_scatter import index_add
from .scans import cumsum
from .scatter_reductions import index_reduce
from .sorting import searchsorted

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_NAMES = {"prod": "prod", "max": "amax", "min": "amin"}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """The "sum", "mean", "max", "min" or "prod" of consecutive parts of `axis`.

    Parts are of these `lengths`, or lie between `offsets`; dimensions before `axis` have their
    own. `initial` is reduced, too, and what an empty part gives.

    >>> import tgraph as tg
    >>> tg.segment_reduce(tg.arange(5.0), "max", lengths=tg.tensor([2, 3]))
    tensor([1., 4.])
    """
    if reduce not in _START:
        raise RuntimeError(f"segment_reduce(): unsupported reduction: {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined, not both.")
    require_tensor(data, "segment_reduce", "data")
    if offsets is not None:
        lengths = differences.diff(offsets)
    assert lengths is not None
    at = m.normalize_axis(axis, data.ndim)
    if lengths.ndim != at + 1 or lengths.shape[:at] != data.shape[:at]:
        raise RuntimeError(
            f"segment_reduce(): expected lengths with the dimensions {list(data.shape[:at])} of "
            f"data before axis {at} and one more, got {list(lengths.shape)}"
        )
    size, parts, inner = data.shape[at], lengths.shape[-1], data.shape[at + 1 :]
    if not unsafe and offsets is None:
        _check(lengths, size)
    outer = math.prod(data.shape[:at])
    rows = m.reshape(data, (outer * size, *inner))
    ends = m.contiguous(cumsum(m.reshape(lengths, outer, parts), 1))
    place = m.expand(creation.arange(size, device=data.device), outer, size)
    part = searchsorted(ends, m.contiguous(place), right=True)
    first = m.reshape(creation.arange(outer, device=data.device), outer, 1)
    part = m.reshape(e.add(e.mul(first, parts), part), -1)
    start = _START[reduce] if initial is None else initial
    begin = creation.full((outer * parts, *inner), start, dtype=data.dtype, device=data.device)
    if not rows._type.numel:
        found = e.add(begin, r.sum(rows))  # of which there is a gradient
    elif reduce in _NAMES:
        found = index_reduce(begin, 0, part, rows, _NAMES[reduce])
    else:
        found = index_add(begin, 0, part, rows)
    if reduce == "mean":
        counts = m.reshape(lengths, -1, *[1] * len(inner)).to(data.dtype)
        empty = math.nan if initial is None else initial
        found = e.where(e.eq(counts, 0), empty, e.div(found, e.clamp(counts, min=1)))
    return m.reshape(found, (*data.shape[:at], parts, *inner))


def _check(lengths: Tensor, size: int) -> None:
    """Where values are known: none negative, and each row adds up to the axis."""
    values, parts = known_values(lengths), lengths.shape[-1]
    if values is None:
        return
    if min(values, default=0) < 0:
        raise RuntimeError("lengths contains negative value!")
    rows = [values[at : at + parts] for at in range(0, len(values), parts)] if parts else [[]]
    if any(sum(row) != size for row in rows):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe."
        )
