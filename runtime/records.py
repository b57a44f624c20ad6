"""Immutable classes of named fields: what `dataclass(frozen=True)` makes, in a third of the time.

`dataclasses` writes and compiles up to six methods for every class, which was a third of the time
that importing our modules takes. Here those that must be quick are written, in one text, and the
others are shared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(*, eq: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a class one of records, as `dataclasses.dataclass(frozen=True, eq=eq)` would.

    `dataclasses.field`, `fields` and `replace` know it.

    >>> @record()
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), dataclasses.replace(Point(1), y=2)
    (Point(x=1, y=0), True, Point(x=1, y=2))
    """

    def make(cls: type[T]) -> type[T]:
        made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        fields = dataclasses.fields(made)  # type: ignore[arg-type]
        for name, method in {**_written(cls, fields, eq), **_SHARED}.items():
            if name not in vars(cls):
                setattr(made, name, method)
        return made

    return make


def _written(
    cls: type, fields: Iterable[dataclasses.Field[Any]], eq: bool
) -> dict[str, FunctionType]:
    """The methods that would be slow if they did not know the names of the fields."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_made": dataclasses.MISSING}
    parameters, sets = ["self"], ["pass"]
    for each in fields:
        value, default = each.name, ""
        if each.default is not dataclasses.MISSING:
            known[f"_{each.name}"], default = each.default, f"=_{each.name}"
        elif each.default_factory is not dataclasses.MISSING:
            known[f"_{each.name}"], default = each.default_factory, "=_made"
            value = f"_{each.name}() if {each.name} is _made else {each.name}"
        parameters.append(each.name + default)
        sets.append(f"_set(self, {each.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        sets.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(sets)
    if eq:
        # Tuples, in which the same object is equal to itself, as NaN is not.
        own = "".join(f"self.{each.name}, " for each in fields if each.compare)
        others = own.replace("self.", "other.")
        text += (
            "\ndef __eq__(self, other):\n if other.__class__ is not self.__class__:\n"
            f"  return NotImplemented\n return ({own}) == ({others})"
            f"\ndef __hash__(self):\n return hash(({own}))"
        )
    made: dict[str, FunctionType] = {}
    exec(text, known, made)
    return made


def _repr(self: Any) -> str:
    fields = (each for each in dataclasses.fields(self) if each.repr)
    inner = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields)
    return f"{type(self).__qualname__}({inner})"


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {"__repr__": _repr, "__setattr__": _refuse_set, "__delattr__": _refuse_delete}
