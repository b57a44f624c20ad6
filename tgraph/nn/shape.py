"""Modules that change the shape of their input alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.tensor import Tensor
from ..ops.movement import flatten, unflatten
from .module import Module


class Flatten(Module):
    """Dimensions `start_dim` to `end_dim` as one; by default all but the batch.

    >>> import tgraph as tg
    >>> tg.nn.Flatten()(tg.ones(2, 3, 4)).shape
    tgraph.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Dimension `dim` as several, of sizes `unflattened_size`.

    >>> import tgraph as tg
    >>> tg.nn.Unflatten(1, (3, 4))(tg.ones(2, 12)).shape
    tgraph.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
