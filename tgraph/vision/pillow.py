"""Pillow, which is imported when the first image is read or made."""

from __future__ import annotations

import sys
from typing import Any


def image_module() -> Any:
    """`PIL.Image`; ImportError where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "tgraph.vision reads and makes images with Pillow, which is not installed: "
            "pip install pillow"
        ) from error
    return Image


def is_image(value: Any) -> bool:
    """Whether `value` is an image of Pillow's."""
    module = sys.modules.get("PIL.Image")  # without it nobody has made one
    return module is not None and isinstance(value, module.Image)
