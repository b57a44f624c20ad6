"""Factorizations of matrices, systems of equations, determinants, norms: `tgraph.linalg`.

>>> import tgraph as tg
>>> tg.linalg.det(tg.eye(3))
tensor(1.)
"""

from collections.abc import Callable
from typing import Any

from .core.keywords import publish as _publish
from .core.keywords import with_keywords as _with_keywords
from .core.out_argument import with_out as _with_out
from .ops.checked_factorizations import cholesky_ex, inv_ex, solve_ex
from .ops.determinants import det, slogdet
from .ops.eigenvalues import eig, eigvals
from .ops.factorizations import (
    cholesky,
    eigh,
    eigvalsh,
    inv,
    qr,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from .ops.linalg import matmul
from .ops.lu_factors import lu, lu_factor, lu_factor_ex, lu_solve
from .ops.matrix_functions import matrix_exp, matrix_power, multi_dot
from .ops.norms import matrix_norm, vector_norm
from .ops.norms import matrix_or_vector_norm as norm
from .ops.products import cross_along as cross
from .ops.products import diagonal_of as diagonal
from .ops.products import powers_of as vander
from .ops.products import vecdot
from .ops.pseudoinverse import cond, lstsq, matrix_rank, pinv
from .ops.reflections import householder_product
from .ops.symmetric_factors import ldl_factor, ldl_factor_ex, ldl_solve
from .ops.tensor_equations import tensorinv, tensorsolve
from .runtime.linalg_error import LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex",
    "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip

_CONVERTED = ("cond", "householder_product", "matrix_power", "matrix_rank", "pinv", "tensorinv",
              "tensorsolve")  # fmt: skip
"""Whose `out` may have another type than the result."""


def _as_users_call_it(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if name in ("diagonal", "matrix_exp"):
        return _with_keywords(function)
    return _with_out(function, "any", name not in _CONVERTED)


_publish(
    globals(),
    {_name: _as_users_call_it(_name, globals()[_name])
     for _name in __all__ if _name != "LinAlgError"},
)  # fmt: skip
