"""What is about to be written into."""

from __future__ import annotations

from collections import deque
from types import ModuleType
from typing import Any

import numpy as np

from ...core.provenance import user_site
from ...core.tensor import Tensor
from .containers import Containers
from .guards import is_a
from .questions import CONTAINERS, MEMBER, SETTING, is_data_descriptor, lookup, own_attributes
from .snapshots import (
    ABSENT,
    ClassSnapshot,
    DictSnapshot,
    ListSnapshot,
    NamesSnapshot,
    SlotsSnapshot,
)
from .watched_code import is_constant_class, is_machinery, is_of_tgraph


class Stores(Containers):
    """The part of a Recorder that hears of writes before they happen."""

    def stored(self, obj: Any) -> None:
        """An object is about to be written into."""
        path = self._paths.get(id(obj))
        if path is None and is_a(obj, Tensor):
            path = self.names.get(id(obj))
        if path is None:
            return
        self.sites[id(obj)] = str(user_site())
        own = own_attributes(obj)
        if own is not None:
            self.sites[id(own)] = self.sites[id(obj)]
        if is_a(obj, Tensor):
            self._attributes(obj, path)
        elif is_a(obj, ModuleType):
            self._snapshot(own, path, NamesSnapshot)
        elif is_a(obj, type):
            self._snapshot(obj, path, ClassSnapshot)
        elif is_a(obj, np.ndarray) or type(obj).__module__ == "array":
            self._whole(obj, path)
        elif is_a(obj, (*CONTAINERS, bytearray)):
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
        own, kind = own_attributes(obj), type(obj)
        if own is None or not is_constant_class(kind) or is_a(obj, (type, ModuleType)):
            return
        if is_of_tgraph(kind.__module__) or is_machinery(kind):
            return
        self._attributes(obj, path).is_blind = True
        waiting = [(value, f"{path}.{name}") for name, value in own.items()]
        while waiting:
            value, label = waiting.pop()
            if not is_a(value, CONTAINERS) or ("within", id(value)) in self._entered:
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
        if type(container).__setitem__ not in SETTING:
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
        own, kind = own_attributes(obj), type(obj)
        if not is_plain and kind.__setattr__ not in SETTING and not is_a(obj, Tensor):
            return
        member = lookup(kind, name)[1]
        if type(member) is MEMBER:
            self._touch(self._snapshots.get(id(obj)), name)
        elif own is not None and (member is ABSENT or not is_data_descriptor(member)):
            self._touch(self._snapshots.get(id(own)), name)

    def store_global(self, globals_: dict[str, Any], name: str) -> None:
        """A global variable is written."""
        self.sites[id(globals_)] = str(user_site())
        self._snapshot(globals_, "globals()", NamesSnapshot).touch(name)
