"""What a file may name: types of data, and how values of them are made.

Each of these functions looks at its arguments first, as whoever wrote the file chose them. Types of
the user's come in by `user_globals.py`, and are called as they are.
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..core.layouts import Layout, layout_named, sparse_coo, sparse_csc, sparse_csr
from ..core.tensor import Size, Tensor
from ..nn.parameter import Parameter, rebuild_parameter, rebuild_parameter_with_state
from ..ops.generator import Generator, generator_at
from ..ops.pickling import (
    rebuild_from_type,
    rebuild_meta_tensor,
    rebuild_tensor,
    rebuild_tensor_as,
)
from ..ops.sparse_methods import rebuild_sparse_tensor
from ..ops.storage import UntypedStorage
from ..ops.typed import NAMES, STORAGES, TypedStorage
from ..runtime.device import Device
from ..runtime.dtypes import ALL_DTYPES, DType, dtype_named
from .errors import LoadError
from .user_globals import SAFE

# --- keys --------------------------------------------------------------------------------------

_PLAIN = (str, int, float, complex, bool, bytes, type(None), DType, Device, Tensor, Size)
_MOST_PARTS = 64
_MOST_ELEMENTS = 4096
"""Of sets in keys, which are counted as often as they are shared."""
_MOST_ALIKE = 64
"""Keys of one container that have the same hash."""


def checked_key(key: Any) -> Any:
    """A key of a dict or element of a set, which Python can hash and compare in no time.

    The hash of tuples of tuples follows every way through them, as equality of sets of sets does,
    of which a few bytes of a pickle can make more than there is time for.
    """
    waiting, parts, elements = [key], 0, 0
    while waiting:
        each = waiting.pop()
        if type(each) is frozenset:
            elements += 1 + len(each)
            if elements > _MOST_ELEMENTS:
                raise LoadError(f"a key of a dict has sets of more than {_MOST_ELEMENTS} elements")
            parts -= len(each)
            waiting += each
            continue
        parts += 1
        if parts > _MOST_PARTS:
            raise LoadError(f"a key of a dict has more than {_MOST_PARTS} parts")
        if type(each) in (tuple, Size):
            waiting += each[: _MOST_PARTS + 1]
        elif not isinstance(each, _PLAIN) and type(each) not in SAFE:
            raise LoadError(f"a key of a dict cannot be a {type(each).__name__}")
    return key


def checked_keys(keys: Iterable[Any], hashes: Counter[int] | None = None) -> list[Any]:
    """Keys of one container, which has others with these `hashes`, if any.

    Numbers and tuples can be chosen so that their hashes are equal: each of them would be compared
    with all others.
    """
    hashes = Counter() if hashes is None else hashes
    found = []
    for key in keys:
        found.append(checked_key(key))
        if type(key) in (str, bytes):  # nobody can choose their hashes
            continue
        number = hash(key)
        hashes[number] += 1
        if hashes[number] > _MOST_ALIKE:
            raise LoadError(f"more than {_MOST_ALIKE} keys of a container have the same hash")
    return found


# --- values of our types -----------------------------------------------------------------------


def _check(holds: bool, name: str, arguments: tuple[Any, ...]) -> None:
    if not holds:
        kinds = ", ".join(type(each).__name__ for each in arguments[:8])
        raise LoadError(f"{name} is made of other arguments than ({kinds}): the file is damaged")


_MOST_AXES = 64


def _are_ints(given: Any) -> bool:
    """Whether `given` are sizes, of no more axes than NumPy has."""
    if type(given) not in (tuple, list, Size) or len(given) > _MOST_AXES:
        return False
    return all(type(each) is int for each in given)


def _are_flags(given: Any) -> bool:
    """Whether `given` says of names whether they hold, as metadata of tensors do."""
    return type(given) is dict and all(
        type(name) is str and type(holds) is bool for name, holds in given.items()
    )


def _tensor(function: Callable[..., Tensor], name: str, counts: range) -> Callable[..., Any]:
    """A function that makes a tensor of a storage, behind a look at the arguments."""

    def make(*arguments: Any) -> Tensor:
        _check(len(arguments) in counts, name, arguments)
        storage, offset, size, stride, *more = arguments
        fits = isinstance(storage, TypedStorage | UntypedStorage) and type(offset) is int
        fits = fits and _are_ints(size) and _are_ints(stride) and len(size) == len(stride)
        fits = fits and all(type(flag) is bool for flag in more[:1])
        if len(arguments) == counts[-1] and len(counts) > 1 and more[-1] is not None:
            fits = fits and _are_flags(more[-1])
        _check(fits, name, arguments)
        if function is rebuild_tensor_as:
            _check(isinstance(more[2], DType), name, arguments)
        else:
            _check(isinstance(storage, TypedStorage), name, arguments)
        try:
            return function(storage, offset, tuple(size), tuple(stride), *more)
        except RuntimeError as error:  # places outside of the storage, integers with a gradient
            raise LoadError(f"{name}: {error}: the file is damaged") from error

    return make


def _parameter(*arguments: Any) -> Any:
    name = "a Parameter"
    _check(len(arguments) in (3, 4), name, arguments)
    data, requires_grad = arguments[:2]
    _check(type(data) is Tensor and type(requires_grad) is bool, name, arguments)
    if requires_grad and not data.dtype.is_differentiable:
        raise LoadError("a Parameter of integers requires a gradient: the file is damaged")
    made = rebuild_parameter(data, requires_grad)
    if len(arguments) == 4:
        made.__dict__.update(_attributes(name, arguments))
    return made


def _attributes(name: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The attributes that the user gave a tensor, which come last; none of the tensor's own."""
    state = arguments[-1] or {}
    fits = type(state) is dict and all(type(each) is str for each in state)
    _check(fits and not any(hasattr(Tensor, each) for each in state), name, arguments)
    return state


def _size(*arguments: Any) -> Size:
    _check(len(arguments) == 1 and _are_ints(arguments[0]), "a Size", arguments)
    return Size(arguments[0])


def _device(*arguments: Any) -> Device:
    kinds = tuple(map(type, arguments))
    _check(kinds in ((str,), (str, int)), "a device", arguments)
    try:
        return Device(*arguments)
    except RuntimeError as error:
        raise LoadError(f"{error!s:.200}") from error


def _dtype(*arguments: Any) -> DType:
    _check(len(arguments) == 1 and type(arguments[0]) is str, "a dtype", arguments)
    return dtype_named(arguments[0])


def _generator(*arguments: Any) -> Generator:
    fits = tuple(map(type, arguments)) == (int, int, Device)
    _check(fits, "a Generator", arguments)
    try:
        return generator_at(*arguments)
    except RuntimeError as error:  # of a device that is not here
        raise LoadError(f"a Generator: {error}") from error


def _ordered_dict(*arguments: Any) -> OrderedDict[Any, Any]:
    if not arguments:
        return OrderedDict()
    pairs = arguments[0] if len(arguments) == 1 else None
    fits = type(pairs) is list and all(type(e) in (list, tuple) and len(e) == 2 for e in pairs)
    _check(fits, "an OrderedDict", arguments)
    assert pairs is not None
    keys = checked_keys(key for key, _ in pairs)
    return OrderedDict(zip(keys, (value for _, value in pairs), strict=True))


def _counter(*arguments: Any) -> Counter[Any]:
    fits = not arguments or (len(arguments) == 1 and type(arguments[0]) is dict)
    _check(fits, "a Counter", arguments)
    return Counter(*arguments)


_FACTORIES = (int, float, str, bool, list, dict, set, tuple, OrderedDict)


def _default_dict(*arguments: Any) -> defaultdict[Any, Any]:
    fits = len(arguments) == 1 and any(arguments[0] is each for each in (None, *_FACTORIES))
    _check(fits, "a defaultdict", arguments)
    return defaultdict(*arguments)


def _set(kind: type) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        fits = len(arguments) == 1 and type(arguments[0]) is list
        _check(fits or not arguments, f"a {kind.__name__}", arguments)
        return kind(checked_keys(arguments[0] if arguments else ()))

    return make


def _byte_array(*arguments: Any) -> bytearray:
    kinds = tuple(map(type, arguments))
    _check(kinds in ((), (bytes,), (bytearray,), (str, str)), "a bytearray", arguments)
    return bytearray(_encoded(*arguments)) if len(arguments) == 2 else bytearray(*arguments)


def _encoded(*arguments: Any) -> bytes:
    fits = tuple(map(type, arguments)) == (str, str) and arguments[1] in ("latin1", "latin-1")
    _check(fits, "bytes", arguments)
    return codecs.encode(*arguments)


def _complex(*arguments: Any) -> complex:
    fits = len(arguments) == 2 and all(type(each) in (int, float) for each in arguments)
    _check(fits, "a complex number", arguments)
    return complex(*arguments)


def _layout(*arguments: Any) -> Layout:
    _check(tuple(map(type, arguments)) == (str,), "a layout", arguments)
    try:
        return layout_named(*arguments)
    except ValueError as error:
        raise LoadError(f"the file has tensors of another layout: {error}") from error


