"""`torch.sparse`: functions of sparse tensors; see docs/sparse.md.

>>> import tgraph as tg
>>> graph = tg.sparse_coo_tensor([[0, 1, 1], [1, 0, 2]], [1.0, 0.5, 0.5], (3, 3))
>>> tg.sparse.mm(graph, tg.tensor([[1.0], [2.0], [3.0]]))
tensor([[2.],
        [2.],
        [0.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .core.absent import attribute_error, not_here
from .core.layouts import Layout, sparse_coo
from .core.sparse_tensor import SparseTensor
from .core.tensor import Tensor
from .ops.concatenation import cat, stack
from .ops.creation import arange
from .ops.sparse_creation import sparse_coo_tensor
from .ops.sparse_parts import to_sparse
from .ops.sparse_products import sampled_addmm, sparse_addmm, sparse_mm
from .ops.sparse_rules import sparse_log_softmax, sparse_softmax, sparse_sum

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum"]

addmm = sparse_addmm
mm = sparse_mm
softmax = sparse_softmax
log_softmax = sparse_log_softmax
sum = sparse_sum
spsolve = not_here("sparse.spsolve", "linalg.solve(a.to_dense(), b) is there")


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Layout | None = None
) -> SparseTensor:
    """The matrix whose diagonals are the rows of `diagonals`, by offsets from the main one.

    As in PyTorch, column j of a row of `diagonals` lies in column j of the matrix.

    >>> import tgraph as tg
    >>> tg.sparse.spdiags(tg.tensor([[1.0, 2.0, 3.0]]), tg.tensor([1]), (3, 3)).to_dense()
    tensor([[0., 2., 0.],
            [0., 0., 3.],
            [0., 0., 0.]])
    """
    rows = diagonals.reshape(-1, diagonals.shape[-1])
    steps = offsets.reshape(-1).tolist()
    if rows.shape[0] != len(steps) or len(set(steps)) != len(steps):
        raise RuntimeError(
            f"spdiags(): expected {rows.shape[0]} different offsets, one for each diagonal, got "
            f"{steps}"
        )
    places, parts = [], []
    for row, step in zip(rows, steps):
        first, last = max(step, 0), min(shape[1], shape[0] + step, rows.shape[1])
        columns = arange(first, max(last, first), device=rows.device)
        places.append(stack([columns - step, columns]))
        parts.append(row[first : max(last, first)])
    made = sparse_coo_tensor(cat(places, 1), cat(parts), shape)
    found = to_sparse(made, layout=layout or sparse_coo)
    assert isinstance(found, SparseTensor)
    return found


def __getattr__(name: str) -> Any:
    raise attribute_error(__name__, name, None)
