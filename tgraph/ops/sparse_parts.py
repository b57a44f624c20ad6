"""Sparse tensors taken apart: places of their values, and one layout from another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from ..core.absent import LAYOUTS, not_here
from ..core.dispatch import settled
from ..core.layouts import Layout, sparse_coo, sparse_csc, sparse_csr, strided
from ..core.operands import cast
from ..core.sparse_tensor import NotOnSparseError, SparseTensor, make_sparse, with_elements
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_, int64, uint8
from . import creation
from . import elementwise as e
from . import movement as m
from .concatenation import flip, stack
from .distinct import unique
from .gather_scatter import index_add, index_select
from .sorting import argsort, searchsorted

# --- places --------------------------------------------------------------------------------------


def require_sparse(value: Any, operation: str, layout: Layout | None = None) -> SparseTensor:
    """`value`, if it is sparse and of `layout`; TypeError or RuntimeError says what came."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}(): expected a sparse tensor, got {type(value).__name__}")
    if not isinstance(value, SparseTensor) or layout not in (None, value._layout):
        raise RuntimeError(
            f"{operation}(): expected a tensor of layout "
            f"{layout or 'sparse_coo, sparse_csr or sparse_csc'}, got {value.layout!r}; "
            f"to_sparse_{layout.name[-3:] if layout else 'coo'}() makes one"
        )
    return value


def sparse_dim(x: Tensor) -> int:
    """The number of dimensions with positions: 2 of CSR and CSC, 0 of a strided tensor."""
    if not isinstance(x, SparseTensor):
        return 0
    return 2 if x.is_compressed else int(x._positions[0].shape[0])


def dense_dim(x: Tensor) -> int:
    """The number of dimensions that each value has."""
    return x.ndim - sparse_dim(x)


def flat_places(at: Tensor, sizes: Sequence[int]) -> Tensor:
    """Positions (dimensions, number) in an array of `sizes`, as one number each."""
    if not sizes:
        return creation.zeros(at.shape[1], dtype=int64, device=at.device)
    flat = at[0]
    for row, size in zip(range(1, len(sizes)), sizes[1:]):
        flat = e.add(e.mul(flat, size), at[row])
    return flat


def places_of(flat: Tensor, sizes: Sequence[int]) -> Tensor:
    """What `flat_places` makes one number each of."""
    rows = []
    for size in reversed(sizes[1:]):
        rows.append(e.remainder(flat, size))
        flat = e.floor_divide(flat, size)
    return stack([flat, *reversed(rows)]) if sizes else m.reshape(flat, 0, -1)


def row_numbers(rows: Tensor, count: int) -> Tensor:
    """The row of each of `count` values, of where rows begin."""
    line = creation.arange(count, device=rows.device)
    return e.sub(searchsorted(cast(rows, int64), line, right=True), 1)


def coo_indices(x: SparseTensor) -> Tensor:
    """Positions of the values, (sparse dimensions, number)."""
    if x._layout is sparse_coo:
        return x._positions[0]
    begins, across = x._positions
    along, across = row_numbers(begins, across.shape[0]), cast(across, int64)
    return stack([along, across] if x._layout is sparse_csr else [across, along])


def sparse_sizes(x: SparseTensor) -> tuple[int, ...]:
    return tuple(x._type.shape[: sparse_dim(x)])


def coalesce(x: SparseTensor) -> SparseTensor:
    """One value for each place, in the order of places."""
    if x._coalesced:
        return x
    sizes = sparse_sizes(x)
    places, to = unique(flat_places(x._positions[0], sizes), return_inverse=True)
    summed = as_summable(x._elements)
    zeros = creation.zeros(
        (places.shape[0], *summed.shape[1:]), dtype=summed.dtype, device=x.device
    )
    elements = cast(index_add(zeros, 0, to, summed), x._type.dtype)
    at = places_of(places, sizes) if sizes else creation.zeros(
        (0, places.shape[0]), dtype=int64, device=x.device)  # fmt: skip
    return make_sparse(sparse_coo, (at,), elements, x._type.shape)


