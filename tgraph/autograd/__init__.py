"""Reverse-mode gradients: `backward`, `grad`, custom `Function`s, and switching recording off."""

import importlib as _importlib
from typing import Any as _Any

from ..core.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .api import backward, grad
from .function import Function
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "enable_grad",
    "functional",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]


def __getattr__(name: str) -> _Any:
    if name not in ("functional", "grad_mode"):  # above what imports this package
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _importlib.import_module(f".{name}", __name__)
