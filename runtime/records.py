"""Immutable classes of named fields: what `dataclass(frozen=True)` and `NamedTuple` make, in a
quarter of the time.

`dataclasses` looks at every field and writes and compiles up to six methods for every class, which
was a third of the time that importing our modules takes. Here those methods that must be quick are
written when they are first needed, the others are shared, and what `dataclasses` would know is made
when it asks.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _TupleMaker(type):
        """Makes a class of tuples instead of each class that has `NamedTuple` for its base."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = namespace["__annotations__"]
            defaults = [namespace.pop(each) for each in fields if each in namespace]
            module = namespace["__module__"]
            made = collections.namedtuple(name, fields, defaults=defaults, module=module)
            for key, value in namespace.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_TupleMaker):
        """Like `typing.NamedTuple`, which compiles the annotation of each field to look at it.

        >>> class Point(NamedTuple):
        ...     x: int
        ...     y: int = 0
        >>> Point(1)._replace(y=2)
        Point(x=1, y=2)
        """


T = TypeVar("T")


class _Field(NamedTuple):
    name: str
    type: Any
    default: Any = dataclasses.MISSING
    factory: Any = dataclasses.MISSING
    compare: bool = True
    repr: bool = True


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(*, eq: bool = True, frozen: bool = True) -> Callable[[type[T]], type[T]]:
    """Make a class one of records, as `dataclasses.dataclass(frozen=frozen, eq=eq)` would.

    `dataclasses.field`, `fields` and `replace` know it; `replace` below is quicker. There are no
    class variables among its annotations. Records that are not frozen have no `eq`.

    >>> @record()
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), replace(Point(1), y=2)
    (Point(x=1, y=0), True, Point(x=1, y=2))
    """

    def make(cls: type[T]) -> type[T]:
        fields = _fields(cls)
        names = ("__init__", "__eq__", "__hash__") if eq and frozen else ("__init__",)
        methods: dict[str, Any] = {name: _Written(name, cls, frozen) for name in names}
        methods["__repr__"] = _repr
        for name, method in {**methods, **(_REFUSING if frozen else {})}.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        known: dict[str, Any] = {"_record_fields": fields, "__match_args__": tuple(fields)}
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            known[name] = _Asked(name, cls, fields, frozen)
        for name, value in known.items():
            setattr(cls, name, value)
        return cls

    return make


def _fields(cls: type) -> dict[str, _Field]:
    """The fields of a class, those of its bases first."""
    found: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(vars(base).get("_record_fields", {}))
    for name, type_ in inspect.get_annotations(cls).items():
        default = vars(cls).get(name, dataclasses.MISSING)
        if not isinstance(default, dataclasses.Field):
            found[name] = _Field(name, type_, default)
            continue
        given: dataclasses.Field[Any] = default
        found[name] = _Field(
            name, type_, given.default, given.default_factory, given.compare, given.repr
        )
        if given.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, given.default)
    return found


class _Written:
    """A method that is written when it is first needed."""

    def __init__(self, name: str, cls: type, frozen: bool) -> None:
        self._name, self._cls, self._frozen = name, cls, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        cls: Any = self._cls
        if self._name == "__init__":
            text, known = _init(cls, cls._record_fields, self._frozen)
        else:
            text, known = _comparison(self._name, cls._record_fields.values()), {}
        made: dict[str, FunctionType] = {}
        exec(text, known, made)
        if isinstance(vars(cls).get(self._name), _Written):
            setattr(cls, self._name, made[self._name])
        return vars(cls)[self._name].__get__(instance, owner)


class _Asked:
    """An attribute of the class that is made when `dataclasses` asks for it."""

    def __init__(self, name: str, cls: type, fields: dict[str, _Field], frozen: bool) -> None:
        self._name, self._cls, self._fields, self._frozen = name, cls, fields, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        fields = []
        for name, type_, default, factory, compare, repr_ in self._fields.values():
            kept = dataclasses.field(
                default=default, default_factory=factory, compare=compare, repr=repr_
            )
            fields.append((name, type_, kept))
        # Without a text of its own a dataclass gets its signature, which takes long to find.
        made = dataclasses.make_dataclass(
            self._cls.__name__, fields, init=False, repr=False, eq=False, frozen=self._frozen,
            namespace={"__doc__": "fields"},
        )  # fmt: skip
        found = getattr(made, self._name)
        setattr(self._cls, self._name, found)
        return found


def _init(cls: type, fields: dict[str, _Field], frozen: bool) -> tuple[str, dict[str, Any]]:
    """The text of `__init__`, and the names that it reads."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_made": dataclasses.MISSING}
    parameters, sets = ["self"], ["pass"]
    for each in fields.values():
        value, default = each.name, ""
        if each.default is not dataclasses.MISSING:
            known[f"_{each.name}"], default = each.default, f"=_{each.name}"
        elif each.factory is not dataclasses.MISSING:
            known[f"_{each.name}"], default = each.factory, "=_made"
            value = f"_{each.name}() if {each.name} is _made else {each.name}"
        parameters.append(each.name + default)
        sets.append(
            f"_set(self, {each.name!r}, {value})" if frozen else f"self.{each.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        sets.append("self.__post_init__()")
    return f"def __init__({', '.join(parameters)}):\n " + "\n ".join(sets), known


def _comparison(name: str, fields: Iterable[_Field]) -> str:
    """The text of `__eq__` or `__hash__`."""
    # Tuples, in which the same object is equal to itself, as NaN is not.
    own = "".join(f"self.{each.name}, " for each in fields if each.compare)
    if name == "__hash__":
        return f"def __hash__(self):\n return hash(({own}))"
    others = own.replace("self.", "other.")
    return (
        "def __eq__(self, other):\n if other.__class__ is not self.__class__:\n"
        f"  return NotImplemented\n return ({own}) == ({others})"
    )


def _repr(self: Any) -> str:
    fields = (each.name for each in self._record_fields.values() if each.repr)
    inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields)
    return f"{type(self).__qualname__}({inner})"


def replace(record: T, /, **changes: Any) -> T:
    """A record with other values for some fields.

    `dataclasses.replace` asks the class for what is made for that alone, in a third of a
    millisecond.
    """
    given: Any = record
    fields = given._record_fields
    values = [changes.pop(name) if name in changes else getattr(given, name) for name in fields]
    made: T = given.__class__(*values, **changes)  # which refuses what are no fields
    return made


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_REFUSING = {"__setattr__": _refuse_set, "__delattr__": _refuse_delete, "__replace__": replace}
