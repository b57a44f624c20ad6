"""What was found out once holds for every graph of this process."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memo(Generic[Key, Value]):
    """A dict that forgets everything once it has `limit` entries, so that it cannot grow for ever.

    Values are found from their keys alone: two threads that find one at a time find the same.
    """

    _all: ClassVar[list[Memo[Hashable, object]]] = []

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: dict[Key, Value] = {}
        Memo._all.append(self)  # type: ignore[arg-type]

    def get(self, key: Key) -> Value | None:
        return self._found.get(key)

    def keep(self, key: Key, value: Value) -> Value:
        """`value`, or what was kept for an equal key before."""
        if len(self._found) >= self._limit:
            self._found = {}
        return self._found.setdefault(key, value)

    @classmethod
    def forget_all(cls) -> None:
        """Empty every memo: for those who change what values are made by."""
        for each in cls._all:
            each._found = {}
