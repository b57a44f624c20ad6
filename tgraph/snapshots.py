"""What mutable Python objects held before a traced function wrote into them.

A snapshot is taken when the function first meets an object. Behind the trace `writes` tells what
became of it, so that every call can do the same, and `restore` puts it back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import CellType
from typing import Any, NamedTuple

import numpy as np

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""What stands for nothing at a place."""


class PlaceWrite(NamedTuple):
    """A change of a Python object of the outside.

    `kind` is one of: "item" (`holder[key]` becomes `value`, ABSENT: is deleted), "attribute" (the
    same of an attribute that is no entry of a dictionary), "class" (of a class), "cell", "append"
    (`value` is put behind a list or deque), "replace" (`value` is all that it holds), "add" and
    "discard" (of a set), "content" (`value` is copied into an array).
    """

    holder: Any
    kind: str
    key: Any
    value: Any
    path: str


class Snapshot:
    """What `holder`, which the user reaches at `path`, held."""

    def __init__(self, holder: Any, path: str) -> None:
        self.holder, self.path = holder, path
        self.before = self.copy()
        # Whether what a plan leaves behind depends on all that the holder held before.
        self.is_read = False

    def copy(self) -> Any:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def writes(self) -> Iterator[PlaceWrite]:
        raise NotImplementedError

    def changed(self) -> bool:
        return next(self.writes(), None) is not None


class DictSnapshot(Snapshot):
    """Of a dictionary, that of an object's attributes too; keys of one that is large by name."""

    attributes = False

    def copy(self) -> Any:
        return dict(self.holder)

    def original(self, key: Any) -> Any:
        return self.before.get(key, ABSENT)

    def restore(self) -> None:
        if self._is_same():
            return
        dict.clear(self.holder)
        dict.update(self.holder, self.before)

    def _is_same(self) -> bool:
        if len(self.holder) != len(self.before):
            return False
        pairs = zip(dict.items(self.holder), self.before.items())
        return all(k is j and v is w for (k, v), (j, w) in pairs)

    def writes(self) -> Iterator[PlaceWrite]:
        for key in self.before:
            if key not in self.holder:
                yield self._write(key, ABSENT)
        for key, value in dict.items(self.holder):
            if self.before.get(key, ABSENT) is not value:
                yield self._write(key, value)

    def _write(self, key: Any, value: Any) -> PlaceWrite:
        return PlaceWrite(self.holder, "item", key, value, self.label(key))

    def label(self, key: Any) -> str:
        """How the user reaches what lies at a key."""
        return f"{self.path}.{key}" if self.attributes else f"{self.path}[{key!r}]"


class AttributesSnapshot(DictSnapshot):
    """Of the dictionary of an object's attributes."""

    attributes = True


class TensorSnapshot(AttributesSnapshot):
    """Of the attributes that users give a tensor; its own have a name with an underscore."""

    def copy(self) -> Any:
        return {key: value for key, value in self.holder.items() if key[0] != "_"}

    def restore(self) -> None:
        for key in [*self.holder]:
            if key[0] != "_" and key not in self.before:
                del self.holder[key]
        self.holder.update(self.before)

    def writes(self) -> Iterator[PlaceWrite]:
        for key in {**self.before, **self.holder}:
            now = self.holder.get(key, ABSENT)
            if key[0] != "_" and now is not self.before.get(key, ABSENT):
                yield self._write(key, now)


class NamesSnapshot(DictSnapshot):
    """Of those globals that were asked for."""

    def copy(self) -> Any:
        return {}

    def original(self, key: Any) -> Any:
        if key not in self.before:
            self.before[key] = self.holder.get(key, ABSENT)
        return self.before[key]

    def restore(self) -> None:
        for key, value in self.before.items():
            if value is ABSENT:
                self.holder.pop(key, None)
            elif self.holder.get(key, ABSENT) is not value:
                self.holder[key] = value

    def writes(self) -> Iterator[PlaceWrite]:
        for key, value in self.before.items():
            now = self.holder.get(key, ABSENT)
            if now is not value:
                yield PlaceWrite(self.holder, "item", key, now, key)


