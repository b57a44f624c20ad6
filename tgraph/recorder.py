"""Records what a traced function reads of the Python world, and what it writes there.

The code of the user's functions runs with hooks (see `instrument`): a Recorder sees every
attribute, item, length, membership, truth value and iteration that they ask of an object of the
*outside*, one that was there before. What is read becomes a Guard: the plan holds as long as the
same is found there. What is written is told by snapshots, put back behind the trace, and repeated
by each call. So the rule is: what the function read while it was traced is watched.

- Code runs with hooks from when the function meets it: functions, methods and properties of the
  user's, also those that others call. Code of the standard library, of tgraph itself but for its
  modules (`tgraph.nn`), and of the packages that it is built on is taken for constant; of what is
  handed to such code all is taken to be read.
- Names of such modules that the user's code asks for are watched; those that they ask for
  themselves, such as a function that `tgraph.nn` calls, are not.
- An object of the outside is reached from a global, a variable of an enclosing function, a default,
  an argument, or an object of the outside. What the function itself makes is its own.
- What cannot be watched is refused with the line: iterators of the outside, large arrays of NumPy,
  code in strings, and see `world`.
"""

from __future__ import annotations

import builtins
import decimal
import dis
import functools
import gc
import keyword
import operator
import os
import re
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np

from . import world
from .compiler.ir import Node
from .dispatch import user_site
from .guards import (
    Guard,
    is_a,
    is_static,
    same_content,
    same_elements,
    same_static,
    special_methods,
)
from .instrument import Hooks, instrument
from .snapshots import (
    ABSENT,
    AttributesSnapshot,
    ClassSnapshot,
    DequeSnapshot,
    DictSnapshot,
    ListSnapshot,
    NamesSnapshot,
    PlaceWrite,
    SetSnapshot,
    SlotsSnapshot,
    Snapshot,
    TensorSnapshot,
    snapshot_of,
)
from .state import state
from .tensor import Tensor
from .trace_state import TraceError
from .traced_number import TracedNumber
from .watched_code import (
    is_constant_class,
    is_constant_code,
    is_constant_module,
    is_nn_code,
    is_of_tgraph,
)

MAX_SINGLE = 64
"""Elements of a container that are guarded one by one; of more, all at once."""
MAX_ARRAY_BYTES = 1 << 18
"""The largest array of NumPy whose content is compared at every call."""

_PLAIN = frozenset({int, float, bool, str, bytes, complex, type(None), TracedNumber})
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_DICT_ITERATORS = (dict.__iter__, OrderedDict.__iter__)
_DICT_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_VIEWS = (*_DICT_VIEWS, MappingProxyType)


