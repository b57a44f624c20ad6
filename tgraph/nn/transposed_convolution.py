"""Transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from . import functional as F
from .convolution import ConvNd
from .sizes import Sizes, checked_sizes


class ConvTransposeNd(ConvNd):
    """What transposed convolutions of any number of dimensions have in common."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        transposed: bool,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,  # type: ignore[arg-type]
            output_padding, groups, bias, padding_mode, device, dtype,  # type: ignore[arg-type]
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What the module keeps at the end of each dimension, or what `output_size` asks for."""
        if output_size is None:
            return self.output_padding
        count = len(self.kernel_size)
        outer = 2 if input.ndim == count + 2 else 1
        sizes = list(output_size)
        if len(sizes) == outer + count:
            sizes = sizes[outer:]
        if len(sizes) != count:
            raise ValueError(
                f"ConvTranspose{count}D: for {input.ndim}D input, output_size must have {count} "
                f"or {outer + count} elements (got {len(sizes)})"
            )
        least = [
            (size - 1) * step - 2 * pad + by * (taps - 1) + 1
            for size, step, pad, by, taps in zip(
                input.shape[outer:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {least} to "
                f"{most} (for an input of {input.shape[2:]})"
            )
        return tuple(size - low for size, low in zip(sizes, least))


class ConvTranspose1d(ConvTransposeNd):
    """The transpose of `Conv1d`: [N, in, L] to [N, out, L'].

    As `ConvTranspose2d`, along one dimension.

    >>> import tgraph as tg
    >>> tg.nn.ConvTranspose1d(4, 2, 3, stride=2)(tg.ones(1, 4, 5)).shape
    tgraph.Size([1, 2, 11])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 1, "kernel_size"),
            checked_sizes(stride, 1, "stride"), checked_sizes(padding, 1, "padding"),
            checked_sizes(dilation, 1, "dilation"), True,
            checked_sizes(output_padding, 1, "output_padding"), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        more = self._output_padding(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose2d(ConvTransposeNd):
    """The transpose of `Conv2d`, which makes images larger: [N, in, H, W] to [N, out, H', W'].

    Each element adds the window, times itself, to the result, windows `stride` apart: H' =
    (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1, and so for
    W'. A strided `Conv2d` makes one size of several; `output_padding`, or `output_size` of a call,
    says which one is meant. `weight` is [in, out / groups, *kernel_size].

    >>> import tgraph as tg
    >>> layer = tg.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)
    >>> layer(tg.ones(4, 8, 16, 16)).shape
    tgraph.Size([4, 3, 32, 32])
    >>> layer(tg.ones(4, 8, 16, 16), output_size=(33, 32)).shape
    tgraph.Size([4, 3, 33, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 2, "kernel_size"),
            checked_sizes(stride, 2, "stride"), checked_sizes(padding, 2, "padding"),
            checked_sizes(dilation, 2, "dilation"), True,
            checked_sizes(output_padding, 2, "output_padding"), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        more = self._output_padding(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose3d(ConvTransposeNd):
    """The transpose of `Conv3d`: [N, in, D, H, W] to [N, out, D', H', W'].

    As `ConvTranspose2d`, along three dimensions.

    >>> import tgraph as tg
    >>> tg.nn.ConvTranspose3d(4, 2, 3, stride=2)(tg.ones(1, 4, 2, 3, 3)).shape
    tgraph.Size([1, 2, 5, 7, 7])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, checked_sizes(kernel_size, 3, "kernel_size"),
            checked_sizes(stride, 3, "stride"), checked_sizes(padding, 3, "padding"),
            checked_sizes(dilation, 3, "dilation"), True,
            checked_sizes(output_padding, 3, "output_padding"), groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        more = self._output_padding(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip
