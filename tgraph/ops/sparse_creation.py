"""Sparse tensors made of positions and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.layouts import Layout, sparse_coo, sparse_csc, sparse_csr
from ..core.operands import cast
from ..core.sparse_tensor import NAMES, SparseTensor, make_sparse
from ..core.state import state
from ..core.tensor import Tensor
from ..core.values import known_values
from ..runtime.dtypes import bool_, int32, int64
from . import creation, from_data
from . import elementwise as e
from . import movement as m
from .sparse_parts import row_numbers


def _positions(given: Any, operation: str, name: str, device: Any, kept: Any = int64) -> Tensor:
    """Positions as int64, or as they are if of the type `kept`; TypeError for no integers."""
    made = given if isinstance(given, Tensor) else from_data.tensor(given, device=device)
    if made._type.numel and not (made._type.dtype.is_integral and made._type.dtype is not bool_):
        raise TypeError(f"{operation}(): {name} must hold integers, got {made._type.dtype}")
    made = made.detach()
    made = made if made._type.dtype is kept else cast(made, int64)
    return made if device is None else made.to(device)


def _elements(given: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(given, Tensor):
        return from_data.tensor(given, dtype=dtype, device=device)
    return given.to(dtype=dtype or given._type.dtype, device=device or given._type.device)


def _asked(elements: Tensor, requires_grad: bool) -> Tensor:
    return elements.detach().requires_grad_() if requires_grad else elements


def sparse_coo_tensor(
    indices: Any = None,
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
    if indices is None if values is not None else (indices is None) is (size is None):
        raise TypeError("sparse_coo_tensor(): expected indices and values, or a size alone")
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
    Positions are always checked to lie inside; with `check_invariants` columns of a row have to be
    in order, each once.

    >>> import tgraph as tg
    >>> a = tg.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))
    >>> a @ tg.ones(3, 1)
    tensor([[3.],
            [9.]])
    """
    return _by_lines(
        sparse_csr, (crow_indices, col_indices), values, size, dtype, device, requires_grad,
        check_invariants,
    )  # fmt: skip


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:
    """A matrix by columns: those values from `ccol_indices[i]` on are of column i.

    >>> import tgraph as tg
    >>> tg.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [4.0, 3.0, 5.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    return _by_lines(
        sparse_csc, (ccol_indices, row_indices), values, size, dtype, device, requires_grad,
        check_invariants,
    )  # fmt: skip


def _by_lines(
    layout: Layout, positions: tuple[Any, Any], values: Any, size: Sequence[int] | None, dtype: Any,
    device: Any, requires_grad: bool, check_invariants: bool | None,
) -> SparseTensor:  # fmt: skip
    """A matrix by rows, or by columns."""
    operation, names = f"{layout.name}_tensor", NAMES[layout]
    elements = _elements(values, dtype, device)
    begins, across = (
        _positions(each, operation, name, elements._type.device, int32)
        for name, each in zip(names, positions)
    )
    if begins._type.dtype is not across._type.dtype:
        begins, across = cast(begins, int64), cast(across, int64)
    if (begins.ndim, across.ndim, elements.ndim) != (1, 1, 1):
        raise NotImplementedError(
            f"{operation}(): expected vectors, got {names[0]}, {names[1]} and values of "
            f"{begins.ndim}, {across.ndim} and {elements.ndim} dimensions; batches are lists of "
            "matrices here"
        )
    if size is None:
        lines = (begins.shape[0] - 1, 1 + max(across.tolist(), default=-1))
        size = lines if layout is sparse_csr else lines[::-1]
    height, wide = size if layout is sparse_csr else (size[1], size[0])
    if begins.shape[0] != height + 1 or across.shape != elements.shape:
        raise RuntimeError(
            f"{operation}(): expected {height + 1} {names[0]} and as many {names[1]} as values, "
            f"got {begins.shape[0]}, {across.shape[0]} and {elements.shape[0]}"
        )
    _check_lines(names, begins, across, wide)
    if check_invariants:
        _check_order(names, begins, across, wide)
    return make_sparse(layout, (begins, across), _asked(elements, requires_grad), tuple(size))


def _check_lines(names: Sequence[str], begins: Tensor, across: Tensor, wide: int) -> None:
    if state.context is not None or begins._type.device.type == "meta":
        return
    found = known_values(begins) or begins.tolist()
    if found[0] != 0 or found[-1] != across.shape[0] or found != sorted(found):
        raise RuntimeError(
            f"`{names[0]}` must begin with 0, end with the number of values ({across.shape[0]}) "
            "and never become smaller"
        )
    if across.shape[0]:
        low, high = int(across.amin()), int(across.amax())
        if low < 0 or high >= wide:
            raise RuntimeError(f"`0 <= {names[1]} < {wide}` is not satisfied: {low} to {high}")


def _check_order(names: Sequence[str], begins: Tensor, across: Tensor, wide: int) -> None:
    if state.context is not None or begins._type.device.type == "meta":
        return
    places = e.add(e.mul(row_numbers(begins, across.shape[0]), wide), across)
    if not bool((places[1:] > places[:-1]).all()):
        raise RuntimeError(
            f"`{names[1]}` must be in order, each once, between places of `{names[0]}`"
        )


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
    """`sparse_csr_tensor` or `sparse_csc_tensor`, by its `layout`.

    >>> import tgraph as tg
    >>> tg.sparse_compressed_tensor([0, 1], [1], [2.0], (1, 2), layout=tg.sparse_csr).to_dense()
    tensor([[0., 2.]])
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor(): expected a layout, as tgraph.sparse_csr")
    if layout not in (sparse_csr, sparse_csc):
        raise NotImplementedError(
            "sparse_compressed_tensor(): expected layout=tgraph.sparse_csr or tgraph.sparse_csc, "
            f"got {layout}"
        )
    return _by_lines(
        layout, (compressed_indices, plain_indices), values, size, dtype, device, requires_grad,
        check_invariants,
    )  # fmt: skip


def empty_sparse(layout: Layout, shape: Sequence[int], dtype: Any, device: Any) -> SparseTensor:
    """A tensor of zeros, none of which is kept."""
    if layout is sparse_coo:
        return sparse_coo_tensor(shape, dtype=dtype, device=device)
    lines = shape[0] if layout is sparse_csr else shape[1]
    begins = creation.zeros(lines + 1, dtype=int64, device=device)
    across = creation.zeros(0, dtype=int64, device=device)
    elements = creation.zeros(0, dtype=dtype, device=device)
    return make_sparse(layout, (begins, across), elements, tuple(shape))
