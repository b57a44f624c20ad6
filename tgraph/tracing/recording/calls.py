"""Calls: what is called, and what is handed to code that does not record."""

from __future__ import annotations

import functools
import operator
import os
import weakref
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

from ...compiler.ir.dim import SymInt
from ...core.provenance import user_site
from ...core.tensor import Tensor
from . import world
from .guards import is_a, is_static
from .known_functions import (
    CACHED,
    ITEM_METHODS,
    LENGTH_METHODS,
    SPECIAL,
    WRITING_METHODS,
    family_of,
    is_getter,
)
from .questions import (
    CONTAINERS,
    DICT_VIEWS,
    FAST,
    NUMBERS,
    UNBOUND,
    VIEWS,
    is_data,
    is_iterator,
    is_plain_read,
    is_stand_in,
)
from .snapshots import ABSENT, DequeSnapshot, SetSnapshot
from .stores import Stores
from .watched_code import is_constant_class, is_constant_code, is_of_tgraph


class Calls(Stores):
    """The part of a Recorder that watches calls."""

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What is called instead of `function`, most often itself."""
        kind = type(function)
        if kind is FunctionType:
            self._arm_function(function)
            if is_getter(function):
                self.record(function(), function, "()", f"{function.__name__}()")
            elif function is os.getenv and arguments:
                self._environment(arguments[0])
            elif is_constant_code(function.__code__):
                self._check_world(function, arguments)
                self._hand_over(arguments, is_of_tgraph(function.__module__))
            return function
        if kind is CACHED:
            return self._call_cached(function)
        if kind is MethodType:
            return self._call_method(function, arguments)
        if kind is BuiltinFunctionType or kind is MethodWrapperType:
            return self._call_builtin(function, arguments)
        if kind in UNBOUND and arguments:
            return self._call_unbound(function, arguments)
        if kind is functools.partial:
            self.call(function.func, (*function.args, *arguments, *function.keywords.values()))
            return function
        if is_a(function, type):
            return self._call_class(function, arguments)
        path = self._paths.get(id(function))
        if path is not None and is_a(function, weakref.ReferenceType):
            self.record(function(), function, "()", f"{path}()")
        elif path is not None and callable(function):
            self.implicit_call(function, path)
        self.arm(function)
        self._check_world(function, arguments)
        if is_constant_class(kind):
            self._hand_over(arguments, is_of_tgraph(kind.__module__))
        return function

    def _call_cached(self, function: Any, *bound: Any) -> Any:
        """A function with a cache of its own: asked again at each call, as eager code does."""
        wrapped = function.__wrapped__

        def call(*args: Any, **kwargs: Any) -> Any:
            args = (*bound, *args)
            given = (*args, *kwargs.values())
            if any(map(is_stand_in, given)) or not all(map(self._can_be_held, given)):
                return wrapped(*args, **kwargs)  # not into the cache
            value = function(*args, **kwargs)
            keywords = [f"{name}={self.hold(each)}" for name, each in kwargs.items()]
            operands = ", ".join([*map(self.hold, args), *keywords])
            code = f"{self.hold(function)}({operands})"
            self.record(value, function, "", f"{wrapped.__name__}(...)", code)
            return value

        self.arm(wrapped)
        return call

    def _can_be_held(self, value: Any) -> bool:
        return is_static(value) or self.is_outside(value) or id(value) in self.names

    def _check_world(self, function: Any, arguments: tuple[Any, ...] | None = None) -> None:
        """See `world.check`; `arguments` where it is certain that the function is called."""
        owner = getattr(function, "__self__", None)
        outside = owner is None or id(owner) in self._paths or world.is_shared_generator(owner)
        world.check(function, arguments, made_inside=not outside)

    def implicit_call(self, value: Any, path: str) -> None:
        kind = type(value)
        if not is_constant_class(kind):
            self._type_of(value, path)
            self._class_read(kind, "__call__")

    def _call_method(self, method: MethodType, arguments: tuple[Any, ...]) -> Any:
        function = method.__func__
        self._arm_function(function)
        if type(function) is CACHED:
            return self._call_cached(function, method.__self__)
        if type(function) is not FunctionType:
            return self._call_builtin(method, arguments)
        owner = method.__self__
        if owner is world.ENVIRON:
            is_one = arguments and function.__name__ in ITEM_METHODS
            self._environment(arguments[0] if is_one else None)
        elif is_constant_code(function.__code__):
            self._check_world(method, arguments)
            ours = is_of_tgraph(function.__module__)
            if ours and not is_a(owner, type):
                self.arm(owner)
                self._hand_over(arguments, ours)
            else:
                self._hand_over((owner, *arguments), ours)
        return method

    def _call_builtin(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        special = SPECIAL.get(function)
        if special is not None:
            replaced = special(self, arguments)
            return function if replaced is None else replaced
        self._check_world(function, arguments)
        if is_getter(function):
            self.record(function(), function, "()", f"{function.__name__}()")
        owner = getattr(function, "__self__", None)
        if is_a(owner, dict) and function.__name__ == "update":
            return self._updating(owner, function)
        if type(owner) is ContextVar:
            self._context_variable(owner)
        elif not (owner is None or is_a(owner, ModuleType) or is_plain_read(owner)):
            self._method_of_builtin(owner, function.__name__, arguments)
        self._hand_over(arguments, False)
        return function

    def _context_variable(self, variable: ContextVar[Any]) -> None:
        code = f"{self.hold(variable)}.get({self.hold(ABSENT)})"
        self.record(variable.get(ABSENT), variable, "", f"{variable.name}.get()", code)

    def _updating(self, owner: dict[Any, Any], function: Any) -> Any:
        """What is called instead of the method `update` of a dictionary."""
        if id(owner) not in self._paths:
            return function

        def update(*arguments: Any, **keywords: Any) -> None:
            self._hand_over(arguments, False)
            for each in (*arguments, keywords):
                self._updated(owner, each)
            function(*arguments, **keywords)

        return update

    def _call_unbound(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """A method of a builtin class, such as `dict.update`, with its object."""
        owner, *others = arguments
        if not is_plain_read(owner):
            self._method_of_builtin(owner, function.__name__, tuple(others))
        self._hand_over(tuple(others), False)
        return function

    def _method_of_builtin(self, owner: Any, name: str, arguments: tuple[Any, ...]) -> None:
        path = self._paths.get(id(owner))
        if path is None:
            return
        if name == "__getattribute__":
            if arguments and type(arguments[0]) is str:
                self._plain_read(owner, arguments[0], path)
            return
        if name in ("__setattr__", "__delattr__") and arguments:
            self.store_attribute(owner, arguments[0], is_plain=True)
            return
        if is_a(owner, dict) and name in ITEM_METHODS and arguments:
            snapshot = self._snapshot(owner, path)
            now = dict.get(owner, arguments[0], ABSENT)
            if now is ABSENT or not snapshot.is_own(arguments[0], now):
                self._item_read(snapshot, arguments[0], snapshot.label(arguments[0]))
            if name in ("pop", "__delitem__"):
                self.stored(owner)
                snapshot.remove(arguments[0])
        elif name in LENGTH_METHODS:
            self._length(owner, path)
        elif is_a(owner, (set, frozenset, dict)) and name == "__contains__":
            self._membership(arguments[0], owner, path)
        elif name in WRITING_METHODS.get(family_of(owner), ()):
            self.stored(owner)
            self._written_by(owner, name, arguments)
        else:
            if not is_a(owner, tuple):
                self.stored(owner)
            self._whole(owner, path)

    def _written_by(self, owner: Any, name: str, arguments: tuple[Any, ...]) -> None:
        """A method of WRITING_METHODS is called."""
        snapshot = self._snapshots.get(id(owner))
        if is_a(snapshot, DequeSnapshot):
            if name in ("append", "appendleft"):
                snapshot.pushed[name] += 1
            for each in arguments if name in ("extend", "extendleft") else ():
                self._pushed(snapshot, name.replace("extend", "append"), each)
        elif is_a(snapshot, SetSnapshot) and name == "update":
            for each in arguments:
                self._updated(owner, each)
        elif name in ("add", "discard", "__setitem__") and arguments:
            self._touch(snapshot, arguments[0])

    def _call_class(self, class_: type, arguments: tuple[Any, ...]) -> Any:
        self._arm_class(class_)
        if class_ is type and len(arguments) == 1:
            if type(arguments[0]) in NUMBERS:
                return operator.attrgetter("__class__")
            path = self._paths.get(id(arguments[0]))
            if path is not None:
                self._type_of(arguments[0], path)
                self.see(type(arguments[0]), type(arguments[0]).__name__)
            return class_
        if class_ is super:
            return class_
        if class_ is int and len(arguments) == 1 and type(arguments[0]) is SymInt:
            return operator.pos
        for name in ("__new__", "__init__"):
            self._class_read(class_, name)
        if is_constant_class(class_):
            self._check_world(class_, arguments)
            for each in arguments:
                if is_iterator(each) and id(each) in self._paths:
                    self._refuse_iterator(self._paths[id(each)])
            self._hand_over(arguments, is_of_tgraph(class_.__module__))
        return class_

    def _hand_over(self, arguments: tuple[Any, ...], ours: bool) -> None:
        """Others get these values: all of them may be read. We (`ours`) read as the user would."""
        for value in arguments:
            if type(value) in FAST:
                continue
            if type(value) in (FunctionType, MethodType, functools.partial, BuiltinFunctionType):
                self.arm(value)
                self._check_world(value)
                if type(value) is BuiltinFunctionType:
                    self.sites.setdefault(id(value.__self__), str(user_site()))
                continue
            path = self._paths.get(id(value))
            if is_a(value, type):
                self._arm_all(value)
            elif path is None:
                self._hand_over_inner(value, ours)
            elif is_a(value, (*CONTAINERS, *VIEWS, np.ndarray)):
                self._whole(value, path, deep=True)
            else:
                self._arm_all(type(value))
                if is_a(value, Tensor):
                    continue
                self._snapshot_within(value, path)
                if not ours:
                    self._special(type(value))
                is_users = not (ours or is_constant_class(type(value)))
                if is_users or is_iterator(value) or is_data(value):
                    self._whole(value, path)

    def _hand_over_inner(self, value: Any, ours: bool) -> None:
        """The same of what the traced function made."""
        if type(value) in (list, tuple, *DICT_VIEWS):
            self._hand_over(tuple(value), ours)
        elif type(value) is dict:
            self._hand_over(tuple(value.values()), ours)
        elif not (is_a(value, (*CONTAINERS, *VIEWS)) or is_plain_read(value)):
            self._arm_all(type(value))
            if not ours:
                self._special(type(value))
