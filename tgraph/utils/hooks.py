"""What registering a hook gives, where PyTorch has it."""

from collections.abc import Callable
from typing import Any

from ..autograd.api import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let pickles leave a hook of a tensor out without a warning; returns it.

    >>> @unserializable_hook
    ... def double(gradient):
    ...     return gradient * 2
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
