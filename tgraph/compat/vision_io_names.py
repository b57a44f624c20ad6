"""`torchvision.io`, which libraries import where torchvision is installed: nothing is read here."""

from __future__ import annotations

from ..core.absent import not_here

__all__ = ["decode_image", "read_image", "read_video"]

_WAY_OUT = "Pillow reads images; vision.transforms.functional.pil_to_tensor makes tensors of them"
decode_image = not_here("vision.io.decode_image", _WAY_OUT)
read_image = not_here("vision.io.read_image", _WAY_OUT)
read_video = not_here("vision.io.read_video", "read the frames by another library")