def _sparse(*arguments: Any) -> Tensor:
    name = "a sparse tensor"
    _check(len(arguments) == 2 and type(arguments[1]) is tuple, name, arguments)
    layout, data = arguments
    count = (
        {sparse_coo: 2, sparse_csr: 3, sparse_csc: 3}.get(layout)
        if isinstance(layout, Layout)
        else None
    )
    fits = count is not None and count < len(data) <= 4
    fits = fits and all(type(each) is Tensor for each in data[:count]) and _are_ints(data[count])
    _check(fits and all(type(each) is bool for each in data[count + 1 :]), name, arguments)
    try:
        return rebuild_sparse_tensor(layout, data)
    except (RuntimeError, TypeError, IndexError) as error:
        raise LoadError(f"{name}: {error}: the file is damaged") from error


def _of_type(*arguments: Any) -> Any:
    _check(len(arguments) == 4, "a tensor of a class", arguments)
    function, cls, inner, own = arguments
    _check(type(inner) is tuple, "a tensor of a class", arguments)
    if cls is Tensor or cls is Parameter:
        _attributes("a tensor of a class", arguments)
    made = _CALLS[id(function)][1](*inner) if id(function) in _CALLS else None
    known = isinstance(made, Tensor) and isinstance(cls, type) and issubclass(cls, Tensor)
    _check(known, "a tensor of a class", arguments)
    return rebuild_from_type(lambda: made, cls, (), own)


def _meta(*arguments: Any) -> Any:
    name = "a tensor on meta"
    _check(len(arguments) == 4, name, arguments)
    dtype, size, stride, requires_grad = arguments
    fits = isinstance(dtype, DType) and _are_ints(size) and _are_ints(stride)
    fits = fits and len(size) == len(stride) and type(requires_grad) is bool
    _check(fits and min((0, *size, *stride)) == 0, name, arguments)
    try:
        return rebuild_meta_tensor(dtype, tuple(size), tuple(stride), requires_grad)
    except (RuntimeError, OverflowError) as error:
        raise LoadError(f"{name}: {error}: the file is damaged") from error


def rebuild_plain_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """The tensor at a place in a storage, as old files tell of it."""
    return rebuild_tensor(storage, storage_offset, size, stride)


_CALLABLE: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (rebuild_tensor, _tensor(rebuild_tensor, "a tensor", range(6, 8))),
    (rebuild_tensor_as, _tensor(rebuild_tensor_as, "a tensor", range(7, 9))),
    (rebuild_plain_tensor, _tensor(rebuild_plain_tensor, "a tensor", range(4, 5))),
    (rebuild_parameter, _parameter), (rebuild_parameter_with_state, _parameter),
    (rebuild_from_type, _of_type), (Size, _size),
    (Device, _device), (dtype_named, _dtype), (generator_at, _generator),
    (OrderedDict, _ordered_dict), (Counter, _counter), (defaultdict, _default_dict),
    (set, _set(set)), (frozenset, _set(frozenset)), (bytearray, _byte_array),
    (complex, _complex), (codecs.encode, _encoded), (layout_named, _layout),
    (rebuild_sparse_tensor, _sparse), (rebuild_meta_tensor, _meta),
)  # fmt: skip
_CALLS = {id(value): (value, function) for value, function in _CALLABLE}
"""What may be called, by its identity: arguments of a pickle need not have a hash."""

WRITTEN = {
    rebuild_tensor: ("torch._utils", "_rebuild_tensor_v2"),
    rebuild_tensor_as: ("torch._utils", "_rebuild_tensor_v3"),
    rebuild_meta_tensor: ("torch._utils", "_rebuild_meta_tensor_no_storage"),
    rebuild_parameter: ("torch._utils", "_rebuild_parameter"),
    rebuild_parameter_with_state: ("torch._utils", "_rebuild_parameter_with_state"),
    rebuild_from_type: ("torch._tensor", "_rebuild_from_type_v2"),
    rebuild_sparse_tensor: ("torch._utils", "_rebuild_sparse_tensor"),
    layout_named: ("torch.serialization", "_get_layout"),
    Size: ("torch", "Size"),
    Device: ("torch", "device"),
    Tensor: ("torch", "Tensor"),
    Parameter: ("torch.nn.parameter", "Parameter"),
    UntypedStorage: ("torch.storage", "UntypedStorage"),
    **{dtype: ("torch", dtype.name) for dtype in ALL_DTYPES},
    **{
        STORAGES[dtype]: ("torch", f"{word}Storage")
        for word, dtype in NAMES.items()
        if not word.startswith("UInt")
    },
}
"""PyTorch's names of what is ours: module and name."""

