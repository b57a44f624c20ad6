"""What a compiled plan takes for granted about the Python world around the function.

A plan holds for the objects that its function reads through Python: closures, globals, attributes,
modules. `Watch` walks from the function (and from objects among the arguments) over what its code
names, and lists a guard for each: tensors, modules, functions and other objects by identity,
numbers, strings and flags by value. What is watched, and what is not:

- closure cells and globals named in the code of the function and of the user's functions and
  methods that it names, at any depth; code of the standard library and of installed packages is
  taken for constant;
- of modules: training flags, parameters, buffers, submodules and plain attributes, at any depth;
- of other objects: the attributes that some watched code names;
- of lists, tuples and dicts: their lengths and elements, up to MAX_ELEMENTS.

Not watched: attributes read through `getattr` with a computed name, C extension objects, files,
the clock. Such a value is fixed when the function is traced.
"""

from __future__ import annotations

import dis
import functools
import struct
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .compiler.ir import Node
from .dispatch import is_internal
from .runtime.device import Device
from .runtime.dtypes import DType
from .tensor import Tensor
from .trace_state import TraceError

MAX_ELEMENTS = 256
MAX_GUARDS = 100_000

_BY_VALUE = (int, float, str, bytes, complex, np.generic)
_SINGLETONS = (bool, type(None), type(...), DType, Enum)


def same_static(before: Any, now: Any) -> bool:
    """Whether a static value is still the same: plain values by value, all else by identity."""
    if before is now:
        return True
    if type(before) is not type(now):
        return False
    if type(now) is float:
        return struct.pack("<d", before) == struct.pack("<d", now)  # tells -0.0 and NaN apart
    if isinstance(now, tuple):
        return len(before) == len(now) and all(map(same_static, before, now))
    if isinstance(now, (int, str, bytes, complex, np.generic, slice, range, frozenset)):
        return bool(before == now)
    return False


GONE = object()


@dataclass(frozen=True)
class Guard:
    """`code` reads a value in a namespace, which must be (or equal) `expected`."""

    path: str
    code: str
    expected: Any
    by_value: bool

    def now(self, namespace: dict[str, Any]) -> Any:
        """What `code` reads now, GONE where there is nothing any more."""
        try:
            return eval(self.code, namespace)
        except (LookupError, AttributeError, ValueError, NameError):
            return GONE

    def holds(self, namespace: dict[str, Any]) -> bool:
        found = self.now(namespace)
        return found is not GONE and self.accepts(found)

    def accepts(self, found: Any) -> bool:
        if found is self.expected:
            return True
        return self.by_value and same_static(self.expected, found)

    def reason(self, namespace: dict[str, Any]) -> str:
        """Why it does not hold."""
        found = self.now(namespace)
        if found is GONE:
            return f"`{self.path}` is gone"
        if isinstance(self.expected, type) and isinstance(found, type):
            return f"`{self.path}` changed: {self.expected.__name__} -> {found.__name__}"
        if _is_plain(self.expected):
            return f"`{self.path}` changed: {brief(self.expected)} -> {brief(found)}"
        return f"`{self.path}` is another object: {brief(found)}"


def brief(value: Any) -> str:
    """A value in the words of a reason."""
    if isinstance(value, Tensor):
        return f"a tensor of type {value._type}"
    if _is_plain(value) or isinstance(value, (slice, range)):
        return repr(value)
    return f"a {type(value).__name__}"


