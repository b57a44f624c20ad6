"""What rewritten code calls: with values that Python knows, Python's own meaning.

Where a value is a traced tensor, a branch or loop of the graph is recorded.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.dtypes import float32
from . import branches, loops
from .decisions import all_of, any_of, decision, is_traced
from .iterables import Turns, larger_of, tensors_over
from .numbers import as_number, computed, is_number, stands_for_number
from .statements import Branch, Loop

_Thunk = Callable[[], Any]


def _is_true(value: Any) -> bool:
    """The truth of a value that Python knows, which the recorder hears of."""
    if state.recorder is not None:
        state.recorder.truth(value)
    return bool(value)


# --- operators -----------------------------------------------------------------------------------


def and_(first: Any, *others: _Thunk) -> Any:
    """`first and others[0]() and ...`."""
    value = first
    for at, each in enumerate(others):
        if is_traced(value):
            return all_of(value, lambda at=at: and_(others[at](), *others[at + 1 :]))
        if not _is_true(value):
            return value
        value = each()
    return value


def or_(first: Any, *others: _Thunk) -> Any:
    """`first or others[0]() or ...`."""
    value = first
    for at, each in enumerate(others):
        if is_traced(value):
            return any_of(value, lambda at=at: or_(others[at](), *others[at + 1 :]))
        if _is_true(value):
            return value
        value = each()
    return value


def not_(value: Any) -> Any:
    """`not value`."""
    return ~decision(value) if is_traced(value) else not _is_true(value)


def choice(test: Any, then: _Thunk, otherwise: _Thunk) -> Any:
    """`then() if test else otherwise()`."""
    if is_traced(test):
        return branches.expression(test, then, otherwise)
    return then() if _is_true(test) else otherwise()


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args)`, where builtin functions that Python knows are given tensors."""
    if function in (builtins.max, builtins.min) and len(args) > 1 and not kwargs:
        if any(map(is_traced, args)):
            return larger_of(args, function is builtins.max)
    elif any(map(is_traced, args)) and not kwargs:
        found = tensors_over(function, args)
        if found is not None:
            return found
    if len(args) == 1 and stands_for_number(args[0]) and not kwargs:
        found = _of_number(function, args[0])
        if found is not None:
            return as_number(found)
    if state.recorder is not None:
        function = state.recorder.call(function, (*args, *kwargs.values()))
    return function(*args, **kwargs)


def _of_number(function: Any, number: Tensor) -> Any:
    """What builtin functions give of a tensor that stands for a number."""
    if function is builtins.abs:
        return number.abs()
    if function is builtins.int and number._type.dtype.kind in ("int", "uint"):
        return number
    if function is builtins.float and number._type.dtype.kind != "complex":
        return number if number._type.dtype.is_floating_point else number.to(float32)
    return None


# --- statements ----------------------------------------------------------------------------------


def branch(test: Any, then: _Thunk | None, otherwise: _Thunk | None, spec: Branch) -> None:
    """An `if` whose branches come to their end."""
    if is_traced(test):
        branches.statement(test, then, otherwise, spec)
        return
    chosen = then if _is_true(test) else otherwise
    if chosen is not None:
        chosen()


def result(test: Any, then: _Thunk, otherwise: _Thunk, spec: Branch) -> Any:
    """An `if` whose branches both return, and what is returned."""
    if is_traced(test):
        return branches.returned(test, then, otherwise, spec)
    return then() if _is_true(test) else otherwise()


def while_(test: _Thunk, body: _Thunk, spec: Loop) -> None:
    """A `while` loop. It begins in Python, and goes on in the graph once a tensor decides."""
    variables = loops.Variables(spec.bound, (test, body))
    while True:
        if spec.breaks:
            flag = variables.get(spec.breaks)
            if is_traced(flag):
                loops.run(variables, spec, body, test=test)
                return
            if flag:
                return
        decides = test()
        if is_traced(decides):
            loops.run(variables, spec, body, test=test)
            return
        if not _is_true(decides):
            return
        body()


class For:
    """A `for` loop: over Python's own things it runs `rest`, over tensors it has run already."""

    def __init__(self, over: Any, assign: Callable[[Any], None], body: _Thunk, spec: Loop) -> None:
        self.assign, self.body, self.spec = assign, body, spec
        self.over = over
        self.turns = 0
        self.rest: Iterable[Any] = over
        self.variables: Any = None
        if is_traced(over):
            self.over = over = Turns.of_rows(over)
        if type(over) is Turns:
            self.rest = ()
            self._run(over)
        elif spec.breaks:
            self.variables = loops.Variables(spec.bound, (assign, body))

    def _run(self, turns: Turns) -> None:
        variables = loops.Variables(self.spec.bound, (self.assign, self.body))
        loops.run(variables, self.spec, self.body, turns=turns, assign=self.assign)

    def turn(self, value: Any) -> bool:
        """Run one turn; true where it was the last."""
        if self.variables is None:
            self.assign(value)
            self.body()
            return False
        flag = self.variables.get(self.spec.breaks)
        self.turns += 1
        if is_traced(flag):
            self._guarded(value, flag)
            return False
        self.assign(value)
        self.body()
        flag = self.variables.get(self.spec.breaks)
        if is_traced(flag) and type(self.over) is range:
            if len(self.over) > self.turns:
                self._run(Turns.of_range(self.over[self.turns :]))
            return True
        return flag is True

    def _guarded(self, value: Any, flag: Tensor) -> None:
        """A turn that a tensor may have left the loop before."""

        def run() -> None:
            self.assign(value)
            self.body()

        spec = Branch(self.spec.bound, self.spec.carried, self.spec.header, (0, 0))
        branches.turn(not_(flag), run, self.variables, spec)


__all__ = [
    "For", "and_", "branch", "call", "choice", "computed", "is_number", "not_", "or_", "result",
    "while_",
]  # fmt: skip
