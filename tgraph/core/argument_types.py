"""Which types of arguments a public function takes, read from the annotations of its parameters.

PyTorch looks at the types of all arguments before it runs anything. So do the functions and methods
that users call here: TypeError names the function, the argument, and what came in its place. A
tensor of one integer, without dimensions, stands for an int, as it does there. What fits is known
by the types of the arguments, so that a call costs one look into a table; lists of integers are
looked at each time, and lists of tensors where a call fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.shapes import are_plain
from ..runtime.dtypes import ALL_DTYPES, DType, from_numpy_dtype
from ..runtime.records import NamedTuple
from .memory_format import MemoryFormat
from .state import state
from .tensor import Tensor

Flag = bool | Any
"""What is taken by its truth, as PyTorch's Python code takes it: its type is not looked at."""
_SCALARS = (bool, int, float, complex, np.generic)
_DTYPE_NAMES = frozenset(each.name for each in ALL_DTYPES)
_OPTIONAL = ("Dims", "_Dims", "_Sizes")  # which may be None
_SEQUENCES = ("Ints", "Sizes", *_OPTIONAL, "Sequence[int]")
_NAMES = ("reduction", "mode", "compute_mode", "padding_mode")
_FLAGS = (
    "inplace", "return_indices", "size_average", "reduce", "recompute_scale_factor", "sym",
)  # fmt: skip
"""At which PyTorch's functions look themselves, for a name or for truth."""
_MOST_CALLS = 256  # forms of calls that a function keeps


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_int(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_, float, Tensor)):
        return False
    return isinstance(value, int) or hasattr(value, "__index__")


def _is_float(value: Any) -> bool:
    if _is_tensor(value):
        return value._type.numel == 1 and not value._type.dtype.is_complex  # type: ignore[no-any-return]
    return isinstance(value, (int, float, np.generic)) or hasattr(value, "__index__")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, _SCALARS) or (_is_tensor(value) and not value._type.shape)


def _are_ints(value: Any) -> bool:
    other = isinstance(value, (str, dict, set, Tensor, *_SCALARS)) or value is None
    return _is_int(value) or not other


def _may_be_ints(value: Any) -> bool:
    return value is None or _are_ints(value)


def _are_sizes(value: Any) -> bool:
    return _are_ints(value) and not _is_int(value)


def is_listed(value: Any) -> bool:
    """Whether a value may be several tensors: no tensor itself, nor an array, text or mapping."""
    is_one = isinstance(value, (str, dict, set, Tensor, np.ndarray))
    return hasattr(type(value), "__iter__") and not is_one


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType) or _names_dtype(value)


def _names_dtype(value: Any) -> bool:
    """Whether Python or NumPy has it in the place of a dtype: `float` is float64, as in PyTorch."""
    return isinstance(value, (type, np.dtype)) or (isinstance(value, str) and value in _DTYPE_NAMES)


_FITS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (_is_tensor, "Tensor"),
    "bool": (_is_bool, "bool"),
    "str": (lambda value: isinstance(value, str), "str"),
    "int": (_is_int, "int"),
    "float": (_is_float, "float"),
    "Scalar": (_is_scalar, "Number"),
    "DType": (_is_dtype, "dtype"),
    "None": (lambda value: value is None, "None"),
    "MemoryFormat": (lambda value: isinstance(value, MemoryFormat), "memory_format"),
    "Sequence[Tensor]": (is_listed, "tuple of Tensors"),
    **dict.fromkeys(_SEQUENCES, (_are_ints, "int or tuple of ints")),
    **dict.fromkeys(_OPTIONAL, (_may_be_ints, "int or tuple of ints")),
    "Sequence[int]": (_are_sizes, "tuple of ints"),
}


class _Fit(NamedTuple):
    """An argument as the function gets it; whether it `depends` on more than its type."""

    value: Any
    depends: bool = False
    listed: bool = False


