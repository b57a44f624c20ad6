"""Matrices by their diagonals: triangles, what is put upon a diagonal, and positions."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import normalize_axis
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.operands import Scalar, require_tensor
from ..core.public import public
from ..core.tensor import Tensor, unwritten
from ..runtime.dtypes import DType, int64
from . import creation, from_data
from . import elementwise as e
from . import movement as m
from .creation import counted_column, counted_row
from .movement import contiguous

# --- triangles -----------------------------------------------------------------------------------


@public(method=True, inplace=True, overlap="any", out="exact")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal of (a batch of) matrices; the others become 0."""
    return _kept(e.le(*_columns_and_rows(*_matrix_sizes(input, "tril"), diagonal, input)), input)


@public(method=True, inplace=True, overlap="any", out="exact")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal of (a batch of) matrices; the others become 0."""
    return _kept(e.ge(*_columns_and_rows(*_matrix_sizes(input, "triu"), diagonal, input)), input)


def _kept(where: Tensor, x: Tensor) -> Tensor:
    zero = constant(0, x._type.dtype, x._type.device)
    return apply(p.where, unwritten(where), contiguous(x), zero)


def _matrix_sizes(x: Tensor, operation: str) -> tuple[int, int]:
    if len(x._type.shape) < 2:
        raise RuntimeError(f"{operation}: input tensor must have at least 2 dimensions")
    return x._type.shape[-2], x._type.shape[-1]


def _columns_and_rows(
    rows: int, columns: int, diagonal: int, like: Tensor
) -> tuple[Tensor, Tensor]:
    """The numbers of columns, and of rows plus `diagonal`: equal where an element is upon it."""
    device = like._type.device
    return counted_row(columns, device), e.add(counted_column(rows, device), diagonal)


# --- diagonals -----------------------------------------------------------------------------------


@public(method=True, out="exact", overlap="any")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with a vector on its diagonal."""
    if input.ndim == 2:
        from_matrix = input.diagonal(diagonal)
        return apply(p.copy, from_matrix)
    if input.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    size = input._type.shape[0] + abs(diagonal)
    before = max(-diagonal, 0)
    pads = {"low": (before,), "high": (size - before - input._type.shape[0],), "interior": (0,)}
    rows = apply(p.reshape, apply(p.pad, input, **pads, value=0), shape=(size, 1))
    return _kept(e.eq(*_columns_and_rows(size, size, diagonal, input)), rows)


@public(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, in dimensions `dim1` and `dim2`, with the last dimension on their diagonals.

    >>> import tgraph as tg
    >>> tg.diag_embed(tg.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if not require_tensor(input, "diag_embed").ndim:
        raise IndexError("diag_embed(): expected a tensor of at least 1 dimension")
    ndim = input.ndim + 1
    first, second = normalize_axis(dim1, ndim), normalize_axis(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    count = input._type.shape[-1]
    size = count + abs(offset)
    low = [0] * (ndim - 1)
    high, inside = list(low), tuple(low)
    low[-1], high[-1] = max(-offset, 0), max(offset, 0)
    rows = apply(p.pad, input, low=tuple(low), high=tuple(high), interior=inside, value=0)
    places = creation.arange(size, device=input.device)
    upon = unwritten(e.eq(e.add(m.unsqueeze(places, -1), offset), places))
    found = e.where(upon, m.unsqueeze(rows, -1), creation.zeros_like(rows).unsqueeze(-1))
    return m.movedim(found, (-2, -1), (first, second))


@public(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return diag(m.reshape(require_tensor(input, "diagflat"), -1), offset)


@public(function=False, method=True)
def fill_diagonal_(self: Tensor, fill_value: Scalar, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal of all dimensions, in place.

    With `wrap`, the diagonal of a tall matrix begins again below its end.
    """
    shape = self._type.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if len(shape) > 2 or not wrap:
        view = self
        while view.ndim > 1:
            view = m.diagonal(view, 0, 0, 1)
        view.fill_(fill_value)  # type: ignore[attr-defined]
        return self
    rows, columns = shape
    for start in range(0, rows, columns + 1):
        m.diagonal(m.narrow(self, 0, start, rows - start)).fill_(fill_value)  # type: ignore[attr-defined]
    return self


# --- positions -----------------------------------------------------------------------------------


def _indices(name: str, row: int, col: int, below: bool, offset: int, dtype: Any) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: sizes must be non-negative, got {row} and {col}")
    places = [
        (i, j)
        for i in range(row)
        for j in range(col)
        if (j - i <= offset if below else j - i >= offset)
    ]
    found = [[i for i, _ in places], [j for _, j in places]]
    return from_data.tensor(found, dtype=int64 if dtype is None else dtype)


@public()
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """The positions in the lower triangle of a matrix: one row of rows, one of columns.

    >>> import tgraph as tg
    >>> tg.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _indices("tril_indices", row, col, True, offset, dtype).to(device=device)


@public()
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """The positions in the upper triangle of a matrix: one row of rows, one of columns."""
    return _indices("triu_indices", row, col, False, offset, dtype).to(device=device)