class Recorder:
    """What one trace reads and writes. `guards` (by code) and `names` are the result.

    Guards are evaluated in `namespace`. `names` are of tensors, by id.
    """

    def __init__(self) -> None:
        self.guards: dict[str, Guard] = {}
        self.names: dict[int, str] = {}
        self.namespace: dict[str, Any] = {}
        self.stand_ins: set[int] = set()  # ids of those that were read
        # Attributes of the user's that were read of tensors of the trace, by their id.
        self.tensor_reads: dict[int, dict[str, Any]] = {}
        self.sites: dict[int, str] = {}  # id of what was written into -> the last line
        self.has_written = False  # before an error
        # Of each stand-in for an argument, by id: the position and what it stands for.
        self.leaves: dict[int, tuple[int, Any]] = {}
        self.compared: dict[tuple[int, int | Tensor], bool] = {}  # see tracing.Call
        self._held: dict[int, str] = {}
        self._paths: dict[int, str] = {}  # id of an object of the outside -> how it is reached
        self._alive: list[Any] = []  # so that ids stay theirs
        self._snapshots: dict[int, Snapshot] = {}
        self._armed: dict[int, tuple[FunctionType, CodeType]] = {}
        self._classes: set[type] = set()
        self._class_reads: set[tuple[type, str]] = set()
        self._entered: set[Any] = set()

    # --- the length of a trace ---

    @contextmanager
    def recording(self, roots: Sequence[tuple[str, Any]]) -> Iterator[None]:
        """Record what the code of `roots`, by name, reads in this thread; the world is put back."""
        previous, state.recorder = state.recorder, self
        try:
            for path, value in roots:
                self.see(value, path)
            yield
        except Exception:
            self.has_written = any(each.changed() for each in self._snapshots.values())
            raise
        finally:
            state.recorder = previous
            for snapshot in self._snapshots.values():
                snapshot.restore()
            self._disarm()

    def _disarm(self) -> None:
        for function, code in self._armed.values():
            function.__code__ = code
        self._armed.clear()

    def writes(self) -> list[PlaceWrite]:
        """What was written into objects of the outside, while they are not yet put back."""
        snapshots = list(self._snapshots.values())
        return [write for each in snapshots for write in self._written(each)]

    def _written(self, snapshot: Snapshot) -> Iterator[PlaceWrite]:
        for write in snapshot.writes():
            if write.kind == "replace" and not snapshot.is_read:
                # What was left out or moved depends on all that was there.
                self._whole(snapshot.holder, snapshot.path)
            if write.kind in ("item", "ordered") and write.key in snapshot.before:
                if write.value is ABSENT and snapshot.before[write.key] is not ABSENT:
                    self._presence(write.key, snapshot.holder, snapshot.path)
            elif write.kind == "element":
                self._length(snapshot.holder, snapshot.path)
            if snapshot.is_blind and is_a(snapshot, DictSnapshot):
                self._item_read(snapshot, write.key, write.path)
            yield write

    # --- objects of the outside ---

    def see(self, value: Any, path: str) -> None:
        """`value` is an object of the outside; its code records from now on."""
        if is_a(value, Tensor):
            self.names.setdefault(id(value), path)
            for hook in (value._hooks or {}).values():
                self.see(hook, f"a hook of {path}")
        if _is_plain(value) or id(value) in self._paths:
            return
        self._paths[id(value)] = path
        self._alive.append(value)
        self.arm(value)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """What happens inside is of no call: it is neither recorded nor repeated nor undone."""
        untouched = [each for each in self._snapshots.values() if not each.changed()]
        previous, state.recorder = state.recorder, None
        try:
            yield
        finally:
            state.recorder = previous
            for each in untouched:
                each.before = each.copy() if each.changed() else each.before

    def is_outside(self, value: Any) -> bool:
        """Whether an object was there before, as far as is known."""
        return id(value) in self._paths

    def outside(self) -> list[Any]:
        """All known objects of the outside."""
        return list(self._alive)

    def _snapshot(self, holder: Any, path: str, made: Any = snapshot_of) -> Any:
        found = self._snapshots.get(id(holder))
        if found is None:
            found = made(holder, path)
            if found is not None:
                self._snapshots[id(holder)] = found
        return found

    def _attributes(self, obj: Any, path: str) -> Any:
        """The snapshot of the attributes that an object holds itself; None without any."""
        own = _own(obj)
        return None if own is None else self._snapshot(own, path, AttributesSnapshot)

    def hold(self, value: Any) -> str:
        """A name for an object in the namespace in which guards are evaluated."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"h{len(self._held)}"
            self.namespace[name] = value
        return name

    def _key(self, key: Any) -> str:
        return repr(key) if _is_written_out(key) else self.hold(key)

    # --- guards ---

    def _guard(self, guard: Guard) -> None:
        self.guards.setdefault(guard.code, guard)

    def _condition(self, code: str, holds: bool, path: str) -> None:
        self._guard(Guard(path, code, holds, condition=True))

    def record(
        self, value: Any, holder: Any, access: str, path: str, code: str | None = None
    ) -> None:
        """`access` of `holder` (or `code`) gave `value`, which is of the outside."""
        code = code or f"{self.hold(holder)}{access}"
        if code in self.guards or (type(value) is ModuleType and is_constant_module(value)):
            return
        if is_stand_in(value):
            self.stand_ins.add(id(value))
            return
        same = same_static if is_static(value) else None
        place = (holder, access) if _is_place(holder, access) else (None, "")
        self._guard(Guard(path, code, value, same, False, *place))
        self.see(value, path)

    def _absent(self, holder: Any, key: Any, path: str) -> None:
        self._condition(self._membership_code(key, holder), False, f"there is `{path}` now")

    def _type_of(self, value: Any, path: str) -> None:
        code = f"type({self.hold(value)})"
        self._guard(Guard(f"type({path})", code, type(value)))

    # --- code ---

    def arm(self, value: Any) -> None:
        """Let the code of functions, methods and classes record."""
        kind = type(value)
        if kind is FunctionType:
            self._arm_function(value)
        elif kind is MethodType:
            self._arm_function(value.__func__)
            if id(value) in self._paths:
                self.see(value.__self__, _parent(self._paths[id(value)]))
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
                self.see(owner, _parent(self._paths.get(id(value), "")))
        elif kind in (staticmethod, classmethod):
            self.arm(value.__func__)
        elif kind is property:
            for each in (value.fget, value.fset, value.fdel):
                self.arm(each)
        elif is_a(value, type):
            self._arm_class(value)
        elif not _is_plain(value) and kind not in _CONTAINERS:
            self._arm_object(value)

    def _arm_object(self, value: Any) -> None:
        self._arm_class(type(value))
        if not is_constant_class(type(value)) or is_a(value, ModuleType):
            return
        wrapped = _own(value) or {}
        for each in wrapped.values():  # what wraps a function: compiled, cached
            if callable(each):
                self.see(each, getattr(each, "__name__", "function"))

    def _arm_function(self, function: Any) -> None:
        if type(function) is not FunctionType or id(function) in self._armed:
            return
        code = function.__code__
        if is_constant_code(code):
            self._arm_closure(function)
        elif not _is_instrumented(code):
            self._armed[id(function)] = (function, code)
            function.__code__ = _entering(instrument(code, HOOKS), function)

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
        key = (code, id(globals_)) if function is None else id(function)
        if key in self._entered:
            return
        self._entered.add(key)
        if is_nn_code(code):
            return
        named = _named(code)
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
        self._guard(Guard(f"{path}.__defaults__", f"{held}.__defaults__", function.__defaults__))
        for at, value in enumerate(function.__defaults__ or ()):
            self.see(value, f"{path}.__defaults__[{at}]")
        defaults = function.__kwdefaults__
        self._guard(Guard(f"{path}.__kwdefaults__", f"{held}.__kwdefaults__", defaults))
        if defaults:
            self._whole(defaults, f"{path}.__kwdefaults__")
        mentioned = {name for each in _codes(code) for name in _named(each).cells}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name in mentioned:
                self._cell(cell, name)

    def _cell(self, cell: Any, name: str) -> None:
        value = self._snapshot(cell, name).before
        if value is ABSENT:
            code = f"{self.hold(_is_empty)}({self.hold(cell)})"
            self._condition(code, True, f"there is `{name}` now")
        else:
            self.record(value, cell, ".cell_contents", name)

    # --- attributes ---

    def attribute(self, obj: Any, name: str) -> Any:
        """`obj.name`."""
        kind = type(obj)
        path = self._paths.get(id(obj))
        if is_a(obj, Tensor):
            return self._attribute_of_tensor(obj, name)
        if kind in _FAST or name == "_path":  # of modules: only names operations
            return getattr(obj, name)
        if is_a(obj, ModuleType):
            return self._module_attribute(obj, name)
        if is_a(obj, type):
            return self._attribute_of_class(obj, name, path)
        if kind is super:
            return self._attribute_of_super(obj, name)
        if is_a(obj, threading.local):
            return self._attribute_of_thread(obj, name, path)
        if kind in _CONTAINERS and path is not None:
            self._snapshot(obj, path)
        self._arm_class(kind)
        found = _lookup(kind, name)[1]
        if found is not ABSENT:
            self.arm_member(found)
        if path is None:
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        return self._attribute_of_outside(obj, name, path, found)

    def _plain_attribute(self, obj: Any, name: str) -> Any:
        value = getattr(obj, name)
        if type(value) in (FunctionType, MethodType):
            self.arm(value)
        return value

    def _plain_read(self, obj: Any, name: str, path: str) -> None:
        """`object.__getattribute__(obj, name)`."""
        self._type_of(obj, path)
        self._class_read(type(obj), name)
        found = _lookup(type(obj), name)[1]
        if name == "__dict__":
            self._dictionary(obj, path)
        elif found is not ABSENT and _is_data_descriptor(found):
            if type(found) is _MEMBER and not is_constant_class(type(obj)):
                slots = self._snapshot(obj, path, SlotsSnapshot)
                self._slot_read(obj, name, slots.before.get(name, ABSENT), f"{path}.{name}")
        elif _own(obj) is not None:
            self._item_read(self._attributes(obj, path), name, f"{path}.{name}")

    def _attribute_of_outside(self, obj: Any, name: str, path: str, found: Any) -> Any:
        kind, label = type(obj), f"{path}.{name}"
        if name == "__dict__":
            return self._dictionary(obj, path)
        self._type_of(obj, path)
        if name == "__class__":
            self.see(kind, kind.__name__)
            return obj.__class__
        if found is not ABSENT and _is_data_descriptor(found):
            return self._through_descriptor(obj, name, label, found)
        own = self._attributes(obj, path) if not is_constant_class(kind) else None
        holder = _own(obj)
        before = ABSENT
        if holder is not None:
            before = own.original(name) if own is not None else holder.get(name, ABSENT)
        if own is not None and name in holder and own.is_own(name, holder[name]):
            return self._plain_attribute(obj, name)
        if before is not ABSENT:
            self.record(before, holder, f"[{name!r}]", label)
        else:
            if holder is not None and kind not in _CONTAINERS:
                self._absent(holder, name, label)
            self._class_read(kind, name)
            if found is ABSENT:
                self._class_read(kind, "__getattr__")
        value = self._plain_attribute(obj, name)
        if found is not ABSENT and value is found and before is ABSENT:
            self.see(value, label)
        return value

    def _attribute_of_thread(self, obj: Any, name: str, path: str | None) -> Any:
        """An attribute that each thread has for itself."""
        if path is not None and hasattr(obj, name):
            self._special(type(obj))
            self.record(getattr(obj, name), obj, f".{name}", f"{path}.{name}")
        elif path is not None:
            code = f"hasattr({self.hold(obj)}, {name!r})"
            self._condition(code, False, f"there is `{path}.{name}` now")
        return getattr(obj, name)

    def _through_descriptor(self, obj: Any, name: str, label: str, found: Any) -> Any:
        kind = type(obj)
        if type(found) is property and not is_constant_class(_lookup(kind, name)[0]):
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        slots = None
        if type(found) is _MEMBER and not is_constant_class(kind):
            slots = self._snapshot(obj, label.rpartition(".")[0], SlotsSnapshot)
        elif not is_constant_class(type(found)):
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        if slots is not None and slots.before.get(name, ABSENT) is ABSENT:
            self._slot_read(obj, name, ABSENT, label)
        value = getattr(obj, name)
        is_first = slots is None or slots.before.get(name, ABSENT) is value
        if is_first and (slots is not None or is_static(value)) and _is_name(name):
            self.record(value, obj, f".{name}", label)
        elif is_first:
            self.see(value, label)
        return value

    def _dictionary(self, obj: Any, path: str) -> Any:
        own = _own(obj)
        if own is None:
            return obj.__dict__
        self._attributes(obj, path)
        self.see(own, path)
        return own

    def _module_attribute(self, module: ModuleType, name: str) -> Any:
        own = vars(module)
        if is_constant_module(module) and (name not in own or is_nn_code(_running_code())):
            value = getattr(module, name)
            self.arm(value)
            return value
        names = self._snapshot(own, module.__name__, NamesSnapshot)
        label = f"{self._paths.get(id(module), module.__name__)}.{name}"
        before = names.original(name)
        if name in own and names.is_own(name, own[name]):
            return getattr(module, name)
        if before is ABSENT:
            self._absent(own, name, label)
            asked = own.get("__getattr__")
            if asked is None:
                self._absent(own, "__getattr__", f"{label} (by __getattr__)")
            else:
                self.record(asked, own, "['__getattr__']", f"{label} (by __getattr__)")
        else:
            self.record(before, own, f"[{name!r}]", label)
        return getattr(module, name)

    def _attribute_of_class(self, class_: type, name: str, path: str | None) -> Any:
        if name == "__dict__":
            return self._whole_class(class_)
        self._arm_class(class_)
        label = f"{path or class_.__name__}.{name}"
        found, meta = _lookup(class_, name)[1], type(class_)
        above = _lookup(meta, name)[1]
        if above is not ABSENT and _is_data_descriptor(above):
            self._class_read(meta, name)
            self.arm_member(above)
            value = self._plain_attribute(class_, name)
            if not is_constant_class(class_) and is_static(value) and _is_name(name):
                self.record(value, class_, f".{name}", label)
            else:
                self.see(value, label)
            return value
        self._class_read(class_, name)
        if found is ABSENT:
            self._arm_class(meta)
            self._class_read(meta, name)
            self._class_read(meta, "__getattr__")
        else:
            self.arm_member(found)
            self.see(found, label)
        value = self._plain_attribute(class_, name)
        if found is ABSENT and value is above:
            self.see(value, label)
        return value

    def _whole_class(self, class_: type) -> Any:
        """All attributes of a class itself."""
        if not is_constant_class(class_):
            members = list(vars(class_).items())
            code = f"[*{self.hold(class_)}.__dict__.items()]"
            self._guard(Guard(f"vars({class_.__name__})", code, members, same_elements))
            for name, value in members:
                self.see(value, f"{class_.__name__}.{name}")
        return vars(class_)

    def _attribute_of_tensor(self, tensor: Tensor, name: str) -> Any:
        """Attributes that the user gave a tensor are watched."""
        kind = type(tensor)
        if kind is not Tensor:
            self._arm_class(kind)
            if not is_of_tgraph(kind.__module__):
                self._class_read(kind, name)
        if name in _FACTS:
            self._facts(tensor)
        own = _own(tensor)
        if (
            own is None
            or name[0] == "_"
            or (
                name not in own
                and is_of_tgraph(getattr(_lookup(kind, name)[0], "__module__", None))
            )
        ):
            return getattr(tensor, name)
        path = self.names.get(id(tensor), "tensor")
        if type(tensor._value) is Node:
            self.tensor_reads.setdefault(id(tensor), {}).setdefault(name, own.get(name, ABSENT))
            return getattr(tensor, name)
        before = self._snapshot(own, path, TensorSnapshot).original(name)
        if before is ABSENT:
            self._absent(own, name, f"{path}.{name}")
        else:
            self.record(before, own, f"[{name!r}]", f"{path}.{name}")
        return getattr(tensor, name)

    def _facts(self, tensor: Tensor) -> None:
        """Shape, dtype and the like of a tensor that may not be computed with."""
        path = self.names.get(id(tensor))
        if path is None or type(tensor._value) is Node:
            return
        held = self.hold(tensor)
        same = Guard(f"{path}._type", f"{held}._type", tensor._type, same_static)
        self._guard(same)
        flag = Guard(f"{path}.requires_grad", f"{held}._requires_grad", tensor._requires_grad)
        self._guard(flag)
        self._condition(
            f"{held}._record is None", tensor._record is None, f"{path}.is_leaf changed"
        )

    def _class_read(self, kind: type, name: str) -> None:
        """Guard what a class gives for a name, or that it has nothing of that name."""
        if (kind, name) in self._class_reads:
            return
        self._class_reads.add((kind, name))
        owner, found = _lookup(kind, name)
        mro = list(kind.__mro__)
        if all(map(is_constant_class, mro)):
            return
        if any(id(each) in self._snapshots for each in mro):  # written into by the function
            self._bases_read(mro, name)
        elif type(found) is FunctionType and type(kind) is type and _is_name(name):
            self.record(found, kind, f".{name}", f"{kind.__name__}.{name}")
        else:
            if not is_of_tgraph(kind.__module__):
                bases = f"{self.hold(kind)}.__mro__"
                self._guard(Guard(f"the bases of {kind.__name__}", bases, kind.__mro__))
            self._bases_read(mro if owner is None else mro[: mro.index(owner) + 1], name)

    def _bases_read(self, mro: Sequence[type], name: str) -> None:
        """Guard what the first of some classes gives that has the name, as it was before."""
        for each in mro:
            snapshot = self._snapshots.get(id(each))
            held = vars(each) if snapshot is None else snapshot.before
            label = f"{each.__name__}.{name}"
            if name in held:
                if not is_constant_class(each):
                    self.record(held[name], each, f".__dict__[{name!r}]", label)
                return
            if not is_constant_class(each):
                code = f"{name!r} in {self.hold(each)}.__dict__"
                self._condition(code, False, f"there is `{label}` now")

    def _asked(self, question: str, value: Any, kinds: Any, path: str) -> None:
        """isinstance or issubclass, which hold as before."""
        holds = {"isinstance": isinstance, "issubclass": issubclass}[question](value, kinds)
        code = f"{question}({self.hold(value)}, {self.hold(kinds)})"
        self._condition(code, holds, path)

    def _special(self, kind: type) -> None:
        """Python itself may call any special method of a class."""
        if is_constant_class(kind) or is_of_tgraph(kind.__module__):
            return
        self._arm_class(kind)
        code = f"{self.hold(special_methods)}({self.hold(kind)})"
        label = f"the methods of {kind.__name__}"
        self._guard(Guard(label, code, special_methods(kind), same_elements))

    def super_attribute(self, operands: tuple[Any, Any, Any], name: str) -> Any:
        """`super().name` of Python 3.12 and later, where `super` is not called."""
        made = operands[0](operands[1], operands[2])
        return self.attribute(made, name) if type(made) is super else getattr(made, name)

    def _attribute_of_super(self, made: Any, name: str) -> Any:
        mro = made.__self_class__.__mro__
        mro = mro[mro.index(made.__thisclass__) + 1 :]
        self._bases_read(mro, name)
        found = next((vars(each)[name] for each in mro if name in vars(each)), None)
        self.arm_member(found)
        return self._plain_attribute(made, name)

    def module(self, module: Any) -> None:
        """`import module` inside of a function."""
        name = vars(module).get("__name__") if is_a(module, ModuleType) else None
        if name in sys.modules and sys.modules[name] is module:
            self.record(module, sys.modules, f".get({name!r})", name)

    def imported(self, module: ModuleType, value: Any, name: str) -> None:
        """`from module import name` inside of a function."""
        self.see(module, module.__name__)
        if name in vars(module):
            self._module_attribute(module, name)

    # --- items ---

    def item(self, container: Any, key: Any) -> Any:
        """`container[key]`."""
        kind = type(container)
        if kind is Tensor or kind is str:
            return container[key]
        path = self._paths.get(id(container))
        if container is world.ENVIRON:
            self._environment(key)
            return container[key]
        if path is None:
            self._arm_class(kind)
            return container[key]
        if is_a(container, dict) and kind.__getitem__ is dict.__getitem__:
            return self._dict_item(container, key, path)
        if (
            is_a(container, (list, tuple, deque))
            and type(key) is int
            and (self._past_user(container, "__getitem__") is None)
        ):
            return self._list_item(container, key, path)
        self.implicit(container, path, "__getitem__")
        return container[key]

    def _dict_item(self, container: dict[Any, Any], key: Any, path: str) -> Any:
        snapshot = self._snapshot(container, path)
        if key in container and snapshot.is_own(key, container[key]):
            return container[key]
        try:
            value = container[key]  # may make one, in a defaultdict
        except LookupError:
            self._item_read(snapshot, key, snapshot.label(key))
            raise
        self._item_read(snapshot, key, snapshot.label(key))
        return value

    def _item_read(self, snapshot: Any, key: Any, label: str) -> None:
        before = snapshot.original(key)
        if before is ABSENT:
            self._absent(snapshot.holder, key, label)
        else:
            self._item_of(snapshot.holder, self._key(key), before, label)

    def _item_of(self, container: Any, key: str, value: Any, label: str) -> None:
        method = self._past_user(container, "__getitem__")
        if method is None:
            self.record(value, container, f"[{key}]", label)
        else:
            self.record(value, container, "", label, f"{method}({self.hold(container)}, {key})")

    def _past_user(self, container: Any, name: str) -> str | None:
        """Where the user's class has a method of its own, that of the builtin container."""
        owner, _ = _lookup(type(container), name)
        if owner is None or is_constant_class(owner):
            return None
        family = next(each for each in _CONTAINERS if is_a(container, each))
        return f"{self.hold(family)}.{name}"

    def _elements_code(self, container: Any) -> str:
        method = self._past_user(container, "__iter__")
        held = self.hold(container)
        return f"[*{held}]" if method is None else f"[*{method}({held})]"

    def _length_code(self, container: Any) -> str:
        method = self._past_user(container, "__len__")
        held = self.hold(container)
        return f"len({held})" if method is None else f"{method}({held})"

    def _membership_code(self, key: Any, container: Any) -> str:
        method = self._past_user(container, "__contains__")
        held = self.hold(container)
        return (
            f"{self._key(key)} in {held}"
            if method is None
            else (f"{method}({held}, {self._key(key)})")
        )

    def _list_item(self, container: Any, key: int, path: str) -> Any:
        if not is_a(container, tuple):
            snapshot = self._snapshot(container, path)
            if snapshot.changed():
                if not snapshot.is_own(key):
                    self._whole(container, path)
                return container[key]
        try:
            value = container[key]
        except IndexError:
            self._length(container, path)
            raise
        label = f"{path}[{key}]"
        if is_a(container, tuple):
            self.see(value, label)
        else:
            self._item_of(container, str(key), value, label)
        return value

    def contains(self, item: Any, container: Any) -> bool:
        """`item in container`."""
        path = self._paths.get(id(container))
        if container is world.ENVIRON:
            self._environment(item)
        elif path is None:
            self._arm_class(type(container))
        elif is_a(container, (dict, set, frozenset)) and _is_builtin(container):
            self._membership(item, container, path)
        else:
            self.implicit(container, path, "__contains__", "__iter__")
        return item in container

    def identical(self, one: Any, other: Any) -> bool:
        """`one is other`; of tensors, whether those are one that they stand for."""
        if one is other or not (is_a(one, Tensor) and is_a(other, Tensor)):
            return one is other
        pair = sorted((self.leaves.get(id(each), (-1, each)) for each in (one, other)), key=_first)
        (low, smaller), (high, larger) = pair
        if high < 0 or (low < 0 and id(smaller) not in self.names):
            return False  # none stands for another; or one was made by the function
        self.compared[high, smaller if low < 0 else low] = smaller is larger
        return smaller is larger

    def _membership(self, item: Any, container: Any, path: str) -> None:
        snapshot = self._snapshot(container, path)
        is_own = is_a(snapshot, DictSnapshot) and item in container
        if not is_own or not snapshot.is_own(item, dict.__getitem__(container, item)):
            self._presence(item, container, path)

    def _presence(self, item: Any, container: Any, path: str) -> None:
        """Whether an item was in a container before the function wrote into it."""
        snapshot = self._snapshot(container, path)
        if is_a(snapshot, DictSnapshot):
            is_in = snapshot.original(item) is not ABSENT
        else:
            is_in = item in (container if snapshot is None else snapshot.before)
        word = "no longer" if is_in else "now"
        self._condition(
            self._membership_code(item, container), is_in, f"{item!r} is {word} in `{path}`"
        )

    def _environment(self, name: Any) -> None:
        """A variable of the environment; `name` is None for all of them."""
        if type(name) is not str:
            code = f"[*{self.hold(world.ENVIRON)}.items()]"
            self._guard(Guard("os.environ", code, [*world.ENVIRON.items()], same_elements))
            return
        self.record(world.ENVIRON.get(name), world.ENVIRON, f".get({name!r})", str(name))

    def _length(self, container: Any, path: str) -> None:
        snapshot = self._snapshot(container, path)
        size = len(container if snapshot is None else snapshot.before)
        self._guard(Guard(f"len({path})", self._length_code(container), size, same_static))
        if is_a(snapshot, (DictSnapshot, SetSnapshot)):
            for key in snapshot.touched:  # they may have been there, or not
                self._presence(key, container, path)

    # --- whole values ---

    def look(self, value: Any) -> None:
        """All of a value may be read."""
        if type(value) in _FAST:
            return
        if not (is_a(value, (*_CONTAINERS, type, ModuleType, np.ndarray)) or _is_plain(value)):
            self._special(type(value))
        path = self._paths.get(id(value))
        if path is not None:
            self._whole(value, path)

    def iterate(self, value: Any) -> None:
        """A loop over a value, or an iterator made of it."""
        path = self._paths.get(id(value))
        if path is None:
            if type(value) not in _FAST:
                self._arm_class(type(value))
            return
        if _is_iterator(value):
            self._refuse_iterator(path)
        if is_a(value, dict) and type(value).__iter__ in _DICT_ITERATORS:
            self._keys(self._snapshot(value, path))
        elif _is_builtin(value) or is_constant_class(type(value)):
            self._whole(value, path)
        else:
            self.implicit(value, path, "__iter__", "__getitem__", "__len__")

    def truth(self, value: Any) -> None:
        """`if value`."""
        if type(value) in _FAST:
            return
        path = self._paths.get(id(value))
        if path is None:
            self._arm_class(type(value))
        elif is_a(value, _CONTAINERS) and _is_builtin(value):
            snapshot = self._snapshot(value, path)
            before = value if snapshot is None else snapshot.before
            if snapshot is not None and snapshot.changed():
                self._length(value, path)
            elif not is_a(value, (tuple, frozenset)):
                words = "is no longer empty" if not before else "is empty now"
                self._condition(f"not {self.hold(value)}", not before, f"`{path}` {words}")
        elif is_a(value, np.ndarray):
            self._whole(value, path)
        else:
            self.implicit(value, path, "__bool__", "__len__")

    def update(self, value: Any, other: Any) -> None:
        """An operator in place, such as `value += other`."""
        self.look(other)
        if type(value) in _FAST:
            return
        path = self._paths.get(id(value))
        if path is None:
            return
        if is_a(value, (list, deque, set, dict)):
            self._updated(value, other)
        else:
            self._whole(value, path)

    def change(self, value: Any, other: Any) -> None:
        """Another operator in place: what it leaves behind depends on what was there."""
        self.look(other)
        path = self._paths.get(id(value))
        if path is not None:
            self.stored(value)
            self._whole(value, path)

    def _updated(self, value: Any, other: Any) -> None:
        """A container gets all that is in another one."""
        self.stored(value)
        snapshot = self._snapshots.get(id(value))
        if is_a(snapshot, DequeSnapshot):
            self._pushed(snapshot, "append", other)
        elif is_a(snapshot, SetSnapshot) or is_a(other, dict):
            for each in other if is_a(other, _CONTAINERS) else ():
                self._touch(snapshot, each)
        elif is_a(snapshot, DictSnapshot):
            self._whole(value, snapshot.path)

    def _pushed(self, snapshot: DequeSnapshot, kind: str, values: Any) -> None:
        if is_a(values, _CONTAINERS):
            snapshot.pushed[kind] += len(values)
        else:  # it is not known how many
            self._whole(snapshot.holder, snapshot.path)

    def _touch(self, snapshot: Any, key: Any) -> None:
        if snapshot is not None:
            snapshot.touch(key)

    def implicit(self, value: Any, path: str, *names: str) -> None:
        """A method that Python calls by itself: its class is read, and its code records."""
        kind = type(value)
        if _is_builtin(value) or is_constant_class(kind):
            self._whole(value, path)
            return
        self._type_of(value, path)
        self._arm_class(kind)
        for name in names:
            self._class_read(kind, name)
        if is_a(value, _CONTAINERS):
            self._whole(value, path)

    def _whole(self, value: Any, path: str, deep: bool = False) -> None:
        """Guard all that a container holds; `deep`: and the containers in it."""
        if is_a(value, np.ndarray):
            self._array(value, path)
        elif is_a(value, (dict, MappingProxyType)):
            self._whole_dict(value, path, deep)
        elif is_a(value, _DICT_VIEWS):
            self._whole_view(value, path)
        elif is_a(value, (list, tuple, deque)):
            self._whole_list(value, path, deep)
        elif is_a(value, (set, frozenset)):
            self._whole_set(value, path)
        elif is_a(value, (bytearray, memoryview)) or type(value).__module__ == "array":
            code = f"bytes({self.hold(value)})"
            before = self._snapshot(value, path)
            content = bytes(value if before is None else before.before)
            self._guard(Guard(path, code, content, same_static))
        elif _is_iterator(value):
            self._refuse_iterator(path)
        elif value is world.ENVIRON:
            self._environment(None)
        elif not is_a(value, (type, ModuleType)) and not callable(value):
            self._whole_object(value, path)

    def _whole_object(self, value: Any, path: str) -> None:
        """All attributes of an object, and of the objects in it."""
        key = ("whole", id(value))
        if key in self._entered or is_a(value, Tensor):
            return
        self._entered.add(key)
        self._type_of(value, path)
        own = _own(value)
        if own is not None and type(value) not in _CONTAINERS:
            snapshot = self._attributes(value, path)
            self._keys(snapshot)
            for name, held in list(snapshot.before.items()):
                self._item_read(snapshot, name, f"{path}.{name}")
                if _is_data(value) or not is_constant_class(type(value)):
                    self._part(held, f"{path}.{name}")
        if not is_constant_class(type(value)):
            slots = self._snapshot(value, path, SlotsSnapshot)
            for name, held in slots.before.items() if type(slots) is SlotsSnapshot else ():
                self._slot_read(value, name, held, f"{path}.{name}")
                self._part(held, f"{path}.{name}")

    def _slot_read(self, obj: Any, name: str, before: Any, label: str) -> None:
        if before is ABSENT:
            self._condition(
                f"hasattr({self.hold(obj)}, {name!r})", False, f"there is `{label}` now"
            )
        elif _is_name(name):
            self.record(before, obj, f".{name}", label)

    def _part(self, held: Any, path: str) -> None:
        """What lies in an object all of which may be read."""
        if id(held) not in self._paths or _is_iterator(held):
            return
        if _is_data(held) or not is_constant_class(type(held)):
            self._whole(held, path, deep=True)

    def _whole_dict(self, value: Any, path: str, deep: bool) -> None:
        if is_a(value, MappingProxyType):
            self._whole_view(value.items(), path)
            return
        snapshot = self._snapshot(value, path)
        snapshot.is_read = True
        self._keys(snapshot)
        for key in snapshot.before:
            self._item_read(snapshot, key, snapshot.label(key))
            self._deeper(snapshot.before[key], snapshot.label(key), deep)

    def _whole_view(self, view: Any, path: str) -> None:
        """A view of a dictionary that is out of reach itself."""
        elements = list(view)
        self._guard(Guard(path, f"[*{self.hold(view)}]", elements, same_elements))
        for each in elements:
            for part in each if is_a(each, tuple) else (each,):
                self.see(part, f"an element of {path}")

    def _keys(self, snapshot: DictSnapshot) -> None:
        keys, path = list(snapshot.before), snapshot.path
        code = self._elements_code(snapshot.holder)
        self._guard(Guard(f"list({path})", code, keys, same_elements))
        for key in keys:
            self.see(key, f"a key of {path}")

    def _whole_list(self, value: Any, path: str, deep: bool) -> None:
        elements = value
        if not is_a(value, tuple):
            snapshot = self._snapshot(value, path)
            snapshot.is_read = True
            elements = snapshot.before
            self._length(value, path)
            if len(elements) > MAX_SINGLE and not any(map(is_stand_in, elements)):
                guard = Guard(path, self._elements_code(value), elements, same_elements)
                self._guard(guard)
        single = is_a(value, (list, deque)) and (
            len(elements) <= MAX_SINGLE or any(map(is_stand_in, elements))
        )
        for at, each in enumerate(elements):
            if single:
                self._item_of(value, str(at), each, f"{path}[{at}]")
            else:
                self.see(each, f"{path}[{at}]")
            self._deeper(each, f"{path}[{at}]", deep)

    def _deeper(self, value: Any, path: str, deep: bool) -> None:
        if deep and id(value) in self._paths and ("deep", id(value)) not in self._entered:
            self._entered.add(("deep", id(value)))
            self._part(value, path)

    def _whole_set(self, value: Any, path: str) -> None:
        elements = list(value)
        if not is_a(value, frozenset):
            snapshot = self._snapshot(value, path)
            snapshot.is_read = True
            elements = list(snapshot.before)
            self._guard(Guard(path, self._elements_code(value), elements, same_elements))
        for each in elements:
            self.see(each, f"an element of {path}")

    def _array(self, array: Any, path: str) -> None:
        if array.nbytes > MAX_ARRAY_BYTES:
            raise TraceError(
                f"a compiled function reads the NumPy array `{path}` of {array.nbytes} bytes, at "
                f"{user_site()}, whose content would have to be compared at every call. Make a "
                f"tensor of it outside of the function, with tg.from_numpy({path})."
            )
        if array.dtype.hasobject:
            self._guard(
                Guard(f"{path}.shape", f"{self.hold(array)}.shape", array.shape, same_static)
            )
            elements = array.ravel().tolist()
            code = f"{self.hold(array)}.ravel().tolist()"
            self._guard(Guard(path, code, elements, same_elements))
            for at, each in enumerate(elements):
                self.see(each, f"{path}[{at}]")
            return
        snapshot = self._snapshot(array, path)
        self._guard(Guard(path, self.hold(array), snapshot.before, same_content))

    def _refuse_iterator(self, path: str) -> None:
        raise TraceError(
            f"a compiled function takes elements of the iterator `{path}`, at {user_site()}, which "
            "was there before: it would be taken from only while the function is traced. Pass "
            "the elements as arguments, or make the iterator inside of the function."
        )

    # --- calls ---

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What is called instead of `function`, most often itself."""
        kind = type(function)
        if kind is FunctionType:
            self._arm_function(function)
            if function is os.getenv and arguments:
                self._environment(arguments[0])
            elif is_constant_code(function.__code__):
                self._check_world(function)
                self._hand_over(arguments, is_of_tgraph(function.__module__))
            return function
        if kind is _CACHED:
            return self._call_cached(function)
        if kind is MethodType:
            return self._call_method(function, arguments)
        if kind is BuiltinFunctionType or kind is MethodWrapperType:
            return self._call_builtin(function, arguments)
        if kind in _UNBOUND and arguments:
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
        self._check_world(function)
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

    def _check_world(self, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        outside = owner is None or id(owner) in self._paths or world.is_shared_generator(owner)
        world.check(function, made_inside=not outside)

    def implicit_call(self, value: Any, path: str) -> None:
        kind = type(value)
        if not is_constant_class(kind):
            self._type_of(value, path)
            self._class_read(kind, "__call__")

    def _call_method(self, method: MethodType, arguments: tuple[Any, ...]) -> Any:
        function = method.__func__
        self._arm_function(function)
        if type(function) is _CACHED:
            return self._call_cached(function, method.__self__)
        if type(function) is not FunctionType:
            return self._call_builtin(method, arguments)
        owner = method.__self__
        if owner is world.ENVIRON:
            is_one = arguments and function.__name__ in _ITEM_METHODS
            self._environment(arguments[0] if is_one else None)
        elif is_constant_code(function.__code__):
            self._check_world(method)
            ours = is_of_tgraph(function.__module__)
            if ours and not is_a(owner, type):
                self.arm(owner)
                self._hand_over(arguments, ours)
            else:
                self._hand_over((owner, *arguments), ours)
        return method

    def _call_builtin(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        special = _SPECIAL.get(function)
        if special is not None:
            replaced = special(self, arguments)
            return function if replaced is None else replaced
        self._check_world(function)
        if function in _GETTERS:
            self.record(function(), function, "()", f"{function.__name__}()")
        owner = getattr(function, "__self__", None)
        if is_a(owner, dict) and function.__name__ == "update":
            return self._updating(owner, function)
        if type(owner) is ContextVar:
            self._context_variable(owner)
        elif not (owner is None or is_a(owner, ModuleType) or _is_plain(owner)):
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
        if not _is_plain(owner):
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
        if is_a(owner, dict) and name in _ITEM_METHODS and arguments:
            snapshot = self._snapshot(owner, path)
            now = dict.get(owner, arguments[0], ABSENT)
            if now is ABSENT or not snapshot.is_own(arguments[0], now):
                self._item_read(snapshot, arguments[0], snapshot.label(arguments[0]))
            if name in ("pop", "__delitem__"):
                self.stored(owner)
                snapshot.remove(arguments[0])
        elif name in _LENGTH_METHODS:
            self._length(owner, path)
        elif is_a(owner, (set, frozenset, dict)) and name == "__contains__":
            self._membership(arguments[0], owner, path)
        elif name in _WRITING_METHODS.get(_family(owner), ()):
            self.stored(owner)
            self._written_by(owner, name, arguments)
        else:
            if not is_a(owner, tuple):
                self.stored(owner)
            self._whole(owner, path)

    def _written_by(self, owner: Any, name: str, arguments: tuple[Any, ...]) -> None:
        """A method of _WRITING_METHODS is called."""
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
            path = self._paths.get(id(arguments[0]))
            if path is not None:
                self._type_of(arguments[0], path)
                self.see(type(arguments[0]), type(arguments[0]).__name__)
            return class_
        if class_ is super:
            return class_
        for name in ("__new__", "__init__"):
            self._class_read(class_, name)
        if is_constant_class(class_):
            self._check_world(class_)
            for each in arguments:
                if _is_iterator(each) and id(each) in self._paths:
                    self._refuse_iterator(self._paths[id(each)])
            self._hand_over(arguments, is_of_tgraph(class_.__module__))
        return class_

    def _hand_over(self, arguments: tuple[Any, ...], ours: bool) -> None:
        """Others get these values: all of them may be read. We (`ours`) read as the user would."""
        for value in arguments:
            if type(value) in _FAST:
                continue
            if type(value) in (FunctionType, MethodType, functools.partial, BuiltinFunctionType):
                self.arm(value)
                self._check_world(value)
                continue
            path = self._paths.get(id(value))
            if is_a(value, type):
                self._arm_all(value)
            elif path is None:
                self._hand_over_inner(value, ours)
            elif is_a(value, (*_CONTAINERS, *_VIEWS, np.ndarray)):
                self._whole(value, path, deep=True)
            else:
                self._arm_all(type(value))
                if is_a(value, Tensor):
                    continue
                self._snapshot_within(value, path)
                if not ours:
                    self._special(type(value))
                is_users = not (ours or is_constant_class(type(value)))
                if is_users or _is_iterator(value) or _is_data(value):
                    self._whole(value, path)

    def _hand_over_inner(self, value: Any, ours: bool) -> None:
        """The same of what the traced function made."""
        if type(value) in (list, tuple, *_DICT_VIEWS):
            self._hand_over(tuple(value), ours)
        elif type(value) is dict:
            self._hand_over(tuple(value.values()), ours)
        elif not (is_a(value, (*_CONTAINERS, *_VIEWS)) or _is_plain(value)):
            self._arm_all(type(value))
            if not ours:
                self._special(type(value))

    # --- writes ---

    def stored(self, obj: Any) -> None:
        """An object is about to be written into."""
        path = self._paths.get(id(obj))
        if path is None and is_a(obj, Tensor):
            path = self.names.get(id(obj))
        if path is None:
            return
        self.sites[id(obj)] = str(user_site())
        own = _own(obj)
        if own is not None:
            self.sites[id(own)] = self.sites[id(obj)]
        if is_a(obj, Tensor):
            if own is not None:
                self._snapshot(own, path, TensorSnapshot)
        elif is_a(obj, ModuleType):
            self._snapshot(own, path, NamesSnapshot)
        elif is_a(obj, type):
            self._snapshot(obj, path, ClassSnapshot)
        elif is_a(obj, np.ndarray) or type(obj).__module__ == "array":
            self._whole(obj, path)
        elif is_a(obj, (*_CONTAINERS, bytearray)):
            self._snapshot(obj, path)
            if is_a(obj, bytearray):
                self._whole(obj, path)
        else:
            self._attributes(obj, path)
            if any("__slots__" in vars(each) for each in type(obj).__mro__):
                self._snapshot(obj, path, SlotsSnapshot)
        self._snapshot_within(obj, path)

    def _snapshot_within(self, obj: Any, path: str) -> None:
        """Code that is not watched may write into what an object of it holds."""
        own, kind = _own(obj), type(obj)
        if own is None or not is_constant_class(kind) or is_a(obj, (type, ModuleType)):
            return
        if is_of_tgraph(kind.__module__):
            return
        self._attributes(obj, path).is_blind = True
        waiting = [(value, f"{path}.{name}") for name, value in own.items()]
        while waiting:
            value, label = waiting.pop()
            if not is_a(value, _CONTAINERS) or ("within", id(value)) in self._entered:
                continue
            self._entered.add(("within", id(value)))
            self.see(value, label)
            if not is_a(value, (tuple, frozenset)):
                self._snapshot(value, label).is_blind = True
            inner = value.values() if is_a(value, dict) else value
            waiting += [(each, f"{label}[...]") for each in inner]

    def store_slice(self, container: Any) -> None:
        """`container[first:last] = ...`."""
        self.store_item(container, slice(None))

    def store_item(self, container: Any, key: Any) -> None:
        """`container[key] = ...`."""
        self.stored(container)
        snapshot = self._snapshots.get(id(container))
        if snapshot is None or not is_a(container, (dict, list, deque)):
            return
        if type(container).__setitem__ not in _SETTING:
            return
        if type(key) is slice:
            self._whole(container, snapshot.path)
        else:
            snapshot.touch(key)

    def delete_item(self, container: Any, key: Any) -> None:
        """`del container[key]`."""
        self.stored(container)
        snapshot = self._snapshots.get(id(container))
        if is_a(snapshot, ListSnapshot):
            self._whole(container, snapshot.path)
        elif is_a(snapshot, DictSnapshot):
            snapshot.remove(key)

    def store_attribute(self, obj: Any, name: str, is_plain: bool = False) -> None:
        """`obj.name = ...` or `del obj.name`; `is_plain`: without what its class makes of it."""
        self.stored(obj)
        if self._paths.get(id(obj)) is None and id(obj) not in self.names:
            return
        if is_a(obj, type):
            found = self._snapshots.get(id(obj))
            if found is not None and type(obj).__setattr__ is type.__setattr__:
                found.touch(name)
            return
        own, kind = _own(obj), type(obj)
        if not is_plain and kind.__setattr__ not in _SETTING and not is_a(obj, Tensor):
            return
        member = _lookup(kind, name)[1]
        if type(member) is _MEMBER:
            self._touch(self._snapshots.get(id(obj)), name)
        elif own is not None and (member is ABSENT or not _is_data_descriptor(member)):
            self._touch(self._snapshots.get(id(own)), name)

    def store_global(self, globals_: dict[str, Any], name: str) -> None:
        """A global variable is written."""
        self._snapshot(globals_, "globals()", NamesSnapshot).touch(name)


# --- builtin functions of which more is known -----------------------------------------------------


def _getattr(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    def read(obj: Any, name: str, *default: Any) -> Any:
        try:
            return recorder.attribute(obj, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    return read if len(arguments) > 1 and is_a(arguments[1], str) else None


def _hasattr(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    def has(obj: Any, name: str) -> bool:
        try:
            recorder.attribute(obj, name)
        except AttributeError:
            return False
        return True

    return has if len(arguments) > 1 and is_a(arguments[1], str) else None


def _len(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    value = arguments[0] if arguments else None
    if is_a(value, Tensor):
        recorder._facts(value)
        return None
    path = recorder._paths.get(id(value))
    if path is not None and is_a(value, _CONTAINERS) and _is_builtin(value):
        if not is_a(value, (tuple, frozenset)):
            recorder._length(value, path)
    elif path is not None:
        recorder.implicit(value, path, "__len__")
    return None


def _isinstance(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    value, kinds = arguments if len(arguments) == 2 else (None, None)
    path = recorder._paths.get(id(value))
    if path is None:
        return None
    if any(
        type(each) is not type for each in _classes(kinds)
    ):  # of a metaclass, which may ask more
        recorder._asked("isinstance", value, kinds, f"isinstance({path}, ...) changed")
    if not is_a(value, (type, ModuleType, FunctionType)):
        recorder._type_of(value, path)
    return None


def _issubclass(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    class_, kinds = arguments if len(arguments) == 2 else (None, None)
    if is_a(class_, type) and not all(map(is_constant_class, (class_, *_classes(kinds)))):
        recorder._asked("issubclass", class_, kinds, f"issubclass({class_.__name__}, ...) changed")
    return None


def _classes(kinds: Any) -> Iterator[type]:
    """The classes of a second argument of isinstance."""
    if is_a(kinds, type):
        yield kinds
    for each in kinds if is_a(kinds, tuple) else getattr(kinds, "__args__", ()):
        yield from _classes(each)


def _vars(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) != 1:
        return None
    if is_a(arguments[0], type):
        recorder._whole_class(arguments[0])
        return None
    path = recorder._paths.get(id(arguments[0]))
    if path is not None and _own(arguments[0]) is not None:
        recorder._dictionary(arguments[0], path)
    return None


def _stored(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) > 1 and is_a(arguments[1], str):
        recorder.store_attribute(arguments[0], arguments[1])
    return None


def _set_item(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 3:
        recorder.store_item(arguments[0], arguments[1])
    return None


def _delete_item(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 2:
        recorder.delete_item(arguments[0], arguments[1])
    return None


def _iterated(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    for each in arguments[:1]:
        recorder.iterate(each)
    return None


def _globals(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    frame: Any = sys._getframe(4)
    recorder.see(frame.f_globals, "globals()")
    recorder._snapshot(frame.f_globals, "globals()", NamesSnapshot).watch_all()
    return None


def _refuse_text(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    if arguments and is_a(arguments[0], (str, bytes, CodeType)):
        raise TraceError(
            f"a compiled function runs code of a string, at {user_site()}, of which it is not "
            "known what it reads. Call it outside of the compiled function."
        )
    return None


def _nothing(recorder: Recorder, arguments: tuple[Any, ...]) -> Any:
    """Reads no more than what is known of its arguments already."""
    return None


_SPECIAL: dict[Any, Callable[[Recorder, tuple[Any, ...]], Any]] = {
    getattr: _getattr, hasattr: _hasattr, len: _len, isinstance: _isinstance, vars: _vars,
    setattr: _stored, delattr: _stored, operator.setitem: _set_item,
    operator.delitem: _delete_item, iter: _iterated, next: _iterated, globals: _globals,
    eval: _refuse_text, exec: _refuse_text, id: _nothing, callable: _nothing, locals: _nothing,
    issubclass: _issubclass, __build_class__: _nothing,
}  # fmt: skip
# Functions of others that tell of their state; asked again at each call.
_GETTERS: frozenset[Any] = frozenset({
    sys.getrecursionlimit, sys.getswitchinterval, sys.gettrace, sys.getprofile, gc.isenabled,
    gc.get_threshold, threading.get_ident, decimal.getcontext,
})  # fmt: skip
_CACHED = type(functools.cache(len))
_ITEM_METHODS = frozenset({"get", "__getitem__", "setdefault", "pop", "__delitem__"})
_LENGTH_METHODS = frozenset({"__len__"})
# They write, and what they leave behind does not depend on what was there (see `snapshots`).
_WRITING_METHODS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend"}),
    deque: frozenset({"append", "extend", "appendleft", "extendleft"}),
    set: frozenset({"add", "update", "discard"}),
    dict: frozenset({"__setitem__"}),
}


def _family(value: Any) -> type:
    return next((each for each in _WRITING_METHODS if is_a(value, each)), object)


# --- hooks ----------------------------------------------------------------------------------------


class _Named:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _Attribute(_Named):
    __slots__ = ()

    def __or__(self, obj: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return getattr(obj, self.name)
        return recorder.attribute(obj, self.name)


class _SuperAttribute(_Named):
    __slots__ = ()

    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return getattr(operands[0](operands[1], operands[2]), self.name)
        return recorder.super_attribute(operands, self.name)


class _Imported(_Named):
    __slots__ = ()

    def __or__(self, operands: Any) -> None:
        recorder = state.recorder
        if recorder is not None and is_a(operands[0], ModuleType):
            recorder.imported(*operands, self.name)


class _StoreAttribute(_Named):
    __slots__ = ()

    def __or__(self, obj: Any) -> None:
        if state.recorder is not None:
            state.recorder.store_attribute(obj, self.name)


class _StoreGlobal(_Named):
    __slots__ = ()

    def __or__(self, _: Any) -> None:
        if state.recorder is not None:
            state.recorder.store_global(sys._getframe(1).f_globals, self.name)


class _Enter:
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


class _Item:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0][operands[1]]
        return recorder.item(*operands)


class _Contains:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        return operands[0] in operands[1] if recorder is None else recorder.contains(*operands)


class _Lacks(_Contains):
    def __or__(self, operands: Any) -> Any:
        return not super().__or__(operands)


class _Identical:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0] is operands[1]
        return recorder.identical(*operands)


class _Differs(_Identical):
    def __or__(self, operands: Any) -> Any:
        return not super().__or__(operands)


class _Call:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        return operands[0] if recorder is None else recorder.call(operands[0], operands[1:])


class _CallUnpacked:
    def __or__(self, operands: Any) -> Any:
        recorder = state.recorder
        if recorder is None:
            return operands[0]
        recorder.look(operands[1])
        given = operands[1] if is_a(operands[1], (tuple, list)) else ()
        return recorder.call(operands[0], tuple(given))


class _Noted:
    """Tells the recorder of one value."""

    def __init__(self, method: Callable[[Recorder, Any], None]) -> None:
        self.method = method

    def __or__(self, value: Any) -> None:
        recorder = state.recorder
        if recorder is not None:
            self.method(recorder, value)


def _look_at_each(recorder: Recorder, values: tuple[Any, ...]) -> None:
    for value in values:
        recorder.look(value)


HOOKS = Hooks(
    enter=_Enter,
    attribute=functools.cache(_Attribute),
    super_attribute=functools.cache(_SuperAttribute),
    imported=functools.cache(_Imported),
    module=_Noted(Recorder.module),
    item=_Item(),
    contains=_Contains(),
    lacks=_Lacks(),
    identical=_Identical(),
    differs=_Differs(),
    call=_Call(),
    call_unpacked=_CallUnpacked(),
    look=_Noted(Recorder.look),
    look_at_each=_Noted(_look_at_each),
    update=_Noted(lambda recorder, values: recorder.update(*values)),
    change=_Noted(lambda recorder, values: recorder.change(*values)),
    truth=_Noted(Recorder.truth),
    iterate=_Noted(Recorder.iterate),
    store=_Noted(Recorder.store_slice),
    store_item=_Noted(lambda recorder, operands: recorder.store_item(*operands)),
    delete_item=_Noted(lambda recorder, operands: recorder.delete_item(*operands)),
    store_attribute=functools.cache(_StoreAttribute),
    store_global=functools.cache(_StoreGlobal),
)


def _entering(code: CodeType, function: FunctionType) -> CodeType:
    """The code of `function`, which says so where it begins."""
    original = function.__code__  # equal code, of another function, may be another object
    consts = tuple(
        _Enter(original, function) if type(each) is _Enter else each for each in code.co_consts
    )
    return code.replace(co_consts=consts)


def _is_instrumented(code: CodeType) -> bool:
    return any(type(each) is _Enter for each in code.co_consts)


def without_hooks(function: Any) -> Any:
    """A function of the traced code as one that runs at every call."""
    if type(function) is not FunctionType or not _is_instrumented(function.__code__):
        return function
    entered = next(each for each in function.__code__.co_consts if type(each) is _Enter)
    made = FunctionType(
        entered.code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# --- what code names ------------------------------------------------------------------------------


class _Names(NamedTuple):
    globals: tuple[str, ...]
    stored: tuple[str, ...]
    cells: tuple[str, ...]


@functools.lru_cache(4096)
def _named(code: CodeType) -> _Names:
    found: dict[str, dict[str, None]] = {"globals": {}, "stored": {}, "cells": {}}
    for instruction in dis.get_instructions(code):
        kind = _NAMING.get(instruction.opname)
        if kind is not None:
            found[kind][instruction.argval] = None
    return _Names(*(tuple(found[kind]) for kind in _Names._fields))


_NAMING = {
    "LOAD_GLOBAL": "globals", "LOAD_NAME": "globals", "LOAD_FROM_DICT_OR_GLOBALS": "globals",
    "STORE_GLOBAL": "stored", "DELETE_GLOBAL": "stored",
    "LOAD_DEREF": "cells", "LOAD_CLASSDEREF": "cells", "LOAD_FROM_DICT_OR_DEREF": "cells",
    "STORE_DEREF": "cells", "DELETE_DEREF": "cells",
}  # fmt: skip


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions and comprehensions in it."""
    waiting = [code]
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(const for const in each.co_consts if is_a(const, CodeType))


# --- small questions ------------------------------------------------------------------------------


def _own(obj: Any) -> Any:
    """The dictionary of an object's attributes, without asking code of the user's."""
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if is_a(found, dict) else None


def _lookup(kind: type, name: str) -> tuple[type | None, Any]:
    """The class that gives objects of a class the attribute `name`, and what stands there."""
    for each in kind.__mro__:
        found = vars(each).get(name, ABSENT)
        if found is not ABSENT:
            return each, found
    return None, ABSENT


class _Slotted:
    __slots__ = ("value",)


_MEMBER = type(vars(_Slotted)["value"])
_UNBOUND = (MethodDescriptorType, WrapperDescriptorType)
# They put a value where it is put, and do no more.
_SETTING = (
    object.__setattr__, ModuleType.__setattr__, dict.__setitem__, OrderedDict.__setitem__,
    list.__setitem__, deque.__setitem__,
)  # fmt: skip


def _is_data_descriptor(found: Any) -> bool:
    kind = type(found)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")


def _running_code() -> CodeType:
    """The code with hooks that runs now."""
    frame: Any = sys._getframe(1)
    while is_constant_code(frame.f_code):
        frame = frame.f_back
    code: CodeType = frame.f_code
    return code


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN or is_a(value, Tensor)


def _is_builtin(value: Any) -> bool:
    return type(value).__module__ in ("builtins", "collections")


