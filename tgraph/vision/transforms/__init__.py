"""Transforms of images, one behind the other in a `Compose`, by torchvision's names.

They take images of Pillow's, and all but those that make tensors take tensors of shape
(..., C, H, W), too. Random ones draw from tgraph's generator, so that `manual_seed` decides them.
"""

from . import functional
from .fixed import (
    CenterCrop,
    Compose,
    ConvertImageDtype,
    Grayscale,
    Lambda,
    Normalize,
    Pad,
    PILToTensor,
    Resize,
    ToPILImage,
    ToTensor,
)
from .functional import InterpolationMode
from .random import (
    ColorJitter,
    RandomApply,
    RandomChoice,
    RandomCrop,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
)

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "Grayscale", "InterpolationMode",
    "Lambda", "Normalize", "PILToTensor", "Pad", "RandomApply", "RandomChoice", "RandomCrop",
    "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomRotation", "RandomVerticalFlip", "Resize", "ToPILImage", "ToTensor", "functional",
]  # fmt: skip
