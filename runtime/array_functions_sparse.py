"""Products with sparse matrices: of NumPy's arrays in native code, of CuPy's by cuSPARSE."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function
from .cuda import backend


def _csr_matmul(
    xp: Any, rowptr: Array, columns: Array, values: Array, dense: Array, rows: int,
    transposed: bool,
) -> Array:  # fmt: skip
    height, wide = rowptr.shape[0] - 1, rows if transposed else dense.shape[0]
    is_empty = not (columns.size and dense.shape[1] and height and wide)
    if is_empty or xp is not np:
        _check(rowptr, columns, wide)
    if is_empty:
        return xp.zeros((rows, dense.shape[1]), dense.dtype)
    if dense.dtype.itemsize < 4 and dense.dtype.kind not in "iub":  # floats of 16 bits
        values, wider = values.astype(np.float32), dense.astype(np.float32)
        found = _csr_matmul(xp, rowptr, columns, values, wider, rows, transposed)
        return found.astype(dense.dtype)
    if xp is np:
        # Imported here: with it comes LLVM, which eager mode may never need.
        from .csr_product import product

        return product(rowptr, columns, values, dense, rows, transposed)
    matrix = backend.sparse().csr_matrix((values, columns, rowptr), shape=(height, wide))
    return xp.ascontiguousarray((matrix.T if transposed else matrix) @ dense)


def _check(rowptr: Array, columns: Array, wide: int) -> None:
    """The library reads and writes where it is told to."""
    if columns.size and not (int(columns.min()) >= 0 and int(columns.max()) < wide):
        raise IndexError(f"csr_matmul: column indices must be from 0 to {wide - 1}")
    inner = (
        rowptr[0] == 0 and rowptr[-1] == columns.size and bool((rowptr[1:] >= rowptr[:-1]).all())
    )
    if not inner:
        raise IndexError(
            f"csr_matmul: row pointers must go from 0 to {columns.size} and never become smaller"
        )


FUNCTIONS: dict[str, Function] = {"csr_matmul": _csr_matmul}
