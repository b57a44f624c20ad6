"""The parameters, buffers and modules of a module as dictionaries, which PyTorch's are."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSet
from typing import Any


class Registry(MutableMapping[str, Any]):
    """The members of one kind of a module: what `_parameters`, `_buffers` and `_modules` give.

    Members live in the module like any attribute, and the module keeps their names. This shows
    both as one dictionary, and writes into both.
    """

    __slots__ = ("_module", "_names")

    def __init__(self, module: Any, names: dict[str, Any]) -> None:
        self._module = module
        self._names = names

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._module.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._names:
            self._names[name] = True
        self._module.__dict__[name] = value
        if hasattr(value, "_set_path"):
            self._module._adopt(name, value)

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._module.__dict__.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[str, Any]:
        """The members as a dictionary of its own."""
        return dict(self.items())


class NonPersistent(MutableSet[str]):
    """The names of the buffers that are no part of the `state_dict`."""

    __slots__ = ("_names",)

    def __init__(self, names: dict[str, bool]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return self._names.get(name, True) is False  # type: ignore[call-overload, no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, persistent in self._names.items() if not persistent])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def add(self, value: str) -> None:
        """Leave a buffer out of the `state_dict`."""
        if value in self._names:
            self._names[value] = False

    def discard(self, value: str) -> None:
        """Take a buffer into the `state_dict`."""
        if value in self._names:
            self._names[value] = True
