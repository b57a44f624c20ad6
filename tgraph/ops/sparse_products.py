"""Products with sparse matrices, and their gradients."""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.complex_parts import one_of_pairs
from ..core.dispatch import apply
from ..core.layouts import sparse_coo, sparse_csr
from ..core.operands import cast
from ..core.planned import planned
from ..core.sparse_tensor import SPARSE_RULES, SparseTensor, make_sparse, with_elements
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import int64
from . import complex_numbers as c
from . import creation
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import stack
from .gather_scatter import index_select, repeat_interleave
from .linalg import mm
from .scans import cumsum
from .scatter_reductions import scatter_reduce
from .sparse_parts import (
    coalesce,
    csr_parts,
    in_layout,
    product_parts,
    require_sparse,
    row_numbers,
)


def csr_product(
    rows: Tensor, columns: Tensor, elements: Tensor, dense: Tensor, height: int, transposed: bool
) -> Tensor:
    """The matrix of these parts, or its transpose, times a dense one of the same dtype."""
    attrs = {"rows": height, "transposed": transposed}
    if not dense._type.dtype.is_complex:
        return apply(p.csr_matmul, rows, columns, elements, m.contiguous(dense), **attrs)
    count, width = dense._type.shape
    # Both parts of the numbers of a row lie side by side.
    pairs = m.reshape(m.contiguous(apply(p.view_as_real, dense)), count, 2 * width)
    by_real, by_imaginary = (
        m.reshape(apply(p.csr_matmul, rows, columns, each, pairs, **attrs), height, width, 2)
        for each in (c.real(elements), c.imag(elements))
    )
    (rr, ri), (ir, ii) = (
        (one_of_pairs(each, 0), one_of_pairs(each, 1)) for each in (by_real, by_imaginary)
    )
    return c.complex_(e.sub(rr, ii), e.add(ri, ir))


@planned
def sampled(left: Tensor, right: Tensor, at: Tensor, to: Tensor) -> Tensor:
    """Products of row `at[i]` of one matrix with row `to[i]` of the other, summed up."""
    return r.sum(e.mul(index_select(left, 0, at), index_select(right, 0, to)), 1)


@input_vjp(p.csr_matmul, 2, saves=(0, 1, 3))
def _csr_matmul_values_vjp(
    g: Tensor, out: TensorType, rowptr: Tensor, columns: Tensor, values: TensorType, dense: Tensor,
    rows: int, transposed: bool,
) -> Tensor:  # fmt: skip
    at = row_numbers(rowptr, columns.shape[0])
    return sampled(dense, g, at, columns) if transposed else sampled(g, dense, at, columns)


@input_vjp(p.csr_matmul, 3, saves=(0, 1, 2))
def _csr_matmul_dense_vjp(
    g: Tensor, out: TensorType, rowptr: Tensor, columns: Tensor, values: Tensor, dense: TensorType,
    rows: int, transposed: bool,
) -> Tensor:  # fmt: skip
    return csr_product(rowptr, columns, values, g, dense.shape[0], not transposed)


def _matmul(a: Tensor, b: Tensor, **attrs: Any) -> Tensor:
    """Of matrices and vectors, one or both sparse."""
    if attrs.get("transpose_a"):
        a = m.transpose(a, -2, -1)
    if attrs.get("transpose_b"):
        b = m.transpose(b, -2, -1)
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(
            f"matmul of sparse tensors expected matrices, got shapes {list(a.shape)} and "
            f"{list(b.shape)}; write a loop over batches"
        )
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return _sparse_product(a, b)
    if isinstance(a, SparseTensor):
        *parts, turned = product_parts(a)
        return csr_product(*parts, b, a.shape[0], turned)
    assert isinstance(b, SparseTensor)
    *parts, turned = product_parts(b)
    found = csr_product(*parts, m.transpose(a, 0, 1), b.shape[1], not turned)
    return m.transpose(found, 0, 1)


SPARSE_RULES[p.matmul] = _matmul


