"""Primitives that read or write at positions given by integer tensors.

- `gather(x, index; axis)`: result[..., i, ...] = x[..., index[..., i, ...], ...] along `axis`;
  the other axes of `index` are not longer than those of `x`;
- `scatter_add(x, index, src; axis)`: the transpose of gather, added onto `x`;
- `index(x, i0, ..., ik; axis)`: the index tensors have one shape I and replace axes
  axis..axis+k of `x` by I (NumPy's advanced indexing of neighbouring axes);
- `index_put(x, i0, ..., ik, values; axis, accumulate)`: the transpose of index: writes `values`
  over `x`, or adds them where `accumulate`; without it, the last of several writes wins.

Positions are int64 or int32, not negative (functions that accept negative positions wrap them
first); one outside the axis is an IndexError wherever it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import int32, int64
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType


def _check_positions(types: Sequence[TensorType]) -> None:
    for each in types:
        if each.dtype not in (int32, int64):
            raise IRTypeError(f"positions must be int64 or int32, got {each}")


def _infer_gather(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    operand, index = types
    axis = attrs["axis"]
    _check_positions([index])
    fits = operand.ndim == index.ndim and 0 <= axis < operand.ndim
    if not fits or any(
        at != axis and wanted > size
        for at, (size, wanted) in enumerate(zip(operand.shape, index.shape, strict=True))
    ):
        raise IRTypeError(f"gather along axis {axis}: index {index} does not fit {operand}")
    return operand.with_shape(index.shape)


def _infer_scatter_add(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    base, index, source = types
    _infer_gather([base, index], attrs)
    if source.dtype is not base.dtype or source.shape != index.shape:
        raise IRTypeError(f"scatter_add: source {source} does not fit {base} at {index}")
    return base


def indexed_shape(base: TensorType, indices: Sequence[TensorType], axis: int) -> tuple[int, ...]:
    """The shape of `index(base, *indices; axis)`; IRTypeError if they do not fit."""
    _check_positions(indices)
    end = axis + len(indices)
    if not indices or not axis >= 0 or end > base.ndim:
        raise IRTypeError(f"{len(indices)} index tensors at axis {axis} do not fit {base}")
    if any(each.shape != indices[0].shape for each in indices):
        raise IRTypeError(f"index tensors must share one shape, got {[str(i) for i in indices]}")
    return (*base.shape[:axis], *indices[0].shape, *base.shape[end:])


def _infer_index(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    base, *indices = types
    return base.with_shape(indexed_shape(base, indices, attrs["axis"]))


def _infer_index_put(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    base, *indices, values = types
    if values != base.with_shape(indexed_shape(base, indices, attrs["axis"])):
        raise IRTypeError(f"index_put: values {values} do not fit {base}")
    return base


gather = register(Primitive("gather", Family.GATHER, _infer_gather, arity=2, exact=True))
index = register(Primitive("index", Family.GATHER, _infer_index, exact=True))
scatter_add = register(Primitive("scatter_add", Family.SCATTER, _infer_scatter_add, arity=3))
index_put = register(Primitive("index_put", Family.SCATTER, _infer_index_put))
