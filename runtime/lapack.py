"""LAPACK as plain function pointers, from the library that products with vectors come from.

The OpenBLAS of NumPy's wheel (or SciPy's) has all of LAPACK, takes the number of threads that plans
give it (`blas`), and gives the results that eager mode gets through NumPy. Where there is none,
pointers come from ``scipy.linalg.cython_lapack`` and ``cython_blas``, whatever SciPy was built
with. Arguments are addresses, as Fortran wants them; characters need their lengths behind all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from . import blas, interrupts, locks
from .records import NamedTuple

PREFIXES = {"float32": "s", "float64": "d"}
_OF_BLAS = ("trsm",)


class Lapack(NamedTuple):
    """`address` tells where a function is, such as "dpotrf"; `integer_bytes` how long integers are.

    Of an integer that is given, more bytes than that may be there: the lowest come first.
    """

    name: str
    address: Callable[[str], int]
    integer_bytes: int


_loaded: Lapack | None = None


def load() -> Lapack:
    """The LAPACK that compiled plans call (looked for once)."""
    global _loaded
    if _loaded is None:
        with locks.RUNTIME:
            if _loaded is None:
                library = blas.bundled_openblas()
                has_all = library is not None and library.fortran("dgesdd")
                _loaded = _of_openblas(library) if library and has_all else of_scipy()
    return _loaded


def _of_openblas(library: blas.OpenBLAS) -> Lapack:
    return Lapack(f"OpenBLAS ({library.core()})", library.fortran, library.integer_bytes)


def of_scipy() -> Lapack:
    """The functions that SciPy exports."""
    with interrupts.held():
        from scipy.linalg import cython_blas, cython_lapack

    def address(name: str) -> int:
        module = cython_blas if name[1:] in _OF_BLAS else cython_lapack
        return blas.exported(module, name)

    return Lapack("SciPy's LAPACK", address, ctypes.sizeof(ctypes.c_int))


def call(address: int, arguments: list[int], characters: int) -> None:
    """Call a function with addresses of its arguments, of which so many are characters."""
    kinds = [ctypes.c_void_p] * len(arguments) + [ctypes.c_size_t] * characters
    ctypes.CFUNCTYPE(None, *kinds)(address)(*arguments, *[1] * characters)
