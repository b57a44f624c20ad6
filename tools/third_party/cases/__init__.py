"""Models and functions of packages that were written for PyTorch.

Each case makes something to call and the arrays to call it with. It runs with PyTorch, and with
`import torch` from tgraph. It must not draw random numbers in the call.
"""

from . import attention, language, science, training, vision
from .registry import CASES

__all__ = ["CASES", "attention", "language", "science", "training", "vision"]