class ListSnapshot(Snapshot):
    """Of a list or deque."""

    def copy(self) -> Any:
        return list(self.holder)

    def restore(self) -> None:
        if self.changed():
            self.holder.clear()
            self.holder.extend(self.before)

    def writes(self) -> Iterator[PlaceWrite]:
        now = list(self.holder)
        known = len(self.before)
        if len(now) >= known and all(map(_is, now, self.before)):
            for value in now[known:]:
                yield PlaceWrite(self.holder, "append", None, value, self.path)
        else:
            yield PlaceWrite(self.holder, "replace", None, now, self.path)


class SetSnapshot(Snapshot):
    def copy(self) -> Any:
        return dict.fromkeys(self.holder)

    def restore(self) -> None:
        if self.changed():
            self.holder.clear()
            self.holder.update(self.before)

    def writes(self) -> Iterator[PlaceWrite]:
        for value in self.before:
            if value not in self.holder:
                yield PlaceWrite(self.holder, "discard", None, value, self.path)
        for value in self.holder:
            if value not in self.before:
                yield PlaceWrite(self.holder, "add", None, value, self.path)


class CellSnapshot(Snapshot):
    """Of a variable of an enclosing function."""

    def copy(self) -> Any:
        return _content(self.holder)

    def restore(self) -> None:
        if _content(self.holder) is self.before:
            return
        if self.before is ABSENT:
            del self.holder.cell_contents
        else:
            self.holder.cell_contents = self.before

    def writes(self) -> Iterator[PlaceWrite]:
        now = _content(self.holder)
        if now is not self.before:
            yield PlaceWrite(self.holder, "cell", None, now, self.path)


class SlotsSnapshot(Snapshot):
    """Of the attributes that an object keeps in slots."""

    def copy(self) -> Any:
        names = [
            name
            for each in type(self.holder).__mro__
            for name, found in vars(each).items()
            if type(found) is _SLOT
        ]
        return {name: _slot(self.holder, name) for name in names}

    def restore(self) -> None:
        for name, value in self.before.items():
            if _slot(self.holder, name) is value:
                continue
            if value is ABSENT:
                object.__delattr__(self.holder, name)
            else:
                object.__setattr__(self.holder, name, value)

    def writes(self) -> Iterator[PlaceWrite]:
        for name, value in self.before.items():
            now = _slot(self.holder, name)
            if now is not value:
                yield PlaceWrite(self.holder, "attribute", name, now, f"{self.path}.{name}")


class ClassSnapshot(Snapshot):
    """Of the attributes of a class."""

    def copy(self) -> Any:
        return dict(vars(self.holder))

    def restore(self) -> None:
        for write in list(self.writes()):
            before = self.before.get(write.key, ABSENT)
            if before is ABSENT:
                delattr(self.holder, write.key)
            else:
                setattr(self.holder, write.key, before)

    def writes(self) -> Iterator[PlaceWrite]:
        held = vars(self.holder)
        for name in {**self.before, **held}:
            now = held.get(name, ABSENT)
            if now is not self.before.get(name, ABSENT):
                yield PlaceWrite(self.holder, "class", name, now, f"{self.path}.{name}")


class ContentSnapshot(Snapshot):
    """Of an array of NumPy."""

    def copy(self) -> Any:
        return self.holder.copy()

    def changed(self) -> bool:
        return bool(self.before.tobytes() != self.holder.tobytes())

    def restore(self) -> None:
        if self.changed():
            self.holder[...] = self.before

    def writes(self) -> Iterator[PlaceWrite]:
        if self.changed():
            yield PlaceWrite(self.holder, "content", None, self.holder.copy(), self.path)


class _Slotted:
    __slots__ = ("value",)


_SLOT = type(vars(_Slotted)["value"])


def _is(one: Any, other: Any) -> bool:
    return one is other


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _slot(holder: Any, name: str) -> Any:
    try:
        return object.__getattribute__(holder, name)
    except AttributeError:
        return ABSENT


def snapshot_of(holder: Any, path: str) -> Snapshot | None:
    """The snapshot of a builtin container, a cell or an array; None of other objects."""
    for kind, made in _KINDS:
        if isinstance(holder, kind):
            return made(holder, path)
    return None


_KINDS: tuple[tuple[type, type[Snapshot]], ...] = (
    (dict, DictSnapshot),
    (list, ListSnapshot),
    (deque, ListSnapshot),
    (set, SetSnapshot),
    (CellType, CellSnapshot),
    (np.ndarray, ContentSnapshot),
)
