"""Convolutions."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import empty
from . import functional as F
from .linear import reset_weight_and_bias
from .module import Module
from .parameter import Parameter
from .sizes import Sizes, checked_sizes

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class ConvNd(Module):
    """What convolutions and transposed ones of any number of dimensions have in common."""

    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        _check_padding(padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _borders(padding, kernel_size, dilation)
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        made, read = self.out_channels, self.in_channels
        outer, inner = (read, made) if self.transposed else (made, read)
        return outer, inner // self.groups, *self.kernel_size

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        reset_weight_and_bias(self.weight, self.bias)

    def extra_repr(self) -> str:
        zeros = (0,) * len(self.kernel_size)
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != zeros:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")


def _check_padding(padding: Any, stride: tuple[int, ...], mode: str) -> None:
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise ValueError(
            f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}"
        )
    if padding == "same" and any(step != 1 for step in stride):
        raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{mode}'"
        )


def _borders(
    padding: str | tuple[int, ...], window: tuple[int, ...], dilation: tuple[int, ...]
) -> list[int]:
    """What `pad` takes: the last dimension first, both sides of each."""
    if padding == "valid":
        return [0, 0] * len(window)
    if padding == "same":
        totals = [by * (taps - 1) for by, taps in zip(dilation, window)]
        sides = [(total // 2, total - total // 2) for total in totals]
    else:
        sides = [(by, by) for by in padding]  # type: ignore[misc]
    return [side for pair in reversed(sides) for side in pair]


def _padding_of(padding: Any, count: int) -> Any:
    return padding if isinstance(padding, str) else checked_sizes(padding, count, "padding")


class Conv1d(ConvNd):
    """Cross-correlation of sequences with learned windows: [N, in, L] to [N, out, L'].

    As `Conv2d`, along one dimension.

    >>> import tgraph as tg
    >>> layer = tg.nn.Conv1d(16, 33, 3, stride=2)
    >>> layer(tg.ones(20, 16, 50)).shape
    tgraph.Size([20, 33, 24])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 1, "kernel_size"),
            checked_sizes(stride, 1, "stride"), _padding_of(padding, 1),
            checked_sizes(dilation, 1, "dilation"), False, (0,), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return F.conv1d(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return F.conv1d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(ConvNd):
    """Cross-correlation of images with learned windows: [N, in, H, W] to [N, out, H', W'].

    H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, and so for W'.
    `padding` is a number, a pair, "valid" (none) or "same" (H' = H, with stride 1), of zeros, or
    of what `padding_mode` takes from the input ("reflect", "replicate", "circular"). `weight` is
    [out, in / groups, *kernel_size]; weight and bias start uniform in ±1/sqrt(fan in).

    >>> import tgraph as tg
    >>> layer = tg.nn.Conv2d(3, 8, kernel_size=3, padding=1, stride=2)
    >>> layer(tg.ones(4, 3, 32, 32)).shape
    tgraph.Size([4, 8, 16, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 2, "kernel_size"),
            checked_sizes(stride, 2, "stride"), _padding_of(padding, 2),
            checked_sizes(dilation, 2, "dilation"), False, (0, 0), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return F.conv2d(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return F.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(ConvNd):
    """Cross-correlation of volumes with learned windows: [N, in, D, H, W] to [N, out, D', H', W'].

    As `Conv2d`, along three dimensions.

    >>> import tgraph as tg
    >>> layer = tg.nn.Conv3d(2, 4, kernel_size=(3, 2, 2), padding=(1, 0, 0))
    >>> layer(tg.ones(1, 2, 5, 6, 6)).shape
    tgraph.Size([1, 4, 5, 5, 5])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 3, "kernel_size"),
            checked_sizes(stride, 3, "stride"), _padding_of(padding, 3),
            checked_sizes(dilation, 3, "dilation"), False, (0, 0, 0), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return F.conv3d(
                input, weight, bias, self.stride, self.padding, self.dilation, self.groups
            )
        padded = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return F.conv3d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)
