"""Parts of sparse tensors, sparse tensors put together, and dimensions in another order or form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.layouts import sparse_coo, sparse_csc, sparse_csr
from ..core.sparse_tensor import (
    SPARSE_RULES,
    NotOnSparseError,
    SparseTensor,
    make_sparse,
    refuse,
)
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import creation, from_data
from . import elementwise as e
from . import movement as m
from .concatenation import cat, stack
from .gather_scatter import index_select, repeat_interleave
from .scans import cumsum
from .sorting import argsort, searchsorted
from .sparse_parts import (
    coalesce,
    coo_indices,
    flat_places,
    in_layout,
    places_of,
    sparse_dim,
    sparse_sizes,
)


def _require_coo(x: SparseTensor, operation: str) -> None:
    if x._layout is not sparse_coo:
        raise NotOnSparseError(operation, x._layout, "to_sparse_coo() gives a tensor that has it")


def _coo(at: Tensor, elements: Tensor, shape: Sequence[int], ordered: bool = False) -> SparseTensor:
    is_ordered = ordered or at.shape[1] < 2
    return make_sparse(sparse_coo, (at,), elements, tuple(shape), is_ordered)


# --- several tensors -----------------------------------------------------------------------------


def _concatenate(*tensors: Tensor, axis: int) -> SparseTensor:
    """Of tensors that are all of layout `sparse_coo`, with as many sparse dimensions."""
    for each in tensors:
        if not isinstance(each, SparseTensor):
            raise RuntimeError("cat: expected tensors that are all sparse, got a strided one")
        _require_coo(each, "concatenate")
    parts = [each for each in tensors if isinstance(each, SparseTensor)]
    count = sparse_dim(parts[0])
    if any(sparse_dim(each) != count for each in parts):
        raise RuntimeError(
            "cat: expected tensors with one number of sparse dimensions, got "
            f"{[sparse_dim(each) for each in parts]}"
        )
    shape, before, places, elements = list(parts[0]._type.shape), 0, [], []
    total = sum(each._type.shape[axis] for each in parts)
    for each in parts:
        at, values, size = each._positions[0], each._elements, each._type.shape[axis]
        if axis < count:
            at = _moved(at, axis, before)
        else:  # between zeros, where the others have their elements
            sides = (list(values.shape), list(values.shape))
            sides[0][1 + axis - count], sides[1][1 + axis - count] = before, total - before - size
            zeros = [
                creation.zeros(side, dtype=values.dtype, device=values.device) for side in sides
            ]
            values = cat([zeros[0], values, zeros[1]], 1 + axis - count)
        places.append(at)
        elements.append(values)
        before += size
    shape[axis] = total
    return _coo(cat(places, 1), cat(elements), shape)


def _moved(at: Tensor, axis: int, by: int) -> Tensor:
    """Positions (dimensions, number), further on along one dimension."""
    if not by:
        return at
    steps = [by if each == axis else 0 for each in range(at.shape[0])]
    return e.add(at, from_data.tensor(steps, dtype=int64, device=at.device).unsqueeze(1))


# --- parts ---------------------------------------------------------------------------------------


def _along(x: SparseTensor, axis: int, operation: str) -> int | None:
    """The dimension of the values that `axis` is, None for a sparse one."""
    _require_coo(x, operation)
    return 1 + axis - sparse_dim(x) if axis >= sparse_dim(x) else None


def _index(x: Tensor, *indices: Tensor, axis: int) -> SparseTensor:
    """Some places of a dimension, in any order; how many values these have is read."""
    if not isinstance(x, SparseTensor) or len(indices) != 1 or indices[0].ndim != 1:
        layout = x._layout if isinstance(x, SparseTensor) else sparse_coo
        raise NotOnSparseError("indexing by tensors", layout, "index_select() is there for COO")
    (wanted,) = indices
    inner = _along(x, axis, "index_select")
    size, shape = x._type.shape[axis], list(x._type.shape)
    if wanted.shape[0] and not 0 <= int(wanted.amin()) <= int(wanted.amax()) < size:
        raise IndexError(
            f"index_select(): index contains what is out of range for dimension {axis} with size "
            f"{size}"
        )
    shape[axis] = wanted.shape[0]
    if inner is not None:
        return _coo(x._positions[0], index_select(x._elements, inner, wanted), shape, x._coalesced)
    x = coalesce(x)
    at = x._positions[0]
    order = argsort(at[axis], 0, stable=True)
    there = index_select(at[axis], 0, order)
    first = searchsorted(there, wanted.to(int64))
    counts = e.sub(searchsorted(there, wanted.to(int64), right=True), first)
    result = repeat_interleave(creation.arange(wanted.shape[0], device=x.device), counts)
    begins = index_select(e.sub(first, e.sub(cumsum(counts, 0), counts)), 0, result)
    line = creation.arange(result.shape[0], device=x.device)
    source = index_select(order, 0, e.add(begins, line))
    rows = [
        result if each == axis else index_select(at[each], 0, source) for each in range(at.shape[0])
    ]
    return _coo(stack(rows), index_select(x._elements, 0, source), shape, axis == 0)


def _slice(
    x: SparseTensor, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]
) -> SparseTensor:
    """What lies from `starts` to `stops`; how many values that has is read."""
    shape = tuple(stop - start for start, stop in zip(starts, stops))
    if any(step != 1 for step in steps):
        raise NotOnSparseError("slicing by steps", x._layout)
    if shape == tuple(x._type.shape):
        return x
    _require_coo(x, "slicing")
    count, at = sparse_dim(x), x._positions[0]
    elements = x._elements
    for axis in range(count, x.ndim):
        elements = elements.narrow(1 + axis - count, starts[axis], shape[axis])
    low, high = (
        from_data.tensor(list(each[:count]), dtype=int64, device=x.device).unsqueeze(1)
        for each in (starts, stops)
    )
    inside = e.ge(at, low).logical_and(e.lt(at, high)).all(0)
    kept = m.reshape(inside.nonzero(), -1)
    at = e.sub(index_select(at, 1, kept), low)
    return _coo(at, index_select(elements, 0, kept), shape, x._coalesced)


def select(self: SparseTensor, dim: int, index: int) -> Tensor:
    """What lies at one position of a dimension; of CSR and CSC in layout `sparse_coo`."""
    if not -self.ndim <= dim < self.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], "
            f"but got {dim})"
        )
    x, size = coalesce(in_layout(self, sparse_coo)), self._type.shape[dim]
    dim %= self.ndim
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    shape = (*x._type.shape[:dim], *x._type.shape[dim + 1 :])
    at = x._positions[0]
    if dim >= sparse_dim(x):
        return _coo(at, x._elements.select(1 + dim - sparse_dim(x), index), shape, True)
    kept = m.reshape(e.eq(at[dim], index % size).nonzero(), -1)
    elements = index_select(x._elements, 0, kept)
    if sparse_dim(x) == 1:
        return elements.sum(0)
    others = [each for each in range(sparse_dim(x)) if each != dim]
    rows = index_select(at, 0, from_data.tensor(others, dtype=int64, device=x.device))
    return _coo(index_select(rows, 1, kept), elements, shape, True)


def getitem(self: SparseTensor, key: Any) -> Tensor:
    """`x[i]`, `x[i, j]`, `x[:, j]`: integers, whole dimensions and new ones."""
    keys = key if isinstance(key, tuple) else (key,)
    whole = slice(None)
    known = all(each is None or each is ... or each == whole or _is_int(each) for each in keys)
    if not known or sum(each is ... for each in keys) > 1:
        refuse("indexing with anything but integers, `:`, `...` and None")(self)
    named = sum(each is not None and each is not ... for each in keys)
    if named > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    found: Tensor = self
    at = 0
    for each in keys:
        if each is ...:
            at += self.ndim - named
        elif each is None:
            found, at = m.unsqueeze(found, at), at + 1
        elif each == whole:
            at += 1
        else:
            found = found.select(at, int(each))
    return found


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def unbind(self: SparseTensor, dim: int = 0) -> list[Tensor]:
    """What lies at each position of a dimension."""
    return [select(self, dim, index) for index in range(self._type.shape[dim])]


def iterate(self: SparseTensor) -> Iterator[Tensor]:
    """`x[0]`, `x[1]` and so on."""
    return iter(unbind(self))


# --- dimensions ----------------------------------------------------------------------------------


def _reshape(x: SparseTensor, shape: Sequence[int]) -> SparseTensor:
    """Another shape of the same elements: of the sparse dimensions or of those of the values."""
    if tuple(shape) == tuple(x._type.shape):
        return x
    _require_coo(x, "reshape")
    sizes, count = sparse_sizes(x), sparse_dim(x)
    rest = tuple(x._type.shape[count:])
    outer = shape[: len(shape) - len(rest)]
    if tuple(shape[len(outer) :]) == rest and math.prod(outer) == math.prod(sizes):
        at = places_of(flat_places(x._positions[0], sizes), outer)
        return _coo(at, x._elements, shape, x._coalesced)
    if tuple(shape[:count]) != sizes:
        raise NotOnSparseError("reshape of sparse and dense dimensions into one", x._layout)
    elements = m.reshape(x._elements, x._elements.shape[0], *shape[count:])
    return _coo(x._positions[0], elements, shape, x._coalesced)


def _permute(x: SparseTensor, **attrs: Any) -> SparseTensor:
    (order,) = attrs.values()
    count = sparse_dim(x)
    if tuple(order) == tuple(range(x.ndim)):
        return x
    shape = tuple(x._type.shape[axis] for axis in order)
    if x.is_compressed:  # the rows of a matrix are the columns of its transpose
        layout = sparse_csc if x._layout is sparse_csr else sparse_csr
        return make_sparse(layout, x._positions, x._elements, shape)
    if any((at < count) is not (axis < count) for at, axis in enumerate(order)):
        raise NotOnSparseError("transpose of a sparse and a dense dimension", x._layout)
    at = index_select(coo_indices(x), 0, from_data.tensor(list(order[:count]), device=x.device))
    inner = [0, *(1 + axis - count for axis in order[count:])]
    elements = m.permute(x._elements, inner) if len(inner) > 1 else x._elements
    return _coo(at, elements, shape)


SPARSE_RULES.update(
    {
        p.concatenate: _concatenate,
        p.index: _index,
        p.slice_: _slice,
        p.reshape: _reshape,
        p.permute: _permute,
    }
)