class ArgumentTypes:
    """The parameters of a function, and the forms of calls that were found to fit them.

    Errors count the arguments of a `method` without the tensor that it is of.

    >>> from tgraph.ops import movement
    >>> from tgraph import ones
    >>> ArgumentTypes(movement.unsqueeze).fitting((ones(2), "1"), {})
    Traceback (most recent call last):
    TypeError: unsqueeze(): argument 'dim' (position 2) must be int, not str
    """

    __slots__ = ("_atoms", "_first", "_function", "_name", "_positional", "known")

    def __init__(self, function: Callable[..., Any], method: bool = False, name: str = "") -> None:
        self._function, self._name = function, name or function.__name__
        self._first = 0 if method else 1
        self.known: dict[tuple[Any, ...], tuple[int | str, ...]] = {}
        """By types of arguments, then names and types of those given by name, where lists of
        integers are."""
        self._atoms: dict[str, tuple[str, ...]] = {}
        self._positional: tuple[str, ...] | None = None

    def looks_at_positions(self) -> bool:
        """Whether there is a type to look at of arguments that are given by position."""
        self._read()
        return any(each in self._atoms for each in self._positional or ())

    def fitting(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with numbers in the place of tensors that stand for them."""
        self._read()
        found = [self._fit(name, place, value) for place, (name, value)
                 in enumerate(zip(self._positional or (), args, strict=False))]  # fmt: skip
        named = {name: self._fit(name, name, value) for name, value in kwargs.items()}
        if not any(each.depends for each in (*found, *named.values())):
            if len(self.known) >= _MOST_CALLS:
                self.known.clear()
            places = [*enumerate(each.listed for each in found),
                      *((name, each.listed) for name, each in named.items())]  # fmt: skip
            self.known[form_of(args, kwargs)] = tuple(at for at, listed in places if listed)
            return args, kwargs
        rest = args[len(found) :]
        return (*(each.value for each in found), *rest), {
            name: each.value for name, each in named.items()
        }

    def _fit(self, name: str, place: int | str, value: Any) -> _Fit:
        atoms = self._atoms.get(name)
        if atoms is None:
            return _Fit(value)
        if _is_tensor(value) and "Tensor" not in atoms:
            if _stands_for_int(value, atoms):
                known = state.context is None  # else the function decides what to do with it
                return _Fit(int(value) if known else value, True)
            if any(_FITS[each][0](value) for each in atoms):
                return _Fit(value, True)
        elif any(_FITS[each][0](value) for each in atoms):
            if "DType" in atoms and _names_dtype(value):
                return _Fit(from_numpy_dtype(value), True)
            if "float" in atoms and _is_bool(value) and "bool" not in atoms:
                return _Fit(float(value), True)
            listed = isinstance(value, (list, tuple)) and any(each in _SEQUENCES for each in atoms)
            if listed and not are_plain(value):
                self._check_elements(name, place, value, atoms)
            return _Fit(value, listed=listed)
        raise self._misfit(name, place, value, atoms)

    def _misfit(
        self, name: str, place: int | str, value: Any, atoms: tuple[str, ...], index: str = ""
    ) -> TypeError:
        wanted = " or ".join(dict.fromkeys(_FITS[each][1] for each in atoms if each != "None"))
        way_out = "; tgraph.tensor() makes one of it" if isinstance(value, np.ndarray) else ""
        where = f" (position {place + self._first})" if isinstance(place, int) else ""
        return TypeError(
            f"{self._name}(): argument '{name}'{where} must be {wanted}, not "
            f"{type(value).__name__}{index}{way_out}"
        )

    def misfit_within(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> TypeError | None:
        """The error for a list of tensors with another element; None where there is none."""
        self._read()
        named = [(each, place, value) for place, (each, value)
                 in enumerate(zip(self._positional or (), args, strict=False))]  # fmt: skip
        for name, place, value in [*named, *((each, each, kwargs[each]) for each in kwargs)]:
            known = self._atoms.get(name)
            if known is None or not isinstance(value, (list, tuple)):
                continue
            if "Sequence[Tensor]" in known:
                for index, element in enumerate(value):
                    if not _is_tensor(element):
                        return self._misfit(name, place, element, known, f" at index {index}")
        return None

    def _check_elements(
        self, name: str, place: int | str, value: Sequence[Any], atoms: tuple[str, ...]
    ) -> None:
        for index, element in enumerate(value):
            if not (_is_int(element) or (_is_tensor(element) and _is_whole(element))):
                raise self._misfit(name, place, element, atoms, f" at index {index}")

    def _read(self) -> None:
        """The annotations, when a call first asks for them."""
        if self._positional is None:
            function: Any = inspect.unwrap(self._function)
            code = function.__code__
            self._positional = code.co_varnames[: code.co_argcount]
            self._atoms = known_annotations(function)


def known_annotations(function: Callable[..., Any]) -> dict[str, tuple[str, ...]]:
    """Of the parameters whose types are known, the types that they may have."""
    function = inspect.unwrap(function)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = {}
    for name in names:
        atoms = tuple(str(function.__annotations__.get(name, "Any")).split(" | "))
        free = name in _NAMES or (name in _FLAGS and "bool" in atoms)
        if not free and all(each in _FITS for each in atoms):
            found[name] = atoms
    return found


def form_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What `ArgumentTypes.known` has of a call; without names it is `tuple(map(type, args))`."""
    return (*map(type, args), *kwargs, *map(type, kwargs.values()))


def _stands_for_int(value: Tensor, atoms: tuple[str, ...]) -> bool:
    if not _is_whole(value):
        return False
    if any(each in _SEQUENCES for each in atoms):
        return value._type.numel == 1
    return "int" in atoms and not value._type.shape


def _is_whole(value: Tensor) -> bool:
    return value._type.dtype.kind in ("int", "uint")


def are_ints(
    places: tuple[int | str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> bool:
    """Whether the lists at these places have nothing but sizes."""
    for place in places:
        if not are_plain(args[place] if isinstance(place, int) else kwargs[place]):
            return False
    return True
