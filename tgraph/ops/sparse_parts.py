"""Sparse tensors made of parts and taken apart: creation, layouts, places of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.dispatch import settled
from ..core.layouts import Layout, sparse_coo, sparse_csr, strided
from ..core.operands import cast
from ..core.sparse_tensor import NotOnSparseError, SparseTensor, make_sparse, with_elements
from ..core.state import state
from ..core.tensor import Tensor
from ..core.values import known_values
from ..runtime.dtypes import bool_, int64, uint8
from . import creation
from . import elementwise as e
from . import movement as m
from .concatenation import stack
from .distinct import unique
from .gather_scatter import index_add, index_select
from .sorting import argsort, searchsorted

# --- creation ------------------------------------------------------------------------------------


def _positions(given: Any, operation: str, name: str, device: Any) -> Tensor:
    """Positions as int64; TypeError for what are no integers."""
    made = given if isinstance(given, Tensor) else creation.tensor(given, device=device)
    if made._type.numel and not (made._type.dtype.is_integral and made._type.dtype is not bool_):
        raise TypeError(f"{operation}(): {name} must hold integers, got {made._type.dtype}")
    made = cast(made.detach(), int64)
    return made if device is None else made.to(device)


def _elements(given: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(given, Tensor):
        return creation.tensor(given, dtype=dtype, device=device)
    return given.to(dtype=dtype or given._type.dtype, device=device or given._type.device)


def _asked(elements: Tensor, requires_grad: bool) -> Tensor:
    return elements.detach().requires_grad_() if requires_grad else elements


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """A tensor of values at `indices`, (sparse dimensions, number of values), zero elsewhere.

    Several values at one place are added up. `values` may have further dimensions, which the
    tensor then has behind the sparse ones. Without `size` it is as large as the indices ask for;
    `sparse_coo_tensor(size)` has no values. Indices are always checked; with `is_coalesced=True`
    they must be in order, each once, which is not. With `requires_grad` it is a leaf; otherwise
    gradients go to `values`.

    >>> import tgraph as tg
    >>> tg.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    if values is None:
        shape = tuple(indices if size is None else size)
        made = creation.zeros((0,), dtype=dtype, device=device)
        at = creation.zeros((len(shape), 0), dtype=int64, device=device)
        return make_sparse(sparse_coo, (at,), _asked(made, requires_grad), shape)
    elements = _elements(values, dtype, device)
    at = _positions(indices, "sparse_coo_tensor", "indices", elements._type.device)
    if at.ndim == 1 and not at._type.numel:
        at = m.reshape(at, 0 if size is None else len(size), 0)
    if at.ndim != 2 or elements.ndim < 1 or at.shape[1] != elements.shape[0]:
        raise RuntimeError(
            "sparse_coo_tensor(): expected indices of shape (sparse dimensions, number of values) "
            f"for values of shape {list(elements.shape)}, got {list(at.shape)}"
        )
    dims = at.shape[0]
    if size is None:
        size = (*(1 + max(each, default=-1) for each in at.tolist()), *elements.shape[1:])
    shape = tuple(size)
    if tuple(elements.shape[1:]) != shape[dims:] or len(shape) < dims:
        raise RuntimeError(
            f"sparse_coo_tensor(): {dims} sparse dimensions and values of shape "
            f"{list(elements.shape)} do not make a tensor of size {list(shape)}"
        )
    _check_inside(at, shape[:dims])
    coalesced = bool(is_coalesced) or (is_coalesced is None and at.shape[1] < 2)
    return make_sparse(sparse_coo, (at,), _asked(elements, requires_grad), shape, coalesced)


def _check_inside(at: Tensor, sizes: Sequence[int]) -> None:
    """RuntimeError for an index that is known to lie outside."""
    if state.context is not None or not at._type.numel or at._type.device.type == "meta":
        return
    lowest, highest = at.amin(1).tolist(), at.amax(1).tolist()
    for dim, (low, high, size) in enumerate(zip(lowest, highest, sizes)):
        if low < 0 or high >= size:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but found "
                f"index {low if low < 0 else high}"
            )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """A matrix by rows: those values from `crow_indices[i]` on are of row i, in `col_indices`.

    Products with it are as fast as there are. There are no batches and no dense dimensions.

    >>> import tgraph as tg
    >>> a = tg.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))
    >>> a @ tg.ones(3, 1)
    tensor([[3.],
            [9.]])
    """
    elements = _elements(values, dtype, device)
    place = elements._type.device
    rows = _positions(crow_indices, "sparse_csr_tensor", "crow_indices", place)
    columns = _positions(col_indices, "sparse_csr_tensor", "col_indices", place)
    if (rows.ndim, columns.ndim, elements.ndim) != (1, 1, 1):
        raise NotImplementedError(
            "sparse_csr_tensor(): expected vectors, got crow_indices, col_indices and values of "
            f"{rows.ndim}, {columns.ndim} and {elements.ndim} dimensions; batches are lists of "
            "matrices here"
        )
    if size is None:
        size = (rows.shape[0] - 1, 1 + max(columns.tolist(), default=-1))
    height, wide = size
    if rows.shape[0] != height + 1 or columns.shape != elements.shape:
        raise RuntimeError(
            f"sparse_csr_tensor(): expected {height + 1} crow_indices and as many col_indices as "
            f"values, got {rows.shape[0]}, {columns.shape[0]} and {elements.shape[0]}"
        )
    _check_rows(rows, columns, wide)
    shape = (height, wide)
    return make_sparse(sparse_csr, (rows, columns), _asked(elements, requires_grad), shape)


