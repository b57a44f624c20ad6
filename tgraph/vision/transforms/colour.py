"""Transforms of colours, of an image of Pillow's or a tensor of shape (..., C, H, W)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ..pillow import image_module, is_image


def _enhance(img: Any, kind: str, factor: float) -> Any:
    from PIL import ImageEnhance

    return getattr(ImageEnhance, kind)(img).enhance(factor)


def _blend(img: Tensor, other: Any, factor: float) -> Tensor:
    if factor < 0:
        raise ValueError(f"the factor of a tensor's colours ({factor}) is not non-negative.")
    top = 1.0 if img.is_floating_point() else 255.0
    found: Tensor = (factor * img + (1 - factor) * other).clamp(0, top).to(img.dtype)
    return found


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Between black (0), the image (1) and brighter ones."""
    if is_image(img):
        return _enhance(img, "Brightness", brightness_factor)
    return _blend(img, img * 0, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Between grey (0), the image (1) and ones of more contrast."""
    if is_image(img):
        return _enhance(img, "Contrast", contrast_factor)
    grey = rgb_to_grayscale(img) if img.shape[-3] == 3 else img
    values = grey if img.is_floating_point() else grey.float()
    return _blend(img, values.mean((-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Between an image in grey (0), itself (1) and ones of stronger colours."""
    if is_image(img):
        return _enhance(img, "Color", saturation_factor)
    return img if img.shape[-3] == 1 else _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Colours turned by a share of the circle, in [-0.5, 0.5]; of an image of Pillow's."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if not is_image(img):
        raise TypeError(f"adjust_hue takes images of Pillow's, got {type(img).__name__}: let it "
                        "come before ToTensor()")  # fmt: skip
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = np.array(hue, np.uint8) + np.uint8(int(hue_factor * 255) % 256)  # modulo 256
    module = image_module()
    return module.merge("HSV", (module.fromarray(turned), saturation, value)).convert(img.mode)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Grey by the weights of ITU-R 601-2: 0.2989 R + 0.587 G + 0.114 B."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels should be either 1 or 3, got {num_output_channels}")
    if is_image(img):
        grey = img.convert("L")
        return grey if num_output_channels == 1 else image_module().merge("RGB", [grey] * 3)
    if img.ndim < 3 or img.shape[-3] not in (1, 3):
        raise TypeError(f"a tensor (..., C, H, W) of 1 or 3 channels is expected, got {img.shape}")
    if img.shape[-3] == 1:
        found = img.clone()
    else:
        red, green, blue = (img[..., at : at + 1, :, :] for at in range(3))
        found = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype)
    return found if num_output_channels == 1 else found.expand(*img.shape[:-3], 3, -1, -1)


to_grayscale = rgb_to_grayscale
