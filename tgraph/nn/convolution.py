"""Convolutions."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import empty
from . import functional as F
from .linear import reset_weight_and_bias
from .module import Module
from .parameter import Parameter

Pair = int | tuple[int, int]


def as_pair(value: Any, name: str) -> tuple[int, int]:
    """One number for height and width, or one for each."""
    if isinstance(value, int):
        return value, value
    pair = tuple(value)
    if len(pair) != 2:
        raise ValueError(f"{name} must be a number or a pair of numbers, got {value}")
    return pair


class Conv2d(Module):
    """Cross-correlation of images with learned windows: [N, in, H, W] to [N, out, H', W'].

    H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, and so for W'.
    `padding` is a number, a pair, "valid" (none) or "same" (H' = H, with stride 1). `weight` is
    [out, in / groups, *kernel_size]; weight and bias start uniform in ±1/sqrt(fan in).

    >>> import tgraph as tg
    >>> layer = tg.nn.Conv2d(3, 8, kernel_size=3, padding=1, stride=2)
    >>> layer(tg.ones(4, 3, 32, 32)).shape
    tgraph.Size([4, 8, 16, 16])
    """

    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair | str = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        if padding_mode != "zeros":
            raise ValueError(f"padding_mode must be 'zeros', got {padding_mode!r}; pad the input")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = as_pair(kernel_size, "kernel_size")
        self.stride = as_pair(stride, "stride")
        self.padding = _checked_padding(padding, self.stride)
        self.dilation = as_pair(dilation, "dilation")
        self.groups = groups
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0, 0):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1, 1):
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join(parts)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")


def _checked_padding(padding: Any, stride: tuple[int, int]) -> Any:
    if not isinstance(padding, str):
        return as_pair(padding, "padding")
    if padding not in ("same", "valid"):
        raise ValueError(
            f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
        )
    if padding == "same" and stride != (1, 1):
        raise ValueError("padding='same' is not supported for strided convolutions")
    return padding
