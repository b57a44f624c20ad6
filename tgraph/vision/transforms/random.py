"""Transforms that chance decides, by tgraph's generator."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.random import rand, randn
from . import functional as F
from .fixed import listed
from .functional import InterpolationMode


def _drawn(count: int) -> list[float]:
    """Uniform numbers in [0, 1)."""
    found: list[float] = rand(count).tolist()
    return found


def _chance(probability: float) -> bool:
    return _drawn(1)[0] < probability


class RandomHorizontalFlip(Module):
    """Left and right exchanged, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The image, or its mirror image."""
        return F.hflip(img) if _chance(self.p) else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, with probability `p`."""

    def forward(self, img: Any) -> Any:
        """The image, or it upside down."""
        return F.vflip(img) if _chance(self.p) else img


class RandomGrayscale(Module):
    """An image in grey of as many channels, with probability `p`."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The image, or it in grey."""
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0]) if _chance(self.p) else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomCrop(Module):
    """A part of this size, anywhere in an image that `padding` has been put around."""

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = F.as_pair(size, "size")
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """A random place: top, left, height, width."""
        _, rows, columns = F.get_dimensions(img)
        height, width = output_size
        if rows < height or columns < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image "
                             f"size {(rows, columns)}")  # fmt: skip
        down, right = _drawn(2)
        return int(down * (rows - height + 1)), int(right * (columns - width + 1)), height, width

    def forward(self, img: Any) -> Any:
        """A part of the image."""
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, rows, columns = F.get_dimensions(img)
        if self.pad_if_needed:
            more = max(self.size[1] - columns, 0), max(self.size[0] - rows, 0)
            img = F.pad(img, more, self.fill, self.padding_mode) if any(more) else img
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Module):
    """A part of random area and shape, resized; `scale` are shares of the area, `ratio` widths by
    heights.
    """

    def __init__(
        self, size: Any, scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = F.as_pair(size, "size")
        self.scale, self.ratio, self.antialias = scale, ratio, antialias
        self.interpolation = F.as_interpolation(interpolation)

    @staticmethod
    def get_params(
        img: Any, scale: Sequence[float], ratio: Sequence[float]
    ) -> tuple[int, int, int, int]:
        """A random place: top, left, height, width. Where ten tries fit in nowhere, the middle."""
        _, rows, columns = F.get_dimensions(img)
        logs = math.log(ratio[0]), math.log(ratio[1])
        for _ in range(10):
            share, shape, down, right = _drawn(4)
            area = rows * columns * (scale[0] + share * (scale[1] - scale[0]))
            aspect = math.exp(logs[0] + shape * (logs[1] - logs[0]))
            width, height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < width <= columns and 0 < height <= rows:
                top, left = int(down * (rows - height + 1)), int(right * (columns - width + 1))
                return top, left, height, width
        height, width = rows, columns
        if columns / rows < min(ratio):
            height = round(columns / min(ratio))
        elif columns / rows > max(ratio):
            width = round(rows * max(ratio))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def forward(self, img: Any) -> Any:
        """A part of the image in the wanted size."""
        place = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *place, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(e, 4) for e in each) for each in (self.scale, self.ratio))
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


def _range(given: Any, name: str, middle: float, low: float, high: float) -> tuple[float, float]:
    """Both ends, of a number for how far they are from the middle, or as they are given."""
    if isinstance(given, numbers.Number):
        if given < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        given = (max(middle - given, low), middle + given)  # type: ignore[operator]
    if len(given) != 2 or not low <= given[0] <= given[1] <= high:
        raise ValueError(f"{name} values should be between {low} and {high}, but got {given}.")
    return float(given[0]), float(given[1])


