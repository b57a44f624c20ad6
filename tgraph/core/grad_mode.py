"""Switching the recording of gradients off and on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .state import state

_F = TypeVar("_F", bound=Callable[..., Any])


def _switch(mode: bool) -> None:
    if state.context is not None and state.grad_enabled and not mode:
        state.context.gradients_off()
    state.grad_enabled = mode


class unrecorded:
    """`no_grad` for what is no part of the user's program."""

    _previous: bool

    def __enter__(self) -> None:
        self._previous = state.grad_enabled
        state.grad_enabled = False

    def __exit__(self, *error: object) -> None:
        state.grad_enabled = self._previous


class _GradMode:
    """A context manager, which also decorates functions, that sets the gradient mode."""

    mode = True

    def __init__(self) -> None:
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(state.grad_enabled)
        _switch(self.mode)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state.grad_enabled = self._previous.pop()

    def __call__(self, function: _F) -> _F:
        mode = self.mode

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            previous = state.grad_enabled
            _switch(mode)
            try:
                return function(*args, **kwargs)
            finally:
                state.grad_enabled = previous

        return wrapped  # type: ignore[return-value]


class no_grad(_GradMode):
    """Record nothing for gradients inside the block, or inside the decorated function.

    >>> import tgraph as tg
    >>> x = tg.ones(2, requires_grad=True)
    >>> with tg.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    mode = False

    def __new__(cls, function: Any = None) -> Any:  # `@no_grad` without parentheses
        self = object.__new__(cls)
        if function is None:
            return self
        self.__init__()  # type: ignore[misc]
        return self(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Record for gradients inside the block, also within `no_grad`."""

    mode = True


class inference_mode(_GradMode):
    """Like `no_grad`; `inference_mode(False)` leaves recording on."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = not mode


class set_grad_enabled(_GradMode):
    """Set the gradient mode at once; as a context manager, put it back at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        self._before = state.grad_enabled
        _switch(mode)

    def __enter__(self) -> None:
        self._previous.append(self._before)
        _switch(self.mode)

    def __call__(self, function: _F) -> _F:
        state.grad_enabled = self._before
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now."""
    return state.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Always False: inference mode is `no_grad` here, its tensors are ordinary ones."""
    return False
