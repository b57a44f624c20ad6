"""Functions of matrices that are made of products."""

from __future__ import annotations

from ..core.planned import planned
from ..core.tensor import Tensor
from . import elementwise as e
from . import linalg as la
from . import movement as m
from . import reductions as r
from .creation import eye
from .row_scans import scan

_SQUARINGS = 16
_TERMS = 14


@planned
def matrix_exp(a: Tensor) -> Tensor:
    """The exponential of square matrices [..., n, n], whose 1-norm is below 32768.

    By scaling, the Taylor series of degree 14 for norms up to 1/2, and squaring. Source: Moler and
    Van Loan, "Nineteen Dubious Ways to Compute the Exponential of a Matrix" (2003).

    >>> import tgraph as tg
    >>> matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    size = r.amax(r.sum(e.abs(a.detach()), -2), -1)
    halvings = e.clamp(e.ceil(e.log2(e.clamp(e.mul(size, 2), min=1))), max=_SQUARINGS)
    halvings = m.unsqueeze(m.unsqueeze(halvings, -1), -1)
    small = e.mul(a, e.exp2(e.neg(halvings)))
    one = eye(a._type.shape[-1], dtype=a._type.dtype, device=a._type.device)
    found = one
    for at in range(_TERMS, 0, -1):
        found = e.add(e.div(la.matmul(small, found), at), one)
    for at in range(_SQUARINGS):
        found = e.where(e.lt(at, halvings), la.matmul(found, found), found)
    return found


@planned
def householder_product(vectors: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflections `I - tau v vᵀ`, for [..., n, k].

    The vectors are the columns below the diagonal, with a 1 upon it and 0 above.

    >>> import tgraph as tg
    >>> householder_product(tg.zeros(2, 1), tg.tensor([2.0])).tolist()
    [[-1.0], [0.0]]
    """
    rows, columns = vectors._type.shape[-2:]
    one = eye(rows, columns, dtype=vectors._type.dtype, device=vectors._type.device)
    unit = e.add(vectors.tril(-1), one)
    first = m.expand(one, vectors._type.shape)

    def reflected(now: Tensor, reflection: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        v, t = reflection
        along = la.matmul(m.unsqueeze(v, -2), now)
        step = e.mul(m.unsqueeze(m.unsqueeze(t, -1), -1), e.mul(m.unsqueeze(v, -1), along))
        return e.sub(now, step), None

    reflections = m.movedim(unit, -1, 0), m.movedim(tau, -1, 0)
    found, _ = scan(reflected, first, reflections, reverse=True)
    return found
