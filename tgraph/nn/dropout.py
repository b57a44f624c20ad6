"""Dropout."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module


class Dropout(Module):
    """In training, zeroes elements with probability `p` and divides the others by 1 - p.

    Source: Srivastava et al., "Dropout: A simple way to prevent neural networks from overfitting"
    (2014).

    >>> import tgraph as tg
    >>> drop = tg.nn.Dropout(0.5)
    >>> sorted(set(drop(tg.ones(100)).tolist()))
    [0.0, 2.0]
    >>> drop.eval()(tg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
