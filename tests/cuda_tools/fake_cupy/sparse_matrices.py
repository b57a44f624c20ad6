"""The fake's `cupyx.scipy.sparse`: matrices by rows, whose products are SciPy's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from scipy import sparse

from . import routines
from .arrays import ndarray


class CsrMatrix:
    """Takes arrays of the device alone, and 32 or 64 bits of indices, as CuPy does."""

    def __init__(self, parts: tuple[Any, Any, Any], shape: tuple[int, int]) -> None:
        assert all(isinstance(each, ndarray) for each in parts)
        assert parts[0].dtype.char in "fdFD", "cuSPARSE has products of floats only"
        self.host: Any = sparse.csr_matrix(tuple(each.get() for each in parts), shape=shape)

    @property
    def T(self) -> CsrMatrix:
        made = object.__new__(CsrMatrix)
        made.host = self.host.T
        return made

    def __matmul__(self, dense: Any) -> Any:
        assert isinstance(dense, ndarray)
        return routines.array(self.host @ dense.get())


module = SimpleNamespace(csr_matrix=CsrMatrix)
