"""Norms of vectors and matrices."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import primitives as prims
from ..compiler.ir.shapes import normalize_axes, normalize_axis, reduce
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.operands import cast, require_tensor, widened
from ..core.planned import planned
from ..core.public import public
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import DType
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .factorizations import svdvals
from .reductions import Dims


@public(method=True, out="exact", overlap="any")
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The vector norm of order `p` over all of `dim`, as `tgraph.linalg.vector_norm` has it.

    "fro" is 2; "nuc" is the sum of singular values of matrices in two dimensions.
    """
    require_tensor(input, "norm")
    if p == "nuc":
        return matrix_norm(
            input, "nuc", tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype
        )
    order = 2.0 if p in ("fro", None) else p
    if isinstance(order, str):
        raise RuntimeError(f'norm(): expected a number, "fro" or "nuc" as p, got {p!r}')
    return _vector_norm("norm", input, order, dim, keepdim, dtype)


@with_autocast
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """(sum |x|**ord)**(1 / ord) over the dimensions `dim`, taken as one vector.

    `ord` may be inf and -inf, for the largest and the least absolute value, and 0, for the number
    of elements that are not zero. `dtype` is that of the sum.

    >>> import tgraph as tg
    >>> tg.linalg.vector_norm(tg.tensor([[3.0, 4.0], [0.0, 2.0]]), dim=1)
    tensor([5., 2.])
    """
    return _vector_norm("linalg.vector_norm", x, ord, dim, keepdim, dtype)


def _vector_norm(
    name: str, x: Tensor, ord: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> Tensor:
    order = float(ord)
    x = _to_dtype(name, x, dtype)
    axes = _all_or(x, dim)
    if x._type.dtype.is_complex:
        x = e.abs(x)
    if order == 0:
        return r.sum(e.where(e.ne(x, 0), 1.0, e.sign(x)), dim, keepdim)  # with gradients of 0
    if math.isinf(order) or order < 0:
        _check_not_empty(name, x, axes, ord, RuntimeError)
    if math.isinf(order):
        size = e.abs(x)
        return r.amax(size, dim, keepdim) if order > 0 else r.amin(size, dim, keepdim)
    return cast(_finite_norm(widened(x), order, axes, keepdim), x._type.dtype)


def _to_dtype(name: str, x: Any, dtype: DType | None) -> Tensor:
    """`x` in the type that was asked for; RuntimeError where that loses something."""
    own = require_tensor(x, name)._type.dtype
    if not own.is_differentiable:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {own.name}"
        )
    if dtype is None:
        return cast(x, own)
    if dtype.is_complex is not own.is_complex or not dtype.is_differentiable:
        raise RuntimeError(
            f"{name}: dtype should be {'complex' if own.is_complex else 'real'} for "
            f"{'complex' if own.is_complex else 'real'} inputs, but got {dtype.name}"
        )
    return cast(x, dtype)


def _all_or(x: Tensor, dim: Dims) -> tuple[int, ...]:
    ndim = len(x._type.shape)
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(ndim))
    return normalize_axes(dim, ndim)


def _check_not_empty(
    name: str, x: Tensor, axes: Sequence[int], ord: Any, error: type[Exception]
) -> None:
    if builtins.any(x._type.shape[axis] == 0 for axis in axes):
        raise error(
            f"{name} cannot compute the {ord} norm on an empty tensor because the operation does "
            f"not have an identity: the shape is {list(x._type.shape)}"
        )


