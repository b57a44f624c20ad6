"""Factorizations of matrices and what is solved with them: the functions of `tgraph.linalg`.

Matrices lie in the last two axes, axes before them are a batch. LAPACK, and cuSOLVER on a GPU, work
in float32 and float64; complex matrices are those of `complex_factorizations.py`.
"""

from __future__ import annotations

from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import broadcast as broadcast_shapes
from ..core.autocast import with_autocast
from ..core.complex_parts import conjugate
from ..core.composite import composite
from ..core.dispatch import apply, apply_several, detached
from ..core.operands import require_tensor
from ..core.return_types import linalg_eigh as Eigh
from ..core.return_types import linalg_qr as QR
from ..core.return_types import linalg_svd as SVD
from ..core.tensor import Tensor
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp
from ..runtime.dtypes import complex64, complex128, float32, float64
from . import comparison as c
from . import complex_factorizations as of_complex
from . import creation, diagonals
from . import elementwise as e
from . import movement as m
from .linalg import matmul

# --- public -------------------------------------------------------------------------------------


@with_autocast
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular `L` with `A = L @ L.mH` (`upper`: `A = L.mH @ L`, upper triangular).

    `A` is symmetric, or Hermitian, and positive definite; only one of its triangles is read.
    LinAlgError (a RuntimeError) for one that is not positive definite.

    >>> import tgraph as tg
    >>> tg.linalg.cholesky(tg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    check_matrices("linalg.cholesky", A, square=True, complex_too=True)
    if A._type.dtype.is_complex:
        return of_complex.cholesky(A, upper, "linalg.cholesky")[0]
    factor, _ = apply_several(p.cholesky, transposed(A) if upper else A, check="linalg.cholesky")
    return transposed(factor) if upper else factor


@with_autocast
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The `X` with `A @ X = B`, or `X @ A = B` where not `left`.

    `B` holds matrices, or vectors where it has one axis or the shape of `A` without its last one.
    Batches broadcast. LinAlgError for a singular `A`.

    >>> import tgraph as tg
    >>> tg.linalg.solve(tg.tensor([[2.0, 0.0], [1.0, 4.0]]), tg.tensor([2.0, 9.0]))
    tensor([1., 2.])
    """
    name = "linalg.solve"
    return solve_checked(name, A, B, left, name)[0]


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The `X` with `A @ X = B`, or `X @ A = B` where not `left`, for a triangular `A`.

    The other triangle of `A` is not read, nor its diagonal where it is `unitriangular`.

    >>> import tgraph as tg
    >>> A = tg.tensor([[2.0, 0.0], [1.0, 4.0]])
    >>> tg.linalg.solve_triangular(A, tg.tensor([[2.0], [9.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    name = "linalg.solve_triangular"
    check_matrices(name, A, square=True, complex_too=True)
    _check_operand(name, A, B)
    if B.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if A._type.dtype.is_complex:
        whole = _triangle(A, upper, unitriangular)
        whole, right = _batched(name, *((whole, B) if left else (transposed(whole), transposed(B))))
        found = of_complex.solve(whole, right, "")[0]
        return found if left else transposed(found)
    A, B = _batched(name, A, B if left else transposed(B))
    attrs = {"lower": not upper, "transpose": not left, "unit": bool(unitriangular)}
    found = apply(p.triangular_solve, A, B, **attrs)
    return found if left else transposed(found)


def solve_triangle(a: Tensor, b: Tensor, lower: bool, unit: bool, turn: str = "") -> Tensor:
    """The `x` with `a @ x = b` of one triangle of `a`; of its transpose "T", or its adjoint "H"."""
    if not a._type.dtype.is_complex:
        attrs = {"lower": lower, "transpose": bool(turn), "unit": unit}
        return apply(p.triangular_solve, a, b, **attrs)
    whole = _triangle(a, not lower, unit)
    if turn:
        whole = of_complex.adjoint(whole) if turn == "H" else transposed(whole)
    return of_complex.solve(whole, b, "")[0]


def _triangle(A: Tensor, upper: bool, unit: bool) -> Tensor:
    """What is read of a matrix whose other triangle is not."""
    found = diagonals.triu(A, int(unit)) if upper else diagonals.tril(A, -int(unit))
    return e.add(found, unit_matrix(A._type)) if unit else found


@with_autocast
def inv(A: Tensor) -> Tensor:
    """The inverse of each matrix; LinAlgError for a singular one.

    >>> import tgraph as tg
    >>> tg.linalg.inv(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_matrices("linalg.inv", A, square=True, complex_too=True)
    return _solve("linalg.inv", A, unit_matrix(A._type), "linalg.inv")[0]


@with_autocast
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """`A = Q @ R` with orthonormal columns of `Q` and an upper triangular `R`.

    `mode` is "reduced" (as many columns as the smaller size), "complete" or "r" (`Q` is empty).

    >>> import tgraph as tg
    >>> Q, R = tg.linalg.qr(tg.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> (Q @ R).round(decimals=4)
    tensor([[3., 1.],
            [4., 2.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    check_matrices("linalg.qr", A, complex_too=True)
    if A._type.dtype.is_complex:
        q, upper = of_complex.qr(A, mode == "complete")
    else:
        q, upper = apply_several(p.qr, A, complete=mode == "complete")
    return QR(creation.new_empty(q, (0,)) if mode == "r" else q, upper)


@with_autocast
def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues in ascending order and orthonormal eigenvectors of symmetric matrices.

    Of Hermitian ones, too, whose eigenvalues are real numbers.

    `UPLO` says which triangle is read. Where eigenvalues are equal, gradients through the vectors
    are not finite.

    >>> import tgraph as tg
    >>> tg.linalg.eigh(tg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    check_matrices("linalg.eigh", A, square=True, complex_too=True)
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    read = A if UPLO in "Ll" else of_complex.adjoint(A)
    if A._type.dtype.is_complex:
        return Eigh(*of_complex.eigh(read))
    values, vectors, _ = apply_several(p.eigh, read, check="linalg.eigh")
    return Eigh(values, vectors)


@with_autocast
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order; see `eigh`."""
    return eigh(A, UPLO).eigenvalues


@with_autocast
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """`A = U @ diag(S) @ Vh` with orthonormal columns of `U` and rows of `Vh`, `S` descending.

    Without `full_matrices` they have as many columns and rows as there are singular values. Where
    those are equal, gradients through `U` and `Vh` are not finite. A `driver` of cuSOLVER's may be
    named for tensors on a GPU; there is one.

    >>> import tgraph as tg
    >>> tg.linalg.svd(tg.tensor([[0.0, 3.0], [2.0, 0.0]])).S
    tensor([3., 2.])
    """
    check_matrices("linalg.svd", A, complex_too=True)
    if driver is not None and A._type.device.is_host:
        raise RuntimeError(
            f"linalg.svd: keyword argument `driver=` is only supported on CUDA inputs, got "
            f"{driver!r} for a tensor on {A._type.device}; leave it out"
        )
    if A._type.dtype.is_complex:
        return SVD(*of_complex.svd(A, bool(full_matrices)))
    u, s, vh, _ = apply_several(p.svd, A, full=bool(full_matrices), check="linalg.svd")
    return SVD(u, s, vh)


@with_autocast
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values in descending order; see `svd`."""
    return svd(A, full_matrices=False, driver=driver).S


# --- systems ------------------------------------------------------------------------------------


def solve_checked(name: str, A: Tensor, B: Tensor, left: bool, check: str) -> tuple[Tensor, Tensor]:
    """The solution, and LAPACK's `info`; with `check` a failure raises the error of that name."""
    check_matrices(name, A, square=True, complex_too=True)
    _check_operand(name, A, B)
    if B.ndim == 1 or B._type.shape == A._type.shape[:-1]:
        if not left:
            raise RuntimeError(f"{name}: incompatible shapes: left=False takes matrices for B")
        found, info = _solve(name, A, m.unsqueeze(B, -1), check)
        return m.squeeze(found, -1), _of_each(A, info)
    if left:
        found, info = _solve(name, A, B, check)
    else:
        found, info = _solve(name, transposed(A), transposed(B), check)
        found = transposed(found)
    return found, _of_each(A, info)


def _of_each(A: Tensor, info: Tensor) -> Tensor:
    """`info` for each matrix of `A`, where that was broadcast."""
    batch = A._type.shape[:-2]
    if info._type.shape == batch:
        return info
    if 0 in info._type.shape:
        return creation.zeros(batch, dtype=info._type.dtype, device=info._type.device)
    lead = info.ndim - len(batch)
    for axis, size in enumerate(info._type.shape):
        if axis < lead or batch[axis - lead] != size:
            info = m.narrow(info, axis, 0, 1)
    return m.reshape(info, batch)


def _solve(name: str, a: Tensor, b: Tensor, check: str) -> tuple[Tensor, Tensor]:
    a, b = _batched(name, a, b)
    if a._type.dtype.is_complex:
        return of_complex.solve(a, b, check)
    factors, rows, _, info = apply_several(p.lu, detached(a), check=check)
    return solve_by_factors(a, b, factors, rows, transpose=False), info


@composite("solve")
def solve_by_factors(
    a: Tensor, b: Tensor, factors: Tensor, rows: Tensor, transpose: bool
) -> Tensor:
    """Solve `a @ x = b`, or `a.mT @ x = b`, where `a[rows]` has the LU `factors`.

    `a` itself is not read: derivatives of every order are with respect to it, not the factors.
    """
    order = rows if not transpose else order_back(rows)
    at = m.expand(m.unsqueeze(order, -1), b._type.shape)
    triangles = [{"lower": True, "unit": True}, {"lower": False, "unit": False}]
    x = b if transpose else apply(p.gather, b, at, axis=b.ndim - 2)
    for each in reversed(triangles) if transpose else triangles:
        x = apply(p.triangular_solve, factors, x, transpose=transpose, **each)
    return apply(p.gather, x, at, axis=b.ndim - 2) if transpose else x


def order_back(rows: Tensor) -> Tensor:
    """Where each row went."""
    count = rows._type.shape[-1]
    places = m.expand(creation.arange(count, device=rows.device), rows._type.shape)
    return apply(p.scatter_add, creation.zeros_like(rows), rows, places, axis=rows.ndim - 1)


@vjp(
    solve_by_factors, saves=lambda wanted: (0, 2, 3), saves_outputs=lambda wanted: (0,) * wanted[0]
)
def solve_by_factors_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), (x,), (a, _, factors, rows) = cotangents, outputs, inputs
    transpose = attrs["transpose"]
    back = solve_by_factors(a, g, factors, rows, transpose=not transpose)
    of_a = None
    if wanted[0]:
        of_a = e.neg(_times_transposed(x, back) if transpose else _times_transposed(back, x))
    return [of_a, back if wanted[1] else None, None, None]


@vjp(p.triangular_solve, saves=(0,), saves_outputs=lambda wanted: (0,) * wanted[0])
def _triangular_solve(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    (g,), (x,), (a, _) = cotangents, outputs, inputs
    transpose, lower, unit = attrs["transpose"], attrs["lower"], attrs["unit"]
    back = apply(p.triangular_solve, a, g, lower=lower, transpose=not transpose, unit=unit)
    of_a = None
    if wanted[0]:
        whole = e.neg(_times_transposed(x, back) if transpose else _times_transposed(back, x))
        of_a = diagonals.tril(whole, -unit) if lower else diagonals.triu(whole, int(unit))
    return [of_a, back if wanted[1] else None]


def solve_by_cholesky(factor: Tensor, b: Tensor) -> Tensor:
    """The `x` with `factor @ factor.mH @ x = b`, for a lower triangular factor."""
    name = "cholesky_solve"
    check_matrices(name, factor, square=True, complex_too=True)
    _check_operand(name, factor, b)
    if b.ndim < 2:
        raise RuntimeError(f"{name}: b should have at least 2 dimensions, but has {b.ndim}")
    return _solve_by_cholesky(*_batched(name, factor, b))


@composite("solve_by_cholesky")
def _solve_by_cholesky(factor: Tensor, b: Tensor) -> Tensor:
    return solve_triangle(factor, solve_triangle(factor, b, True, False), True, False, "H")


@vjp(_solve_by_cholesky, saves=(0,), saves_outputs=lambda wanted: (0,) * wanted[0])
def _solve_by_cholesky_vjp(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """As PyTorch's: of `factor @ factor.mH`, in which both triangles of `factor` count."""
    (g,), (x,), (factor, _) = cotangents, outputs, inputs
    back, of_factor = _solve_by_cholesky(factor, g), None
    if wanted[0]:
        product = _times_transposed(back, conjugate(x))
        of_factor = e.neg(matmul(e.add(product, of_complex.adjoint(product)), factor))
    return [of_factor, back if wanted[1] else None]


# --- gradients of factorizations ----------------------------------------------------------------


@vjp(p.cholesky, saves_outputs=(0,))
def _cholesky(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10."""
    g, factor = cotangents[0], outputs[0]
    inner = diagonals.tril(matmul(transposed(factor), g))
    halved = e.sub(inner, e.mul(_on_diagonal(m.diagonal(inner, 0, -2, -1)), 0.5))
    attrs = {"lower": True, "transpose": True, "unit": False}
    half = apply(p.triangular_solve, factor, halved, **attrs)
    whole = transposed(apply(p.triangular_solve, factor, transposed(half), **attrs))
    return [e.mul(e.add(whole, transposed(whole)), 0.5)]


@vjp(p.qr, saves_outputs=(0, 1), saves=(0,))
def _qr(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """Roberts and Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms" (2020)."""
    (q, upper), (a,) = outputs, inputs
    rows, columns = a._type.shape[-2:]
    if not a._type.numel:
        return [e.mul(a, 0.0)]
    if attrs["complete"] and rows > columns:
        raise NotImplementedError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    g_q, g_r = (_or_zeros(g, out) for g, out in zip(cotangents, outputs, strict=True))
    if rows >= columns:
        return [_qr_tall(g_q, g_r, q, upper)]
    # The last columns are Q times those of R: they give to Q and come of it.
    left, right = (m.narrow(g_r, -1, at, size) for at, size in ((0, rows), (rows, columns - rows)))
    g_q = e.add(g_q, _times_transposed(m.narrow(a, -1, rows, columns - rows), right))
    first = _qr_tall(g_q, left, q, m.narrow(upper, -1, 0, rows))
    axis = a.ndim - 1
    return [apply(p.concatenate, first, matmul(q, right), axis=axis)]


def _qr_tall(g_q: Tensor, g_r: Tensor, q: Tensor, upper: Tensor) -> Tensor:
    both = e.sub(_times_transposed(upper, g_r), matmul(transposed(g_q), q))
    mirrored = e.add(diagonals.tril(both), transposed(diagonals.tril(both, -1)))
    inner = e.add(g_q, matmul(q, mirrored))
    attrs = {"lower": False, "transpose": False, "unit": False}
    return transposed(apply(p.triangular_solve, upper, transposed(inner), **attrs))


@vjp(p.eigh, saves_outputs=(0, 1))
def _eigh(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """Giles, "Collected Matrix Derivative Results" (2008), section 3.1."""
    (g_values, g_vectors, _), (values, vectors, _) = cotangents, outputs
    inner = None if g_values is None else _on_diagonal(g_values)
    if g_vectors is not None:
        apart = e.sub(m.unsqueeze(values, -2), m.unsqueeze(values, -1))
        rotation = e.div(matmul(transposed(vectors), g_vectors), _off_diagonal(apart))
        rotation = e.sub(rotation, _on_diagonal(m.diagonal(rotation, 0, -2, -1)))
        rotation = e.mul(e.add(rotation, transposed(rotation)), 0.5)  # as of a symmetric matrix
        inner = rotation if inner is None else e.add(inner, rotation)
    return [_times_transposed(matmul(vectors, inner), vectors)]


@vjp(p.svd, saves_outputs=(0, 1, 2))
def _svd(
    cotangents: Cotangents, outputs: Any, inputs: Any, attrs: Attrs, wanted: Wanted
) -> Cotangents:
    """Townsend, "Differentiating the Singular Value Decomposition" (2016)."""
    (g_u, g_s, g_vh, _), (u, s, vh, _) = cotangents, outputs
    count, rows, columns = s._type.shape[-1], u._type.shape[-2], vh._type.shape[-1]
    u, vh = m.narrow(u, -1, 0, count), m.narrow(vh, -2, 0, count)
    across, along = m.unsqueeze(s, -2), m.unsqueeze(s, -1)
    apart = _off_diagonal(e.mul(e.sub(across, along), e.add(across, along)))
    inner = None if g_s is None else _on_diagonal(g_s)
    beside = []
    if g_u is not None:
        g_u = m.narrow(g_u, -1, 0, count)
        rotation = matmul(transposed(u), g_u)
        part = e.mul(e.div(e.sub(rotation, transposed(rotation)), apart), across)
        inner = part if inner is None else e.add(inner, part)
        if rows > count:
            rest = e.div(e.sub(g_u, matmul(u, rotation)), across)
            beside.append(matmul(rest, vh))
    if g_vh is not None:
        g_vh = m.narrow(g_vh, -2, 0, count)
        rotation = _times_transposed(vh, g_vh)
        part = e.mul(along, e.div(e.sub(rotation, transposed(rotation)), apart))
        inner = part if inner is None else e.add(inner, part)
        if columns > count:
            rest = e.div(e.sub(g_vh, matmul(transposed(rotation), vh)), along)
            beside.append(matmul(u, rest))
    found = matmul(matmul(u, inner), vh)
    for each in beside:
        found = e.add(found, each)
    return [found]


# --- parts --------------------------------------------------------------------------------------


def transposed(x: Tensor) -> Tensor:
    return m.transpose(x, -2, -1)


def _times_transposed(x: Tensor, y: Tensor) -> Tensor:
    """A product; of columns, which fuses with what is around it."""
    is_outer = x._type.shape[-1] == 1
    return e.mul(x, transposed(y)) if is_outer else matmul(x, transposed(y))


def unit_matrix(type_: TensorType) -> Tensor:
    """The unit matrix for each of a batch."""
    eye = creation.eye(type_.shape[-1], dtype=type_.dtype, device=type_.device)
    return m.expand(eye, type_.shape)


def _on_diagonal(x: Tensor) -> Tensor:
    """Diagonal matrices of vectors."""
    size = x._type.shape[-1]
    return e.mul(m.unsqueeze(x, -1), creation.eye(size, dtype=x._type.dtype, device=x.device))


def _off_diagonal(x: Tensor) -> Tensor:
    """`x` with ones on the diagonal, by which what is zero there can be divided."""
    size = x._type.shape[-1]
    eye = creation.eye(size, dtype=x._type.dtype, device=x.device)
    return e.where(c.eq(eye, 1.0), 1.0, x)


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return e.mul(like, 0.0) if g is None else g


# --- checks -------------------------------------------------------------------------------------


def check_matrices(name: str, a: Any, square: bool = False, complex_too: bool = False) -> None:
    type_ = require_tensor(a, name, "A")._type
    known = (float32, float64, complex64, complex128) if complex_too else (float32, float64)
    if type_.dtype not in known:
        kinds = ", ".join(each.name for each in known)
        raise NotImplementedError(
            f"{name}: Expected a tensor of {kinds} as input, got {type_.dtype.name}; convert it "
            "with .float()"
        )
    if type_.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    rows, columns = type_.shape[-2:]
    if square and rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )


def _check_operand(name: str, a: Tensor, b: Any) -> None:
    type_ = require_tensor(b, name, "B")._type
    if type_.dtype is not a._type.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{a._type.dtype.name} and B of type {type_.dtype.name} instead"
        )
    if not type_.ndim:
        raise RuntimeError(f"{name}: B must have at least 1 dimension")


def _batched(name: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same batch."""
    if a._type.shape[-1] != b._type.shape[-2]:
        one, other = ("x".join(map(str, each._type.shape[-2:])) for each in (a, b))
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation AX = B ({one} and {other})"
        )
    batch = broadcast_shapes(a._type.shape[:-2], b._type.shape[:-2])
    pair = [
        each if each._type.shape[:-2] == batch else m.expand(each, (*batch, *each._type.shape[-2:]))
        for each in (a, b)
    ]
    return pair[0], pair[1]