def _sparse_product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Each value of `a` meets the values of a row of `b`; how many pairs there are is read."""
    rows, columns, left = csr_parts(a)
    starts, others, right = csr_parts(b)
    columns, starts, others = (cast(each, int64) for each in (columns, starts, others))
    first = index_select(starts, 0, columns)
    counts = e.sub(index_select(starts, 0, e.add(columns, 1)), first)
    at = repeat_interleave(creation.arange(columns.shape[0], device=a.device), counts)
    before = e.sub(cumsum(counts, 0), counts)
    line = creation.arange(at.shape[0], device=a.device)
    to = e.add(e.sub(line, index_select(before, 0, at)), index_select(first, 0, at))
    pairs = e.mul(index_select(left, 0, at), index_select(right, 0, to))
    row = index_select(row_numbers(rows, columns.shape[0]), 0, at)
    places = stack([row, index_select(others, 0, to)])
    made = make_sparse(sparse_coo, (places,), pairs, (a.shape[0], b.shape[1]), False)
    return in_layout(coalesce(made), sparse_csr if a.is_compressed else sparse_coo)


def sparse_mm(input: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """A sparse matrix times a matrix, sparse or dense.

    `reduce` "mean", "amax" or "amin" of the products, not their sum, is there for CSR times dense.

    >>> import tgraph as tg
    >>> tg.sparse.mm(tg.eye(2).to_sparse(), tg.ones(2, 2))
    tensor([[1., 1.],
            [1., 1.]])
    """
    if reduce == "sum":
        if not isinstance(input, SparseTensor) and not isinstance(mat2, SparseTensor):
            require_sparse(input, "sparse.mm")
        return mm(input, mat2)
    x = require_sparse(input, "sparse.mm(reduce=...)", sparse_csr)
    if reduce not in ("mean", "amax", "amin"):
        raise ValueError(f"sparse.mm(): reduce is sum, mean, amax or amin, got {reduce!r}")
    rows, columns, elements = csr_parts(x)
    products = e.mul(m.unsqueeze(elements, 1), index_select(mat2, 0, columns))
    to = m.unsqueeze(row_numbers(rows, columns.shape[0]), 1).expand(products.shape)
    zeros = creation.zeros((x.shape[0], mat2.shape[1]), dtype=products.dtype, device=x.device)
    return scatter_reduce(zeros, 0, to, products, reduce, include_self=False)


def sparse_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` of a sparse `mat1`.

    >>> import tgraph as tg
    >>> tg.sparse.addmm(tg.ones(2, 1), tg.eye(2).to_sparse(), tg.ones(2, 1), alpha=2.0)
    tensor([[3.],
            [3.]])
    """
    product = sparse_mm(mat1, mat2)
    return e.add(e.mul(input, beta), e.mul(product, alpha))


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None
) -> SparseTensor:
    """`beta * input + alpha * (mat1 @ mat2)` at the places of `input`, which is CSR, alone.

    >>> import tgraph as tg
    >>> places = tg.eye(2).to_sparse_csr()
    >>> tg.sparse.sampled_addmm(places, tg.ones(2, 3), tg.ones(3, 2), beta=0.0).values()
    tensor([3., 3.])
    """
    x = require_sparse(input, "sparse.sampled_addmm", sparse_csr)
    rows, columns, elements = csr_parts(x)
    if (mat1.shape[0], mat2.shape[1], mat1.shape[1]) != (*x.shape, mat2.shape[0]):
        raise RuntimeError(
            f"sampled_addmm: shapes {list(mat1.shape)} and {list(mat2.shape)} do not make "
            f"{list(x.shape)}"
        )
    at = row_numbers(rows, columns.shape[0])
    products = sampled(mat1, m.transpose(mat2, 0, 1), at, columns)
    found = with_elements(x, e.add(e.mul(elements, beta), e.mul(products, alpha)))
    return found if out is None else _put(found, out)


def _put(found: SparseTensor, out: Any) -> SparseTensor:
    """`found` in the place of `out`, which has its shape, type and layout."""
    place = require_sparse(out, "sparse.sampled_addmm(out=...)", sparse_csr)
    if place._type is not found._type:
        raise RuntimeError(
            f"sparse.sampled_addmm(): expected out of shape {list(found.shape)} and type "
            f"{found.dtype}, got {list(place.shape)} and {place.dtype}"
        )
    if found.requires_grad or place.requires_grad:
        raise RuntimeError(
            "sampled_addmm(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    return place.copy_(found)  # type: ignore[return-value]
