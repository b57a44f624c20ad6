"""Some eigenvalues of large symmetric matrices, sparse ones, too, by SciPy's LOBPCG.

It runs on the host, of CUDA tensors on a copy. Gradients of dense matrices are those of the pairs
that are found, by a linear system of the size of the matrix for each.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.composite import composite
from ..core.dispatch import apply_several, detached
from ..core.operands import require_tensor
from ..core.public import public
from ..core.sparse_tensor import NotOnSparseError, SparseTensor
from ..core.tensor import Tensor, intern_type
from ..core.vjp_rules import OUTPUT, input_vjp
from . import creation, random
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .factorizations import check_matrices, solve, transposed
from .linalg import matmul
from .sparse_parts import csr_parts

_Array = np.ndarray[Any, Any]


@public()
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest eigenvalues of symmetric `A`, or smallest, and their vectors as columns.

    With `B`, those of `A @ x = value * B @ x`. `X` is what vectors are sought from, by default `n`
    random ones, `iK` about the inverse of `A`. It ends after `niter` turns (1000; -1 for no end),
    or when residuals are below `tol` times the size of what they are differences of. The methods
    "basic" and "ortho" are one here, so the last three arguments change nothing.

    >>> import tgraph as tg
    >>> values, vectors = tg.lobpcg(tg.diag(tg.arange(1.0, 9.0)), k=2)
    >>> values.round(decimals=3)
    tensor([8., 7.])
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg(tracker=...): steps are SciPy's, which tells none")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg(): expected method 'basic' or 'ortho', got {method!r}")
    operators = [None if each is None else _operator(name, each)
                 for name, each in (("A", A), ("B", B), ("iK", iK))]  # fmt: skip
    if B is not None and B.shape != A.shape:
        raise ValueError(
            f"lobpcg(): A and B must have same shape, got {list(A.shape)} and {list(B.shape)}"
        )
    *batch, size, _ = A._type.shape
    k = (1 if X is None else X.shape[-1]) if k is None else k
    count = (k if n is None else n) if X is None else X.shape[-1]
    if size < 3 * count:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={size}) is smaller "
            f"than 3 x the number of requested eigenpairs (={count})"
        )
    like = {"dtype": A._type.dtype, "device": A.device}
    start = random.randn(*batch, size, count, **like) if X is None else require_tensor(X, "lobpcg")
    if tuple(start.shape) != (*batch, size, count) or not 0 < k <= count:
        raise ValueError(
            f"lobpcg(): expected X of shape {[*batch, size, count]} and k of 1 to {count}, got "
            f"{list(start.shape)} and {k}"
        )
    tol = float(np.finfo(A._type.dtype.numpy).eps) ** 0.5 if tol is None else float(tol)
    turns = 1000 if niter is None else niter
    lengths = tuple(0 if each is None else len(each) for each in operators)
    function = _solver(lengths, k, turns, tol, largest is not False)
    given = [each for parts in operators for each in parts or ()]
    shape, dtype, device = (*batch, size + 1, k), A._type.dtype, A._type.device
    (found,) = apply_several(
        p.host_call, *map(detached, (start, *given)), function=function, name="lobpcg",
        results=(intern_type(shape, dtype, device),), effect="pure",
    )  # fmt: skip
    if not isinstance(A, SparseTensor):
        found = _pairs(A, found) if B is None else _general_pairs(A, _dense(B), found)
    return m.select(found, -2, 0), m.narrow(found, -2, 1, size)


def _operator(name: str, a: Tensor) -> tuple[Tensor, ...]:
    """A matrix as one tensor, or of a sparse one where rows begin, columns and values."""
    if not isinstance(a, SparseTensor):
        check_matrices(f"lobpcg: {name}", a, square=True)
        return (a,)
    if a.requires_grad:
        raise NotOnSparseError("the gradient of lobpcg()", a._layout)
    return csr_parts(a)


def _dense(b: Tensor) -> Tensor:
    found: Tensor = b.to_dense() if isinstance(b, SparseTensor) else b
    return found


# --- on the host ---------------------------------------------------------------------------------


@functools.cache
def _solver(
    lengths: tuple[int, ...], k: int, turns: int, tol: float, largest: bool
) -> Callable[..., tuple[_Array]]:
    """The function of the first vectors and of the parts of the operators, as many of each."""

    def run(start: _Array, *parts: _Array) -> tuple[_Array]:
        batch, size = start.shape[:-2], start.shape[-2]
        found = np.zeros((*batch, size + 1, k), start.dtype)
        for at in np.ndindex(batch):
            a, b, inverse = _matrices(lengths, parts, at, size)
            values, vectors = _found(a, b, inverse, start[at], turns, tol, largest)
            found[at][0], found[at][1:] = values[:k], vectors[:, :k]
        return (found,)

    return run


def _matrices(
    lengths: Sequence[int], parts: Sequence[_Array], at: tuple[int, ...], size: int
) -> Iterator[Any]:
    from scipy import sparse

    left = iter(parts)
    for length in lengths:
        own = [next(left) for _ in range(length)]
        if length == 3:
            rows, columns, values = own
            yield sparse.csr_matrix((values, columns, rows), (size, size))
        else:
            yield own[0][at if own[0].ndim > 2 else ()] if own else None


def _found(
    a: Any, b: Any, inverse: Any, start: _Array, turns: int, tol: float, largest: bool
) -> tuple[_Array, _Array]:
    from scipy.sparse import linalg

    scale = float(np.linalg.norm(a @ start) / max(np.linalg.norm(start), 1e-30))
    with warnings.catch_warnings():
        # That it was not close enough at the end, of which PyTorch says nothing, and that it takes
        # another way for small matrices.
        warnings.simplefilter("ignore", UserWarning)
        values, vectors = linalg.lobpcg(
            a, start, b, inverse, tol=tol * max(scale, 1e-30), largest=largest,
            maxiter=np.iinfo(np.int32).max if turns < 0 else turns,
        )  # fmt: skip
    return values, vectors


# --- gradients -----------------------------------------------------------------------------------


@composite("lobpcg")
def _pairs(a: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


@composite("general_lobpcg")
def _general_pairs(a: Tensor, b: Tensor, found: Tensor) -> Tensor:
    return m.clone(found)


def _sources(a: Tensor, b: Tensor, g: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The vectors, and for each what its outer product with it is the gradient of `a`; with `b`,
    the part of the gradient for its length.

    A change of a vector is made of the other found ones, by differences of eigenvalues, and of
    what is orthogonal to all of them: there a system is solved in which they are moved away.
    """
    size, count = a._type.shape[-1], out._type.shape[-1]
    values, x = m.narrow(out, -2, 0, 1), m.narrow(out, -2, 1, size)
    of_values, of_x = m.narrow(g, -2, 0, 1), m.narrow(g, -2, 1, size)
    own = creation.eye(count, dtype=a._type.dtype, device=a.device)
    within = matmul(transposed(x), of_x)
    gaps = e.add(e.sub(values, transposed(values)), own)
    inside = matmul(x, e.mul(e.div(within, gaps), e.sub(1, own)))
    bx = matmul(b, x)
    rest = e.sub(matmul(bx, within), of_x)
    away = e.add(e.mul(r.amax(e.abs(values), (-2, -1), True), 2), 1)
    moved = e.add(a, e.mul(matmul(bx, transposed(bx)), away))
    shifts = m.unsqueeze(m.unsqueeze(m.squeeze(values, -2), -1), -1)
    systems = e.sub(m.unsqueeze(moved, -3), e.mul(shifts, m.unsqueeze(b, -3)))
    outside = m.squeeze(solve(systems, m.unsqueeze(transposed(rest), -1)), -1)
    length = r.sum(e.mul(within, own), -2, True)
    return x, e.add(e.add(e.mul(x, of_values), inside), transposed(outside)), length


