"""Places of what is not zero, of which a known number is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import creation
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat
from .sorting import argsort


@public(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` places of what is not 0, in rows; `fill_value` where there are fewer.

    The size is known, so that it can be compiled.

    >>> import tgraph as tg
    >>> tg.nonzero_static(tg.tensor([0, 3, 0, 5]), size=3)
    tensor([[ 1],
            [ 3],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    shape, place = input._type.shape, input._type.device
    found = e.ne(m.reshape(input.detach(), -1), 0)
    count = found._type.shape[0]
    if not shape or not count or not size:
        rows = (size, len(shape))
        return creation.full(rows, fill_value, dtype=int64, device=place)
    at = argsort(found, 0, descending=True, stable=True)[:size]
    is_there = e.lt(creation.arange(size, device=place), r.count_nonzero(found))
    if size > count:
        at = cat([at, creation.zeros(size - count, dtype=at.dtype, device=place)])
    columns = []
    for length in reversed(shape):
        columns.append(e.where(is_there, e.remainder(at, length), fill_value))
        at = e.floor_divide(at, length)
    return m.transpose(m.contiguous(_stacked(columns[::-1])), 0, 1)


def _stacked(columns: Sequence[Tensor]) -> Tensor:
    return cat([m.unsqueeze(each, 0) for each in columns])
