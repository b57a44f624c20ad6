"""Reads of containers: items, lengths, membership, and all that one holds."""

from __future__ import annotations

from collections import deque
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from ...core.provenance import user_site
from ...core.tensor import Tensor
from ...core.trace_state import TraceError
from . import world
from .attributes import Attributes
from .guards import Guard, is_a, same_content, same_elements, same_static
from .questions import (
    CONTAINERS,
    DICT_ITERATORS,
    DICT_VIEWS,
    FAST,
    first_of,
    is_builtin,
    is_data,
    is_iterator,
    is_name,
    is_plain_read,
    is_stand_in,
    lookup,
    own_attributes,
)
from .snapshots import ABSENT, DequeSnapshot, DictSnapshot, SetSnapshot, SlotsSnapshot
from .watched_code import is_constant_class

MAX_SINGLE = 64
"""Elements of a container that are guarded one by one; of more, all at once."""
MAX_ARRAY_BYTES = 1 << 18
"""The largest array of NumPy whose content is compared at every call."""


class Containers(Attributes):
    """The part of a Recorder that watches containers."""

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
        owner, _ = lookup(type(container), name)
        if owner is None or is_constant_class(owner):
            return None
        family = next(each for each in CONTAINERS if is_a(container, each))
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
        elif is_a(container, (dict, set, frozenset)) and is_builtin(container):
            self._membership(item, container, path)
        else:
            self.implicit(container, path, "__contains__", "__iter__")
        return item in container

    def identical(self, one: Any, other: Any) -> bool:
        """`one is other`; of tensors, whether those are one that they stand for."""
        if one is other or not (is_a(one, Tensor) and is_a(other, Tensor)):
            return one is other
        found = [self.leaves.get(id(each), (-1, each)) for each in (one, other)]
        pair = sorted(found, key=first_of)
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
        if type(value) in FAST:
            return
        if not (is_a(value, (*CONTAINERS, type, ModuleType, np.ndarray)) or is_plain_read(value)):
            self._special(type(value))
        path = self._paths.get(id(value))
        if path is not None:
            self._whole(value, path)

    def look_at_each(self, *values: Any) -> None:
        """All of several values may be read."""
        for value in values:
            self.look(value)

    def iterate(self, value: Any) -> None:
        """A loop over a value, or an iterator made of it."""
        path = self._paths.get(id(value))
        if path is None:
            if type(value) not in FAST:
                self._arm_class(type(value))
            return
        if is_iterator(value):
            self._refuse_iterator(path)
        if is_a(value, dict) and type(value).__iter__ in DICT_ITERATORS:
            self._keys(self._snapshot(value, path))
        elif is_builtin(value) or is_constant_class(type(value)):
            self._whole(value, path)
        else:
            self.implicit(value, path, "__iter__", "__getitem__", "__len__")

    def truth(self, value: Any) -> None:
        """`if value`."""
        if type(value) in FAST:
            return
        path = self._paths.get(id(value))
        if path is None:
            self._arm_class(type(value))
        elif is_a(value, CONTAINERS) and is_builtin(value):
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
        if type(value) in FAST:
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
            for each in other if is_a(other, CONTAINERS) else ():
                self._touch(snapshot, each)
        elif is_a(snapshot, DictSnapshot):
            self._whole(value, snapshot.path)

    def _pushed(self, snapshot: DequeSnapshot, kind: str, values: Any) -> None:
        if is_a(values, CONTAINERS):
            snapshot.pushed[kind] += len(values)
        else:  # it is not known how many
            self._whole(snapshot.holder, snapshot.path)

    def _touch(self, snapshot: Any, key: Any) -> None:
        if snapshot is not None:
            snapshot.touch(key)

    def implicit(self, value: Any, path: str, *names: str) -> None:
        """A method that Python calls by itself: its class is read, and its code records."""
        kind = type(value)
        if is_builtin(value) or is_constant_class(kind):
            self._whole(value, path)
            return
        self._type_of(value, path)
        self._arm_class(kind)
        for name in names:
            self._class_read(kind, name)
        if is_a(value, CONTAINERS):
            self._whole(value, path)

    def _whole(self, value: Any, path: str, deep: bool = False) -> None:
        """Guard all that a container holds; `deep`: and the containers in it."""
        if is_a(value, np.ndarray):
            self._array(value, path)
        elif is_a(value, (dict, MappingProxyType)):
            self._whole_dict(value, path, deep)
        elif is_a(value, DICT_VIEWS):
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
        elif is_iterator(value):
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
        own = own_attributes(value)
        if own is not None and type(value) not in CONTAINERS:
            snapshot = self._attributes(value, path)
            self._keys(snapshot)
            for name, held in list(snapshot.before.items()):
                self._item_read(snapshot, name, f"{path}.{name}")
                if is_data(value) or not is_constant_class(type(value)):
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
        elif is_name(name):
            self.record(before, obj, f".{name}", label)

    def _part(self, held: Any, path: str) -> None:
        """What lies in an object all of which may be read."""
        if id(held) not in self._paths or is_iterator(held):
            return
        if is_data(held) or not is_constant_class(type(held)):
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