@dataclass
class Watch:
    """Walks over what a function reads. `guards` and `names` (id -> path) are the result.

    `skip` are code objects that run anew at every call, whose reads need no guards.
    """

    skip: frozenset[CodeType] = frozenset()
    guards: dict[str, Guard] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    namespace: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._attributes: set[str] = set()
        self._seen: set[int] = set()
        self._held: dict[int, str] = {}

    def run(self, roots: list[tuple[str, Any]]) -> None:
        """Watch what the objects `roots`, by name, read; again while more names turn up."""
        known = -1
        while known != len(self._attributes):
            known = len(self._attributes)
            self.guards.clear()
            self._seen.clear()
            for path, value in roots:
                self._contents(value, path)

    def refuse_rebinding(self, function: str) -> None:
        """TraceError where a traced tensor took the place of a tensor, which is put back first."""
        found = []
        for guard in self.guards.values():
            if not isinstance(guard.expected, Tensor):
                continue
            now = guard.now(self.namespace)
            if isinstance(now, Tensor) and type(now._value) is Node:
                exec(f"{guard.code} = value", self.namespace, {"value": guard.expected})
                found.append((guard.path, now._value.where))
        for path, where in found:
            raise TraceError(
                f"'{function}' gave `{path}` a new tensor, made at {where}. A compiled function "
                "cannot put a tensor in another's place: write into the one that is there, with "
                f"`{path}.copy_(...)` or any in-place operation, or return the new one."
            )

    # --- values ---

    def _hold(self, value: Any) -> str:
        """A name for an object in the namespace in which guards are evaluated."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"h{len(self._held)}"
            self.namespace[name] = value
        return name

    def _value(self, value: Any, code: str, path: str) -> None:
        """Guard the value that `code` reads, and what can be read through it."""
        if len(self.guards) >= MAX_GUARDS:
            return
        if isinstance(value, Tensor):
            self.names.setdefault(id(value), path)
        if isinstance(value, (*_SINGLETONS, Device)) or type(value) in _BY_VALUE:
            by_value = not isinstance(value, _SINGLETONS)
            self._guard(Guard(path, code, value, by_value))
        elif isinstance(value, np.generic) or (isinstance(value, tuple) and _is_plain(value)):
            self._guard(Guard(path, code, value, True))
        elif isinstance(value, ModuleType):
            self._contents(value, path)
        else:
            self._guard(Guard(path, code, value, False))
            self._contents(value, path)

    def _guard(self, guard: Guard) -> None:
        self.guards.setdefault(guard.code, guard)

    def _contents(self, value: Any, path: str) -> None:
        """Guard what can be read through an object that is itself guarded."""
        if id(value) in self._seen or isinstance(value, Tensor):
            return
        self._seen.add(id(value))
        if isinstance(value, FunctionType):
            if not _is_library(value.__code__.co_filename):
                self._function(value)
        elif isinstance(value, MethodType):
            self._contents(value.__func__, path)
            self._contents(value.__self__, path.rpartition(".")[0] or "self")
        elif isinstance(value, functools.partial):
            for at, each in enumerate((value.func, *value.args, *value.keywords.values())):
                self._contents(each, f"{path}.args[{at}]")
        elif isinstance(value, (list, tuple, dict)):
            self._elements(value, path)
        elif isinstance(value, ModuleType):
            if not _is_library(getattr(value, "__file__", None) or ""):
                self._attributes_of(value, path)
        elif isinstance(value, type):
            if not _is_library(_file_of(value)):
                self._attributes_of(value, path)
                self._methods(value, path)
        elif hasattr(value, "_parameter_names"):
            self._module(value, path)
        elif hasattr(value, "__dict__"):
            self._object(value, path)

    def _elements(self, value: Any, path: str) -> None:
        name = self._hold(value)
        if not isinstance(value, tuple):
            self._guard(Guard(f"len({path})", f"len({name})", len(value), True))
        if len(value) > MAX_ELEMENTS:
            return
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            if isinstance(key, (int, str)):
                self._value(value[key], f"{name}[{key!r}]", f"{path}[{key!r}]")

    def _object(self, value: Any, path: str) -> None:
        if _is_library(_file_of(type(value))):
            return
        self._attributes_of(value, path)
        own = vars(value)
        for attribute in sorted(self._attributes - own.keys()):
            self._class_attribute(value, attribute, path)
        self._methods(type(value), path)

    def _class_attribute(self, value: Any, attribute: str, path: str) -> None:
        """An attribute that an object has from its class, until it gets one of its own."""
        for each in type(value).__mro__:
            if attribute not in vars(each):
                continue
            found = vars(each)[attribute]
            if _is_library(_file_of(each)) or callable(found) or hasattr(found, "__get__"):
                return
            label = f"{path}.{attribute}"
            own, of_class = self._hold(vars(value)), self._hold(each)
            self._guard(Guard(label, f"{attribute!r} in {own}", False, False))
            self._value(found, f"{of_class}.__dict__[{attribute!r}]", label)
            return

    def _attributes_of(self, value: Any, path: str) -> None:
        """The attributes of an object, class or Python module that watched code names."""
        found, name = vars(value), None
        for attribute in sorted(self._attributes & found.keys()):
            if isinstance(found[attribute], (staticmethod, classmethod, property)):
                continue
            name = name or self._hold(found)
            code = f"{name}[{attribute!r}]"
            self._value(found[attribute], code, f"{path}.{attribute}")

    def _methods(self, class_: type, path: str) -> None:
        """Code of the methods that watched code may call."""
        for each in class_.__mro__:
            if _is_library(_file_of(each)):
                continue
            for name, found in vars(each).items():
                function = _function_of(found)
                mentioned = name in self._attributes or name in ("forward", "__call__")
                if function is not None and mentioned:
                    self._contents(function, f"{path}.{name}")

    def _module(self, module: Any, path: str) -> None:
        own = vars(module)
        name = self._hold(own)
        self._guard(Guard(f"vars({path})", f"len({name})", len(own), True))
        for attribute, value in own.items():
            code, label = f"{name}[{attribute!r}]", f"{path}.{attribute}"
            if attribute == "_training":
                self._value(value, code, f"{path}.training")
            elif attribute == "_module_names":
                if value:  # the modules themselves are attributes like any other
                    table = self._hold(value)
                    self._guard(Guard(f"the modules of {path}", f"len({table})", len(value), True))
            elif attribute != "_path" and _is_watched(value):
                self._value(value, code, label)
        self._object(module, path)

    # --- code ---

    def _function(self, function: FunctionType) -> None:
        globals_ = function.__globals__
        names: str | None = None
        local: set[str] = set()
        for code in _codes(function.__code__, self.skip):
            mentioned = _mentioned(code)
            self._attributes |= mentioned.attributes
            local |= mentioned.cells
            for name in mentioned.globals:
                if name in globals_:
                    names = names or self._hold(globals_)
                    self._value(globals_[name], f"{names}[{name!r}]", name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name not in local:  # only handed on to a function that is skipped
                continue
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            self._value(value, f"{self._hold(cell)}.cell_contents", name)
        for at, value in enumerate(function.__defaults__ or ()):
            self._contents(value, f"{function.__name__}.__defaults__[{at}]")


def _is_plain(value: Any) -> bool:
    """Numbers, strings, flags, dtypes, and tuples of them: compared by value."""
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    return isinstance(value, (*_SINGLETONS, Device)) or type(value) in _BY_VALUE


def _is_watched(value: Any) -> bool:
    """What of a module is watched whether code names it or not."""
    return _is_plain(value) or isinstance(value, Tensor) or hasattr(value, "_parameter_names")


def _function_of(found: Any) -> FunctionType | None:
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    elif isinstance(found, property):
        found = found.fget
    return found if isinstance(found, FunctionType) else None


def _codes(code: CodeType, skip: frozenset[CodeType]) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions in it."""
    waiting = [] if code in skip else [code]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(
            const for const in each.co_consts if isinstance(const, CodeType) and const not in skip
        )


