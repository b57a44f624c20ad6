"""Places of the Python world whose values change from call to call, and become inputs.

A number or tensor that a function reads from a global, a variable of an enclosing function, an
attribute or an item is fixed in the plan at first, guarded there. Once it has changed, the place is
read at each call, as if its value were an argument: while the function is traced, something that
stands in for it lies there (`standing_in`). A number whose value the function asks for stays fixed.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import CellType
from typing import Any

from ...core.tensor import Tensor
from ...runtime.records import record
from .guards import GONE, Guard, is_a, same_static


@record(eq=False)
class Place:
    """Where a value is read: `access`, such as ``['rate']``, of the object `holder`."""

    path: str
    holder: Any
    access: str

    @property
    def key(self) -> tuple[int, str]:
        return id(self.holder), self.access

    def now(self) -> Any:
        """What lies there now, GONE where there is nothing."""
        return Guard(self.path, f"holder{self.access}", None).now({"holder": self.holder})

    def put(self, value: Any) -> None:
        if self.access.startswith(".__dict__["):  # of a class
            type.__setattr__(self.holder, literal_eval(self.access[10:-1]), value)
        elif self.access.startswith(".") and not isinstance(self.holder, CellType):  # in a slot
            object.__setattr__(self.holder, self.access[1:], value)
        else:
            exec(f"holder{self.access} = value", {"holder": self.holder, "value": value})


@record(eq=False, frozen=False)
class Places:
    """What is known of the places that one function reads."""

    _moving: dict[tuple[int, str], Place] = field(default_factory=dict)
    _fixed: set[tuple[int, str]] = field(default_factory=set)
    _announced: set[tuple[int, str]] = field(default_factory=set)

    def note(self, guards: Iterable[Guard], namespace: dict[str, Any]) -> None:
        """Remember the places among guarded ones where another value of the same kind lies."""
        for guard in guards:
            if guard.holder is None or not can_move(guard.expected):
                continue
            now = guard.now(namespace)
            if now is not GONE and _same_kind(guard.expected, now) and not guard.accepts(now):
                place = Place(guard.path, guard.holder, guard.access)
                self._moving[place.key] = place

    def take(self) -> list[Place]:
        """The places that are to be inputs."""
        return [
            place
            for key, place in self._moving.items()
            if key not in self._fixed and can_move(place.now())
        ]

    def fix(self, places: Iterable[Place]) -> None:
        """Their values were asked for: fixed from now on."""
        self._fixed.update(place.key for place in places)

    def forget(self, places: Iterable[Place]) -> None:
        """They are not read any more."""
        for place in places:
            self._moving.pop(place.key, None)

    def news(self, places: Iterable[Place]) -> str:
        """What the reason for a plan says of places that are inputs for the first time."""
        new = [each for each in places if each.key not in self._announced]
        self._announced.update(each.key for each in new)
        return "".join(f"; `{each.path}` is an input from now on" for each in new)


def is_number(value: Any) -> bool:
    """Whether a value is a Python number that can become an input."""
    return type(value) in (float, int)


def can_move(value: Any) -> bool:
    return is_number(value) or is_a(value, Tensor)


def moved(before: Any, now: Any) -> bool:
    """Whether a number is another one of the same kind."""
    return is_number(now) and type(before) is type(now) and not same_static(before, now)


def _same_kind(before: Any, now: Any) -> bool:
    return type(before) is type(now) or (is_a(before, Tensor) and is_a(now, Tensor))


@contextmanager
def standing_in(places: Sequence[Place], stand_ins: Sequence[Any]) -> Iterator[None]:
    """What stands in for values, in their places."""
    before: list[tuple[Place, Any]] = []
    try:
        for place, stand_in in zip(places, stand_ins, strict=True):
            before.append((place, place.now()))
            place.put(stand_in)
        yield
    finally:
        for place, value in before:
            place.put(value)
