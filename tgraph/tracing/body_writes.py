"""Bodies of branches and loops must leave Python as it was: they are traced once.

In eager code a body runs once for each turn, or not at all. What it changed of Python would be
changed once by a trace: so it is refused.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import (
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from ..compiler.ir import Node
from ..core.provenance import is_internal, user_site
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from .recording.questions import is_iterator
from .recording.watched_code import is_constant_class, is_constant_code

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type})
_MANY = 100_000
_MANY_BYTES = 1 << 24
_EMPTY = object()


class Watch:
    """What `functions` reach, which `check` finds to be as it was, or raises TraceError."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._before = _held(functions)
        self._changed = _changed()

    def check(self) -> None:
        for holder, path, contents in self._before:
            if not _same(contents, _contents(holder)):
                raise _refusal(f"changes {path}")
        for key, path in _changed().items():
            if key not in self._changed:
                raise _refusal(f"changes {path}")


@contextmanager
def refusing_writes() -> Iterator[None]:
    """TraceError where what happens inside, the gradient of a body, writes into Python objects."""
    if state.recorder is None:
        yield
        return
    with state.recorder.undoing() as first_write:
        yield
        what = first_write()
    if what:
        raise TraceError(
            f"the gradient of the body of a branch or loop writes {what}, in a hook or the "
            "backward of an autograd.Function. Eager code does so once for each turn and a trace "
            "only once. Write the branch or loop in Python, or do that behind it."
        )


def refuse_attributes(results: Sequence[Tensor]) -> None:
    """TraceError where results of a body have attributes that the user gave them."""
    for each in results:
        for name in each.__dict__:
            raise _refusal(f"gives a tensor with the attribute `{name}`")


def _changed() -> dict[int, str]:
    return {} if state.recorder is None else state.recorder.changed()


def _refusal(what: str) -> TraceError:
    return TraceError(
        f"the body of a branch or loop {what}, at {user_site()}, which eager code does once for "
        "each turn and a trace only once. Return it as a part of the state or of the result (or "
        "keep it in a variable, where Python is rewritten), or write the loop in Python."
    )


def _held(functions: Sequence[Any]) -> list[tuple[Any, str, Any]]:
    """Each thing that can be written into and that the functions reach, and what it holds."""
    found: list[tuple[Any, str, Any]] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, str]] = [
        (each, getattr(each, "__name__", "the body")) for each in functions
    ]
    while waiting and len(seen) < _MANY:
        value, path = waiting.pop()
        if type(value) in _PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if is_iterator(value):
            raise _refusal(f"may take from the iterator {path}")
        if isinstance(value, (ModuleType, Node, type)):
            continue
        contents = _contents(value)
        if contents is not None:
            found.append((value, path, contents))
        waiting += _inside(value, path, contents)
    return found


def _contents(value: Any) -> Any:
    """What a thing holds that can be written into, else None."""
    if type(value) is CellType:
        try:
            return (value.cell_contents,)
        except ValueError:
            return (_EMPTY,)
    if type(value) is _Globals:
        return value.contents
    if isinstance(value, dict):
        return [part for pair in dict.items(value) for part in pair]
    if isinstance(value, (list, deque)):
        return list(value)
    if isinstance(value, (set, bytearray)):
        return sorted(value, key=id) if isinstance(value, set) else bytes(value)
    if isinstance(value, np.ndarray):
        return (
            value.tobytes() if value.nbytes <= _MANY_BYTES and not value.dtype.hasobject else None
        )
    if type(value) in (FunctionType, MethodType, functools.partial):
        return None
    if is_constant_class(type(value)) and type(value) is not SimpleNamespace:
        return None
    own = getattr(value, "__dict__", None)
    found = [part for pair in own.items() for part in pair] if type(own) is dict else []
    if not isinstance(value, Tensor):
        found += [getattr(value, name, _EMPTY) for name in _slots(type(value))]
    return found


@functools.cache
def _slots(class_: type) -> tuple[str, ...]:
    """The attributes that objects of a class have without a dictionary."""
    of_all = [vars(each) for each in class_.__mro__]
    return tuple(
        name for own in of_all for name, each in own.items() if type(each) is MemberDescriptorType
    )


class _Globals:
    """The globals that a function of the user's names."""

    def __init__(self, function: FunctionType) -> None:
        self.names = [each for each in function.__code__.co_names if each in function.__globals__]
        self.all = function.__globals__

    @property
    def contents(self) -> list[Any]:
        return [self.all.get(each, _EMPTY) for each in self.names]


def _inside(value: Any, path: str, contents: Any) -> Iterator[tuple[Any, str]]:
    if type(value) is FunctionType:
        if is_constant_code(value.__code__) or is_internal(value.__code__.co_filename):
            return
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield cell, f"the variable {name}"
        yield _Globals(value), f"a global variable of {path}"
        for each in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            yield each, f"a default of {path}"
    elif type(value) is MethodType:
        yield value.__func__, path
        yield value.__self__, f"the object of {path}"
    elif type(value) is functools.partial:
        for each in (value.func, *value.args, *value.keywords.values()):
            yield each, path
    elif isinstance(value, (tuple, frozenset)):
        for each in value:
            yield each, path
    elif contents is not None and type(contents) is not bytes:
        for each in contents:
            yield each, path


def _same(one: Any, other: Any) -> bool:
    if type(one) is bytes:
        return bool(one == other)
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
