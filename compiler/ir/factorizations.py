"""Routines of a library of linear algebra: LAPACK's, over matrices in the last two axes.

Matrices are float32 or float64; axes before them are a batch. Those that may fail have a last
result `info`, int32 of the batch's shape: 0, or what LAPACK says of a matrix that failed, whose
other results mean nothing. With `check`, the name of a public function, a failure raises the error
of that function instead.

- `cholesky(a; check)`: `(l, info)`, a = l @ l.mT; what is above the diagonal is not read;
- `lu(a; check)`: `(lu, rows, sign, info)`: a[rows] = l @ u, both in one matrix, the diagonal of l
  being 1; `sign` is that of the permutation `rows` (int64);
- `triangular_solve(a, b; lower, transpose, unit)`: a @ x = b or a.mT @ x = b; `unit` takes the
  diagonal for 1;
- `qr(a; complete)`: `(q, r)`, of as many columns as the smaller size, or complete;
- `eigh(a; check)`: `(values, vectors, info)`, ascending; what is above the diagonal is not read;
- `svd(a; full, check)`: `(u, s, vh, info)`, s descending.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import float32, float64, int32, int64
from .primitive import Attrs, Family, Primitive, register
from .types import IRTypeError, TensorType

Types = Sequence[TensorType]
Results = tuple[TensorType, ...]


def _matrix(name: str, types: Types, square: bool = False) -> TensorType:
    a = types[0]
    if a.ndim < 2 or a.dtype not in (float32, float64):
        raise IRTypeError(f"{name} expected matrices of float32 or float64, got {a}")
    if square and a.shape[-1] != a.shape[-2]:
        raise IRTypeError(f"{name} expected square matrices, got {a}")
    return a


def _info(a: TensorType) -> TensorType:
    return TensorType(a.shape[:-2], int32, a.device)


def _infer_cholesky(types: Types, attrs: Attrs) -> Results:
    a = _matrix("cholesky", types, square=True)
    return a, _info(a)


def _infer_lu(types: Types, attrs: Attrs) -> Results:
    a = _matrix("lu", types, square=True)
    rows = TensorType(a.shape[:-1], int64, a.device)
    return a, rows, TensorType(a.shape[:-2], a.dtype, a.device), _info(a)


def _infer_triangular_solve(types: Types, attrs: Attrs) -> TensorType:
    a, b = _matrix("triangular_solve", types, square=True), types[1]
    if b.dtype is not a.dtype or b.shape[:-1] != a.shape[:-1]:
        raise IRTypeError(f"triangular_solve cannot solve {a} for {b}")
    return b


def _infer_qr(types: Types, attrs: Attrs) -> Results:
    a = _matrix("qr", types)
    *batch, m, n = a.shape
    k = m if attrs["complete"] else min(m, n)
    return a._replace(shape=(*batch, m, k)), a._replace(shape=(*batch, k, n))


def _infer_eigh(types: Types, attrs: Attrs) -> Results:
    a = _matrix("eigh", types, square=True)
    return a._replace(shape=a.shape[:-1]), a, _info(a)


def _infer_svd(types: Types, attrs: Attrs) -> Results:
    a = _matrix("svd", types)
    *batch, m, n = a.shape
    k = min(m, n)
    rows, columns = (m, n) if attrs["full"] else (k, k)
    shapes = (*batch, m, rows), (*batch, k), (*batch, columns, n)
    return (*(a._replace(shape=shape) for shape in shapes), _info(a))


cholesky = register(Primitive("cholesky", Family.LIBRARY, _infer_cholesky, arity=1))
lu = register(Primitive("lu", Family.LIBRARY, _infer_lu, arity=1, discontinuous=True))
triangular_solve = register(
    Primitive("triangular_solve", Family.LIBRARY, _infer_triangular_solve, arity=2)
)
qr = register(Primitive("qr", Family.LIBRARY, _infer_qr, arity=1))
eigh = register(Primitive("eigh", Family.LIBRARY, _infer_eigh, arity=1, discontinuous=True))
svd = register(Primitive("svd", Family.LIBRARY, _infer_svd, arity=1, discontinuous=True))
