"""Rows of the table of operations: factorizations of matrices and what is solved with them.

Matrices are made well-conditioned inside of the rows, and results do not depend on the signs that
vectors of a factorization may have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from opcase import case

import tgraph as tg

SINGLE_AND_DOUBLE = (tg.float32, tg.float64)
MORE = (((2, 3, 3),), ((2, 1, 1, 1),), ((0, 2, 2),), ((2, 0, 0),))


def near_unit(a: Any) -> Any:
    """A matrix of which solving is easy."""
    size = a.shape[-1]
    is_tensor = isinstance(a, tg.Tensor)
    eye = tg.eye(size, dtype=a.dtype, device=a.device) if is_tensor else np.eye(size)
    return a * 0.2 + eye


def definite(a: Any) -> Any:
    """A symmetric matrix whose eigenvalues are positive and differ."""
    size = a.shape[-1]
    if isinstance(a, tg.Tensor):
        return a @ a.mT * 0.1 + tg.diag(tg.arange(1, size + 1, dtype=a.dtype, device=a.device))
    return a @ a.swapaxes(-1, -2) * 0.1 + np.diag(np.arange(1.0, size + 1))


def linalg(name: str, function: Any, reference: Any, *shapes: Any, **options: Any) -> None:
    options = {"dtypes": SINGLE_AND_DOUBLE, "tolerance": 200, **options}
    case(f"linalg.{name}", function, reference, *shapes, **options)


def transposed(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(-1, -2)


def triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool = False) -> np.ndarray:
    a = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    return np.linalg.solve(a + np.eye(a.shape[-1]) if unit else a, b)


linalg("cholesky", lambda a: tg.linalg.cholesky(definite(a)),
       lambda a: np.linalg.cholesky(definite(a)), (3, 3), more=MORE)  # fmt: skip
linalg("cholesky upper", lambda a: tg.linalg.cholesky(definite(a), upper=True),
       lambda a: transposed(np.linalg.cholesky(definite(a))), (2, 3, 3))  # fmt: skip
PAIRS = (((2, 1, 3, 3), (4, 3, 2)), ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((3, 3), (2, 3, 1)))
linalg("solve", lambda a, b: tg.linalg.solve(near_unit(a), b),
       lambda a, b: np.linalg.solve(near_unit(a), b), (3, 3), (3, 2), more=PAIRS)  # fmt: skip
linalg("solve right", lambda a, b: tg.linalg.solve(near_unit(a), b, left=False),
       lambda a, b: transposed(np.linalg.solve(transposed(near_unit(a)), transposed(b))),
       (3, 3), (2, 3))  # fmt: skip
linalg("solve vector", lambda a, b: tg.linalg.solve(near_unit(a), b),
       lambda a, b: np.linalg.solve(near_unit(a), b[..., None])[..., 0],
       (2, 3, 3), (2, 3))  # fmt: skip
for upper in (False, True):
    words = "upper" if upper else "lower"
    linalg(f"solve_triangular {words}",
           lambda a, b, upper=upper: tg.linalg.solve_triangular(near_unit(a), b, upper=upper),
           lambda a, b, upper=upper: triangular(near_unit(a), b, upper),
           (3, 3), (3, 2), more=PAIRS)  # fmt: skip
    linalg(f"solve_triangular {words} right",
           lambda a, b, upper=upper: tg.linalg.solve_triangular(
               near_unit(a), b, upper=upper, left=False),
           lambda a, b, upper=upper: transposed(
               triangular(transposed(near_unit(a)), transposed(b), not upper)),
           (3, 3), (2, 2, 3))  # fmt: skip
    linalg(f"solve_triangular {words} unit",
           lambda a, b, upper=upper: tg.linalg.solve_triangular(
               near_unit(a), b, upper=upper, unitriangular=True),
           lambda a, b, upper=upper: triangular(near_unit(a), b, upper, unit=True),
           (3, 3), (3, 2))  # fmt: skip
linalg("inv", lambda a: tg.linalg.inv(near_unit(a)), lambda a: np.linalg.inv(near_unit(a)),
       (3, 3), more=MORE)  # fmt: skip
linalg("det", tg.linalg.det, np.linalg.det, (3, 3), more=(*MORE, ((2, 4, 4),)))
linalg("slogdet sign", lambda a: tg.linalg.slogdet(a).sign, lambda a: np.linalg.slogdet(a)[0],
       (2, 3, 3), more=MORE, gradient=False)  # fmt: skip
linalg("slogdet", lambda a: tg.linalg.slogdet(a).logabsdet, lambda a: np.linalg.slogdet(a)[1],
       (2, 3, 3), more=MORE)  # fmt: skip
for mode, shape in (("reduced", (2, 4, 3)), ("reduced", (3, 5)), ("complete", (3, 5))):
    linalg(f"qr {mode} {len(shape)} {shape[-1]}",
           lambda a, mode=mode: (lambda q, r: (q @ (r * r), abs(r)))(*tg.linalg.qr(a, mode)),
           lambda a, mode=mode: (lambda q, r: (q @ (r * r), abs(r)))(*np.linalg.qr(a, mode)),
           shape, result=("same", "same"), gradient=False)  # fmt: skip
    linalg(f"qr {mode} {len(shape)} {shape[-1]} gradient",
           lambda a, mode=mode: (lambda q, r: (q * 2) @ r + (q @ abs(r) ** 2) * 0
                                 + abs(q) @ abs(r))(*tg.linalg.qr(a, mode)),
           lambda a, mode=mode: (lambda q, r: (q * 2) @ r + abs(q) @ abs(r))(
               *np.linalg.qr(a, mode)),
           shape)  # fmt: skip
linalg("qr r", lambda a: abs(tg.linalg.qr(a, "r").R), lambda a: abs(np.linalg.qr(a, "r")),
       (4, 3), more=(((2, 0),), ((0, 2),)))  # fmt: skip
linalg("eigvalsh", lambda a: tg.linalg.eigvalsh(definite(a)),
       lambda a: np.linalg.eigvalsh(definite(a)), (2, 3, 3), more=MORE)  # fmt: skip
for triangle in "LU":
    linalg(f"eigh {triangle}",
           lambda a, triangle=triangle: (lambda w, v: (v * w.exp().unsqueeze(-2)) @ v.mT)(
               *tg.linalg.eigh(definite(a), triangle)),
           lambda a: (lambda w, v: (v * np.exp(w)[..., None, :]) @ transposed(v))(
               *np.linalg.eigh(definite(a))),
           (3, 3), tolerance=2000)  # fmt: skip
linalg("svdvals", lambda a: tg.linalg.svdvals(a),
       lambda a: np.linalg.svd(a, compute_uv=False), (4, 3), more=MORE[:2])  # fmt: skip
for shape in ((2, 4, 3), (3, 4)):
    linalg(f"svd {len(shape)}",
           lambda a: (lambda u, s, v: (u * s.square().unsqueeze(-2)) @ v)(
               *tg.linalg.svd(a, full_matrices=False)),
           lambda a: (lambda u, s, v: (u * (s * s)[..., None, :]) @ v)(
               *np.linalg.svd(a, full_matrices=False)),
           shape)  # fmt: skip
