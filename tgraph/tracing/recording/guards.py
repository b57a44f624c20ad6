"""What a compiled plan takes for granted about the Python world around the function.

A Guard is one fact that was read while the function was traced (see `recorder`) and that must hold
for the plan to be run again: a value found at a place, by identity or by value, a length, the
order of keys, that there is nothing at a place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...runtime.device import Device
from ...runtime.dtypes import DType
from ...runtime.records import record

_BY_VALUE = (int, float, str, bytes, complex, np.generic)
_SINGLETONS = (bool, type(None), type(...), DType, Enum)
# Immutable, and compared by value where they are no numbers.
_COMPARED = frozenset({int, str, bytes, complex, slice, range, frozenset, Device})


def is_a(value: Any, kinds: Any) -> bool:
    """isinstance by the type alone: it runs no code of the user's (__class__, __getattr__)."""
    return issubclass(type(value), kinds)


def special_methods(class_: type) -> list[Any]:
    """What Python itself may call of a class and its bases: names and what stands there."""
    return [
        each
        for kind in class_.__mro__
        if kind is not object
        for name, found in vars(kind).items()
        if name[:2] == "__" and name not in _NO_METHODS
        for each in (name, found)
    ]


_NO_METHODS = frozenset({
    "__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__slots__",
    "__firstlineno__", "__static_attributes__", "__annotate__", "__abstractmethods__",
    "__annotations_cache__", "__slotnames__", "__annotate_func__",
})  # fmt: skip


def same_static(before: Any, now: Any) -> bool:
    """Whether a static value is still the same: plain values by value, all else by identity."""
    if before is now:
        return True
    if type(before) is not type(now):
        return False
    if type(now) is float:
        return struct.pack("<d", before) == struct.pack("<d", now)  # tells -0.0 and NaN apart
    if is_a(now, tuple):
        return len(before) == len(now) and all(map(same_static, before, now))
    if is_a(now, np.generic):
        return before.dtype == now.dtype and before.tobytes() == now.tobytes()
    if type(now) is frozenset:  # tells 1, 1.0 and True apart
        return before == now and {*map(_typed, before)} == {*map(_typed, now)}
    if type(now) is complex:
        return repr(before) == repr(now)
    if type(now) in _COMPARED:  # of the user's own kinds: attributes may differ
        return bool(before == now)
    return False


def _typed(value: Any) -> tuple[type, Any]:
    return type(value), value


def same_elements(before: list[Any], now: Iterable[Any]) -> bool:
    """Whether elements are the same, in the same order, as `same_static` sees them."""
    found = list(now)
    if [*map(id, before)] == [*map(id, found)]:
        return True
    return len(before) == len(found) and all(map(same_static, before, found))


def same_content(before: Any, now: Any) -> bool:
    """Whether an array still has the same type, shape and bytes as its copy."""
    if before.dtype != now.dtype or before.shape != now.shape:
        return False
    return bool(before.tobytes() == now.tobytes())


GONE = object()


@record()
class Guard:
    """`code`, in a namespace, must give what it gave: `expected`.

    `same` compares the two; without it they must be one object. Where `condition`, `code` is no
    value of the user's but True or False, and `path` tells what for. Where `code` is a place that
    can be written into, it is `access` (such as ``['rate']``) of the object `holder`.
    """

    path: str
    code: str
    expected: Any
    same: Callable[[Any, Any], bool] | None = None
    condition: bool = False
    holder: Any = None
    access: str = ""

    def now(self, namespace: dict[str, Any]) -> Any:
        """What `code` gives now, GONE where there is nothing any more."""
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
        return self.same is not None and self.same(self.expected, found)

    def reason(self, namespace: dict[str, Any]) -> str:
        """Why it does not hold."""
        found = self.now(namespace)
        if self.condition:
            return self.path
        if found is GONE:
            return f"`{self.path}` is gone"
        if is_a(self.expected, type) and is_a(found, type):
            return f"`{self.path}` changed: {self.expected.__name__} -> {found.__name__}"
        if self.same in (same_elements, same_content):
            return f"`{self.path}` changed"
        if is_plain(self.expected):
            return f"`{self.path}` changed: {brief(self.expected)} -> {brief(found)}"
        return f"`{self.path}` is another object: {brief(found)}"


def brief(value: Any) -> str:
    """A value in the words of a reason."""
    if is_a(value, Tensor):
        return f"a tensor of type {value._type}"
    if is_plain(value) or is_a(value, (slice, range)):
        return repr(value)
    return f"a {type(value).__name__}"


def is_plain(value: Any) -> bool:
    """Numbers, strings, flags, dtypes, and tuples of them: immutable, compared by value."""
    if is_a(value, tuple):
        return all(is_plain(each) for each in value)
    return is_a(value, (*_SINGLETONS, Device)) or type(value) in _BY_VALUE


def is_static(value: Any) -> bool:
    """Whether `same_static` compares a value by more than its identity, or it is one of a kind."""
    if is_a(value, tuple):
        return all(is_static(each) for each in value)
    return type(value) in (*_COMPARED, float) or is_a(value, (*_SINGLETONS, np.generic))
