"""Reverse-mode gradients: `backward`, `grad`, custom `Function`s, and switching recording off."""

from ..core.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .api import backward, grad
from .function import Function

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