def as_summable(x: Tensor) -> Tensor:
    """Booleans as numbers, whose sum is true where one is."""
    return cast(x, uint8) if x._type.dtype is bool_ else x


def csr_parts(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where rows begin, columns and values of a sparse matrix, of any layout."""
    if x._layout is sparse_csr:
        return (*x._positions, x._elements)
    if x._layout is sparse_csc:
        x = make_sparse(sparse_coo, (coo_indices(x),), x._elements, x._type.shape, False)
    if x.ndim != 2 or sparse_dim(x) != 2:
        raise RuntimeError(
            f"expected a sparse matrix, got {sparse_dim(x)} sparse and {dense_dim(x)} dense "
            "dimensions"
        )
    if x._rows is None:
        found = _rows_of(x)
        if state.context is not None:
            return _chosen(x, *found)
        x._rows = found
    return _chosen(x, *x._rows)


def product_parts(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """A sparse matrix as products take it: its parts by rows, or, and True, those of its transpose.

    Nothing is put in order of what lies by columns.
    """
    if x._layout is sparse_csc:
        return (*x._positions, x._elements, True)
    return (*csr_parts(x), False)


def _rows_of(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor | None]:
    rows, columns, order = x._positions[0][0], x._positions[0][1], None
    if not x._coalesced:
        order = argsort(rows, 0, stable=True)
        rows, columns = index_select(rows, 0, order), index_select(columns, 0, order)
    edges = creation.arange(x._type.shape[0] + 1, device=x.device)
    return searchsorted(m.contiguous(rows), edges), m.contiguous(columns), order


def _chosen(
    x: SparseTensor, rows: Tensor, columns: Tensor, order: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    elements = x._elements if order is None else index_select(x._elements, 0, order)
    return rows, columns, elements


# --- layouts -------------------------------------------------------------------------------------


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """All elements of a tensor; a strided one itself."""
    if not isinstance(self, SparseTensor):
        return self if dtype is None else cast(self, dtype)
    sizes = sparse_sizes(self)
    elements, rest = as_summable(self._elements), tuple(self._type.shape[len(sizes) :])
    zeros = creation.zeros((math.prod(sizes), *rest), dtype=elements.dtype, device=self.device)
    filled = index_add(zeros, 0, flat_places(coo_indices(self), sizes), elements)
    return cast(m.reshape(filled, self._type.shape), dtype or self._type.dtype)


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None
) -> Tensor:
    """The values that are not zero, with their positions: of layout `sparse_coo`, or `layout`.

    Of the first `sparse_dim` dimensions, where that is given: each value then has the others.

    >>> import tgraph as tg
    >>> tg.eye(2).to_sparse().values()
    tensor([1., 1.])
    """
    if layout in (sparse_csr, sparse_csc):
        return _by_lines(self, layout, "to_sparse")
    if layout not in (None, sparse_coo):
        if layout is strided:
            return to_dense(self)
        raise NotImplementedError(
            f"to_sparse(): layouts are sparse_coo, sparse_csr and sparse_csc, not {layout}"
        )
    if isinstance(self, SparseTensor):
        return self if self._layout is sparse_coo else _coo_of(self)
    dims = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= self.ndim or (dims == 0 and self.ndim):
        raise RuntimeError(f"to_sparse(): expected 1 to {self.ndim} dimensions, got {sparse_dim}")
    sizes, rest = tuple(self.shape[:dims]), tuple(self.shape[dims:])
    rows = m.reshape(self, math.prod(sizes), *rest)
    is_there = e.ne(settled(rows).detach(), 0)
    if rest:
        is_there = m.reshape(is_there, rows.shape[0], -1).any(1)
    places = m.reshape(is_there.nonzero(), -1)
    elements = index_select(rows, 0, places)
    at = places_of(places, sizes)
    return make_sparse(sparse_coo, (at,), elements, self._type.shape)


def _coo_of(x: SparseTensor) -> SparseTensor:
    at = coo_indices(x)
    made = make_sparse(sparse_coo, (at,), x._elements, x._type.shape, False)
    flat = flat_places(at, x._type.shape)
    if state.context is None and bool((flat[1:] > flat[:-1]).all()):
        made._coalesced = True
    return made


def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor of layout `sparse_coo`."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix by rows, of layout `sparse_csr`; places of a COO tensor are summed first."""
    return _by_lines(self, sparse_csr, "to_sparse_csr", dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The matrix by columns, of layout `sparse_csc`; places of a COO tensor are summed first.

    >>> import tgraph as tg
    >>> tg.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse_csc().values()
    tensor([1., 2., 3.])
    """
    return _by_lines(self, sparse_csc, "to_sparse_csc", dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> NoReturn:
    """NotImplementedError: no layout here keeps blocks."""
    not_here("Tensor.to_sparse_bsr", LAYOUTS)()


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> NoReturn:
    """NotImplementedError: no layout here keeps blocks."""
    not_here("Tensor.to_sparse_bsc", LAYOUTS)()


def in_layout(x: SparseTensor, layout: Layout) -> SparseTensor:
    """The same elements in another layout."""
    found = to_sparse(x, layout=layout)
    assert isinstance(found, SparseTensor)
    return found


def _by_lines(x: Tensor, layout: Layout, operation: str, dense_dim: int | None = None) -> Tensor:
    if dense_dim:
        raise NotImplementedError(f"{operation}(): values with dimensions are there for COO only")
    if isinstance(x, SparseTensor) and x._layout is layout:
        return x
    if x.ndim != 2:
        raise RuntimeError(f"{operation}(): expected a matrix, got {x.ndim} dimensions")
    found = x if isinstance(x, SparseTensor) else to_sparse(x)
    assert isinstance(found, SparseTensor)
    found = coalesce(found)
    if layout is sparse_csc:
        at = flip(coo_indices(found), (0,))
        shape = found._type.shape[::-1]
        found = make_sparse(sparse_coo, (at,), found._elements, shape, False)
    rows, columns, elements = csr_parts(found)
    return make_sparse(layout, (rows, columns), elements, x._type.shape)


def taken_at(dense: Tensor, x: SparseTensor) -> Tensor:
    """Elements of a tensor, broadcast to the shape of `x`, at the places of its values."""
    sizes, at = sparse_sizes(x), coo_indices(x)
    dense = m.reshape(dense, *(1,) * (x.ndim - dense.ndim), *dense.shape)
    own, rest = tuple(dense.shape[: len(sizes)]), tuple(dense.shape[len(sizes) :])
    wide = [dim for dim, size in enumerate(own) if size != 1]
    for dim in range(x.ndim):
        if dense.shape[dim] not in (1, x._type.shape[dim]):
            raise RuntimeError(
                f"a tensor of shape {list(dense.shape)} does not broadcast to {list(x.shape)}"
            )
    flat = flat_places(stack([at[dim] for dim in wide]), [own[dim] for dim in wide]) if wide else (
        creation.zeros(at.shape[1], dtype=int64, device=at.device))  # fmt: skip
    return index_select(m.reshape(dense, math.prod(own), *rest), 0, flat)


def sparse_mask(self: Tensor, mask: Tensor) -> SparseTensor:
    """The elements at the places of the sparse tensor `mask`.

    >>> import tgraph as tg
    >>> tg.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(tg.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    pattern = require_sparse(mask, "sparse_mask")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): expected a mask of shape {list(self.shape)}, got {list(mask.shape)}"
        )
    if isinstance(self, SparseTensor):
        raise NotOnSparseError("sparse_mask", self._layout)
    return with_elements(pattern, taken_at(self, pattern))
