"""Pooling to a given size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from . import functional as F
from .module import Module
from .sizes import as_sizes

OutputSizes = int | Sequence[int | None] | None


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: OutputSizes) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(Module):
    def __init__(self, output_size: OutputSizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows that divide a sequence [*, L] into `output_size` parts."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of windows that divide an image [*, H, W] into `output_size` parts.

    Where it does not divide evenly, windows overlap. `None` keeps a size.

    >>> import tgraph as tg
    >>> tg.nn.AdaptiveAvgPool2d((2, None))(tg.ones(1, 3, 5, 7)).shape
    tgraph.Size([1, 3, 2, 7])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of windows that divide a volume [*, D, H, W] into `output_size` parts."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide a sequence [*, L] into `output_size` parts."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide an image [*, H, W] into `output_size` parts.

    Where it does not divide evenly, windows overlap. `None` keeps a size. With
    `return_indices` also positions in the flat plane.

    >>> import tgraph as tg
    >>> tg.nn.AdaptiveMaxPool2d((2, None))(tg.ones(1, 3, 5, 7)).shape
    tgraph.Size([1, 3, 2, 7])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows that divide a volume [*, D, H, W] into `output_size` parts."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _FractionalMaxPoolNd(Module):
    _count = 0

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        output_size: int | tuple[int, ...] | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        count, name = self._count, type(self).__name__
        self.kernel_size = as_sizes(kernel_size, count)
        if min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_sizes(output_size, count)
        self.output_ratio = None if output_ratio is None else as_sizes(output_ratio, count)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio and not all(0 < each < 1 for each in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows that lie at random, about evenly, to give `output_size`.

    Instead of it, `output_ratio` says which part of the input's size to give. Source: Graham,
    "Fractional max-pooling" (2015).

    >>> import tgraph as tg
    >>> tg.nn.FractionalMaxPool2d(3, output_size=(13, 12))(tg.rand(2, 4, 50, 32)).shape
    tgraph.Size([2, 4, 13, 12])
    """

    _count = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows of a volume that lie at random; see `FractionalMaxPool2d`."""

    _count = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip
