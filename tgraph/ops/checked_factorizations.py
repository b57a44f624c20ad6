"""Factorizations that tell which matrices failed, in the place of an error.

`info` is int32, one number for each matrix: 0, or what LAPACK says of one that failed, whose other
results mean nothing. With `check_errors` a failure raises LinAlgError.
"""

from __future__ import annotations

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply_several, detached
from ..core.return_types import linalg_cholesky_ex as CholeskyEx
from ..core.return_types import linalg_inv_ex as InvEx
from ..core.return_types import linalg_solve_ex as SolveEx
from ..core.tensor import Tensor
from . import complex_factorizations as of_complex
from .factorizations import check_matrices, solve_by_factors, solve_checked, transposed, unit_matrix


@with_autocast
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`cholesky`, and of each matrix whether it is positive definite.

    >>> import tgraph as tg
    >>> tg.linalg.cholesky_ex(tg.tensor([[4.0, 2.0], [2.0, 0.0]])).info  # the 2nd minor is not
    tensor(2, dtype=tgraph.int32)
    """
    name = "linalg.cholesky_ex"
    check_matrices(name, A, square=True, complex_too=True)
    if A._type.dtype.is_complex:
        return CholeskyEx(*of_complex.cholesky(A, upper, name if check_errors else ""))
    read = transposed(A) if upper else A
    factor, info = apply_several(p.cholesky, read, check=name if check_errors else "")
    return CholeskyEx(transposed(factor) if upper else factor, info)


@with_autocast
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """`inv`, and of each matrix whether it has an inverse.

    >>> import tgraph as tg
    >>> tg.linalg.inv_ex(tg.zeros(2, 2)).info  # the first pivot is zero
    tensor(1, dtype=tgraph.int32)
    """
    name = "linalg.inv_ex"
    check_matrices(name, A, square=True, complex_too=True)
    if A._type.dtype.is_complex:
        return InvEx(*of_complex.solve(A, unit_matrix(A._type), name if check_errors else ""))
    factors, rows, _, info = apply_several(p.lu, detached(A), check=name if check_errors else "")
    return InvEx(solve_by_factors(A, unit_matrix(A._type), factors, rows, transpose=False), info)


@with_autocast
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> SolveEx:  # fmt: skip
    """`solve`, and of each matrix `A` whether it is regular.

    >>> import tgraph as tg
    >>> tg.linalg.solve_ex(2 * tg.eye(2), tg.ones(2)).result
    tensor([0.5000, 0.5000])
    """
    name = "linalg.solve_ex"
    return SolveEx(*solve_checked(name, A, B, left, name if check_errors else ""))
