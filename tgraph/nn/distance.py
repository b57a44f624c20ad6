"""Distances and angles between vectors."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`; lengths below `eps` count as `eps`.

    >>> import tgraph as tg
    >>> tg.nn.CosineSimilarity()(tg.tensor([[3.0, 4.0]]), tg.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The `p`-norm of `x1 - x2 + eps` along the last dimension.

    >>> import tgraph as tg
    >>> tg.nn.PairwiseDistance()(tg.tensor([[3.0, 4.0]]), tg.zeros(1, 2))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
