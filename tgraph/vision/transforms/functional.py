"""Transforms as functions of an image of Pillow's or a tensor of shape (..., C, H, W)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...nn import functional as F
from ...ops.creation_options import get_default_dtype
from ...ops.from_data import from_numpy, tensor
from ...runtime.dtypes import DType, float32, uint8
from ..pillow import image_module, is_image
from .colour import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    rgb_to_grayscale,
    to_grayscale,
)

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation",
    "center_crop", "convert_image_dtype", "crop", "erase", "get_dimensions", "get_image_size",
    "hflip", "normalize", "pad", "pil_to_tensor", "resize", "resized_crop", "rgb_to_grayscale",
    "rotate", "to_grayscale", "to_pil_image", "to_tensor", "vflip",
]  # fmt: skip


class InterpolationMode(Enum):
    """How elements between pixels are computed; Pillow's numbers of them are in `PILLOWS`."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


PILLOWS = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4,
           "hamming": 5}  # fmt: skip


def as_interpolation(mode: InterpolationMode | int | str) -> InterpolationMode:
    """A mode, or one by its name or Pillow's number."""
    if isinstance(mode, int):
        return InterpolationMode({number: name for name, number in PILLOWS.items()
                                  if name != "nearest-exact"}[mode])  # fmt: skip
    return InterpolationMode(mode)


def as_pair(size: Any, name: str) -> tuple[int, int]:
    """Height and width, of a number for both or a sequence of one or two."""
    if isinstance(size, numbers.Integral):
        return int(size), int(size)
    if len(size) not in (1, 2):
        raise ValueError(f"{name} is one size or two (h, w), got {size}")
    return int(size[0]), int(size[-1])


def _checked(img: Any, operation: str) -> bool:
    """Whether it is an image of Pillow's; TypeError where it is no tensor either."""
    if is_image(img):
        return True
    if isinstance(img, Tensor) and img.ndim >= 2:
        return False
    raise TypeError(
        f"{operation} takes an image of Pillow's or a tensor (..., H, W), got {type(img).__name__}"
    )


def get_dimensions(img: Any) -> list[int]:
    """Channels, height, width."""
    if _checked(img, "get_dimensions"):
        return [len(img.getbands()), img.height, img.width]
    channels = 1 if img.ndim == 2 else img.shape[-3]
    return [channels, img.shape[-2], img.shape[-1]]


def get_image_size(img: Any) -> list[int]:
    """Width and height."""
    _, height, width = get_dimensions(img)
    return [width, height]


# --- between images, arrays and tensors --------------------------------------------------------


