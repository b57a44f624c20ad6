"""Modules that hold modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from .module import Module


def _position(index: int, size: int) -> int:
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


class _Numbered(Module):
    """Children named "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[Module]:
        return iter([self.__dict__[name] for name in self._module_names])

    def _name(self, index: int) -> str:
        return list(self._module_names)[_position(index, len(self))]

    def _renumber(self, modules: Iterable[Module]) -> None:
        kept = list(modules)
        for name in list(self._module_names):
            delattr(self, name)
        for number, module in enumerate(kept):
            self.add_module(str(number), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(list(self._module_names.keys())[index])
        return self.__dict__[self._name(index)]

    def _like(self, names: list[str]) -> Module:
        return type(self)(*(self.__dict__[name] for name in names))

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self)
        del kept[index]
        self._renumber(kept)

    def insert(self, index: int, module: Module) -> None:
        """Put `module` before position `index`."""
        kept = list(self)
        kept.insert(index, module)
        self._renumber(kept)

    def append(self, module: Module) -> Any:
        """Put `module` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Put `modules` at the end."""
        for module in list(modules):
            self.append(module)
        return self


class Sequential(_Numbered):
    """Modules called one after another, each on the result of the one before.

    Takes the modules, or one OrderedDict of names and modules.

    >>> import tgraph as tg
    >>> net = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.ReLU(), tg.nn.Linear(8, 2))
    >>> net(tg.ones(3, 4)).shape
    tgraph.Size([3, 2])
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: Mapping[str, Module], /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = len(args) == 1 and isinstance(args[0], Mapping)
        pairs = args[0].items() if named else ((str(at), each) for at, each in enumerate(args))
        for name, module in pairs:
            self.add_module(name, module)

    def _like(self, names: list[str]) -> Module:
        return type(self)(OrderedDict((name, self.__dict__[name]) for name in names))

    def forward(self, input: Any) -> Any:
        for name in self._module_names:
            input = self.__dict__[name](input)
        return input


class ModuleList(_Numbered):
    """A list of modules that are parts of the module that owns it.

    >>> import tgraph.nn as nn
    >>> layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _like(self, names: list[str]) -> Module:
        return type(self)(self.__dict__[name] for name in names)

    def add_module(self, name: str, module: Module | None) -> None:
        super().add_module(name, module)
        _extend_path(self, name)

    def _set_path(self, path: str) -> None:
        super()._set_path(path)
        for name in self._module_names:
            _extend_path(self, name)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        self.extend(modules)
        return self

    def pop(self, index: int = -1) -> Module:
        """Take the module at `index` out."""
        module: Module = self[index]
        del self[index]
        return module


class ModuleDict(Module):
    """Modules by name, that are parts of the module that owns it.

    >>> import tgraph.nn as nn
    >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})
    >>> heads["b"]
    Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def add_module(self, name: str, module: Module | None) -> None:
        super().add_module(name, module)
        _extend_path(self, name)

    def _set_path(self, path: str) -> None:
        super()._set_path(path)
        for name in self._module_names:
            _extend_path(self, name)

    def __getitem__(self, key: str) -> Module:
        if key not in self._module_names:
            raise KeyError(key)
        module: Module = self.__dict__[key]
        return module

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_names)

    def __contains__(self, key: str) -> bool:
        return key in self._module_names

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._module_names.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return [self[name] for name in self]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return [(name, self[name]) for name in self]

    def pop(self, key: str) -> Module:
        """Take the module called `key` out."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Take all modules out."""
        for name in list(self):
            del self[name]

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name, in place of those that have the name."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self.add_module(name, module)


def _extend_path(container: Module, name: str) -> None:
    """The container is never called itself, so its children carry its path before their name."""
    child = container.__dict__[name]
    if child is not None:
        child._set_path(f"{container._path}.{name}" if container._path else name)
