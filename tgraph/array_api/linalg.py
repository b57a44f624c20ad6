"""The standard's linear algebra: its extension `linalg`, and what the namespace itself has of it.

>>> import tgraph as tg
>>> tg.array_api.linalg.svdvals(tg.eye(2))
tensor([1., 1.])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.operands import require_tensor
from ..core.tensor import Tensor
from ..ops import determinants as _determinants
from ..ops import factorizations as _f
from ..ops import linalg as _ops
from ..ops import matrix_functions as _matrix
from ..ops import movement as _m
from ..ops import norms as _norms
from ..ops import products as _products
from ..ops import pseudoinverse as _inverse
from ..runtime.dtypes import DType
from .arguments import axes_of as _axes_of
from .arguments import together as _together
from .reductions import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices, of stacks of them, or of vectors."""
    return _ops.matmul(*_together("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view of matrices with rows for columns; ValueError below two dimensions."""
    if require_tensor(x, "matrix_transpose", "x").ndim < 2:
        raise ValueError(f"matrix_transpose(): expected matrices, got a shape {tuple(x.shape)}")
    return _m.transpose(x, -2, -1)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sums of products over axes: the last and first `axes`, or those that are named."""
    return _ops.tensordot(*_together("tensordot", x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Products of vectors along an axis that counts from the end; `x1` is conjugated.

    >>> from tgraph import array_api as xp
    >>> xp.vecdot(xp.asarray([1j, 2.0]), xp.asarray([1j, 1.0]))
    tensor(3.+0.j)
    """
    x1, x2 = _together("vecdot", x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot(): axis counts from the end, within both tensors, got {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(
            f"vecdot(): vectors of one length, got {x1.shape[axis]} and {x2.shape[axis]} elements"
        )
    return _products.vecdot(x1, x2, dim=axis)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower (or upper) triangular factor of each positive definite matrix."""
    return _f.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements along an axis."""
    pair = _m.broadcast_tensors(*_together("cross", x1, x2))
    return _products.cross_along(*pair, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return _determinants.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonal of each matrix that lies `offset` above the main one."""
    return _products.diagonal_of(x, offset=offset)


def eigh(x: Tensor, /) -> Any:
    """`eigenvalues`, in order, and `eigenvectors` of each symmetric (or Hermitian) matrix."""
    return _f.eigh(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of each symmetric (or Hermitian) matrix, in order."""
    return _f.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix."""
    return _f.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of each matrix: "fro", "nuc", 1, 2, inf or their negatives."""
    return _norms.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Each square matrix times itself, `n` times; its inverse for negative `n`."""
    return _matrix.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values of each matrix are above `rtol` times the largest."""
    return _inverse.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of a vector with each of another."""
    return _ops.outer(*_together("outer", x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudoinverse of each matrix, without singular values below `rtol` times the largest."""
    return _inverse.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """`Q`, with orthonormal columns, and `R`, upper triangular, whose product each matrix is."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', got {mode!r}")
    return _f.qr(x, mode)


def slogdet(x: Tensor, /) -> Any:
    """`sign` and `logabsdet` of the determinant of each matrix."""
    return _determinants.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What `x1` has to be multiplied with to give `x2`: a vector, where it has one dimension.

    >>> from tgraph import array_api as xp
    >>> xp.linalg.solve(2 * xp.eye(2), xp.ones(2))
    tensor([0.5000, 0.5000])
    """
    x1, x2 = _together("solve", x1, x2)
    if x2.ndim == 1:
        return _m.squeeze(_f.solve(x1, _m.unsqueeze(x2, -1)), -1)
    batch = _m.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    # With as many dimensions as the matrices, none of which stands for vectors.
    return _f.solve(x1, _m.expand(x2, (*batch, *x2.shape[-2:])))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """`U`, `S` and `Vh` of each matrix, whose product with S as a diagonal it is."""
    return _f.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix, the largest first."""
    return _f.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum of a diagonal of each matrix."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2
) -> Tensor:
    """A norm of all elements, or along axes: a number from -inf to inf."""
    axes = _axes_of(x, axis)
    if not axes:  # of which tgraph takes all
        return _norms.vector_norm(_m.unsqueeze(x, 0), ord, 0)
    return _norms.vector_norm(x, ord, axes, keepdims)