def _pixels(pic: Any) -> np.ndarray:
    """The channels of an image as an array (C, H, W)."""
    array = np.array(pic)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def pil_to_tensor(pic: Any) -> Tensor:
    """The pixels of an image, as they are: (C, H, W), mostly of uint8."""
    if not is_image(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return from_numpy(np.ascontiguousarray(_pixels(pic)))


def to_tensor(pic: Any) -> Tensor:
    """An image, or an array (H, W, C), as a tensor (C, H, W): bytes become floats in [0, 1].

    >>> import numpy as np
    >>> to_tensor(np.array([[0, 51], [102, 255]], np.uint8))
    tensor([[[0.0000, 0.2000],
             [0.4000, 1.0000]]])
    """
    if is_image(pic):
        array = _pixels(pic)
        if pic.mode == "1":
            array = np.uint8(255) * array
    elif isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic[None] if pic.ndim == 2 else pic.transpose(2, 0, 1)
    else:
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    if array.dtype == np.uint8:
        floats = get_default_dtype()
        return from_numpy(np.divide(array, 255, dtype=np.float32, order="C")).to(floats)
    return from_numpy(np.array(array, order="C"))


_MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
_MODES_OF_ONE = {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"}


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """An image of a tensor (C, H, W) or an array (H, W, C); floats are of [0, 1].

    `mode` is one of Pillow's for as many channels, by default grey, "LA", "RGB" or "RGBA".
    """
    if not isinstance(pic, (Tensor, np.ndarray)):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    array = pic.detach().cpu().numpy() if isinstance(pic, Tensor) else pic
    if array.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {array.ndim} dimensions.")
    if array.ndim == 2:
        array = array[:, :, None]
    elif isinstance(pic, Tensor):
        array = array.transpose(1, 2, 0)
    height, width, channels = array.shape
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if array.dtype.kind == "f" and mode != "F":
        array = (array * 255).astype(np.uint8)
    one = _MODES_OF_ONE.get(array.dtype.name)
    modes = _MODES.get(channels, (one,) if one else ())
    if not modes or (channels > 1 and array.dtype != np.uint8):
        raise TypeError(f"Input type {array.dtype} is not supported for {channels} channels")
    if mode not in (None, *modes):
        raise ValueError(f"Incorrect mode ({mode}) supplied: of {channels} channels of "
                         f"{array.dtype} it is one of {modes}")  # fmt: skip
    return image_module().frombytes(mode or modes[0], (width, height), array.tobytes())


def convert_image_dtype(image: Tensor, dtype: DType = float32) -> Tensor:
    """Another dtype, in which the largest integer stands for 1."""
    if image.dtype == dtype:
        return image
    if image.is_floating_point() and dtype.is_floating_point:
        return image.to(dtype)
    if image.is_floating_point():
        if dtype != uint8:
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely")
        return image.mul(255 + 1.0 - 1e-3).to(dtype)
    if image.dtype != uint8:
        raise TypeError(f"convert_image_dtype takes floats and uint8, got {image.dtype}")
    return image.to(dtype).div(255) if dtype.is_floating_point else image.to(dtype)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """(tensor - mean) / std, with a number of each for every channel.

    >>> import tgraph as tg
    >>> normalize(tg.ones(2, 1, 1), [0.5, 0.0], [0.5, 2.0]).flatten()
    tensor([1.0000, 0.5000])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}: ToTensor() comes first")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got {tensor.shape}"
        )
    if 0 in np.ravel(std):
        raise ValueError(f"std has a zero, by which nothing can be divided: {std}")
    shift, scale = _channels(mean, tensor), _channels(std, tensor)
    return tensor.sub_(shift).div_(scale) if inplace else (tensor - shift) / scale


def _channels(values: Any, like: Tensor) -> Tensor:
    return tensor(values, dtype=like.dtype, device=like.device).reshape(-1, 1, 1)


# --- sizes -------------------------------------------------------------------------------------


def resized_size(
    height: int, width: int, size: Any, max_size: int | None
) -> tuple[int, int]:  # fmt: skip
    """What `size` asks for: both sizes, or that of the shorter side."""
    if not isinstance(size, numbers.Integral) and len(size) == 2:
        if max_size is not None:
            raise ValueError("max_size should only be passed if size specifies the length of the "
                             f"smaller edge, got size={size}")  # fmt: skip
        return int(size[0]), int(size[1])
    wanted = int(size if isinstance(size, numbers.Integral) else size[0])
    short, long = sorted((height, width))
    other = int(wanted * long / short)
    if max_size is not None:
        if max_size <= wanted:
            raise ValueError(f"max_size = {max_size} must be strictly greater than the requested "
                             f"size for the smaller edge size = {size}")  # fmt: skip
        if other > max_size:
            wanted, other = int(max_size * wanted / other), max_size
    return (other, wanted) if width <= height else (wanted, other)


def resize(
    img: Any,
    size: Any,
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """An image of another size: (h, w), or the length of its shorter side."""
    mode = as_interpolation(interpolation).value
    is_pillows = _checked(img, "resize")
    _, height, width = get_dimensions(img)
    wanted = resized_size(height, width, size, max_size)
    if wanted == (height, width):
        return img
    if is_pillows:
        return img.resize(wanted[::-1], PILLOWS[mode])
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError(f"resize of a tensor: {mode} is for images of Pillow's")
    smooth = mode in ("bilinear", "bicubic")
    options: dict[str, Any] = (
        {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    )
    batch = img.reshape(-1, *img.shape[-3:]) if img.ndim > 3 else img[(None,) * (4 - img.ndim)]
    found = F.interpolate(batch if img.is_floating_point() else batch.float(), wanted, mode=mode,
                          **options)  # fmt: skip
    return _like(found.reshape(*img.shape[:-2], *wanted), img)


def _like(found: Tensor, img: Tensor) -> Tensor:
    """Floats back in the dtype of an image of integers."""
    if img.is_floating_point():
        return found
    return (
        found.round().clamp(0, 255).to(img.dtype)
        if img.dtype == uint8
        else found.round().to(img.dtype)
    )


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part at a place; zeros where it reaches over the edges."""
    if _checked(img, "crop"):
        return img.crop((left, top, left + width, top + height))
    rows, columns = img.shape[-2:]
    inner = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    over = (max(-left, 0), max(left + width - columns, 0),
            max(-top, 0), max(top + height - rows, 0))  # fmt: skip
    return F.pad(inner, over) if any(over) else inner


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of an image, with zeros around it where it is smaller."""
    height, width = as_pair(output_size, "output_size")
    _, rows, columns = get_dimensions(img)
    more_rows, more_columns = max(height - rows, 0), max(width - columns, 0)
    if more_rows or more_columns:
        around = [more_columns // 2, more_rows // 2, (more_columns + 1) // 2, (more_rows + 1) // 2]
        img = pad(img, around)
        rows, columns = rows + more_rows, columns + more_columns
    top, left = round((rows - height) / 2), round((columns - width) / 2)
    return crop(img, top, left, height, width)


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: Any,
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:  # fmt: skip
    """`crop`, then `resize`."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


_NUMPYS_PADDING = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Pixels around an image: one number, (left and right, top and bottom), or one for each side.

    `padding_mode` is "constant" (with `fill`), "edge", "reflect" or "symmetric".
    """
    sides = [int(padding)] * 4 if isinstance(padding, numbers.Integral) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(sides)} element one"
        )
    left, top, right, bottom = sides if len(sides) == 4 else [sides[0], sides[-1]] * 2
    if padding_mode != "constant" and padding_mode not in _NUMPYS_PADDING:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric, got "
                         f"{padding_mode!r}")  # fmt: skip
    if _checked(img, "pad"):
        if padding_mode == "constant":
            size = (img.width + left + right, img.height + top + bottom)
            found = image_module().new(img.mode, size, _fill_of(img, fill))
            if img.mode == "P":
                found.putpalette(img.getpalette())
            found.paste(img, (left, top))
            return found
        array = np.asarray(img)
        widths = [(top, bottom), (left, right), (0, 0)][: array.ndim]
        return image_module().fromarray(_padded(array, widths, padding_mode))
    if padding_mode == "constant":
        return F.pad(img, (left, right, top, bottom), value=_one(fill))
    rows = _padded(np.arange(img.shape[-2]), [(top, bottom)], padding_mode)
    columns = _padded(np.arange(img.shape[-1]), [(left, right)], padding_mode)
    return img[..., from_numpy(rows).to(img.device), :][..., from_numpy(columns).to(img.device)]


def _padded(array: np.ndarray, widths: Any, mode: str) -> np.ndarray:
    found: np.ndarray = np.pad(array, widths, mode=mode)  # type: ignore[call-overload]
    return found


def _as_list(fill: Any) -> list[Any]:
    return [fill] if isinstance(fill, numbers.Number) else list(fill)


def _one(fill: Any) -> float:
    values = _as_list(fill)
    if len(set(values)) != 1:
        raise ValueError(f"fill of a tensor is one number for all channels, got {fill}")
    return float(values[0])


def _fill_of(img: Any, fill: Any) -> Any:
    """The colour that Pillow wants: a number for each channel."""
    bands = len(img.getbands())
    values = _as_list(fill)
    if len(values) not in (1, bands):
        raise ValueError(f"fill has {len(values)} numbers, an image of mode {img.mode} {bands}")
    if img.mode != "F":
        values = [int(value) for value in values]
    return tuple(values * (bands // len(values))) if bands > 1 else values[0]


# --- other places of pixels --------------------------------------------------------------------


def hflip(img: Any) -> Any:
    """Left and right exchanged."""
    return img.transpose(0) if _checked(img, "hflip") else img.flip(-1)


def vflip(img: Any) -> Any:
    """Top and bottom exchanged."""
    return img.transpose(1) if _checked(img, "vflip") else img.flip(-2)


def rotate(
    img: Any,
    angle: float,
    interpolation: InterpolationMode | int = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """Turned by `angle` degrees counter-clockwise around `center` (x, y), by default the middle.

    `expand` makes the image large enough for all of it; `fill` is what comes into the corners.
    """
    mode = as_interpolation(interpolation).value
    if _checked(img, "rotate"):
        colour = _fill_of(img, 0 if fill is None else fill)
        return img.rotate(angle, PILLOWS[mode], expand, center, fillcolor=colour)
    if mode not in ("nearest", "bilinear"):
        raise ValueError(f"rotate of a tensor: {mode} is for images of Pillow's")
    height, width = img.shape[-2:]
    turn = math.radians(-angle)
    matrix = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    middle = np.array([width / 2, height / 2])
    shift = np.zeros(2) if center is None else np.asarray(center, np.float64) - middle
    rows, columns = (height, width) if not expand else _turned_size(matrix, height, width)
    # Places of the new image relative to its middle, and where they come from, in units of half
    # the old one, as grid_sample counts.
    x, y = np.arange(columns) - (columns - 1) / 2, np.arange(rows) - (rows - 1) / 2
    places = np.stack(np.broadcast_arrays(x, y[:, None]), -1)
    grid = ((places - shift) @ matrix.T + shift) / middle
    return _sampled(img, tensor(grid[None], dtype=float32, device=img.device), mode, fill)


def _turned_size(matrix: np.ndarray, height: int, width: int) -> tuple[int, int]:
    corners = np.array([[sx * width, sy * height] for sx in (-0.5, 0.5) for sy in (-0.5, 0.5)])
    # Rounding errors make no pixel more.
    turned = (corners @ matrix.T + [width / 2, height / 2]).astype(np.float32)
    low = np.floor(np.trunc(turned.min(0) * 1e4) / 1e4)
    high = np.ceil(np.trunc(turned.max(0) * 1e4) / 1e4)
    columns, rows = (high - low).astype(int)
    return int(rows), int(columns)


def _sampled(img: Tensor, grid: Tensor, mode: str, fill: Any) -> Tensor:
    batch = img.reshape(-1, *img.shape[-3:]) if img.ndim > 3 else img[(None,) * (4 - img.ndim)]
    batch = batch if img.is_floating_point() else batch.float()
    grid = grid.to(batch.dtype).expand(batch.shape[0], -1, -1, -1)
    found = F.grid_sample(batch, grid, mode=mode, align_corners=False)
    if fill is not None:
        inside = F.grid_sample(batch[:, :1] * 0 + 1, grid, mode=mode, align_corners=False)
        found = found * inside + (1 - inside) * _channels(fill, batch)
    return _like(found.reshape(*img.shape[:-2], *found.shape[-2:]), img)


def erase(
    img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False
) -> Tensor:  # fmt: skip
    """A tensor whose rectangle at row `i` and column `j` has the value `v`."""
    if not isinstance(img, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}: ToTensor() comes first")
    found = img if inplace else img.clone()
    found[..., i : i + h, j : j + w] = v
    return found