def _check_rows(rows: Tensor, columns: Tensor, wide: int) -> None:
    if state.context is not None or rows._type.device.type == "meta":
        return
    found = known_values(rows) or rows.tolist()
    if found[0] != 0 or found[-1] != columns.shape[0] or found != sorted(found):
        raise RuntimeError(
            "`crow_indices` must begin with 0, end with the number of values "
            f"({columns.shape[0]}) and never become smaller"
        )
    if columns.shape[0]:
        low, high = int(columns.amin()), int(columns.amax())
        if low < 0 or high >= wide:
            raise RuntimeError(f"`0 <= col_indices < {wide}` is not satisfied: {low} to {high}")


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """`sparse_csr_tensor` by another name, with `layout=tgraph.sparse_csr`, which is the only one.

    >>> import tgraph as tg
    >>> tg.sparse_compressed_tensor([0, 1], [1], [2.0], (1, 2), layout=tg.sparse_csr).to_dense()
    tensor([[0., 2.]])
    """
    if layout is not sparse_csr:
        raise NotImplementedError(
            f"sparse_compressed_tensor(): expected layout=tgraph.sparse_csr, got {layout}"
        )
    return sparse_csr_tensor(
        compressed_indices, plain_indices, values, size,
        dtype=dtype, device=device, requires_grad=requires_grad,
    )  # fmt: skip


def empty_sparse(layout: Layout, shape: Sequence[int], dtype: Any, device: Any) -> SparseTensor:
    """A tensor of zeros, none of which is kept."""
    if layout is sparse_coo:
        return sparse_coo_tensor(shape, dtype=dtype, device=device)
    rows = creation.zeros(shape[0] + 1, dtype=int64, device=device)
    columns = creation.zeros(0, dtype=int64, device=device)
    elements = creation.zeros(0, dtype=dtype, device=device)
    return make_sparse(sparse_csr, (rows, columns), elements, tuple(shape))


# --- places --------------------------------------------------------------------------------------


def require_sparse(value: Any, operation: str, layout: Layout | None = None) -> SparseTensor:
    """`value`, if it is sparse and of `layout`; TypeError or RuntimeError says what came."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{operation}(): expected a sparse tensor, got {type(value).__name__}")
    if not isinstance(value, SparseTensor) or layout not in (None, value._layout):
        raise RuntimeError(
            f"{operation}(): expected a tensor of layout {layout or 'sparse_coo or sparse_csr'}, "
            f"got {value.layout!r}; to_sparse_coo() and to_sparse_csr() make one"
        )
    return value


def sparse_dim(x: Tensor) -> int:
    """The number of dimensions with positions: 2 of CSR, 0 of a strided tensor."""
    if not isinstance(x, SparseTensor):
        return 0
    return 2 if x._layout is sparse_csr else int(x._positions[0].shape[0])


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


def _unflattened(flat: Tensor, sizes: Sequence[int]) -> Tensor:
    rows = []
    for size in reversed(sizes[1:]):
        rows.append(e.remainder(flat, size))
        flat = e.floor_divide(flat, size)
    return stack([flat, *reversed(rows)]) if sizes else m.reshape(flat, 0, -1)


def row_numbers(rows: Tensor, count: int) -> Tensor:
    """The row of each of `count` values, of where rows begin."""
    line = creation.arange(count, device=rows.device)
    return e.sub(searchsorted(rows, line, right=True), 1)


def coo_indices(x: SparseTensor) -> Tensor:
    """Positions of the values, (sparse dimensions, number)."""
    if x._layout is sparse_coo:
        return x._positions[0]
    rows, columns = x._positions
    return stack([row_numbers(rows, columns.shape[0]), columns])


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
    at = _unflattened(places, sizes) if sizes else creation.zeros(
        (0, places.shape[0]), dtype=int64, device=x.device)  # fmt: skip
    return make_sparse(sparse_coo, (at,), elements, x._type.shape)


def as_summable(x: Tensor) -> Tensor:
    """Booleans as numbers, whose sum is true where one is."""
    return cast(x, uint8) if x._type.dtype is bool_ else x


def csr_parts(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where rows begin, columns and values of a sparse matrix, of either layout."""
    if x._layout is sparse_csr:
        return (*x._positions, x._elements)
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
    if layout is sparse_csr:
        return to_sparse_csr(self)
    if layout not in (None, sparse_coo):
        if layout is strided:
            return to_dense(self)
        raise NotImplementedError(
            f"to_sparse(): layouts are sparse_coo and sparse_csr, not {layout}"
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
    at = _unflattened(places, sizes)
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
    if dense_dim:
        raise NotImplementedError("to_sparse_csr(): values with dimensions are there for COO only")
    if isinstance(self, SparseTensor) and self._layout is sparse_csr:
        return self
    if self.ndim != 2:
        raise RuntimeError(f"to_sparse_csr(): expected a matrix, got {self.ndim} dimensions")
    x = self if isinstance(self, SparseTensor) else to_sparse(self)
    assert isinstance(x, SparseTensor)
    rows, columns, elements = csr_parts(coalesce(x))
    return make_sparse(sparse_csr, (rows, columns), elements, self._type.shape)


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
