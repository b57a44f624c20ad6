"""Functions of matrices by the names that they have outside of `tgraph.linalg`."""

from __future__ import annotations

from typing import Any

from ..core import return_types
from ..core.operands import require_tensor
from ..core.public import public
from ..core.return_types import svd as SVDOf
from ..core.return_types import triangular_solve as TriangularSolve
from ..core.tensor import Tensor
from . import complex_factorizations as of_complex
from . import creation, determinants, lu_factors, matrix_functions, pseudoinverse, reflections
from . import elementwise as e
from . import factorizations as f
from . import movement as m


@public(method=True, out=True, overlap="any")
def inverse(input: Tensor) -> Tensor:
    """The inverse of each matrix: `tgraph.linalg.inv`."""
    return f.inv(input)


@public(method=True)
def det(input: Tensor) -> Tensor:
    """The determinant of each matrix: `tgraph.linalg.det`."""
    return determinants.det(input)


@public(method=True)
def slogdet(input: Tensor) -> return_types.slogdet:
    """Sign and logarithm of each determinant: `tgraph.linalg.slogdet`."""
    return return_types.slogdet(*determinants.slogdet(input))


@public(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of each determinant: -inf where it is 0, NaN where it is negative.

    That of a complex one is complex.

    >>> import tgraph as tg
    >>> tg.logdet(tg.eye(3))
    tensor(0.)
    """
    sign, size = determinants.slogdet(input)
    if sign._type.dtype.is_complex:
        return e.add(e.log(sign), size)
    return e.where(e.lt(sign, 0), float("nan"), size)


@public(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse: `tgraph.linalg.pinv`."""
    return pseudoinverse.pinv(input, rcond)


@public(method=True, out=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Cholesky's factor: `tgraph.linalg.cholesky`."""
    return f.cholesky(input, upper=upper)


@public(method=True, out=True, overlap="any")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The `X` with `A @ X = input`, where `L` is the factor of `A` by Cholesky.

    >>> import tgraph as tg
    >>> tg.cholesky_solve(tg.tensor([[8.0]]), tg.tensor([[2.0]]))
    tensor([[2.]])
    """
    require_tensor(input, "cholesky_solve"), require_tensor(L, "cholesky_solve", "L")
    f.check_matrices("cholesky_solve", L, square=True, complex_too=True)
    return f.solve_by_cholesky(of_complex.adjoint(L) if upper else L, input)


@public(method=True, out=True, overlap="any")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose factor by Cholesky is `input`.

    >>> import tgraph as tg
    >>> tg.cholesky_inverse(tg.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    f.check_matrices("cholesky_inverse", input, square=True, complex_too=True)
    factor = of_complex.adjoint(input) if upper else input
    return f.solve_by_cholesky(factor, f.unit_matrix(input._type))


@public(method=True, out="exact")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> TriangularSolve:
    """The `X` with `A @ X = input` for a triangular `A`: `tgraph.linalg.solve_triangular`."""
    f.check_matrices("triangular_solve", A, square=True, complex_too=True)
    matrix, upper = (A.mT, not upper) if transpose else (A, upper)
    found = f.solve_triangular(matrix, input, upper=upper, unitriangular=unitriangular)
    batch = (*found._type.shape[:-2], *A._type.shape[-2:])
    return TriangularSolve(found, m.clone(m.expand(A, batch)))


@public(method=True, out="exact")
def qr(input: Tensor, some: bool = True) -> return_types.qr:
    """`tgraph.linalg.qr`, complete without `some`."""
    return return_types.qr(*f.qr(input, "reduced" if some else "complete"))


@public(method=True, out="exact")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVDOf:
    """`tgraph.linalg.svd` with `V` in the place of `Vh`, of full matrices without `some`.

    Without `compute_uv` there are zeros in the place of `U` and `V`.
    """
    if not compute_uv:
        values = f.svdvals(input)
        *batch, rows, columns = input._type.shape
        zeros = (creation.new_zeros(input, (*batch, size, size)) for size in (rows, columns))
        left, right = zeros
        return SVDOf(left, values, right)
    u, s, vh = f.svd(input, full_matrices=not some)
    return SVDOf(u, s, vh.mT)


@public(method=True, out=True, overlap="any")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix multiplied `n` times: `tgraph.linalg.matrix_power`."""
    return matrix_functions.matrix_power(input, n)


@public(method=True)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices: `tgraph.linalg.matrix_exp`."""
    return matrix_functions.matrix_exp(input)


@public(method=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """A product of reflections: `tgraph.linalg.householder_product`."""
    return reflections.householder_product(input, input2)


@public(out="exact", overlap="any")
def chain_matmul(*matrices: Any) -> Tensor:
    """The product of matrices, in the best order: `tgraph.linalg.multi_dot`."""
    given = matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices
    return m.clone(given[0]) if len(given) == 1 else matrix_functions.multi_dot(given)


@public(method=True, out="exact")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The `X` with `A @ X = input`: `tgraph.linalg.lu_solve`."""
    return lu_factors.lu_solve(LU_data, LU_pivots, input)


@public(out="exact")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> return_types.lu_unpack:
    """The `P`, `L` and `U` of what `tgraph.linalg.lu_factor` gives."""
    return return_types.lu_unpack(
        *lu_factors.unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)
    )


@public(method=True, out="exact")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`tgraph.linalg.lu_factor`; with `get_infos`, what failed as a third result."""
    found = lu_factors.lu_factor_ex(A, pivot=pivot)
    return tuple(found) if get_infos else tuple(found[:2])
