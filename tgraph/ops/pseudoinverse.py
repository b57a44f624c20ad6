"""What singular values decide: rank, condition, pseudoinverses, least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir.primitives import full
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import make_source
from ..core.eager_context import current_context
from ..core.operands import Operand, cast, require_tensor
from ..core.return_types import linalg_lstsq as LeastSquares
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import int64
from . import creation, diagonals
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .checked_factorizations import inv_ex
from .complex_factorizations import adjoint, real_part
from .factorizations import check_matrices, svd, svdvals
from .linalg import matmul
from .norms import matrix_norm


def _check_tolerance(operation: str, name: str, value: Any) -> None:
    if isinstance(value, (complex, np.complexfloating)):
        raise TypeError(f"{operation}(): argument '{name}' must be Tensor or float, not complex")
    if isinstance(value, Tensor) and value._type.dtype.is_complex:
        raise RuntimeError(
            f"{operation}: {name} tensor of complex type is not supported. Got "
            f"{value._type.dtype.name}"
        )


def _smallest(operation: str, values: Tensor, A: Tensor, atol: Any, rtol: Any) -> Tensor:
    """What singular values must exceed to count: max(atol, rtol * the largest)."""
    _check_tolerance(operation, "atol", atol)
    _check_tolerance(operation, "rtol", rtol)
    rows, columns = A._type.shape[-2:]
    if rtol is None:
        usual = float(np.finfo(values._type.dtype.numpy).eps) * max(rows, columns)
        if isinstance(atol, Tensor):
            rtol = e.where(e.gt(atol, 0), 0.0, usual)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else usual
    if values._type.shape[-1] == 0:
        largest: Any = r.sum(values, -1)
    else:
        largest = r.amax(values, -1)
    found = e.mul(largest, rtol)
    if atol is not None:
        found = e.maximum(found, cast_like(atol, found))
    return found


def cast_like(value: Operand, like: Tensor) -> Tensor:
    """A number or a tensor in the dtype of `like`."""
    if isinstance(value, Tensor):
        return cast(value, like._type.dtype)
    return creation.full_like(like, value)


def _symmetric(A: Tensor) -> Tensor:
    """The symmetric, or Hermitian, matrix of which the lower triangle is read."""
    lower = diagonals.tril(A, -1)
    own = real_part(m.diagonal(A, 0, -2, -1))
    return e.add(e.add(lower, adjoint(lower)), diagonals.diag_embed(own))


@with_autocast
def matrix_rank(
    A: Tensor,
    tol: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest), as int64.

    By default `rtol` is the larger size times the spacing of numbers at 1; `tol` is an `atol`.

    >>> import tgraph as tg
    >>> tg.linalg.matrix_rank(tg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    check_matrices("linalg.matrix_rank", A, square=hermitian, complex_too=True)
    values = svdvals(_symmetric(A.detach()) if hermitian else A.detach())
    least = _smallest("linalg.matrix_rank", values, A, tol if tol is not None else atol, rtol)
    return r.sum(e.gt(values, m.unsqueeze(least, -1)), -1)


@with_autocast
def pinv(
    A: Tensor,
    rcond: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """The pseudoinverse of Moore and Penrose.

    Singular values up to max(atol, rtol * the largest) count as zero; by default `rtol` is the
    larger size times the spacing of numbers at 1. `rcond` is an older name of `rtol`.

    >>> import tgraph as tg
    >>> tg.linalg.pinv(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    check_matrices("linalg.pinv", A, square=hermitian, complex_too=True)
    rtol = rcond if rtol is None else rtol
    plain = A.detach()
    u, s, vh = svd(_symmetric(plain) if hermitian else plain, full_matrices=False)
    least = m.unsqueeze(_smallest("linalg.pinv", s, A, atol, rtol), -1)
    kept = e.gt(s, least)
    inverse = e.where(kept, e.reciprocal(e.where(kept, s, 1.0)), 0.0)
    return _pseudoinverse(A, matmul(adjoint(vh), adjoint(e.mul(u, m.unsqueeze(inverse, -2)))))


@composite("pinv")
def _pseudoinverse(a: Tensor, inverse: Tensor) -> Tensor:
    """The pseudoinverse of `a`, which has been computed: derivatives are with respect to `a`."""
    return m.clone(inverse)


@input_vjp(_pseudoinverse, saves=(0, OUTPUT))
def _pseudoinverse_vjp(g: Tensor, out: Tensor, a: Tensor, inverse: TensorType) -> Tensor:
    """Golub and Pereyra, "The Differentiation of Pseudo-Inverses" (1973), theorem 4.3."""
    g, back = adjoint(g), adjoint(out)
    rows, columns = a._type.shape[-2:]
    if rows <= columns:
        inner = matmul(g, out)
        side = matmul(inner, back)
        found = e.sub(side, adjoint(matmul(out, inner)))
        found = e.sub(found, matmul(matmul(a, out), side))
        return e.add(found, matmul(matmul(back, out), e.sub(g, matmul(inner, a))))
    inner = matmul(out, g)
    side = matmul(back, inner)
    found = e.sub(side, adjoint(matmul(inner, out)))
    found = e.add(found, matmul(matmul(e.sub(g, matmul(a, inner)), out), back))
    return e.sub(found, matmul(matmul(side, out), a))


@with_autocast
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number: the norm of a matrix times that of its inverse.

    `p` is a norm of `matrix_norm`; None and 2 are the quotient of the largest and the least
    singular value, -2 its inverse. Of a singular matrix it is infinite.

    >>> import tgraph as tg
    >>> tg.linalg.cond(tg.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    if p is None or p in (2, -2):
        check_matrices("linalg.cond", A, complex_too=True)
        values = svdvals(A)
        if not values._type.shape[-1]:
            return r.sum(values, -1)
        largest, least = m.select(values, -1, 0), m.select(values, -1, -1)
        return e.div(least, largest) if p == -2 else e.div(largest, least)
    check_matrices("linalg.cond", A, square=True, complex_too=True)
    from_inverse = matrix_norm(_inverse_or_infinite(A), p)
    return e.mul(matrix_norm(A, p), from_inverse)


def _inverse_or_infinite(A: Tensor) -> Tensor:
    found, info = inv_ex(A)
    failed = m.unsqueeze(m.unsqueeze(e.ne(info, 0), -1), -1)
    return e.where(failed, float("inf"), found)


def _all_full(rank: Tensor, columns: int) -> bool:
    """Whether all ranks are full; what is traced takes it for granted."""
    context = current_context()
    return context.tracing or bool((context.host_array(rank, "lstsq()") == columns).all())


@with_autocast
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """The solution of least norm of those that make `A @ X - B` smallest.

    The other results are those of `driver`: by default "gelsy", as on PyTorch's CPU. All of them
    compute by singular values here, so that equations of any rank are solved. There are no
    residuals where there are no more rows than columns or, but in traced code, where the rank is
    less.

    >>> import tgraph as tg
    >>> tg.linalg.lstsq(tg.tensor([[1.0], [1.0]]), tg.tensor([[1.0], [3.0]])).solution.round()
    tensor([[2.]])
    """
    name = "linalg.lstsq"
    check_matrices(name, A, complex_too=True)
    require_tensor(B, name, "B")
    known = ("gels", "gelsy", "gelsd", "gelss")
    driver = "gelsy" if driver is None else driver
    if driver not in known:
        raise RuntimeError(f"{name}: parameter `driver` should be one of {known}, got {driver!r}")
    if B._type.dtype is not A._type.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{A._type.dtype.name} and other's dtype {B._type.dtype.name}"
        )
    is_vector = B.ndim == A.ndim - 1 and B._type.shape == A._type.shape[:-1]
    right = m.unsqueeze(B, -1) if is_vector else B
    if right.ndim < 2 or right._type.shape[-2] != A._type.shape[-2]:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-2), got {list(A._type.shape)} and "
            f"{list(B._type.shape)}"
        )
    rows, columns = A._type.shape[-2:]
    if rcond is None:
        rcond = float(np.finfo(A._type.dtype.numpy).eps) * max(rows, columns)
    values = svdvals(A.detach())
    rank = r.sum(e.gt(values, m.unsqueeze(_smallest(name, values, A, None, rcond), -1)), -1)
    solution = matmul(pinv(A, rcond), right)
    residuals = m.narrow(m.reshape(real_part(solution), -1), 0, 0, 0)
    if rows > columns and driver != "gelsy" and (driver == "gels" or _all_full(rank, columns)):
        apart = e.sub(matmul(A, solution), right)
        size = e.abs(apart)
        residuals = r.sum(e.mul(size, size), -2)
    none = make_source(full, A._type.device, shape=(0,), value=0, dtype=int64)
    return LeastSquares(
        m.squeeze(solution, -1) if is_vector else solution,
        residuals,
        none if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else creation.new_empty(values, (0,)),
    )
