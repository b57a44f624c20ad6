"""`torch.compiler`: what programs ask it for. Compiling is `tgraph.compile`."""

from __future__ import annotations

from typing import Any

from ..compiled.compile import compile
from ..core.eager_context import current_context

__all__ = [
    "allow_in_graph",
    "compile",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "reset",
]


def is_compiling() -> bool:
    """Whether a function is being traced."""
    return bool(current_context().tracing)


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """False: nothing is exported."""
    return False


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """The function itself: inside of a compiled function it is traced all the same."""
    return fn if callable(fn) else lambda function: function


def allow_in_graph(fn: Any) -> Any:
    """The function itself: it is traced like any other."""
    return fn


def reset() -> None:
    """Nothing: compiled functions hold their own plans."""
