"""The layers of torchvision's `ops` that networks for images name. Detection is not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..nn import BatchNorm2d, Conv2d, Module, ReLU, Sequential
from ..ops.creation import ones, zeros

__all__ = ["Conv2dNormActivation", "FrozenBatchNorm2d"]

Makes = Callable[..., Module]


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


class Conv2dNormActivation(Sequential):
    """A convolution whose borders keep the size, what normalizes, and what activates.

    >>> import tgraph as tg
    >>> Conv2dNormActivation(3, 8, stride=2)(tg.ones(1, 3, 4, 4)).shape
    tgraph.Size([1, 8, 2, 2])
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int = 3, stride: int = 1,
        padding: int | str | None = None, groups: int = 1, norm_layer: Makes | None = BatchNorm2d,
        activation_layer: Makes | None = ReLU, dilation: int = 1, inplace: bool | None = True,
        bias: bool | None = None,
    ) -> None:  # fmt: skip
        padding = (kernel_size - 1) // 2 * dilation if padding is None else padding
        bias = norm_layer is None if bias is None else bias
        layers: list[Module] = [
            Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        ]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels
