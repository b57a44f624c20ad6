"""Images of another size, and channels that become places."""

from __future__ import annotations

from ..core.tensor import Tensor
from . import functional as F
from .module import Module

Scales = float | tuple[float, ...]


class Upsample(Module):
    """[N, C, *spatial] resampled to `size`, or to one `scale_factor` as large: see `interpolate`.

    >>> import tgraph as tg
    >>> tg.nn.Upsample(scale_factor=2, mode="bilinear")(tg.ones(1, 3, 4, 5)).shape
    tgraph.Size([1, 3, 8, 10])
    """

    scale_factor: Scales | None

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: Scales | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        size = f"size={self.size!r}"
        if self.scale_factor is not None:
            size = f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images resampled, each place as the nearest one.

    >>> import tgraph as tg
    >>> tg.nn.UpsamplingNearest2d(scale_factor=2)(tg.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(
        self, size: int | tuple[int, ...] | None = None, scale_factor: Scales | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images resampled linearly; the elements of the corners stay there.

    >>> import tgraph as tg
    >>> tg.nn.UpsamplingBilinear2d(size=(1, 3))(tg.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self, size: int | tuple[int, ...] | None = None, scale_factor: Scales | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """[*, C * r * r, H, W] as [*, C, H * r, W * r]: see `pixel_shuffle`.

    >>> import tgraph as tg
    >>> tg.nn.PixelShuffle(2)(tg.ones(1, 8, 3, 3)).shape
    tgraph.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """[*, C, H * r, W * r] as [*, C * r * r, H, W], which `PixelShuffle` undoes.

    >>> import tgraph as tg
    >>> tg.nn.PixelUnshuffle(2)(tg.ones(1, 2, 6, 6)).shape
    tgraph.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels of [N, C, *] in another order: one of each group after the other.

    >>> import tgraph as tg
    >>> tg.nn.ChannelShuffle(2)(tg.arange(4.0).reshape(1, 4, 1, 1)).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
