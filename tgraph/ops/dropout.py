"""Dropout: elements or channels that a random choice takes out in training."""

from __future__ import annotations

from typing import Any

from ..core.inplace import applied
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import float32
from . import elementwise as e
from . import random as rng


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, elements become 0 with probability `p` and the others grow by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    return applied(_dropped, input, "dropout_", inplace, input._type.shape, p)


@planned
def _dropped(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    keep = e.ge(rng.uniform(shape, float32, device=x._type.device), p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return e.where(keep, e.mul(x, scale), 0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels: the first two dimensions (one of an unbatched input)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = 1 if input.ndim == 3 else 2
    shape = (*input.shape[:kept], *(1,) * (input.ndim - kept))
    return applied(_dropped, input, "dropout2d_", inplace, shape, p)
