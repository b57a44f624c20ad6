"""The text of a generated call: its lines, and names for the objects that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOOPED = 200
"""From so many tensors on, one loop looks at them: Python takes long to compile a line each."""


def loops(count: int) -> bool:
    """Whether a loop is written for so many tensors."""
    return count >= LOOPED


class CallText:
    """Lines of a function whose globals are `namespace`."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.lines: list[str] = []
        self._indent = "    "
        self._consts: dict[int, str] = {}
        self._kept: list[Any] = []

    def add(self, line: str) -> None:
        """Write a line."""
        self.lines.append(self._indent + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines that are written meanwhile stand in a block."""
        self._indent += "    "
        try:
            yield
        finally:
            self._indent = self._indent[:-4]

    def const(self, value: Any) -> str:
        """A name for an object in the globals of the function."""
        name = self._consts.get(id(value))
        if name is None:
            name = self._consts[id(value)] = f"k{len(self._consts)}"
            self.namespace[name] = value
            self.keep(value)
        return name

    def keep(self, value: Any) -> None:
        """An object that is known by its id stays alive while the text is written."""
        self._kept.append(value)

    @property
    def const_names(self) -> list[str]:
        return list(self._consts.values())
