"""The named tuples that functions with several results give, under PyTorch's names.

They print as PyTorch's do. Users find them as `tgraph.return_types`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..runtime.records import NamedTuple
from .tensor import Tensor

_T = TypeVar("_T", bound=type)
MODULE = "tgraph.return_types"


def _shown(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
    return f"{MODULE}.{type(self).__name__}(\n{fields})"


def returned(cls: _T) -> _T:
    """A class of results: printed as PyTorch's, and found in `tgraph.return_types`.

    >>> import tgraph as tg
    >>> tg.tensor([3.0, 5.0, 4.0]).topk(2)
    tgraph.return_types.topk(
    values=tensor([5., 4.]),
    indices=tensor([1, 2]))
    """
    made: Any = cls
    made.__repr__, made.__module__ = _shown, MODULE
    return cls


@returned
class aminmax(NamedTuple):
    """What `aminmax` gives."""

    min: Tensor
    max: Tensor


@returned
class cummax(NamedTuple):
    """What `cummax` gives."""

    values: Tensor
    indices: Tensor


@returned
class cummin(NamedTuple):
    """What `cummin` gives."""

    values: Tensor
    indices: Tensor


@returned
class frexp(NamedTuple):
    """What `frexp` gives."""

    mantissa: Tensor
    exponent: Tensor


@returned
class geqrf(NamedTuple):
    """What `geqrf` gives."""

    a: Tensor
    tau: Tensor


@returned
class histogram(NamedTuple):
    """What `histogram` gives."""

    hist: Tensor
    bin_edges: Tensor


@returned
class histogramdd(NamedTuple):
    """What `histogramdd` gives."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@returned
class kthvalue(NamedTuple):
    """What `kthvalue` gives."""

    values: Tensor
    indices: Tensor


@returned
class linalg_cholesky_ex(NamedTuple):
    """What `linalg.cholesky_ex` gives."""

    L: Tensor
    info: Tensor


@returned
class linalg_eig(NamedTuple):
    """What `linalg.eig` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@returned
class linalg_eigh(NamedTuple):
    """What `linalg.eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@returned
class linalg_inv_ex(NamedTuple):
    """What `linalg.inv_ex` gives."""

    inverse: Tensor
    info: Tensor


@returned
class linalg_ldl_factor(NamedTuple):
    """What `linalg.ldl_factor` gives."""

    LD: Tensor
    pivots: Tensor


@returned
class linalg_ldl_factor_ex(NamedTuple):
    """What `linalg.ldl_factor_ex` gives."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@returned
class linalg_lstsq(NamedTuple):
    """What `linalg.lstsq` gives."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@returned
class linalg_lu(NamedTuple):
    """What `linalg.lu` gives."""

    P: Tensor
    L: Tensor
    U: Tensor


@returned
class linalg_lu_factor(NamedTuple):
    """What `linalg.lu_factor` gives."""

    LU: Tensor
    pivots: Tensor


@returned
class linalg_lu_factor_ex(NamedTuple):
    """What `linalg.lu_factor_ex` gives."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@returned
class linalg_qr(NamedTuple):
    """What `linalg.qr` gives."""

    Q: Tensor
    R: Tensor


@returned
class linalg_slogdet(NamedTuple):
    """What `linalg.slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


@returned
class linalg_solve_ex(NamedTuple):
    """What `linalg.solve_ex` gives."""

    result: Tensor
    info: Tensor


@returned
class linalg_svd(NamedTuple):
    """What `linalg.svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@returned
class lu_unpack(NamedTuple):
    """What `lu_unpack` gives."""

    P: Tensor
    L: Tensor
    U: Tensor


@returned
class max(NamedTuple):
    """What `max` gives."""

    values: Tensor
    indices: Tensor


@returned
class median(NamedTuple):
    """What `median` gives."""

    values: Tensor
    indices: Tensor


@returned
class min(NamedTuple):
    """What `min` gives."""

    values: Tensor
    indices: Tensor


@returned
class mode(NamedTuple):
    """What `mode` gives."""

    values: Tensor
    indices: Tensor


@returned
class nanmedian(NamedTuple):
    """What `nanmedian` gives."""

    values: Tensor
    indices: Tensor


@returned
class qr(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


@returned
class slogdet(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


@returned
class sort(NamedTuple):
    """What `sort` gives."""

    values: Tensor
    indices: Tensor


@returned
class svd(NamedTuple):
    """What `svd` gives."""

    U: Tensor
    S: Tensor
    V: Tensor


@returned
class topk(NamedTuple):
    """What `topk` gives."""

    values: Tensor
    indices: Tensor


@returned
class triangular_solve(NamedTuple):
    """What `triangular_solve` gives."""

    solution: Tensor
    cloned_coefficient: Tensor
