"""Local response normalization as it was called in Lua."""

from __future__ import annotations

from ..core.tensor import Tensor
from ..ops.normalization import local_response_norm
from .module import Module


class CrossMapLRN2d(Module):
    """Planes divided by sums of squares of neighbouring channels: `alpha / size` of the sums.

    Of an even `size` one channel less is summed up, as in PyTorch.

    >>> import tgraph as tg
    >>> tg.nn.CrossMapLRN2d(3)
    CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """The planes, (n, c, h, w), normalized."""
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        width = self.size - 1 + self.size % 2
        alpha = self.alpha * width / self.size
        return local_response_norm(input, width, alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