def _symmetric(a: Tensor) -> Tensor:
    return e.mul(e.add(a, transposed(a)), 0.5)


@input_vjp(_pairs, 0, saves=(0, OUTPUT))
def _pairs_vjp(g: Tensor, out: Tensor, a: Tensor, found: TensorType) -> Tensor:
    eye = creation.eye(a._type.shape[-1], dtype=a._type.dtype, device=a.device)
    x, sources, _ = _sources(a, eye, g, out)
    return _symmetric(matmul(sources, transposed(x)))


@input_vjp(_general_pairs, 0, saves=(0, 1, OUTPUT))
def _general_pairs_vjp(g: Tensor, out: Tensor, a: Tensor, b: Tensor, found: TensorType) -> Tensor:
    x, sources, _ = _sources(a, b, g, out)
    return _symmetric(matmul(sources, transposed(x)))


@input_vjp(_general_pairs, 1, saves=(0, 1, OUTPUT))
def _general_pairs_vjp_of_b(
    g: Tensor, out: Tensor, a: Tensor, b: Tensor, found: TensorType
) -> Tensor:
    x, sources, length = _sources(a, b, g, out)
    values = m.narrow(out, -2, 0, 1)
    whole = e.add(e.mul(sources, values), e.mul(x, e.mul(length, 0.5)))
    return e.neg(_symmetric(matmul(whole, transposed(x))))
