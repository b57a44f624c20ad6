"""Eigenvalues and eigenvectors of matrices that need not be symmetric.

LAPACK's xGEEV runs on the host, of CUDA tensors on a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.complex_parts import conjugate, part
from ..core.composite import composite
from ..core.dispatch import apply, apply_several
from ..core.operands import require_tensor
from ..core.return_types import linalg_eig as Eig
from ..core.tensor import Tensor, intern_type
from ..core.vjp_rules import OUTPUT, input_vjp
from ..runtime.dtypes import complex64, complex128, float32, float64
from . import creation
from . import elementwise as e
from . import movement as m
from .comparison import eq
from .concatenation import cat
from .factorizations import solve, transposed
from .linalg import matmul

_COMPLEX = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}


@with_autocast
def eig(A: Tensor) -> Eig:
    """Eigenvalues and eigenvectors, columns of length 1, of square matrices; both are complex.

    In no order. The gradient through the vectors is not finite where eigenvalues are equal, and is
    that of functions that do not depend on the phases of the vectors.

    >>> import tgraph as tg
    >>> tg.linalg.eig(tg.tensor([[0.0, 2.0], [-2.0, 0.0]])).eigenvalues.imag
    tensor([ 2., -2.])
    """
    found = _eig(_checked("linalg.eig", A))
    size = found._type.shape[-2]
    return Eig(m.select(found, -1, size), m.narrow(found, -1, 0, size))


@with_autocast
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex and in no order; see `eig`.

    >>> import tgraph as tg
    >>> tg.linalg.eigvals(tg.tensor([[2.0, 1.0], [0.0, 3.0]])).real
    tensor([2., 3.])
    """
    found = _eig(_checked("linalg.eigvals", A))
    return m.select(found, -1, found._type.shape[-2])


def _checked(name: str, a: Any) -> Tensor:
    type_ = require_tensor(a, name, "A")._type
    if type_.dtype not in _COMPLEX:
        raise NotImplementedError(
            f"{name}: Expected a floating point or complex tensor as input. Got {type_.dtype.name}"
        )
    if type_.ndim < 2 or type_.shape[-1] != type_.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but its shape is {list(type_.shape)}"
        )
    found: Tensor = a
    return found


def _on_host(a: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """The vectors, and the values as one more column."""
    values, vectors = np.linalg.eig(a)
    found = np.concatenate([vectors, values[..., None]], -1)
    return (found.astype(np.result_type(a.dtype, np.complex64)),)


@composite("eig")
def _eig(a: Tensor) -> Tensor:
    *batch, size, _ = a._type.shape
    type_ = intern_type((*batch, size, size + 1), _COMPLEX[a._type.dtype], a._type.device)
    attrs = {"function": _on_host, "results": (type_,), "name": "linalg.eig", "effect": "pure"}
    return apply_several(p.host_call, a, **attrs)[0]


@input_vjp(_eig, saves=(OUTPUT,))
def _eig_vjp(g: Tensor, out: Tensor, a: TensorType) -> Tensor:
    """Boeddeker et al., "On the Computation of Complex-valued Gradients" (2017), equation 4.77."""
    size = a.shape[-1]
    vectors, values = m.narrow(out, -1, 0, size), conjugate(m.select(out, -1, size))
    turned = conjugate(transposed(vectors))
    along = matmul(turned, m.narrow(g, -1, 0, size))
    one = creation.eye(size, dtype=a.dtype.to_real(), device=a.device)
    grown = m.unsqueeze(part(m.diagonal(along, 0, -2, -1), 0), -2)
    along = e.sub(along, e.mul(matmul(turned, vectors), grown))
    apart = e.sub(m.unsqueeze(values, -2), m.unsqueeze(values, -1))
    is_own = eq(one, 1.0)
    inner = e.div(along, e.where(is_own, 1.0, apart))
    inner = e.where(is_own, m.unsqueeze(m.select(g, -1, size), -1), inner)
    found = _solved(turned, matmul(inner, turned))
    return found if a.dtype.is_complex else m.clone(part(found, 0))


def _solved(a: Tensor, b: Tensor) -> Tensor:
    """Of complex matrices, as real ones of twice the size."""
    (ar, ai), (br, bi) = ((part(each, 0), part(each, 1)) for each in (a, b))
    whole = cat([cat([ar, e.neg(ai)], -1), cat([ai, ar], -1)], -2)
    found, size = solve(whole, cat([br, bi], -2)), a._type.shape[-1]
    halves = (m.narrow(found, -2, at, size) for at in (0, size))
    return apply(p.complex_, *halves)
