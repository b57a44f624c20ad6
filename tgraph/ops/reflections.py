"""Products of reflections `I - tau * v @ v.mH`, as LAPACK keeps orthogonal matrices.

The vectors are the columns below the diagonal of a matrix, with a 1 upon it and 0 above; as many as
there are of `tau`.
"""

from __future__ import annotations

from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate, part
from ..core.dispatch import apply
from ..core.operands import cast, require_tensor
from ..core.planned import planned
from ..core.public import public
from ..core.return_types import geqrf as Reflections
from ..core.tensor import Tensor
from . import creation, diagonals
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .complex_factorizations import adjoint, real_part
from .factorizations import check_matrices
from .linalg import matmul
from .row_scans import scan


@planned
def householder_product(vectors: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections, for vectors [..., n, k].

    >>> import tgraph as tg
    >>> householder_product(tg.zeros(2, 1), tg.tensor([2.0])).tolist()
    [[-1.0], [0.0]]
    """
    name = "linalg.householder_product"
    check_matrices(name, vectors, complex_too=True)
    rows, columns = vectors._type.shape[-2:]
    if rows < columns:
        raise RuntimeError(
            f"{name}: expected at least as many rows as columns, got {rows} and {columns}"
        )
    _check_factors(name, vectors, tau, columns)
    one = _unit(vectors)
    if not tau._type.shape[-1]:
        return e.where(e.eq(one, one), one, vectors)
    return _reflected(vectors, tau, m.expand(one, vectors._type.shape), backwards=True)


def _check_factors(name: str, vectors: Tensor, tau: Tensor, most: int) -> None:
    """RuntimeError where there are other factors than reflections."""
    if tau._type.dtype is not vectors._type.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau._type.dtype.name} does not match input dtype "
            f"{vectors._type.dtype.name}"
        )
    batch, own = vectors._type.shape[:-2], tau._type.shape
    if tau.ndim != vectors.ndim - 1 or own[:-1] != batch or own[-1] > most:
        raise RuntimeError(
            f"{name}: expected a tau of {list(batch)} and at most {most} elements for each matrix, "
            f"got {list(own)}"
        )


def _unit(vectors: Tensor) -> Tensor:
    rows, columns = vectors._type.shape[-2:]
    return creation.eye(rows, columns, dtype=vectors._type.dtype, device=vectors._type.device)


def _reflected(vectors: Tensor, tau: Tensor, x: Tensor, backwards: bool) -> Tensor:
    """The adjoints of all reflections times `x`, the first one first; backwards, themselves."""
    unit = e.add(diagonals.tril(vectors, -1), _unit(vectors))
    unit = m.narrow(unit, -1, 0, tau._type.shape[-1])
    tau = tau if backwards else conjugate(tau)  # each reflection's adjoint

    def reflected(now: Tensor, reflection: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        v, t = reflection
        along = matmul(m.unsqueeze(conjugate(v), -2), now)
        step = e.mul(m.unsqueeze(m.unsqueeze(t, -1), -1), e.mul(m.unsqueeze(v, -1), along))
        return e.sub(now, step), None

    reflections = m.movedim(unit, -1, 0), m.movedim(tau, -1, 0)
    found, _ = scan(reflected, x, reflections, reverse=backwards)
    return found


@public(method=True, out=True)
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """`Q @ input3` for the product `Q` of the reflections of `input` and `input2`, their `tau`.

    `transpose` takes `Q.mH`; where not `left`, it is multiplied from the right.

    >>> import tgraph as tg
    >>> a, tau = tg.geqrf(tg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> tg.ormqr(a, tau, a.triu()).round(decimals=4)
    tensor([[3., 1.],
            [4., 2.]])
    """
    name = "ormqr"
    check_matrices(name, input, complex_too=True)
    tau = require_tensor(input2, name, "input2")
    other = require_tensor(input3, name, "input3")
    rows, count = input._type.shape[-2:]
    if other._type.dtype is not input._type.dtype:
        raise RuntimeError(
            f"ormqr: Expected input and input3 to have the same dtype, but they are "
            f"{input._type.dtype.name} and {other._type.dtype.name}"
        )
    if other.ndim != input.ndim or other._type.shape[:-2] != input._type.shape[:-2]:
        raise RuntimeError(
            f"ormqr: expected input3 with the batches of input, {list(input._type.shape[:-2])}, "
            f"and two dimensions more, got {list(other._type.shape)}"
        )
    if other._type.shape[-2 if left else -1] != rows:
        raise RuntimeError(
            f"ormqr: input3.shape[{-2 if left else -1}] must be equal to input.shape[-2] = {rows}, "
            f"got {list(other._type.shape)}"
        )
    _check_factors(name, input, tau, min(rows, count))
    if not tau._type.shape[-1]:
        return m.clone(other)
    x = other if left else adjoint(other)
    found = _reflected(input, tau, x, backwards=left is not transpose)
    return found if left else adjoint(found)


@public(method=True, out="exact")
def geqrf(input: Tensor) -> Reflections:
    """The factors of `tgraph.linalg.qr`: `R` above, the vectors of reflections below the diagonal.

    `householder_product` gives `Q`, `ormqr` multiplies with it.

    >>> import tgraph as tg
    >>> tg.geqrf(tg.tensor([[3.0, 1.0], [4.0, 2.0]])).a.triu()
    tensor([[-5.0000, -2.2000],
            [ 0.0000,  0.4000]])
    """
    check_matrices("geqrf", input, complex_too=True)
    return Reflections(*_geqrf(input))


def _square(x: Tensor) -> Tensor:
    """Of the absolute value."""
    if not x._type.dtype.is_complex:
        return e.mul(x, x)
    return e.add(*(e.mul(each, each) for each in (part(x, 0), part(x, 1))))


@planned
def _geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """LAPACK's xGEQR2 with xLARFG, a column after another."""
    rows, columns = a._type.shape[-2:]
    count = min(rows, columns)
    if not a._type.numel or not count:
        return m.clone(a), creation.new_zeros(a, (*a._type.shape[:-2], count))
    down = m.unsqueeze(creation.arange(rows, device=a.device), -1)
    across = creation.arange(columns, device=a.device)

    def step(now: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        column = apply(p.index, now, m.reshape(at, 1), axis=now.ndim - 1)
        below, here = e.gt(down, at), e.eq(down, at)
        head = r.sum(e.where(here, column, 0.0), -2, True)
        rest = e.where(below, column, 0.0)
        square = r.sum(_square(rest), -2, True)
        is_done = e.eq(square, 0)
        if head._type.dtype.is_complex:  # what is left on the diagonal is real, as in LAPACK
            is_done = e.logical_and(is_done, e.eq(part(head, 1), 0))
        size = e.sqrt(e.add(_square(head), e.where(is_done, 1.0, square)))
        size = cast(size, head._type.dtype)
        first = e.where(is_done, head, e.where(e.lt(real_part(head), 0), size, e.neg(size)))
        tau = e.where(is_done, 0.0, e.div(e.sub(first, head), e.where(is_done, 1.0, first)))
        v = e.div(rest, e.where(is_done, 1.0, e.sub(head, first)))
        whole = e.where(here, 1.0, v)
        turned = e.mul(conjugate(tau), whole)
        changed = e.sub(now, e.mul(turned, matmul(adjoint(whole), now)))
        made = e.where(below, v, e.where(here, first, column))
        found = e.where(e.gt(across, at), changed, e.where(e.eq(across, at), made, now))
        return found, m.reshape(tau, tau._type.shape[:-2])

    found, taus = scan(step, a, creation.arange(count, device=a.device))
    return found, m.movedim(taus, 0, -1)
