"""The variables of a rewritten function, and attributes that it assigns to.

Variables are found in the cells that the functions inside of it share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any, Final

from ..core.state import state


class Undefined:
    """What a variable holds that nothing was assigned to."""

    def __repr__(self) -> str:
        return "not defined"


UNDEFINED: Final = Undefined()


class _Variable:
    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNDEFINED

    def put(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.cell.cell_contents = value
        elif self.get() is not UNDEFINED:
            del self.cell.cell_contents


class _Attribute:
    """An attribute of an object that the function names, which the recorder hears of."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name

    def get(self) -> Any:
        try:
            return _attribute(self.owner, self.name)
        except AttributeError:
            return UNDEFINED

    def announce(self) -> None:
        """Write it as it is, so that the recorder knows already of what branches write."""
        if state.recorder is None:
            return
        state.recorder.store_attribute(self.owner, self.name)
        value = self.get()
        setattr(self.owner, self.name, None if value is UNDEFINED else value)
        if value is UNDEFINED:
            delattr(self.owner, self.name)

    def put(self, value: Any) -> None:
        if self.get() is value:
            return
        if value is UNDEFINED:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


def _attribute(owner: Any, name: str) -> Any:
    return getattr(owner, name) if state.recorder is None else state.recorder.attribute(owner, name)


class Variables:
    """Variables and attributes by name; what is `global` is left to Python."""

    def __init__(self, names: Sequence[str], functions: Iterable[Any]) -> None:
        cells: dict[str, CellType] = {}
        globals_: dict[str, Any] = {}
        for function in functions:
            if isinstance(function, FunctionType):
                closure = function.__closure__ or ()
                cells.update(zip(function.__code__.co_freevars, closure, strict=True))
                globals_ = function.__globals__
        self._places: dict[str, _Variable | _Attribute] = {}
        for name in names:
            root, *path = name.split(".")
            if path:
                owner = _Variable(cells[root]).get() if root in cells else globals_.get(root)
                for each in path[:-1]:
                    owner = _attribute(owner, each)
                if not isinstance(getattr(type(owner), path[-1], None), property):
                    self._places[name] = _Attribute(owner, path[-1])
            elif name in cells:
                self._places[name] = _Variable(cells[name])

    def get(self, name: str) -> Any:
        place = self._places.get(name)
        return UNDEFINED if place is None else place.get()

    def take(self) -> dict[str, Any]:
        """What all of them hold, before they are written."""
        for place in self._places.values():
            if isinstance(place, _Attribute):
                place.announce()
        return {name: place.get() for name, place in self._places.items()}

    def put(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if name in self._places:
                self._places[name].put(value)