class RandomRotation(Module):
    """Turned by an angle of (-degrees, degrees), or of the range given; see `functional.rotate`."""

    def __init__(
        self, degrees: Any, interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
        expand: bool = False, center: Sequence[float] | None = None, fill: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.degrees = list(_range(degrees, "degrees", 0.0, -math.inf, math.inf))
        self.interpolation = F.as_interpolation(interpolation)
        self.expand, self.center, self.fill = expand, center, fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return degrees[0] + _drawn(1)[0] * (degrees[1] - degrees[0])

    def forward(self, img: Any) -> Any:
        """The image, turned."""
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        fill = "" if self.fill is None else f", fill={self.fill}"
        return (f"{type(self).__name__}(degrees={self.degrees}, interpolation="
                f"{self.interpolation.value}, expand={self.expand}{center}{fill})")  # fmt: skip


class ColorJitter(Module):
    """Brightness, contrast, saturation and hue changed by random factors, in random order."""

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        infinity = math.inf
        self.brightness = _changing(_range(brightness, "brightness", 1.0, 0.0, infinity), 1.0)
        self.contrast = _changing(_range(contrast, "contrast", 1.0, 0.0, infinity), 1.0)
        self.saturation = _changing(_range(saturation, "saturation", 1.0, 0.0, infinity), 1.0)
        self.hue = _changing(_range(hue, "hue", 0.0, -0.5, 0.5), 0.0)

    def forward(self, img: Any) -> Any:
        """The image in other colours."""
        changes = (
            (F.adjust_brightness, self.brightness), (F.adjust_contrast, self.contrast),
            (F.adjust_saturation, self.saturation), (F.adjust_hue, self.hue),
        )  # fmt: skip
        drawn = _drawn(8)
        for at in sorted(range(4), key=lambda at: drawn[4 + at]):
            change, limits = changes[at]
            if limits is not None:
                img = change(img, limits[0] + drawn[at] * (limits[1] - limits[0]))
        return img

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
                f"saturation={self.saturation}, hue={self.hue})")  # fmt: skip


def _changing(limits: tuple[float, float], neutral: float) -> tuple[float, float] | None:
    return None if limits == (neutral, neutral) else limits


class RandomErasing(Module):
    """A random rectangle of a tensor set to `value` ("random": to normal numbers), with
    probability `p`; `scale` are shares of the area, `ratio` heights by widths.
    """

    def __init__(
        self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3), value: Any = 0, inplace: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        self.p, self.scale, self.ratio = p, scale, ratio
        self.value, self.inplace = value, inplace

    def forward(self, img: Any) -> Any:
        """The tensor, mostly without a rectangle."""
        if not _chance(self.p):
            return img
        channels, rows, columns = F.get_dimensions(img)
        logs = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(10):
            share, shape, down, right = _drawn(4)
            area = rows * columns * (self.scale[0] + share * (self.scale[1] - self.scale[0]))
            aspect = math.exp(logs[0] + shape * (logs[1] - logs[0]))
            height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if height < rows and width < columns:
                top, left = int(down * (rows - height + 1)), int(right * (columns - width + 1))
                value = self._value(img, channels, height, width)
                return F.erase(img, top, left, height, width, value, self.inplace)
        return img

    def _value(self, img: Tensor, channels: int, height: int, width: int) -> Any:
        if self.value == "random":
            return randn(channels, height, width).to(img)
        if isinstance(self.value, numbers.Number):
            return self.value
        if len(self.value) not in (1, channels):
            raise ValueError("If value is a sequence, it should have either a single value or "
                             f"{channels} (number of input channels)")  # fmt: skip
        return img.new_tensor(self.value).reshape(-1, 1, 1)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, "
                f"value={self.value}, inplace={self.inplace})")  # fmt: skip


class RandomApply(Module):
    """All of `transforms` with probability `p`, or none."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        """The image, or what the transforms make of it."""
        if _chance(self.p):
            for transform in self.transforms:
                img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, self.transforms, f"p={self.p}")


class RandomChoice:
    """One of `transforms`, of probabilities in proportion to `p`."""

    def __init__(
        self, transforms: Sequence[Callable[[Any], Any]], p: Sequence[float] | None = None
    ) -> None:
        self.transforms, self.p = transforms, p
        if p is not None and len(p) != len(transforms):
            raise ValueError(f"{len(p)} probabilities for {len(transforms)} transforms")

    def __call__(self, img: Any) -> Any:
        shares = self.p or [1.0] * len(self.transforms)
        left = _drawn(1)[0] * sum(shares)
        for transform, share in zip(self.transforms, shares, strict=True):
            left -= share
            if left < 0:
                return transform(img)
        return self.transforms[-1](img)

    def __repr__(self) -> str:
        return f"{listed(type(self).__name__, self.transforms)}(p={self.p})"
