"""What registering a hook gives, where PyTorch has it."""

from ..autograd.api import RemovableHandle

__all__ = ["RemovableHandle"]
