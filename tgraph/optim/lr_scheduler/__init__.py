"""Learning rates that change from epoch to epoch.

A scheduler sets `group["lr"]` of its optimizer, when it is made and at every `step()`; a compiled
training step reads it anew at each call. Formulas, names and state are those of PyTorch's
`torch.optim.lr_scheduler`. There is no warning for a scheduler that steps before its optimizer.
"""

from .base import LRScheduler
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cycles import CyclicLR, OneCycleLR
from .factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .several import ChainedScheduler, SequentialLR


class _LRScheduler(LRScheduler):
    """The name that `LRScheduler` had before PyTorch 2."""


__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "_LRScheduler",
]  # fmt: skip
