"""Pooling: windows summarised by one number each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from . import functional as F
from .module import Module
from .sizes import Sizes, as_sizes


class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of every window of a sequence: [*, L] to [*, L'], as `MaxPool2d`.

    >>> import tgraph as tg
    >>> tg.nn.MaxPool1d(2)(tg.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool2d(_MaxPoolNd):
    """The maximum of every window: [*, H, W] to [*, H', W'].

    H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1 (rounded up with
    `ceil_mode`), and so for W'. `stride` is the kernel size unless given. With `return_indices`
    the result is a pair: the maxima, and their positions in the flat plane, which `MaxUnpool2d`
    takes.

    >>> import tgraph as tg
    >>> tg.nn.MaxPool2d(2)(tg.ones(1, 3, 8, 8)).shape
    tgraph.Size([1, 3, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool3d(_MaxPoolNd):
    """The maximum of every window of a volume: [*, D, H, W] to [*, D', H', W'], as `MaxPool2d`.

    >>> import tgraph as tg
    >>> tg.nn.MaxPool3d(2)(tg.ones(1, 3, 4, 8, 8)).shape
    tgraph.Size([1, 3, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class _MaxUnpoolNd(Module):
    _count = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = as_sizes(kernel_size, self._count)
        self.stride = as_sizes(kernel_size if stride is None else stride, self._count)
        self.padding = as_sizes(padding, self._count)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima put back where `MaxPool1d` found them, among zeros."""

    _count = 1

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima put back where `MaxPool2d` found them, among zeros.

    Called with the maxima and their positions, and with `output_size` where another size than the
    smallest is meant.

    >>> import tgraph as tg
    >>> most, at = tg.nn.MaxPool2d(2, return_indices=True)(tg.tensor([[[1.0, 5.0], [2.0, 3.0]]]))
    >>> tg.nn.MaxUnpool2d(2)(most, at).tolist()
    [[[0.0, 5.0], [0.0, 0.0]]]
    """

    _count = 2

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima put back where `MaxPool3d` found them, among zeros."""

    _count = 3

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of every window of a sequence: [*, L] to [*, L'], as `AvgPool2d`.

    >>> import tgraph as tg
    >>> tg.nn.AvgPool1d(2)(tg.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[3., 3.]])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = as_sizes(kernel_size, 1)
        self.stride = as_sizes(kernel_size if stride is None else stride, 1)
        self.padding = as_sizes(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class AvgPool2d(_AvgPoolNd):
    """The mean of every window: [*, H, W] to [*, H', W'], with sizes as in `MaxPool2d`.

    Padding counts as zeros unless not `count_include_pad`. The sum is divided by
    `divisor_override` where that is given.

    >>> import tgraph as tg
    >>> tg.nn.AvgPool2d(2)(tg.tensor([[[1.0, 2.0], [3.0, 6.0]]]))
    tensor([[[3.]]])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool3d(_AvgPoolNd):
    """The mean of every window of a volume: [*, D, H, W] to [*, D', H', W'], as `AvgPool2d`.

    >>> import tgraph as tg
    >>> tg.nn.AvgPool3d(2)(tg.ones(1, 3, 4, 8, 8)).shape
    tgraph.Size([1, 3, 2, 4, 4])
    """

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class _LPPoolNd(Module):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The `norm_type`-th root of the sum of such powers, of every window of a sequence."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool2d(_LPPoolNd):
    """The `norm_type`-th root of the sum of such powers, of every window.

    >>> import tgraph as tg
    >>> tg.nn.LPPool2d(2, (1, 2))(tg.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool3d(_LPPoolNd):
    """The `norm_type`-th root of the sum of such powers, of every window of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
