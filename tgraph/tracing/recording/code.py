"""Code that records: functions, methods and classes are given their hooks when they are met."""

from __future__ import annotations

import builtins
import functools
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from .code_names import codes_in, named_by
from .entered import entering, is_instrumented
from .guards import Guard, is_a
from .hooks import HOOKS
from .instrument import instrument
from .outside import Outside
from .questions import CONTAINERS, is_empty_cell, is_plain_read, own_attributes, parent_path
from .snapshots import ABSENT, NamesSnapshot
from .watched_code import is_constant_class, is_constant_code, is_nn_code


class Code(Outside):
    """The part of a Recorder that gives code its hooks, and guards what functions name."""

    def arm(self, value: Any) -> None:
        """Let the code of functions, methods and classes record."""
        kind = type(value)
        if kind is FunctionType:
            self._arm_function(value)
        elif kind is MethodType:
            self._arm_function(value.__func__)
            if id(value) in self._paths:
                self.see(value.__self__, parent_path(self._paths[id(value)]))
        elif kind is functools.partial:
            path = self._paths.get(id(value))
            for each in (value.func, *value.args, *value.keywords.values()):
                self.see(each, path or "partial")
            if path is not None and value.keywords:
                self.see(value.keywords, f"{path}.keywords")
                self._whole(value.keywords, f"{path}.keywords")
        elif kind in (BuiltinFunctionType, MethodWrapperType):
            owner = value.__self__
            if owner is not None and not is_a(owner, (ModuleType, type)):
                self.see(owner, parent_path(self._paths.get(id(value), "")))
        elif kind in (staticmethod, classmethod):
            self.arm(value.__func__)
        elif kind is property:
            for each in (value.fget, value.fset, value.fdel):
                self.arm(each)
        elif is_a(value, type):
            self._arm_class(value)
        elif not is_plain_read(value) and kind not in CONTAINERS:
            self._arm_object(value)

    def _arm_object(self, value: Any) -> None:
        self._arm_class(type(value))
        if not is_constant_class(type(value)) or is_a(value, ModuleType):
            return
        wrapped = own_attributes(value) or {}
        for each in wrapped.values():  # what wraps a function: compiled, cached
            if callable(each):
                self.see(each, getattr(each, "__name__", "function"))

    def _arm_function(self, function: Any) -> None:
        if type(function) is not FunctionType or id(function) in self._armed:
            return
        code = function.__code__
        if is_constant_code(code):
            self._arm_closure(function)
        elif not is_instrumented(code):
            self._armed[id(function)] = (function, code)
            runs = self.rewritten(code) or code
            function.__code__ = entering(instrument(runs, HOOKS), function)

    def armed_around(self, code: CodeType) -> CodeType | None:
        """The code, as it was, of the function with hooks in which `code` was written.

        It may be that of a function inside, in a function that is rewritten already.
        """
        for _, original in self._armed.values():
            written = (original, self.rewritten(original) or original)
            if any(code in codes_in(each) for each in written):
                return original
        return None

    def _arm_closure(self, function: FunctionType) -> None:
        """What a function of ours was made of, such as the one that grad(f) gives."""
        if function.__closure__ is None or id(function) in self._entered:
            return
        self._entered.add(id(function))
        for cell in function.__closure__:
            try:
                held = cell.cell_contents
            except ValueError:
                continue
            if callable(held):
                self.see(held, getattr(held, "__name__", function.__name__))
            elif id(function) in self._paths and type(held) in (list, dict, set):
                self.see(held, function.__name__)
                self._whole(held, function.__name__)

    def _arm_class(self, kind: type) -> None:
        """Let what Python calls by itself record: properties, operators, __getitem__, ..."""
        if kind in self._classes:
            return
        self._classes.add(kind)
        for each in kind.__mro__:
            if is_constant_class(each):
                continue
            for name, found in vars(each).items():
                if is_a(found, property) or (name[:2] == "__" and name[-2:] == "__"):
                    self.arm_member(found)

    def arm_member(self, found: Any) -> None:
        if type(found) in (FunctionType, staticmethod, classmethod, property):
            self.arm(found)
        elif is_a(found, functools.cached_property):
            self.arm(found.func)
        elif not is_a(found, type) and hasattr(type(found), "__get__"):
            self._special(type(found))

    def _arm_all(self, kind: type) -> None:
        """Let all methods of a class record: others may call them."""
        for each in kind.__mro__:
            if not is_constant_class(each):
                for found in list(vars(each).values()):
                    self.arm_member(found)

    def entered(self, code: CodeType, function: FunctionType | None, globals_: Any) -> None:
        """A function begins to run: its globals, enclosing variables and defaults are read."""
        self.ran[code] = None
        key = (code, id(globals_)) if function is None else id(function)
        if key in self._entered:
            return
        self._entered.add(key)
        if is_nn_code(code):
            return
        named = named_by(code)
        names = self._snapshot(globals_, "globals()", NamesSnapshot)
        for name in named.stored:
            names.original(name)
        for name in named.globals:
            self._global(globals_, names, name)
        if function is not None:
            self._function(function, code)

    def _global(self, globals_: dict[str, Any], names: NamesSnapshot, name: str) -> None:
        value = names.original(name)
        if value is not ABSENT:
            self.record(value, globals_, f"[{name!r}]", name)
            return
        self._absent(globals_, name, name)
        if hasattr(builtins, name):
            self.record(vars(builtins)[name], vars(builtins), f".get({name!r})", name)
        else:
            self._absent(vars(builtins), name, name)

    def _function(self, function: FunctionType, code: CodeType) -> None:
        path = function.__name__
        held = self.hold(function)
        self._guard(Guard(f"{path}.__code__", f"{held}.__code__", code))
        # Whoever called a function without defaults gave it everything, and will.
        defaults = function.__defaults__
        if defaults is not None:
            self._guard(Guard(f"{path}.__defaults__", f"{held}.__defaults__", defaults))
        for at, value in enumerate(defaults or ()):
            self.see(value, f"{path}.__defaults__[{at}]")
        keywords = function.__kwdefaults__
        if keywords is not None:
            self._guard(Guard(f"{path}.__kwdefaults__", f"{held}.__kwdefaults__", keywords))
        if keywords:
            self._whole(keywords, f"{path}.__kwdefaults__")
        mentioned = {name for each in codes_in(code) for name in named_by(each).cells}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name in mentioned:
                self._cell(cell, name)

    def _cell(self, cell: Any, name: str) -> None:
        value = self._snapshot(cell, name).before
        if value is ABSENT:
            code = f"{self.hold(is_empty_cell)}({self.hold(cell)})"
            self._condition(code, True, f"there is `{name}` now")
        else:
            self.record(value, cell, ".cell_contents", name)
