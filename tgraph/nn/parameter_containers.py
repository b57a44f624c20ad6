"""Parameters in lists and dictionaries that are modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any

from ..core.tensor import Tensor
from .container import pairs_of, position
from .module import Module
from .parameter import Parameter


def _as_parameter(value: Any) -> Any:
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _described(value: Any, kind: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    sizes = "x".join(str(size) for size in value.shape)
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind} of size {sizes}{place}]"


class ParameterList(Module):
    """A list of parameters that are parts of the module that owns it.

    Tensors become parameters; other values are kept as they are.

    >>> import tgraph as tg
    >>> factors = tg.nn.ParameterList([tg.ones(2), tg.zeros(3)])
    >>> factors
    ParameterList(
        (0): Parameter containing: [tgraph.float32 of size 2]
        (1): Parameter containing: [tgraph.float32 of size 3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self[at] for at in range(*index.indices(len(self))))
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: int, param: Any) -> None:
        setattr(self, str(position(index, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[at] for at in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def append(self, value: Any) -> ParameterList:
        """Put a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Put values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line for each value."""
        return "\n".join(
            f"  ({at}): {_described(each, getattr(each, 'dtype', None))}"
            for at, each in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name, that are parts of the module that owns it.

    Tensors become parameters; other values are kept as they are.

    >>> import tgraph as tg
    >>> weights = tg.nn.ParameterDict({"left": tg.ones(2), "right": tg.zeros(3)})
    >>> weights["right"].shape, list(weights.state_dict())
    (tgraph.Size([3]), ['left', 'right'])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(list(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, which becomes `default` where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take the value of `key` out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last key and its value out."""
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary that has `default` for each of `keys`."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values by name, in place of those that have the name.

        Those of a plain dictionary come in the order of their names, as in PyTorch.
        """
        pairs = pairs_of(parameters, "ParameterDict", "ParametersDict")
        for name, value in sorted(pairs) if type(parameters) is dict else pairs:
            self[name] = value

    def extra_repr(self) -> str:
        """One line for each value."""
        lines = [f"  ({key}): {_described(each, _kind(each))}" for key, each in self.items()]
        return "\n".join(lines)

    def __or__(self, other: Mapping[str, Any]) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        merged = ParameterDict(list(other.items()))
        merged.update(self)
        return merged

    def __ior__(self, other: Mapping[str, Any]) -> ParameterDict:
        self.update(other)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def _kind(value: Any) -> str:
    return str(value.type()) if isinstance(value, Tensor) else ""
