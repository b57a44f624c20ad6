"""LU factorization as what it gives: factors, permutations, and systems solved by them.

LAPACK and PyTorch tell a permutation as exchanges: `pivots[i]`, from 1, is the row that was
exchanged with row `i`, one after another.
"""

from __future__ import annotations

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import are_same
from ..core.autocast import with_autocast
from ..core.complex_parts import conjugate
from ..core.composite import composite
from ..core.dispatch import apply, apply_several, detached
from ..core.operands import cast, require_tensor
from ..core.planned import planned
from ..core.return_types import linalg_lu as LU
from ..core.return_types import linalg_lu_factor as LUFactors
from ..core.return_types import linalg_lu_factor_ex as LUFactorsEx
from ..core.tensor import Tensor
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import int32, int64
from . import complex_factorizations as of_complex
from . import creation, diagonals
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat
from .factorizations import check_matrices, order_back, solve_triangle, transposed
from .linalg import matmul
from .row_scans import scan

# --- factors -------------------------------------------------------------------------------------


def _factors(name: str, A: Tensor, pivot: bool, check: str = "") -> tuple[Tensor, Tensor, Tensor]:
    """`L` below and `U` upon the diagonal of one matrix, the order of rows, and `info`."""
    check_matrices(name, A, complex_too=True)
    if not pivot:
        raise NotImplementedError(f"{name}: pivot=False is not supported: LAPACK chooses pivots")
    rows, columns = A._type.shape[-2:]
    if rows < columns:
        square, rest = m.narrow(A, -1, 0, rows), m.narrow(A, -1, rows, columns - rows)
        packed, order, info = _square_factors(square, check)
        at = m.expand(m.unsqueeze(order, -1), rest._type.shape)
        moved = apply(p.gather, rest, at, axis=rest.ndim - 2)
        return cat([packed, solve_triangle(packed, moved, True, True)], -1), order, info
    if rows == columns:
        return _square_factors(A, check)
    none = creation.new_zeros(A, (*A._type.shape[:-1], rows - columns))
    wide = detached(cat([A, none], -1))
    factors, order, info = _pivoted(wide, "")
    moved = apply(p.gather, A, m.expand(m.unsqueeze(order, -1), A._type.shape), axis=A.ndim - 2)
    first, rest = m.narrow(moved, -2, 0, columns), m.narrow(moved, -2, columns, rows - columns)
    corner = m.narrow(m.narrow(factors, -1, 0, columns), -2, 0, columns)
    places = m.expand(creation.arange(columns, device=A.device), (*A._type.shape[:-2], columns))
    packed = _packed(first, corner, places)
    below = transposed(solve_triangle(packed, transposed(rest), False, False, "T"))
    return cat([packed, below], -2), order, e.where(e.gt(info, columns), 0, info)


def _square_factors(A: Tensor, check: str) -> tuple[Tensor, Tensor, Tensor]:
    factors, order, info = _pivoted(A, check)
    return _packed(A, factors, order), order, info


def _pivoted(A: Tensor, check: str) -> tuple[Tensor, Tensor, Tensor]:
    if A._type.dtype.is_complex:
        return of_complex.lu(A, check)
    factors, order, _, info = apply_several(p.lu, detached(A), check=check)
    return factors, order, info


