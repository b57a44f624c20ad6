"""Modules that hold modules."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar, overload

from .module import Module, indented

Self = TypeVar("Self", bound="_Numbered")


class Container(Module):
    """Deprecated: Module itself has all that this had."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def position(index: Any, size: int) -> int:
    """Where an index, which may be negative, points in a list of `size`."""
    at = operator.index(index)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of range")
    return at % size


class _Numbered(Module):
    """Children named "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.__dict__[name] for name in self._module_names])

    def _name(self, index: int) -> str:
        return list(self._module_names)[position(index, len(self))]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(number): module for number, module in enumerate(list(modules))}

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._like(list(self._module_names.keys())[index])
        return self.__dict__[self._name(index)]

    def _like(self, names: list[str]) -> Module:
        return type(self)(*(self.__dict__[name] for name in names))

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        kept = list(self)
        if isinstance(index, slice):
            del kept[index]
        else:
            del kept[position(index, len(kept))]
        self._renumber(kept)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self: Self, module: Module) -> Self:
        """Put `module` at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Put `modules` at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: Any = -1) -> Any:
        """Take the module at `key` out."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Modules called one after another, each on the result of the one before.

    Takes the modules, or one OrderedDict of names and modules.

    >>> import tgraph as tg
    >>> net = tg.nn.Sequential(tg.nn.Linear(4, 8), tg.nn.ReLU(), tg.nn.Linear(8, 2))
    >>> net(tg.ones(3, 4)).shape
    tgraph.Size([3, 2])
    >>> len(net + net), len(net * 3)
    (6, 9)
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
        """The result of the last module."""
        for name in self._module_names:
            input = self.__dict__[name](input)
        return input

    def insert(self, index: int, module: Module) -> Sequential:
        """Put `module` before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        kept = list(self)
        kept.insert(index, module)
        self._renumber(kept)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_of_sequential(other))

    def __iadd__(self, other: Any) -> Sequential:
        return self.extend(_of_sequential(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * self._times(other)))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (self._times(other) - 1))

    def _times(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other


def _of_sequential(other: Any) -> list[Module]:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return list(other)


class ModuleList(_Numbered):
    """A list of modules that are parts of the module that owns it.

    >>> import tgraph.nn as nn
    >>> layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _like(self, names: list[str]) -> Module:
        return type(self)(self.__dict__[name] for name in names)

    def _adopt(self, name: str, child: Module) -> None:
        _extend_path(self, name, child)

    def _set_path(self, path: str) -> None:
        super()._set_path(path)
        _extend_paths(self)

    def insert(self, index: int, module: Module) -> None:
        """Put `module` before position `index`."""
        kept = list(self)
        kept.insert(index, module)
        self._renumber(kept)

    def extend(self: Self, modules: Iterable[Module]) -> Self:
        """Put `modules` at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        return super().extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []  # first, last and text of modules that look alike
        for at, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], at, text)
            else:
                runs.append((at, at, text))
        lines = [
            f"({first}): {text}" if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]  # fmt: skip
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(map(indented, lines)) + "\n)"


class ModuleDict(Module):
    """Modules by name, that are parts of the module that owns it.

    >>> import tgraph.nn as nn
    >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})
    >>> heads["b"]
    Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def _adopt(self, name: str, child: Module) -> None:
        _extend_path(self, name, child)

    def _set_path(self, path: str) -> None:
        super()._set_path(path)
        _extend_paths(self)

    def __getitem__(self, key: str) -> Any:
        if key not in self._module_names:
            raise KeyError(key)
        return self.__dict__[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_names)

    def __contains__(self, key: str) -> bool:
        return key in self._module_names

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()  # type: ignore[no-any-return]

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()  # type: ignore[no-any-return]

    def items(self) -> ItemsView[str, Any]:
        """Names and modules."""
        return self._modules.items()  # type: ignore[no-any-return]

    def pop(self, key: str) -> Any:
        """Take the module called `key` out."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name, in place of those that have the name."""
        for name, module in pairs_of(modules, "ModuleDict", "ModuleDict"):
            self[name] = module


def pairs_of(given: Any, kind: str, caller: str) -> Iterator[tuple[Any, Any]]:
    """Names and values of what `update` of a dictionary of modules or parameters takes."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{caller}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    if isinstance(given, Mapping) or hasattr(given, "items"):
        yield from given.items()
        return
    for at, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{at} should be Iterable; is{type(pair).__name__}"
            )
        found = list(pair)
        if len(found) != 2:
            raise ValueError(
                f"{kind} update sequence element #{at} has length {len(found)}; 2 is required"
            )
        yield found[0], found[1]


def _extend_path(container: Module, name: str, child: Module) -> None:
    """The container is never called itself, so its children carry its path before their name."""
    child._set_path(f"{container._path}.{name}" if container._path else name)


def _extend_paths(container: Module) -> None:
    for name, child in container._children_with_duplicates():
        _extend_path(container, name, child)