_OURS = (rebuild_tensor, rebuild_tensor_as, rebuild_parameter, rebuild_parameter_with_state,
         rebuild_meta_tensor, rebuild_from_type, generator_at,
         rebuild_sparse_tensor, layout_named, dtype_named, Size, Device, Tensor, Parameter,
         UntypedStorage)  # fmt: skip
_PYTHONS = (OrderedDict, Counter, defaultdict, set, frozenset, bytearray, complex, *_FACTORIES)

NAMED: dict[str, Any] = {
    **{f"{each.__module__}.{each.__qualname__}": each for each in (*_OURS, *_PYTHONS)},
    **{f"{each.__module__}.{each.__qualname__}": each for each in STORAGES.values()},
    **{f"{module}.{name}": value for value, (module, name) in WRITTEN.items()},
    "torch._utils._rebuild_tensor": rebuild_plain_tensor,
    "torch.tensor.Tensor": Tensor,
    "_codecs.encode": codecs.encode,
}
"""All that files may name without being asked."""

_ELSEWHERE = {
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "complex32", "quint8", "qint8", "qint32", "quint4x2",
}  # fmt: skip


def not_ours(name: str) -> str:
    """What to say of an object of PyTorch's that tgraph has nothing for."""
    return (
        f"the file holds an object of PyTorch's own, {name[:200]}, and not only tensors, numbers "
        "and containers; save model.state_dict() instead of the model"
    )


# --- the list ----------------------------------------------------------------------------------


class Allowed:
    """What one file may name and call. With `collect`, unknown names are collected instead."""

    def __init__(self, collect: bool = False) -> None:
        self._of_user = {name: value for value, name in SAFE.items()}
        self._ids = {id(value) for value in SAFE}
        self._collect = collect
        self.unknown: list[str] = []

    def is_of_user(self, cls: Any) -> bool:
        """Whether the user allowed it."""
        return id(cls) in self._ids

    def find(self, module: str, name: str) -> Any:
        """The object of a name; LoadError for one that is not allowed."""
        full = f"{module}.{name}"
        if full in self._of_user:
            return self._of_user[full]
        if full in NAMED:
            return NAMED[full]
        if self._collect:
            self.unknown.append(full)
            return Unknown
        if module == "torch" and name in _ELSEWHERE:
            raise LoadError(f"the file has tensors of {full}, a dtype that tgraph does not have")
        if module.partition(".")[0] == "torch":
            raise LoadError(not_ours(full))
        raise LoadError(
            f"the file names {full[:200]}, which is none of the types that are loaded unasked "
            "(weights_only=True). If you trust it, allow it with "
            f"tgraph.serialization.add_safe_globals([{name[:100]}]). Or, if you trust whoever "
            "wrote the file with all that you can do yourself, load it with weights_only=False, "
            "which runs the code that the file asks for"
        )

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What a function that may be called gives."""
        if id(function) in self._ids:
            return function(*arguments)
        if function is Unknown:
            return Unknown()
        if id(function) not in _CALLS:
            raise LoadError("the pickle calls what is no function that files may call")
        return _CALLS[id(function)][1](*arguments)

    def new(self, cls: Any, arguments: Any, names: Any) -> Any:
        """A new object of a class, without its `__init__`."""
        if type(arguments) is not tuple or type(names) is not dict:
            raise LoadError("the pickle makes an object of no arguments: it is damaged")
        if id(cls) in self._ids:
            return cls.__new__(cls, *arguments, **names)
        if cls is Unknown:
            return Unknown()
        return self.call(cls, arguments)

    def build(self, target: Any, given: Any) -> Any:
        """Give an object its attributes."""
        if self.is_of_user(type(target)):
            _set_state(target, given)
        elif type(target) is OrderedDict and type(given) is dict:
            if not all(type(key) is str for key in given):
                raise LoadError("an OrderedDict has attributes whose names are no text")
            target.__dict__.update(given)
        elif type(target) is not Unknown:
            raise LoadError(
                f"the pickle gives attributes to a {type(target).__name__}, which has none"
            )
        return target


class Unknown(dict[Any, Any]):
    """Stands for what may not be loaded, where names are only collected."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def append(self, value: Any) -> None:
        """As of a list."""

    extend = update = append  # type: ignore[assignment]


def _set_state(target: Any, given: Any) -> None:
    if hasattr(target, "__setstate__"):
        target.__setstate__(given)
        return
    slots = None
    if type(given) is tuple and len(given) == 2:
        given, slots = given
    if given:
        target.__dict__.update(given)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
