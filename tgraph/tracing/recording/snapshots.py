"""What mutable Python objects held before a traced function wrote into them.

A snapshot is taken when the function first meets an object. Behind the trace `writes` tells what
became of it, so that every call can do the same, and `restore` puts it back.
"""

from __future__ import annotations

import operator
import sys
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterator
from types import CellType
from typing import Any

import numpy as np

from ...runtime.records import NamedTuple

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""What stands for nothing at a place."""


class PlaceWrite(NamedTuple):
    """A change of a Python object of the outside.

    `kind` is one of: "item" (`holder[key]` becomes `value`, ABSENT: is deleted), "ordered" (the
    same of an OrderedDict), "attribute" (the same of an attribute that is no entry of a
    dictionary), "class" (of a class), "cell", "element" (of a list), "append" and "appendleft"
    (`value` is put behind or before a list or deque), "replace" (`value` is all that it holds),
    "add" and "discard" (of a set), "content" (`value` is copied into an array), "bytes".
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
        # Whether code writes into it of which it is not known what it reads.
        self.is_blind = False
        # Where something was written, be it what lay there already.
        self.touched: dict[Any, None] = {}

    def copy(self) -> Any:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def writes(self) -> Iterator[PlaceWrite]:
        raise NotImplementedError

    def touch(self, key: Any) -> None:
        self.touched[key] = None

    def changed(self) -> bool:
        return next(self.writes(), None) is not None

    def afresh(self) -> Snapshot:
        """A snapshot of what the holder holds now."""
        return type(self)(self.holder, self.path)


class DictSnapshot(Snapshot):
    """Of a dictionary, that of an object's attributes too; keys of one that is large by name."""

    attributes = False

    def __init__(self, holder: Any, path: str) -> None:
        super().__init__(holder, path)
        self.removed: set[Any] = set()  # keys that were taken out, be they there again or not

    def copy(self) -> Any:
        return dict(self._items())

    def _items(self) -> Any:
        return _kind_of(self.holder).items(self.holder)

    def original(self, key: Any) -> Any:
        return self.before.get(key, ABSENT)

    def is_own(self, key: Any, value: Any) -> bool:
        """Whether a value was put there by the function."""
        return self.original(key) is not value

    def restore(self) -> None:
        kind = _kind_of(self.holder)
        if [*self.before] == [*kind.keys(self.holder)]:
            for key, value in self.before.items():
                if kind.__getitem__(self.holder, key) is not value:
                    kind.__setitem__(self.holder, key, value)
            return
        kind.clear(self.holder)
        for key, value in self.before.items():
            kind.__setitem__(self.holder, key, value)

    def writes(self) -> Iterator[PlaceWrite]:
        now = dict(self._items())
        staying = self._staying(now)
        for key in self.before:
            if key not in staying:
                yield self._write(key, ABSENT)
        for key in self._in_order(now, staying):
            value = now[key]
            is_same = key in staying and self.before[key] is value
            if not is_same or key in self.touched:
                yield self._write(key, value)
        for key in (*self.touched, *self.removed):
            if key not in now and key not in self.before:
                yield self._write(key, ABSENT)

    def remove(self, key: Any) -> None:
        """A key is taken out."""
        self.removed.add(key)
        self.touched.pop(key, None)

    def _in_order(self, now: dict[Any, Any], staying: set[Any]) -> list[Any]:
        """The keys as they were written, which is their order where they are not there yet."""
        touched = [key for key in self.touched if key in now]
        new = [key for key in now if key not in staying]
        if [key for key in touched if key not in staying] == new:
            return [*touched, *(key for key in now if key not in self.touched)]
        return [*(key for key in now if key in staying), *new]

    def _staying(self, now: dict[Any, Any]) -> set[Any]:
        """Keys that keep their place; others are put behind them, for the order to come out."""
        order = {key: at for at, key in enumerate(self.before)}
        staying, last = set(), -1
        for key in now:
            at = order.get(key, -1)
            if at <= last or key in self.removed:
                break
            staying.add(key)
            last = at
        return staying

    def _write(self, key: Any, value: Any) -> PlaceWrite:
        kind = "ordered" if _kind_of(self.holder) is OrderedDict else "item"
        return PlaceWrite(self.holder, kind, key, value, self.label(key))

    def label(self, key: Any) -> str:
        """How the user reaches what lies at a key."""
        return f"{self.path}.{key}" if self.attributes else f"{self.path}[{key!r}]"


class AttributesSnapshot(DictSnapshot):
    """Of the dictionary of an object's attributes."""

    attributes = True


class NamesSnapshot(DictSnapshot):
    """Of those globals that were asked for; of all, once that was `watch_all`."""

    is_all = False

    def copy(self) -> Any:
        return {}

    def afresh(self) -> NamesSnapshot:
        made = type(self)(self.holder, self.path)
        made.is_all = self.is_all
        for key in self.before:
            made.original(key)
        return made

    def touch(self, key: Any) -> None:
        self.original(key)
        super().touch(key)

    def watch_all(self) -> None:
        for key in [*self.holder]:
            self.original(key)
        self.is_all = True

    def original(self, key: Any) -> Any:
        if key not in self.before:
            self.before[key] = ABSENT if self.is_all else self.holder.get(key, ABSENT)
        return self.before[key]

    def restore(self) -> None:
        self._note_new()
        for key, value in self.before.items():
            if value is ABSENT:
                self.holder.pop(key, None)
            elif self.holder.get(key, ABSENT) is not value:
                self.holder[key] = value

    def _note_new(self) -> None:
        if self.is_all:
            for key in [*self.holder]:
                self.original(key)

    def writes(self) -> Iterator[PlaceWrite]:
        self._note_new()
        for key, value in self.before.items():
            now = self.holder.get(key, ABSENT)
            if now is not value or key in self.touched:
                yield PlaceWrite(self.holder, "item", key, now, str(key))


