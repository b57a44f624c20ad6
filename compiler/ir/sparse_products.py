"""Products with a sparse matrix, whose elements are listed row by row (CSR).

`csr_matmul(rowptr, columns, values, dense; rows, transposed)`: the elements of row i of the matrix
are those from `rowptr[i]` up to `rowptr[i + 1]` of `values`, in the columns that `columns` says;
equal columns are added up. The result has `rows` rows. With `transposed` it is the product of the
transposed matrix, which then has `rows` columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.dtypes import int32, int64
from .primitive import Attrs, Family, Primitive, register
from .shapes import is_same
from .types import IRTypeError, TensorType


def _infer_csr_matmul(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    rowptr, columns, values, dense = types
    is_index = rowptr.dtype is columns.dtype and columns.dtype in (int32, int64)
    if not is_index or (rowptr.ndim, columns.ndim) != (1, 1):
        raise IRTypeError(
            f"csr_matmul expected vectors of int32, or of int64, got {rowptr} and {columns}"
        )
    if values.ndim != 1 or not is_same(values.shape[0], columns.shape[0]):
        raise IRTypeError(f"csr_matmul expected as many values as columns: {values}, {columns}")
    if dense.ndim != 2 or dense.dtype is not values.dtype:
        raise IRTypeError(f"csr_matmul expected a matrix of {values.dtype}, got {dense}")
    known = dense.shape[0] if attrs["transposed"] else attrs["rows"]
    if not is_same(rowptr.shape[0], known + 1):
        raise IRTypeError(f"csr_matmul of {rowptr.shape[0] - 1} rows, got {known}")
    return TensorType((attrs["rows"], dense.shape[1]), dense.dtype, dense.device)


csr_matmul = register(Primitive("csr_matmul", Family.SPARSE, _infer_csr_matmul, arity=4))
