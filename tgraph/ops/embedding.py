"""Embeddings: rows of a table by index, and reductions of bags of them."""

from __future__ import annotations

from ..compiler.ir import primitives as p
from ..core.dispatch import apply
from ..core.operands import require_tensor
from ..core.tensor import Tensor
from ..runtime.dtypes import int32, int64
from . import elementwise as e
from . import movement as m


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of `weight` by index; the row `padding_idx` gets no gradient."""
    if require_tensor(input, "embedding")._type.dtype not in (int32, int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {input._type.dtype} instead (while checking arguments for "
            "embedding)"
        )
    rows = apply(p.index, weight, input, axis=0)
    if padding_idx is None:
        return rows
    at = padding_idx % weight._type.shape[0]
    is_padding = m.unsqueeze(e.eq(input, at), -1)
    return e.where(is_padding, rows.detach(), rows)
