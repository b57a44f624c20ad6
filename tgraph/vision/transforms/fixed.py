"""Transforms that do the same to every image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...nn.module import Module
from ...runtime.dtypes import DType
from . import functional as F
from .functional import InterpolationMode


def listed(name: str, transforms: Iterable[Any], *before: str) -> str:
    """The representation of a transform that is made of others."""
    return "\n".join([f"{name}(", *(f"    {each}" for each in (*before, *transforms)), ")"])


class Compose:
    """Transforms one behind the other.

    >>> import numpy as np
    >>> from tgraph.vision import transforms
    >>> transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])
    >>> transform(np.array([[0, 255]], np.uint8))
    tensor([[[-1.,  1.]]])
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, self.transforms)


class ToTensor:
    """An image, or an array (H, W, C), as a tensor (C, H, W): bytes become floats in [0, 1]."""

    def __call__(self, pic: Any) -> Tensor:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """The pixels of an image as they are, as a tensor (C, H, W)."""

    def __call__(self, pic: Any) -> Tensor:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """A tensor (C, H, W), of bytes or of floats in [0, 1], or an array (H, W, C), as an image."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class Lambda:
    """A function of the user's."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConvertImageDtype(Module):
    """A tensor in another dtype, in which the largest integer stands for 1."""

    def __init__(self, dtype: DType) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        """`functional.convert_image_dtype`."""
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """(tensor - mean) / std, with a number of each for every channel."""

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], inplace: bool = False
    ) -> None:  # fmt: skip
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor: Tensor) -> Tensor:
        """`functional.normalize`."""
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Resize(Module):
    """An image of another size: (h, w), or the length of its shorter side."""

    def __init__(
        self,
        size: Any,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = F.as_interpolation(interpolation)

    def forward(self, img: Any) -> Any:
        """`functional.resize`."""
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(size={self.size}, "
                f"interpolation={self.interpolation.value}, max_size={self.max_size}, "
                f"antialias={self.antialias})")  # fmt: skip


class CenterCrop(Module):
    """The middle of an image, with zeros around it where it is smaller."""

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = F.as_pair(size, "size")

    def forward(self, img: Any) -> Any:
        """`functional.center_crop`."""
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Module):
    """Pixels around an image; see `functional.pad`."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        """`functional.pad`."""
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
                f"padding_mode={self.padding_mode})")  # fmt: skip


class Grayscale(Module):
    """An image in grey, of one channel or of three equal ones."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """`functional.rgb_to_grayscale`."""
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"
