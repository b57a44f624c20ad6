"""What rewritten code calls: with values that Python knows, Python's own meaning.

Where a value is a traced tensor, a branch or loop of the graph is recorded.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.carried_number import TYPES, CarriedNumber, kind_of, number_kind
from ..core.state import state
from ..core.tensor import Tensor
from . import branches, loops
from .decisions import all_of, any_of, decision, is_traced
from .iterables import Turns, larger_of, turns_of
from .statements import Branch, Loop

_Thunk = Callable[[], Any]


def _is_true(value: Any) -> bool:
    """The truth of a value that Python knows, which the recorder hears of."""
    if state.recorder is not None:
        state.recorder.truth(value)
    return bool(value)


# --- operators -----------------------------------------------------------------------------------


def and_(first: Any, *others: _Thunk) -> Any:
    """`first and others[0]() and ...`, of which only the truth is asked."""
    value = first
    for at, each in enumerate(others):
        if is_traced(value):
            found = all_of(value, lambda at=at: and_(others[at](), *others[at + 1 :]))
            return CarriedNumber(found) if carries(value) else found
        if not _is_true(value):
            return value
        value = each()
    return value


def or_(first: Any, *others: _Thunk) -> Any:
    """`first or others[0]() or ...`, of which only the truth is asked."""
    value = first
    for at, each in enumerate(others):
        if is_traced(value):
            found = any_of(value, lambda at=at: or_(others[at](), *others[at + 1 :]))
            return CarriedNumber(found) if carries(value) else found
        if _is_true(value):
            return value
        value = each()
    return value


def not_(value: Any) -> Any:
    """`not value`."""
    return CarriedNumber(~decision(value)) if is_traced(value) else not _is_true(value)


def choice(test: Any, then: _Thunk, otherwise: _Thunk) -> Any:
    """`then() if test else otherwise()`."""
    if is_traced(test):
        return branches.expression(test, then, otherwise)
    return then() if _is_true(test) else otherwise()


def either(first: Any, *others: _Thunk) -> Any:
    """`first or others[0]() or ...` as a value: the first that is true, else the last."""
    return _chosen(first, others, lambda value, rest: choice(value, lambda: value, rest))


def last_of(first: Any, *others: _Thunk) -> Any:
    """`first and others[0]() and ...` as a value: the first that is false, else the last."""
    return _chosen(first, others, lambda value, rest: choice(value, rest, lambda: value))


def _chosen(value: Any, others: Sequence[_Thunk], choose: Callable[[Any, _Thunk], Any]) -> Any:
    if not others:
        return value
    return choose(value, lambda: _chosen(others[0](), others[1:], choose))


def same(one: Any, other: Any) -> Any:
    """`one is other`, where one of them is written out as True or False."""
    number, known = (one, other) if type(one) is CarriedNumber else (other, one)
    if type(number) is not CarriedNumber or number.kind is not type(known):
        return one is other
    return number == known


def contains(found: Any, container: Any) -> Any:
    """`found in container`, of a number that the graph decides and a container of numbers."""
    if isinstance(container, range):
        return _in_range(found, container)
    if not isinstance(container, (list, tuple, set, frozenset, dict)):
        return found in container
    made: Any = False
    for each in call(list, container):  # which the recorder hears of
        if isinstance(each, np.generic):
            each = each.item()
        if isinstance(each, Tensor):
            made = made | CarriedNumber(decision(each == found))
        elif number_kind(each) is not None:
            made = made | (found == each)
    return made


def _in_range(found: CarriedNumber, numbers: range) -> Any:
    if not numbers:
        return False
    least, most = sorted((numbers[0], numbers[-1]))
    in_steps = (found - numbers[0]) % numbers.step == 0
    return (found >= least) & (found <= most) & in_steps


def carries(value: Any) -> bool:
    """Whether a value is a number that a branch or loop of the graph decides."""
    return type(value) is CarriedNumber


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args)`, where builtin functions that Python knows are given tensors."""
    if any(map(is_traced, args)) and not kwargs:
        if function in (builtins.max, builtins.min) and len(args) > 1:
            return larger_of(args, function is builtins.max)
        if function in TYPES and len(args) == 1:
            return _number_of(args[0]).converted(function)
        if function is builtins.type and len(args) == 1 and type(args[0]) is CarriedNumber:
            return args[0].kind
    if state.recorder is not None:
        function = state.recorder.call(function, (*args, *kwargs.values()))
    return function(*args, **kwargs)


def _number_of(value: Any) -> CarriedNumber:
    """What Python's conversions of a traced tensor give: a number without a history."""
    if type(value) is CarriedNumber:
        return value
    if value._type.numel != 1:
        raise RuntimeError(
            f"a Tensor with {value._type.numel} elements cannot be converted to Scalar"
        )
    single = value.detach().reshape(())
    return CarriedNumber(single.to(TYPES[kind_of(single._type.dtype)]))


def over(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`range`, `enumerate`, `zip` or `reversed` that a `for` loop goes over."""
    if function in _ITERABLES and not kwargs.keys() - {"strict"}:
        found = turns_of(function, args, **kwargs)
        if found is not None:
            return found
    return call(function, *args, **kwargs)


_ITERABLES = (builtins.range, builtins.enumerate, builtins.zip, builtins.reversed)


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
    "For", "and_", "branch", "call", "carries", "choice", "contains", "either", "last_of", "not_",
    "or_", "over", "result", "same", "while_",
]  # fmt: skip