@planned
def _finite_norm(x: Tensor, order: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    dim = axes or None
    if order == 1:
        return r.sum(e.abs(x), dim, keepdim)
    if order == 2:
        return r.safe_sqrt(r.sum(e.mul(x, x), dim, keepdim))
    return _norm(e.abs(x), order=order, axes=axes, keepdims=builtins.bool(keepdim))


@composite("norm")
@planned
def _norm(size: Tensor, order: float, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    total = apply(prims.sum_, e.pow(size, order), axes=axes, keepdims=keepdims)
    return e.pow(total, 1 / order)


@input_vjp(_norm, saves=(0, OUTPUT))
@planned
def _norm_vjp(g: Tensor, out: Tensor, size: Tensor, order: float, axes: Any, keepdims: bool) -> Any:
    """(size / norm)**(order - 1), and 0 where the norm is 0."""
    shape = reduce(size._type.shape, axes, True)
    norm, cotangent = (apply(prims.reshape, each, shape=shape) for each in (out, g))
    flat = e.eq(norm, 0)
    ratio = e.where(flat, 1, e.div(size, e.where(flat, 1, norm)))
    return e.mul(cotangent, e.where(flat, 0, e.pow(ratio, order - 1)))


@with_autocast
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of matrices, which lie in the two dimensions `dim`.

    `ord` is "fro" (of all elements as a vector), "nuc" (the sum of singular values), inf and -inf
    (the largest and the least sum of absolute values of a row), 1 and -1 (of a column), 2 and -2
    (the largest and the least singular value). Norms of empty matrices are 0; negative orders raise
    an IndexError.

    >>> import tgraph as tg
    >>> tg.linalg.matrix_norm(tg.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    name = "linalg.matrix_norm"
    A = _to_dtype(name, A, dtype)
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {dim}")
    rows, columns = (normalize_axis(each, A.ndim) for each in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: Expected dims to be different, got {dim} instead")
    if ord == "fro":
        return _vector_norm(name, A, 2, (rows, columns), keepdim, None)
    if ord == "nuc" or ord in (2, -2):
        return _of_singular_values(name, A, ord, rows, columns, keepdim)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    along, across = (rows, columns) if abs(ord) == 1 else (columns, rows)
    if ord < 0:
        _check_not_empty(name, A, (across,), ord, IndexError)
    sums = r.sum(e.abs(A), along, keepdim)
    if not keepdim and across > along:
        across -= 1
    return _largest(sums, across, keepdim) if ord > 0 else r.amin(sums, across, keepdim)


def _largest(sizes: Tensor, axis: int, keepdim: bool) -> Tensor:
    """The largest of what is not negative: 0 of none."""
    return (r.amax if sizes._type.shape[axis] else r.sum)(sizes, axis, keepdim)


def _of_singular_values(
    name: str, A: Tensor, ord: Any, rows: int, columns: int, keepdim: bool
) -> Tensor:
    values = svdvals(m.movedim(A, (rows, columns), (-2, -1)))
    if ord == "nuc":
        found = r.sum(values, -1)
    elif ord > 0:
        found = _largest(values, -1, False)
    else:
        _check_not_empty(name, A, (rows, columns), ord, IndexError)
        found = r.amin(values, -1)
    if not keepdim:
        return found
    for axis in sorted((rows, columns)):
        found = m.unsqueeze(found, axis)
    return found


def matrix_or_vector_norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of vectors, or of matrices where `dim` has two dimensions and `ord` is given.

    Without `dim`, of a vector or a matrix; without `ord` as well, of all elements as a vector.

    >>> import tgraph as tg
    >>> tg.linalg.norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]])), tg.linalg.norm(tg.eye(2), "nuc")
    (tensor(5.), tensor(2.))
    """
    name = "linalg.norm"
    require_tensor(A, name, "A")
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"{name}: If dim is specified, it must be of length 1 or 2. Got {dim}")
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"{name}: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{A.ndim}D."
        )
    is_matrix = A.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2
    if is_matrix:
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"{name}: Order {ord} needs matrices, in two dimensions")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


@public(out=True, overlap="any")
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along dimensions; of none, of all elements."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead."
        )
    return vector_norm(input, 2, dims or None, keepdim)


@public(out=True, overlap="any")
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of singular values of matrices, which lie in two dimensions: the last two."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim)


@public()
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one; over all for a `dim` of -1.

    >>> import tgraph as tg
    >>> tg.norm_except_dim(tg.tensor([[3.0, 4.0], [6.0, 8.0]]), 2, 0)
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return norm(v, pow)
    axes = [at for at in range(v.ndim) if at != normalize_axis(dim, v.ndim)]
    return norm(v, pow, axes, keepdim=True) if axes else e.abs(v)
