"""Builtin functions and methods of which it is known what they read."""

from __future__ import annotations

import functools
import gc
import operator
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...compiler.ir import Node
from ...core.determinism import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled,
)
from ...core.provenance import user_site
from ...core.settings import get_num_interop_threads, is_warn_always_enabled
from ...core.tensor import Tensor
from ...core.trace_state import TraceError
from ...ops.generator import initial_seed
from ...runtime.cuda.precision import get_precision
from ...runtime.parallel import get_num_threads
from .guards import is_a
from .questions import CONTAINERS, is_builtin, own_attributes
from .snapshots import NamesSnapshot
from .watched_code import is_constant_class


def _getattr(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    def read(obj: Any, name: str, *default: Any) -> Any:
        try:
            return recorder.attribute(obj, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    return read if len(arguments) > 1 and is_a(arguments[1], str) else None


def _hasattr(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    def has(obj: Any, name: str) -> bool:
        try:
            recorder.attribute(obj, name)
        except AttributeError:
            return False
        return True

    return has if len(arguments) > 1 and is_a(arguments[1], str) else None


def _len(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    value = arguments[0] if arguments else None
    if is_a(value, Tensor):
        recorder._facts(value)
        # Python's own wants an int, which an open size is not.
        return type(value).__len__ if type(value._value) is Node else None
    path = recorder._paths.get(id(value))
    if path is not None and is_a(value, CONTAINERS) and is_builtin(value):
        if not is_a(value, (tuple, frozenset)):
            recorder._length(value, path)
    elif path is not None:
        recorder.implicit(value, path, "__len__")
    return None


def _isinstance(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    value, kinds = arguments if len(arguments) == 2 else (None, None)
    path = recorder._paths.get(id(value))
    if path is None:
        return None
    if any(
        type(each) is not type for each in classes_in(kinds)
    ):  # of a metaclass, which may ask more
        recorder._asked("isinstance", value, kinds, f"isinstance({path}, ...) changed")
    if not is_a(value, (type, ModuleType, FunctionType)):
        recorder._type_of(value, path)
    return None


def _issubclass(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    class_, kinds = arguments if len(arguments) == 2 else (None, None)
    if is_a(class_, type) and not all(map(is_constant_class, (class_, *classes_in(kinds)))):
        recorder._asked("issubclass", class_, kinds, f"issubclass({class_.__name__}, ...) changed")
    return None


def classes_in(kinds: Any) -> Iterator[type]:
    """The classes of a second argument of isinstance."""
    if is_a(kinds, type):
        yield kinds
    for each in kinds if is_a(kinds, tuple) else getattr(kinds, "__args__", ()):
        yield from classes_in(each)


def _vars(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) != 1:
        return None
    if is_a(arguments[0], type):
        recorder._whole_class(arguments[0])
        return None
    if is_a(arguments[0], Tensor):
        path = recorder.names.get(id(arguments[0]), "tensor")
        recorder.attributes_of_tensor(arguments[0], path)
        return None
    path = recorder._paths.get(id(arguments[0]))
    if path is not None and own_attributes(arguments[0]) is not None:
        recorder._dictionary(arguments[0], path)
    return None


def _stored(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) > 1 and is_a(arguments[1], str):
        recorder.store_attribute(arguments[0], arguments[1])
    return None


def _set_item(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 3:
        recorder.store_item(arguments[0], arguments[1])
    return None


def _delete_item(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 2:
        recorder.delete_item(arguments[0], arguments[1])
    return None


def _iterated(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    for each in arguments[:1]:
        recorder.iterate(each)
    return None


def _globals(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    frame: Any = sys._getframe(4)
    recorder.see(frame.f_globals, "globals()")
    recorder._snapshot(frame.f_globals, "globals()", NamesSnapshot).watch_all()
    return None


def _refuse_text(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    if arguments and is_a(arguments[0], (str, bytes, CodeType)):
        raise TraceError(
            f"a compiled function runs code of a string, at {user_site()}, of which it is not "
            "known what it reads. Call it outside of the compiled function."
        )
    return None


def _nothing(recorder: Any, arguments: tuple[Any, ...]) -> Any:
    """Reads no more than what is known of its arguments already."""
    return None


SPECIAL: dict[Any, Callable[[Any, tuple[Any, ...]], Any]] = {
    getattr: _getattr, hasattr: _hasattr, len: _len, isinstance: _isinstance, vars: _vars,
    setattr: _stored, delattr: _stored, operator.setitem: _set_item,
    operator.delitem: _delete_item, iter: _iterated, next: _iterated, globals: _globals,
    eval: _refuse_text, exec: _refuse_text, id: _nothing, callable: _nothing, locals: _nothing,
    issubclass: _issubclass, __build_class__: _nothing,
}  # fmt: skip
# Functions of constant code that tell of its state; asked again at each call.
_GETTERS: frozenset[Any] = frozenset({
    sys.getrecursionlimit, sys.getswitchinterval, sys.gettrace, sys.getprofile, gc.isenabled,
    gc.get_threshold, threading.get_ident, get_num_threads, get_num_interop_threads,
    get_precision, is_warn_always_enabled, are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled, get_deterministic_debug_mode, initial_seed,
})  # fmt: skip
CACHED = type(functools.cache(len))
ITEM_METHODS = frozenset({"get", "__getitem__", "setdefault", "pop", "__delitem__"})
LENGTH_METHODS = frozenset({"__len__"})
# They write, and what they leave behind does not depend on what was there (see `snapshots`).
WRITING_METHODS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend"}),
    deque: frozenset({"append", "extend", "appendleft", "extendleft"}),
    set: frozenset({"add", "update", "discard"}),
    dict: frozenset({"__setitem__"}),
}


def is_getter(function: Any) -> bool:
    """Whether a function tells of its module's state: `decimal` is not imported for that."""
    if function in _GETTERS:
        return True
    return function.__name__ == "getcontext" and function.__module__ == "decimal"


def family_of(value: Any) -> type:
    return next((each for each in WRITING_METHODS if is_a(value, each)), object)
