"""Factors of matrices of low rank, by random projections.

Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ..core.operands import require_tensor
from ..core.public import public
from ..core.tensor import Tensor
from ..runtime.records import NamedTuple
from . import elementwise as e
from . import movement as m
from . import random
from . import reductions as r
from .complex_factorizations import adjoint
from .factorizations import check_matrices, qr, svd
from .linalg import matmul


class LowRank(NamedTuple):
    """What `svd_lowrank` returns: `A` is about `U @ diag(S) @ V.mH`."""

    U: Tensor
    S: Tensor
    V: Tensor


@public()
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> LowRank:
    """About the `q` greatest singular values of `A`, or of `A - M`, and their vectors.

    By `niter` products with `A` and its adjoint, of a random matrix.

    >>> import tgraph as tg
    >>> values = tg.svd_lowrank(tg.diag(tg.tensor([3.0, 0.0, 0.0, 2.0])), q=2).S
    >>> tg.allclose(values, tg.tensor([3.0, 2.0]))
    True
    """
    check_matrices("svd_lowrank", A, complex_too=True)
    if M is not None:
        A = e.sub(A, m.expand(require_tensor(M, "svd_lowrank", "M"), A._type.shape))
    rows, columns = A._type.shape[-2:]
    tall = adjoint(A) if rows < columns else A
    basis = _basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = svd(matmul(adjoint(basis), tall), full_matrices=False)
    u, v = matmul(basis, u), adjoint(vh)
    return LowRank(v, s, u) if rows < columns else LowRank(u, s, v)


def _basis(a: Tensor, count: int, turns: int) -> Tensor:
    """Orthonormal columns, in whose span nearly all of `a` lies."""
    shape = (a._type.shape[-1], count)
    start = random.randn(*shape, dtype=a._type.dtype, device=a.device)
    found = qr(matmul(a, start)).Q
    for _ in range(turns):
        found = qr(matmul(adjoint(a), found)).Q
        found = qr(matmul(a, found)).Q
    return found


@public()
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRank:
    """Principal components: `svd_lowrank` of `A`, of whose rows with `center` the mean is taken.

    The columns of `V` are directions, `A @ V` the places of rows along them.

    >>> import tgraph as tg
    >>> tg.pca_lowrank(tg.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), q=1).S
    tensor([3.1623])
    """
    check_matrices("pca_lowrank", A, complex_too=True)
    least = min(A._type.shape[-2:])
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(e.sub(A, r.mean(A, -2, True)) if center else A, q, niter)
