"""Switching the recording of gradients off and on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .state import state
from .tensor import INFERENCE

_F = TypeVar("_F", bound=Callable[..., Any])


def _switch(mode: bool) -> None:
    if state.context is not None and state.grad_enabled and not mode:
        state.context.gradients_off()
    state.grad_enabled = mode and not state.inference


class recorded:
    """`enable_grad` for what is no part of the user's program: it records in `inference_mode`, too,
    where transforms have gradients."""

    _mode = True
    _previous: bool

    def __enter__(self) -> None:
        self._previous = state.grad_enabled
        state.grad_enabled = self._mode

    def __exit__(self, *error: object) -> None:
        state.grad_enabled = self._previous


class unrecorded(recorded):
    """`no_grad` for what is no part of the user's program."""

    _mode = False


class _Switched:
    """One mode for a block."""

    _previous: bool

    def __init__(self, mode: bool) -> None:
        self._mode = mode

    def __enter__(self) -> None:
        self._previous = state.grad_enabled
        _switch(self._mode)

    def __exit__(self, *error: object) -> None:
        state.grad_enabled = self._previous


def _stepwise(function: Callable[..., Any], mode: Callable[[], Any]) -> Callable[..., Any]:
    """A generator function of which each step runs in `mode`, and who asks for them does not."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step, given = generator.send, None
        while True:
            try:
                with mode():
                    found = step(given)
            except StopIteration as end:
                return end.value
            try:
                given = yield found
                step = generator.send
            except GeneratorExit:
                with mode():
                    generator.close()
                raise
            except BaseException as error:
                step, given = generator.throw, error

    return wrapped


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

    def clone(self) -> Any:
        """Another one that sets the same mode."""
        return type(self)(self.mode)  # type: ignore[call-arg]

    def __call__(self, function: _F) -> _F:
        mode = self.mode
        if inspect.isgeneratorfunction(function):
            return _stepwise(function, lambda: _Switched(mode))  # type: ignore[return-value]

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

    def clone(self) -> Any:
        return type(self)()


class enable_grad(no_grad):
    """Record for gradients inside the block, also within `no_grad`."""

    mode = True


class inference_mode(_GradMode):
    """Record nothing, and know what is made inside: it takes no part in gradients afterwards.

    Tensors made inside (`is_inference()`) may be read anywhere; outside, to write them in place or
    to keep them for a gradient is an error. `inference_mode(False)` leaves recording on.

    >>> import tgraph as tg
    >>> with tg.inference_mode():
    ...     made = tg.ones(2) * 2
    >>> made.is_inference(), made.clone().is_inference()
    (True, False)
    """

    def __new__(cls, mode: Any = True) -> Any:  # `@inference_mode` without parentheses
        self = object.__new__(cls)
        if not callable(mode):
            return self
        self.__init__()  # type: ignore[misc]
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.inference = bool(mode)
        self.mode = not mode
        self._outer: list[bool] = []

    def __enter__(self) -> None:
        self._outer.append(state.inference)
        state.inference = self.inference
        if self.inference:
            INFERENCE.append(None)
        super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        state.inference = self._outer.pop()
        if self.inference:
            INFERENCE.pop()

    def clone(self) -> Any:
        return inference_mode(self.inference)

    def __call__(self, function: _F) -> _F:
        mode = self.inference
        if inspect.isgeneratorfunction(function):
            return _stepwise(function, lambda: inference_mode(mode))  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with inference_mode(mode):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class set_grad_enabled(_GradMode):
    """Set the gradient mode at once; as a context manager, put it back at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
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
    """Whether what is made now is known as made by `inference_mode`.

    >>> import tgraph as tg
    >>> with tg.inference_mode():
    ...     tg.is_inference_mode_enabled()
    True
    """
    return state.inference
