"""First values are made at once, also where a graph is built up front."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.eager_context import current_context
from ..core.state import state

_F = TypeVar("_F", bound=Callable[..., Any])


def making(init: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` that makes first values at once, also where a graph is built up front."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if state.context is None:
            init(self, *args, **kwargs)
            return
        context = current_context()
        with context.making_state():
            init(self, *args, **kwargs)
        context.made(self)

    return __init__


def at_once(method: _F) -> _F:
    """A method that gives first values at once, also where a graph is built up front."""

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with current_context().making_state():
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]
