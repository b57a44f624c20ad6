"""`torch.library`: extensions register kernels of other machines by it, which are not run here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Library", "custom_op", "define", "impl", "register_autograd", "register_fake",
           "wrap_triton"]  # fmt: skip


def _kept(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that leaves a function as it is."""
    return lambda function: function


impl = register_fake = register_kernel = impl_abstract = _kept


def custom_op(name: str, function: Any = None, /, **kwargs: Any) -> Any:
    """The function itself, which runs as Python; its `register_...` decorators keep theirs."""

    def marked(function: Any) -> Any:
        for each in ("register_fake", "register_kernel", "register_autograd", "register_vmap"):
            setattr(function, each, _kept)
        return function

    return marked if function is None else marked(function)


def define(*args: Any, **kwargs: Any) -> Any:
    """Nothing: an operator without a kernel cannot be called."""
    return lambda function: function


def register_autograd(*args: Any, **kwargs: Any) -> None:
    """Nothing: gradients of what runs as Python come by themselves."""


def wrap_triton(kernel: Any) -> Any:
    """The kernel."""
    return kernel


class Library:
    """Takes registrations, and leaves functions as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def define(self, *args: Any, **kwargs: Any) -> str:
        """The name that is defined."""
        return str(args[0]).split("(")[0] if args else ""

    def impl(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""
