"""Convolutions that learn the number of input channels from the first input."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .convolution import Conv1d, Conv2d, Conv3d
from .lazy import LazyModuleMixin
from .parameter import UninitializedParameter
from .sizes import Sizes
from .transposed_convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


class _LazyConvXdMixin(LazyModuleMixin):
    in_channels: int
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def _become_uninitialized(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Parameters without shapes in the place of those for no channels."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, once there are such."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any) -> None:  # type: ignore[override]
        """Take `in_channels` from `input`, then draw weight and bias."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())  # type: ignore[attr-defined]
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        least = len(self.kernel_size) + 1
        if input.ndim not in (least, least + 1):
            raise RuntimeError(
                f"Expected {least}D (unbatched) or {least + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        return input.shape[input.ndim - least]


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A `Conv1d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConv1d(2, 3)
    >>> layer(tg.ones(1, 4, 9)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = Conv1d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A `Conv2d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConv2d(2, 3)
    >>> layer(tg.ones(1, 4, 9, 9)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = Conv2d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A `Conv3d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConv3d(2, 3)
    >>> layer(tg.ones(1, 4, 5, 5, 5)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = Conv3d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A `ConvTranspose1d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConvTranspose1d(2, 3)
    >>> layer(tg.ones(1, 4, 9)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = ConvTranspose1d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A `ConvTranspose2d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConvTranspose2d(2, 3)
    >>> layer(tg.ones(1, 4, 9, 9)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = ConvTranspose2d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A `ConvTranspose3d` whose `in_channels` are those of its first input; see `LazyModuleMixin`.

    >>> import tgraph as tg
    >>> layer = tg.nn.LazyConvTranspose3d(2, 3)
    >>> layer(tg.ones(1, 4, 5, 5, 5)).shape[1], layer.in_channels
    (2, 4)
    """

    cls_to_become = ConvTranspose3d

    def __init__(
        self,
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
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode,
            device, dtype,
        )  # fmt: skip
        self._become_uninitialized(out_channels, bias, device, dtype)