class _Mentioned(NamedTuple):
    """Names that code loads: globals, variables of enclosing functions, attributes."""

    globals: tuple[str, ...]
    cells: frozenset[str]
    attributes: frozenset[str]


@functools.cache
def _mentioned(code: CodeType) -> _Mentioned:
    found: dict[str, dict[str, None]] = {"GLOBAL": {}, "DEREF": {}, "ATTR": {}}
    for instruction in dis.get_instructions(code):
        kind = _LOADS.get(instruction.opname)
        if kind is not None:
            found[kind][instruction.argval] = None
    return _Mentioned(tuple(found["GLOBAL"]), frozenset(found["DEREF"]), frozenset(found["ATTR"]))


_LOADS = {
    "LOAD_GLOBAL": "GLOBAL", "LOAD_NAME": "GLOBAL", "LOAD_DEREF": "DEREF",
    "LOAD_CLASSDEREF": "DEREF", "LOAD_FROM_DICT_OR_DEREF": "DEREF", "LOAD_ATTR": "ATTR",
    "LOAD_METHOD": "ATTR", "LOAD_SUPER_ATTR": "ATTR",
}  # fmt: skip


def _file_of(class_: type) -> str:
    module = sys.modules.get(class_.__module__)
    return getattr(module, "__file__", None) or ("" if class_.__module__ == "__main__" else "<")


_LIBRARY_FOLDERS = tuple(
    {
        path
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if (path := sysconfig.get_paths().get(name))
    }
)


@functools.cache
def _is_library(file: str) -> bool:
    """Code that does not change: this package, the standard library, installed packages."""
    if file.startswith("<") and not file.startswith(("<stdin", "<ipython", "<doctest", "<string")):
        return True
    return is_internal(file) or file.startswith(_LIBRARY_FOLDERS)
