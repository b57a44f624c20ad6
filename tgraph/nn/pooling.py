"""Pooling: windows of an image summarised by one number each."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .convolution import Pair
from .module import Module


class MaxPool2d(Module):
    """The maximum of every window: [*, H, W] to [*, H', W'].

    H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 (rounded up with
    `ceil_mode`), and so for W'. `stride` is the kernel size unless given.

    >>> import tgraph as tg
    >>> tg.nn.MaxPool2d(2)(tg.ones(1, 3, 8, 8)).shape
    tgraph.Size([1, 3, 4, 4])
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """The mean of every window: [*, H, W] to [*, H', W'], with sizes as in `MaxPool2d`.

    Padding counts as zeros unless not `count_include_pad`.

    >>> import tgraph as tg
    >>> tg.nn.AvgPool2d(2)(tg.tensor([[[1.0, 2.0], [3.0, 6.0]]]))
    tensor([[[3.]]])
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
