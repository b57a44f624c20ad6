"""Reverse-mode gradients: `backward`, `grad`, custom `Function`s, and switching recording off."""

import importlib as _importlib
from typing import Any as _Any

from ..core.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .api import backward, grad
from .function import Function
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> _Any:
    # These lie above what imports this package.
    if name in ("functional", "forward_ad", "grad_mode", "graph"):
        return _importlib.import_module(f".{name}", __name__)
    if name in ("gradcheck", "gradgradcheck"):
        module = _importlib.import_module(".gradient_checks", __name__)
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