def _is_data(value: Any) -> bool:
    """Whether an object is of a class that others made for data of the user's."""
    return is_a(value, (*_CONTAINERS, *_VIEWS, np.ndarray)) or (
        type(value).__module__ in ("collections", "types", "argparse", "weakref")
    )


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    return is_a(value, GeneratorType) or (
        hasattr(kind, "__next__") and hasattr(kind, "__iter__") and is_constant_class(kind)
    )


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _is_written_out(key: Any) -> bool:
    """Whether the text of a key gives an equal one."""
    if type(key) is tuple:
        return all(map(_is_written_out, key))
    return type(key) in (str, int, bool, bytes, type(None))


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def is_stand_in(value: Any) -> bool:
    return type(value) is TracedNumber or (is_a(value, Tensor) and type(value._value) is Node)


def _parent(path: str) -> str:
    return path.rpartition(".")[0] or "self"


# What a place can be written by that does not need the names of a trace.
_WRITABLE = re.compile(r"""\.cell_contents|\[(-?\d+|b?'.*'|b?".*"|\(.*\))\]""", re.DOTALL)


def _is_place(holder: Any, access: str) -> bool:
    """Whether another value can be put where one was read."""
    if is_a(holder, type):
        return access.startswith(".__dict__[")
    if access[:1] == "." and access != ".cell_contents":
        return type(_lookup(type(holder), access[1:])[1]) is _MEMBER
    return bool(_WRITABLE.fullmatch(access))


_FACTS = frozenset({
    "shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "grad_fn", "dim", "size",
    "numel", "nelement", "element_size", "itemsize", "nbytes", "is_floating_point", "is_complex",
    "is_cuda", "layout",
})  # fmt: skip
_FAST = frozenset({Tensor, int, float, str, bool, type(None), TracedNumber, slice, bytes})
