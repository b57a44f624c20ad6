"""Windows as columns, and back."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module
from .sizes import Sizes


class Unfold(Module):
    """The windows of [N, C, H, W] as columns: [N, C * window, places].

    >>> import tgraph as tg
    >>> tg.nn.Unfold(kernel_size=(2, 3))(tg.ones(2, 5, 3, 4)).shape
    tgraph.Size([2, 30, 4])
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Columns [N, C * window, places] added up to [N, C, *output_size]: the transpose of `Unfold`.

    >>> import tgraph as tg
    >>> tg.nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(tg.ones(1, 3 * 2 * 2, 12)).shape
    tgraph.Size([1, 3, 4, 5])
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
