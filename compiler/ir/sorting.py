"""The order of elements along the last axis: NaN counts as larger than every number.

- `argsort(x; count, descending)`: the positions of the first `count` elements of each row in
  order, int64; equal elements keep theirs;
- `select_nth(x; rank)`: where the element of that rank is in each row, from 0, int64, one per row:
  `argsort(x)[..., rank : rank + 1]`;
- `sort(x; descending)`: the elements in order. Zeros of both signs are equal and keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import int64
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType


def _infer_argsort(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (x,), count = types, attrs["count"]
    if x.dtype.is_complex:
        raise IRTypeError(f"complex numbers have no order, got {x}")
    if not x.shape or not 0 <= count <= x.shape[-1]:
        raise IRTypeError(f"argsort cannot take the first {count} of rows of {x}")
    return TensorType((*x.shape[:-1], count), int64, x.device)


def _infer_select_nth(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (x,), rank = types, attrs["rank"]
    if x.dtype.is_complex:
        raise IRTypeError(f"complex numbers have no order, got {x}")
    if not x.shape or not 0 <= rank < x.shape[-1]:
        raise IRTypeError(f"select_nth cannot take rank {rank} of rows of {x}")
    return TensorType((*x.shape[:-1], 1), int64, x.device)


def _infer_sort(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    (x,) = types
    if not x.shape or x.dtype.is_complex:
        raise IRTypeError(f"sort expected rows, got {x}")
    return x


argsort = register(
    Primitive("argsort", Family.SORT, _infer_argsort, arity=1, exact=True, discontinuous=True)
)
select_nth = register(
    Primitive("select_nth", Family.SORT, _infer_select_nth, arity=1, exact=True, discontinuous=True)
)
sort = register(Primitive("sort", Family.SORT, _infer_sort, arity=1, exact=True))
