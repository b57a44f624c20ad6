"""Linear equations and inverses of tensors, whose dimensions are taken together as two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.autocast import with_autocast
from ..core.operands import require_tensor
from ..core.tensor import Tensor
from . import movement as m
from .factorizations import inv, solve


@with_autocast
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of the map that `tensordot(A, x, dims)` is, by its first `ind` dimensions.

    >>> import tgraph as tg
    >>> tg.linalg.tensorinv(2 * tg.eye(6).reshape(2, 3, 6)).shape
    tgraph.Size([6, 2, 3])
    """
    name = "linalg.tensorinv"
    shape = require_tensor(A, name, "A")._type.shape
    if ind <= 0:
        raise RuntimeError(f"{name}: Expected a strictly positive integer for 'ind', got {ind}")
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            f"{name}: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return m.reshape(inv(m.reshape(A, rows, columns)), (*shape[ind:], *shape[:ind]))


@with_autocast
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The `X` with `tensordot(A, X, X.ndim) == B`; dimensions `dims` of `A` are its last ones.

    >>> import tgraph as tg
    >>> tg.linalg.tensorsolve(2 * tg.eye(6).reshape(2, 3, 6), tg.ones(2, 3)).shape
    tgraph.Size([6])
    """
    name = "linalg.tensorsolve"
    require_tensor(A, name, "A"), require_tensor(B, name, "B")
    if dims is not None:
        A = m.movedim(A, list(dims), list(range(A.ndim - len(dims), A.ndim)))
    last = A._type.shape[B.ndim :]
    columns = math.prod(last)
    if columns != A._type.numel // max(columns, 1) and A._type.numel:
        raise RuntimeError(
            f"{name}: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {A._type.numel // columns}"
        )
    found = solve(m.reshape(A, columns, columns), m.reshape(B, -1))
    return m.reshape(found, last)
