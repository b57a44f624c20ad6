"""Factorizations of matrices, systems of equations, determinants: `tgraph.linalg`.

>>> import tgraph as tg
>>> tg.linalg.det(tg.eye(3))
tensor(1.)
"""

from .ops.factorizations import (
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from .runtime.linalg_error import LinAlgError

__all__ = [
    "LinAlgError", "cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "solve",
    "solve_triangular", "svd", "svdvals",
]  # fmt: skip