@composite("lu_factors")
def _packed(a: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """The `factors` of `a[order]`; derivatives are with respect to `a`."""
    return m.clone(factors)


@input_vjp(_packed, saves=(2, OUTPUT))
def _packed_vjp(
    g: Tensor, out: Tensor, a: TensorType, factors: TensorType, order: Tensor
) -> Tensor:
    """de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
    factorization" (2011), section 3."""
    upper = diagonals.triu(out)
    one = creation.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    lower = e.add(diagonals.tril(out, -1), one)
    inner = e.add(
        diagonals.tril(matmul(of_complex.adjoint(lower), diagonals.tril(g, -1)), -1),
        diagonals.triu(matmul(diagonals.triu(g), of_complex.adjoint(upper))),
    )
    inner = solve_triangle(lower, inner, True, True, "H")
    inner = of_complex.adjoint(solve_triangle(upper, of_complex.adjoint(inner), False, False))
    at = m.expand(m.unsqueeze(order_back(order), -1), a.shape)
    return apply(p.gather, inner, at, axis=a.ndim - 2)


@planned
def _exchanges(order: Tensor) -> Tensor:
    """The exchanges, from 1, that give an order of rows."""
    count = order._type.shape[-1]
    places = creation.arange(count, device=order.device)
    if not count:
        return cast(order, int32)

    def step(now: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        at, wanted = turn
        found = r.argmax(cast(e.eq(now, m.unsqueeze(wanted, -1)), int32), -1, True)
        here = apply(p.index, now, m.reshape(at, 1), axis=now.ndim - 1)
        moved = e.where(e.eq(places, found), here, now)
        return e.where(e.eq(places, at), m.unsqueeze(wanted, -1), moved), m.squeeze(found, -1)

    start = m.clone(m.expand(places, order._type.shape))
    _, found = scan(step, start, (places, m.movedim(order, -1, 0)))
    return cast(e.add(m.movedim(found, 0, -1), 1), int32)


@planned
def order_of(pivots: Tensor, count: int) -> Tensor:
    """The order of `count` rows that exchanges, from 1, give."""
    places = creation.arange(count, device=pivots.device)
    start = m.clone(m.expand(places, (*pivots._type.shape[:-1], count)))
    exchanges = pivots._type.shape[-1]
    if not exchanges:
        return start

    def step(now: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        at, other = turn
        other = m.unsqueeze(other, -1)
        here = apply(p.index, now, m.reshape(at, 1), axis=now.ndim - 1)
        there = apply(p.gather, now, other, axis=now.ndim - 1)
        moved = e.where(e.eq(places, other), here, now)
        return e.where(e.eq(places, at), there, moved), None

    turns = creation.arange(exchanges, device=pivots.device)
    targets = m.movedim(e.sub(cast(pivots, int64), 1), -1, 0)
    found, _ = scan(step, start, (turns, targets))
    return found


def _cut(order: Tensor, A: Tensor) -> Tensor:
    """As many exchanges as there are columns of `L`."""
    found = _exchanges(order)
    return m.narrow(found, -1, 0, min(A._type.shape[-2:]))


# --- public --------------------------------------------------------------------------------------


@with_autocast
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactors:
    """`L` and `U` of `lu` in one matrix, and the exchanges of rows, as `lu_solve` takes them.

    LinAlgError for a singular square matrix.

    >>> import tgraph as tg
    >>> tg.linalg.lu_factor(tg.tensor([[0.0, 2.0], [4.0, 2.0]])).pivots
    tensor([2, 2], dtype=tgraph.int32)
    """
    name = "linalg.lu_factor"
    packed, order, _ = _factors(name, A, pivot, name)
    return LUFactors(packed, _cut(order, A))


@with_autocast
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorsEx:
    """`lu_factor`, and of each matrix the number of the first pivot that is zero, else 0.

    >>> import tgraph as tg
    >>> tg.linalg.lu_factor_ex(tg.zeros(2, 2)).info
    tensor(1, dtype=tgraph.int32)
    """
    name = "linalg.lu_factor_ex"
    packed, order, info = _factors(name, A, pivot, name if check_errors else "")
    return LUFactorsEx(packed, _cut(order, A), info)


@with_autocast
def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """`A = P @ L @ U`: a permutation, a lower triangle with ones on its diagonal, an upper one.

    >>> import tgraph as tg
    >>> P, L, U = tg.linalg.lu(tg.tensor([[0.0, 2.0], [4.0, 2.0]]))
    >>> U
    tensor([[4., 2.],
            [0., 2.]])
    """
    packed, order, _ = _factors("linalg.lu", A, pivot)
    return LU(_permutation(order, A), *_apart(packed))


def _permutation(order: Tensor, like: Tensor) -> Tensor:
    places = creation.arange(order._type.shape[-1], device=order.device)
    found = e.eq(m.unsqueeze(places, -1), m.unsqueeze(order, -2))
    return cast(found, like._type.dtype)


def _apart(packed: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = packed._type.shape[-2:]
    size = min(rows, columns)
    one = creation.eye(rows, size, dtype=packed._type.dtype, device=packed.device)
    lower = e.add(diagonals.tril(m.narrow(packed, -1, 0, size), -1), one)
    return lower, diagonals.triu(m.narrow(packed, -2, 0, size))


@with_autocast
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The `X` with `A @ X = B`, for the `LU` and `pivots` of `lu_factor(A)`.

    Where not `left`, `X @ A = B`; with `adjoint`, of the conjugate transpose of `A`.

    >>> import tgraph as tg
    >>> factors = tg.linalg.lu_factor(tg.tensor([[0.0, 2.0], [4.0, 2.0]]))
    >>> tg.linalg.lu_solve(*factors, tg.tensor([[2.0], [6.0]]))
    tensor([[1.],
            [1.]])
    """
    name = "linalg.lu_solve"
    check_matrices(name, LU, square=True, complex_too=True)
    require_tensor(pivots, name, "pivots"), require_tensor(B, name, "B")
    _check_factors(name, LU, pivots, B)
    order = order_of(pivots, LU._type.shape[-1])
    right = conjugate(B) if adjoint else B  # the adjoint is the conjugate of the transpose
    if left:
        found = _solved(name, LU, order, right, adjoint)
    else:
        found = transposed(_solved(name, LU, order, transposed(right), not adjoint))
    return conjugate(found) if adjoint else found


def _check_factors(name: str, LU: Tensor, pivots: Tensor, B: Tensor) -> None:
    """RuntimeError for what `lu_factor` did not give."""
    if pivots._type.dtype is not int32:
        raise RuntimeError(
            f"{name}: pivots should be a Tensor of scalar type int32, got {pivots._type.dtype.name}"
        )
    if not are_same(pivots._type.shape, LU._type.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots._type.shape)} for LU of shape {list(LU._type.shape)}"
        )
    if B._type.dtype is not LU._type.dtype:
        raise RuntimeError(
            f"{name}: Expected LU and B to have the same dtype, but found LU of type "
            f"{LU._type.dtype.name} and B of type {B._type.dtype.name} instead"
        )
    if B.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor B must have at least 2 dimensions, got {B.ndim}"
        )


def _solved(name: str, packed: Tensor, order: Tensor, B: Tensor, transpose: bool) -> Tensor:
    batch = m.broadcast_shapes(packed._type.shape[:-2], B._type.shape[:-2])
    size, columns = packed._type.shape[-1], B._type.shape[-1]
    packed = m.expand(packed, (*batch, size, size))
    x = m.expand(B, (*batch, size, columns))
    order = order_back(order) if transpose else order
    at = m.expand(m.unsqueeze(order, -1), (*batch, size, columns))
    if not transpose:
        x = apply(p.gather, x, at, axis=len(batch))
    for lower in (False, True) if transpose else (True, False):
        x = solve_triangle(packed, x, lower, lower, "T" * transpose)
    return apply(p.gather, x, at, axis=len(batch)) if transpose else x


def unpacked(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:
    """The `P`, `L` and `U` of what `lu_factor` gives; empty tensors for what is not asked for."""
    none = creation.new_empty(LU_data, (0,))
    rows = LU_data._type.shape[-2]
    P, L, U = none, none, none
    if unpack_pivots:
        P = _permutation(order_of(LU_pivots, rows), LU_data)
    if unpack_data:
        L, U = _apart(LU_data)
    return LU(P, L, U)
