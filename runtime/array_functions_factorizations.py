"""Factorizations: of NumPy's arrays by plans of one step of LAPACK, of CuPy's by cuSOLVER."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .array_functions_elementwise import Array, Function
from .cuda import factorizations as on_device


def _factorize(primitive: str, arrays: tuple[Array, ...], attrs: Any) -> list[Array]:
    if primitive == "svd" and not prod(arrays[0].shape[-2:]):
        return _svd_of_nothing(arrays[0], attrs["full"])
    # Imported here: with it comes LLVM, which eager mode may never need.
    from .factorization import factorize

    return factorize(primitive, arrays, attrs)


def _svd_of_nothing(a: Array, full: bool) -> list[Array]:
    *batch, m, n = a.shape
    rows, columns = (m, n) if full else (0, 0)
    u, vh = np.zeros((*batch, m, rows), a.dtype), np.zeros((*batch, columns, n), a.dtype)
    u[...], vh[...] = np.eye(m, rows), np.eye(columns, n)
    return [u, np.zeros((*batch, 0), a.dtype), vh, np.zeros(batch, np.int32)]


def _function(primitive: str) -> Function:
    def run(xp: Any, *arrays: Array, **attrs: Any) -> Any:
        if xp is np:
            found = _factorize(primitive, arrays, attrs)
        else:
            found = on_device.factorize(primitive, arrays, attrs)
        return found[0] if primitive == "triangular_solve" else tuple(found)

    return run


FUNCTIONS: dict[str, Function] = {
    name: _function(name) for name in ("cholesky", "lu", "triangular_solve", "qr", "eigh", "svd")
}
