"""The hook at the beginning of a function, by which instrumented code is known."""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FunctionType
from typing import Any

from ...core.state import state


class Enter:
    """At the beginning of `code`; `function` is what it belongs to, where that is known."""

    __slots__ = ("code", "function")

    def __init__(self, code: CodeType, function: FunctionType | None = None) -> None:
        self.code = code
        # Weak, for lines of the user's are told by their code, which is kept for long.
        self.function = None if function is None else weakref.ref(function)

    def __or__(self, _: Any) -> None:
        recorder = state.recorder
        if recorder is not None:
            function = None if self.function is None else self.function()
            recorder.entered(self.code, function, sys._getframe(1).f_globals)


def entering(code: CodeType, function: FunctionType) -> CodeType:
    """The code of `function`, which says so where it begins."""
    original = function.__code__  # equal code, of another function, may be another object
    consts = tuple(
        Enter(original, function) if type(each) is Enter else each for each in code.co_consts
    )
    return code.replace(co_consts=consts)


def is_instrumented(code: CodeType) -> bool:
    return any(type(each) is Enter for each in code.co_consts)


def original_of(code: CodeType) -> CodeType | None:
    """What `code` was before it was given hooks; None where it has none."""
    return next((each.code for each in code.co_consts if type(each) is Enter), None)


def without_hooks(function: Any) -> Any:
    """A function of the traced code as one that runs at every call."""
    if type(function) is not FunctionType or not is_instrumented(function.__code__):
        return function
    entered = next(each for each in function.__code__.co_consts if type(each) is Enter)
    made = FunctionType(
        entered.code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
