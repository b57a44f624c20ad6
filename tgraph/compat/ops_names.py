"""`torch.ops`: operators of extensions by name. Native libraries are not loaded here."""

from __future__ import annotations

from typing import Any, NoReturn


def load_library(path: Any) -> NoReturn:
    """OSError: a library made for PyTorch cannot be called."""
    raise OSError(f"ops.load_library: {path} is made for PyTorch and cannot be loaded by tgraph")


class _Operator:
    """An operator, or one of its overloads. To call it is an error that names it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Operator:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Operator(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.ops.{self._name}: operators of native extensions are not run by tgraph"
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Operator(name)
