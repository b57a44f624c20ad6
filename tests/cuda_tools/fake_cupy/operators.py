"""Python's operators and NumPy's protocols on the fake's arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import reductions
from .arrays import ndarray
from .ufuncs import SCATTERS, UFUNCS, erf

_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
    "floordiv": "floor_divide", "mod": "remainder", "lshift": "left_shift",
    "rshift": "right_shift", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
_COMPARED = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert"}
_SCALARS = (bool, int, float, complex)
_METHODS = ("__call__", "outer", "at", "reduce", "accumulate", "reduceat")


def ufunc_of_scatter(operation: str) -> Any:
    return UFUNCS[next(name for name, each in SCATTERS.items() if each == operation)]


def _yields(x: Any, y: Any) -> bool:
    """Whether the other operand's method has to do it."""
    protocol = getattr(y, "__array_ufunc__", _SCALARS)
    if protocol is not _SCALARS:
        return protocol is None
    return bool(getattr(y, "__array_priority__", 0) > x.__array_priority__)


def _binary(name: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if isinstance(other, ndarray):
            return UFUNCS[name](self, other)
        return NotImplemented if _yields(self, other) else getattr(np, name)(self, other)

    return method


def _reflected(name: str) -> Any:
    return lambda self, other: UFUNCS[name](other, self)


def _in_place(name: str) -> Any:
    return lambda self, other: UFUNCS[name](self, other, self)


def _compared(name: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if isinstance(other, ndarray):
            return UFUNCS[name](self, other)
        if _yields(self, other):
            return NotImplemented
        if isinstance(other, np.ndarray) and other.ndim == 0:
            other = other.item()
        own: Any = type(other).__eq__
        plain = other is None or own is object.__eq__
        if plain and name in ("equal", "not_equal"):
            made = ndarray(self.shape, bool)
            made.fill(name == "not_equal")
            return made
        return getattr(np, name)(self, other)

    return method


def _power(self: ndarray, other: Any) -> Any:
    """Common powers are other functions, where the exponent is a number of Python."""
    numbers: dict[Any, str] = {2: "square"} if type(other) is int else {}
    if type(other) is float:
        numbers = {0.5: "sqrt", 2.0: "square", -1.0: "reciprocal"}
    if other.__class__ in (int, float) and other in numbers:
        kinds = "ifc" if type(other) is int else "fc"
        dtype = None if self.dtype.kind in kinds else np.result_type(self.dtype, other)
        return UFUNCS[numbers[other]](self, dtype=dtype)
    return _binary("power")(self, other)


def _matmul(self: ndarray, other: Any) -> Any:
    if isinstance(other, ndarray):
        return reductions.matmul(self, other)
    return NotImplemented if _yields(self, other) else np.matmul(self, other)


def _array_ufunc(self: ndarray, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    from .routines import FUNCTIONS

    every = inputs
    if "out" in kwargs:
        if len(kwargs["out"]) != 1:
            raise ValueError("The 'out' parameter must have exactly one array value")
        every += kwargs["out"]
        kwargs["out"] = kwargs["out"][0]
    name = function.__name__
    found = {**FUNCTIONS, **UFUNCS, "erf": erf}.get(name)
    if method not in _METHODS or found is None:
        return NotImplemented
    if method != "__call__":
        found = getattr(found, method, None)
        if found is None:
            return NotImplemented
    known = (ndarray, np.ndarray)
    for each in every:
        scalar = type(each) in _SCALARS or isinstance(each, np.generic)
        if not scalar and not isinstance(each, known):
            return NotImplemented
    if name in _COMPARED.values():
        inputs = tuple(x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs)
    return found(*inputs, **kwargs)


def _array_function(self: ndarray, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    from . import cupy

    try:
        module = functools.reduce(getattr, function.__module__.split(".")[1:], cupy)
        found = getattr(module, function.__name__)
    except AttributeError:
        return NotImplemented
    if found is function or not all(issubclass(each, (ndarray, np.ndarray)) for each in types):
        return NotImplemented
    return found(*args, **kwargs)


def _conjugate(self: ndarray) -> ndarray:
    found: ndarray = UFUNCS["conjugate"](self) if self.dtype.kind == "c" else self
    return found


def install_on(target: type[ndarray]) -> None:
    """Give the class its operators and protocols."""
    methods: dict[str, Any] = {
        "__pow__": _power,
        "__rpow__": _reflected("power"),
        "__ipow__": _in_place("power"),
        "__matmul__": _matmul,
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
        "conj": _conjugate,
        "conjugate": _conjugate,
    }
    for short, name in _BINARY.items():
        methods[f"__{short}__"] = _binary(name)
        methods[f"__r{short}__"] = _reflected(name)
        methods[f"__i{short}__"] = _in_place(name)
    for short, name in _COMPARED.items():
        methods[f"__{short}__"] = _compared(name)
    for short, name in _UNARY.items():
        methods[f"__{short}__"] = lambda self, name=name: UFUNCS[name](self)
    for name, method in methods.items():
        setattr(target, name, method)