class ModulesSnapshot(NamesSnapshot):
    """Of `sys.modules`: what the function wrote itself. What is imported meanwhile stays."""

    def is_own(self, key: Any, value: Any) -> bool:
        return key in self.before and self.before[key] is not value

    def remove(self, key: Any) -> None:
        self.original(key)
        super().remove(key)


class ListSnapshot(Snapshot):
    """Of a list or deque."""

    def copy(self) -> Any:
        return list(self.holder)

    def touch(self, key: Any) -> None:
        size = len(self.holder)
        if type(key) is int and -size <= key < size:
            super().touch(key % size)

    def restore(self) -> None:
        if not _are(self.before, list(self.holder)):
            self.holder.clear()
            self.holder.extend(self.before)

    def is_own(self, at: int) -> bool:
        """Whether what stands at a position was put there, whatever was there before."""
        behind = len(self.holder) - len(self.before)
        return self._only_grew() and 0 < -at <= behind

    def _only_grew(self) -> bool:
        now = list(self.holder)
        return len(now) >= len(self.before) and all(
            at in self.touched or one is other
            for at, (one, other) in enumerate(zip(now, self.before))
        )

    def writes(self) -> Iterator[PlaceWrite]:
        if not self._only_grew():
            yield self._replaced()
            return
        now, known = list(self.holder), len(self.before)
        for at in self.touched:
            if at < known:
                label = f"{self.path}[{at}]"
                yield PlaceWrite(self.holder, "element", at, now[at], label)
        yield from self._pushed("append", now[known:])

    def _replaced(self) -> PlaceWrite:
        return PlaceWrite(self.holder, "replace", None, list(self.holder), self.path)

    def _pushed(self, kind: str, values: list[Any]) -> Iterator[PlaceWrite]:
        for value in values:
            yield PlaceWrite(self.holder, kind, None, value, self.path)


class DequeSnapshot(ListSnapshot):
    """Of a deque: what is pushed at one end may push others out at the other one."""

    def __init__(self, holder: Any, path: str) -> None:
        super().__init__(holder, path)
        self.pushed = {"append": 0, "appendleft": 0}

    def writes(self) -> Iterator[PlaceWrite]:
        behind, ahead = self.pushed.values()
        if not behind and not ahead:
            yield from super().writes()
            return
        if self.touched or (behind and ahead):
            yield self._replaced()
            return
        most = self.holder.maxlen
        kind = "append" if behind else "appendleft"
        before, now = self.before, list(self.holder)
        if ahead:
            before, now = before[::-1], now[::-1]
        gone = 0 if most is None else min(max(len(before) + behind + ahead - most, 0), len(before))
        kept = len(before) - gone
        if not _are(before[gone:], now[:kept]) or len(now) - kept > behind + ahead:
            yield self._replaced()
            return
        yield from self._pushed(kind, now[kept:])


class BytesSnapshot(Snapshot):
    """Of a bytearray or an array of the module `array`."""

    def copy(self) -> Any:
        return self.holder[:]

    def restore(self) -> None:
        if self.before != self.holder:
            self.holder[:] = self.before

    def writes(self) -> Iterator[PlaceWrite]:
        if self.before != self.holder:
            yield PlaceWrite(self.holder, "bytes", None, self.holder[:], self.path)


class SetSnapshot(Snapshot):
    def copy(self) -> Any:
        return dict.fromkeys(self.holder)

    def restore(self) -> None:
        if self.before.keys() != self.holder:
            self.holder.clear()
            self.holder.update(self.before)

    def writes(self) -> Iterator[PlaceWrite]:
        for value in {**self.before, **self.touched}:
            if value not in self.holder:
                yield PlaceWrite(self.holder, "discard", None, value, self.path)
        for value in self.holder:
            if value not in self.before or value in self.touched:
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
            if now is not value or name in self.touched:
                yield PlaceWrite(self.holder, "attribute", name, now, f"{self.path}.{name}")


class ClassSnapshot(Snapshot):
    """Of the attributes of a class."""

    def copy(self) -> Any:
        return dict(vars(self.holder))

    def restore(self) -> None:
        for name in [*vars(self.holder)]:
            if name not in self.before:
                type.__delattr__(self.holder, name)
        for name, value in self.before.items():
            if vars(self.holder).get(name, ABSENT) is not value:
                type.__setattr__(self.holder, name, value)

    def writes(self) -> Iterator[PlaceWrite]:
        held = vars(self.holder)
        for name in {**self.before, **held}:
            now = held.get(name, ABSENT)
            if now is not self.before.get(name, ABSENT) or name in self.touched:
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


def _are(these: list[Any], those: list[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(these) == len(those) and all(map(operator.is_, these, those))


def _kind_of(holder: dict[Any, Any]) -> Any:
    """Whose methods read and write a dictionary, whatever its own class makes of them."""
    return OrderedDict if isinstance(holder, OrderedDict) else dict


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
    if holder is sys.modules:
        return ModulesSnapshot(holder, path)
    for kind, made in _KINDS:
        if issubclass(type(holder), kind):
            return made(holder, path)
    return None


_KINDS: tuple[tuple[type, type[Snapshot]], ...] = (
    (dict, DictSnapshot),
    (list, ListSnapshot),
    (deque, DequeSnapshot),
    (set, SetSnapshot),
    (CellType, CellSnapshot),
    (np.ndarray, ContentSnapshot),
    (bytearray, BytesSnapshot),
    (array, BytesSnapshot),
)
