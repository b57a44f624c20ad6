"""`torch._C`: what of PyTorch's compiled part libraries name that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.device import default_device

__all__ = ["_disabled_torch_function_impl", "_get_default_device", "_log_api_usage_once"]


def _disabled_torch_function_impl(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """The call itself: what a subclass of Tensor sets that changes no function."""
    return func(*args, **(kwargs or {}))


def _get_default_device() -> str:
    """The kind of the device on which new tensors are."""
    return str(default_device().type)


def _log_api_usage_once(event: str) -> None:
    """Nothing: no use is counted."""
