"""The layer of torchvision's `ops` that networks for images name. Detection is not here."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..nn import Module
from ..ops.creation import ones, zeros

__all__ = ["FrozenBatchNorm2d"]


class FrozenBatchNorm2d(Module):
    """Batch normalization of (N, C, H, W) whose statistics, scale and shift stay as they are.

    >>> import tgraph as tg
    >>> FrozenBatchNorm2d(3)(tg.ones(1, 3, 2, 2)).shape
    tgraph.Size([1, 3, 2, 2])
    """

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", ones(num_features))
        self.register_buffer("bias", zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        state_dict.pop(f"{prefix}num_batches_tracked", None)  # of a BatchNorm2d
        super()._load_from_state_dict(state_dict, prefix, *others)

    def forward(self, x: Tensor) -> Tensor:
        """`(x - running_mean) / sqrt(running_var + eps) * weight + bias`, by channel."""
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"
