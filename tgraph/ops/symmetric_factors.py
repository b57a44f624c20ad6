"""Factors of symmetric matrices that need not be definite, and systems solved by them.

`A = P @ L @ D @ L.mT @ P.mT` by LAPACK's xSYTRF (Bunch and Kaufman), with blocks of one or two rows
in `D`; of complex matrices with `hermitian` `L.mH`, by xHETRF. It runs on the host, of CUDA tensors
on a copy; there are no gradients, in PyTorch neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..core.dispatch import apply_several
from ..core.operands import require_tensor
from ..core.return_types import linalg_ldl_factor as LDL
from ..core.return_types import linalg_ldl_factor_ex as LDLEx
from ..core.tensor import Tensor, intern_type
from ..runtime.dtypes import bool_, int32
from ..runtime.linalg_error import LinAlgError
from . import movement as m
from .factorizations import check_matrices

_Array = np.ndarray[Any, Any]


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDL:
    """`L` and `D` in one matrix, and the exchanges of rows, as `ldl_solve` takes them.

    Only the lower triangle of `A` is read. LinAlgError where `D` is singular.

    >>> import tgraph as tg
    >>> tg.linalg.ldl_factor(tg.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 2.5000]])
    """
    return LDL(*_factors("linalg.ldl_factor", A, hermitian, True)[:2])


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLEx:
    """`ldl_factor`, and of each matrix the number of the first row of `D` that is zero, else 0."""
    return LDLEx(*_factors("linalg.ldl_factor_ex", A, hermitian, check_errors))


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The `X` with `A @ X = B`, for the `LD` and `pivots` of `ldl_factor(A)`.

    >>> import tgraph as tg
    >>> factors = tg.linalg.ldl_factor(tg.tensor([[2.0, 1.0], [1.0, 3.0]]))
    >>> tg.linalg.ldl_solve(*factors, tg.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    name = "linalg.ldl_solve"
    check_matrices(name, LD, square=True, complex_too=True)
    require_tensor(pivots, name, "pivots"), require_tensor(B, name, "B")
    if B._type.dtype is not LD._type.dtype:
        raise RuntimeError(
            f"{name}: Expected LD and B to have the same dtype, but found LD of type "
            f"{LD._type.dtype.name} and B of type {B._type.dtype.name} instead"
        )
    if B.ndim < 2 or B._type.shape[-2] != LD._type.shape[-1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation AX = B "
            f"({list(LD._type.shape)} and {list(B._type.shape)})"
        )
    kind = pivots._type.dtype
    if not kind.is_integral or kind is bool_:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {kind.name}")
    if pivots._type.shape != LD._type.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(pivots._type.shape)} instead"
        )
    batch = m.broadcast_shapes(LD._type.shape[:-2], B._type.shape[:-2])
    given = [
        m.expand(each, (*batch, *each._type.shape[len(each._type.shape) - own :]))
        for each, own in ((LD, 2), (pivots, 1), (B, 2))
    ]
    types = (given[2]._type,)
    function = _solved_hermitian if _turns(LD, hermitian) else _solved
    attrs = {"function": function, "results": types, "name": name, "effect": "pure"}
    return apply_several(p.host_call, *given, **attrs)[0]


def _turns(a: Tensor, hermitian: bool) -> bool:
    """Whether the matrix is its own adjoint, and not its own transpose."""
    return hermitian and a._type.dtype.is_complex


def _factors(name: str, A: Tensor, hermitian: bool, checks: bool) -> tuple[Tensor, ...]:
    check_matrices(name, A, square=True, complex_too=True)
    shape, device = A._type.shape, A._type.device
    types = A._type, *(intern_type(each, int32, device) for each in (shape[:-1], shape[:-2]))
    function = _FACTORING[_turns(A, hermitian), checks]
    attrs = {"function": function, "results": types, "name": name, "effect": "pure"}
    return tuple(apply_several(p.host_call, A, **attrs))


def _factored(a: _Array, routine: str = "sytrf") -> tuple[_Array, ...]:
    from scipy.linalg import lapack

    (factor,) = lapack.get_lapack_funcs((routine,), (a,))
    packed = np.zeros(a.shape, a.dtype)
    pivots = np.zeros(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    for at in np.ndindex(info.shape) if a.shape[-1] else ():
        found, pivots[at], info[at] = factor(a[at], lower=1)
        packed[at] = np.tril(found)
    return packed, pivots, info


def _factored_hermitian(a: _Array) -> tuple[_Array, ...]:
    return _factored(a, "hetrf")


def _checked(found: tuple[_Array, ...]) -> tuple[_Array, ...]:
    if found[2].any():
        raise LinAlgError(
            f"linalg.ldl_factor: The factorization could not be completed because the "
            f"{found[2].max()}-th diagonal block of D is singular"
        )
    return found


def _checked_factors(a: _Array) -> tuple[_Array, ...]:
    return _checked(_factored(a))


def _checked_factors_hermitian(a: _Array) -> tuple[_Array, ...]:
    return _checked(_factored_hermitian(a))


_FACTORING = {
    (False, False): _factored,
    (False, True): _checked_factors,
    (True, False): _factored_hermitian,
    (True, True): _checked_factors_hermitian,
}
"""By whether the matrix is its own adjoint, and whether what is singular is an error."""


def _solved(packed: _Array, pivots: _Array, b: _Array) -> tuple[_Array, ...]:
    return _solved_by(np.asarray, packed, pivots, b)


def _solved_hermitian(packed: _Array, pivots: _Array, b: _Array) -> tuple[_Array, ...]:
    return _solved_by(np.conj, packed, pivots, b)


_Turn = Callable[[Any], Any]


def _solved_by(turn: _Turn, packed: _Array, pivots: _Array, b: _Array) -> tuple[_Array, ...]:
    found = np.array(b)
    for at in np.ndindex(packed.shape[:-2]):
        _solve_one(turn, packed[at], pivots[at], found[at])
    return (found,)


def _solve_one(turn: _Turn, ld: _Array, pivots: _Array, x: _Array) -> None:
    """LAPACK's xSYTRS or xHETRS: a negative pivot stands at both rows of a block of two."""
    blocks = []
    k, size = 0, len(ld)
    while k < size:
        width = 1 if pivots[k] > 0 else 2
        blocks.append((k, width))
        last, other = k + width - 1, abs(pivots[k]) - 1
        x[[last, other]] = x[[other, last]]
        x[k + width :] -= ld[k + width :, k : k + width] @ x[k : k + width]
        corner = np.tril(ld[k : k + width, k : k + width])
        corner = corner + turn(np.tril(corner, -1)).T
        x[k : k + width] = np.linalg.solve(corner, x[k : k + width])
        k += width
    for k, width in reversed(blocks):
        x[k : k + width] -= turn(ld[k + width :, k : k + width]).T @ x[k + width :]
        last, other = k + width - 1, abs(pivots[k]) - 1
        x[[last, other]] = x[[other, last]]
