"""Pickles of NumPy arrays, read without running code."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np

from ...serialization.allowed import Allowed
from ...serialization.errors import LoadError
from ...serialization.unpickler import Unpickler

_NAMES = {
    f"{module}.{name}": name
    for module, name in [
        ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
        *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
        *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    ]
}  # fmt: skip
_KINDS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "b1")


class _Named(str):
    """A name that these pickles may call."""


class _Unfilled:
    """An array whose state comes later."""


class _ArrayNames(Allowed):
    """Names by which NumPy writes arrays, and none else."""

    def find(self, module: str, name: str) -> Any:
        """What stands for a name; LoadError for one that arrays do not need."""
        full = f"{module}.{name}"
        if full not in _NAMES:
            raise LoadError(f"the pickle names {full[:200]}, which is no array and no container")
        return _Named(_NAMES[full])

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """An array, a dtype, or bytes."""
        if type(function) is not _Named:
            raise LoadError("the pickle calls what is no function: it is damaged")
        if function == "_reconstruct":
            return _Unfilled()
        if function == "dtype":
            return _dtype(*arguments)
        if function == "encode":
            text, encoding = arguments
            if type(text) is str and encoding in ("latin1", "latin-1"):
                return text.encode("latin-1")
        if function == "_frombuffer":
            buffer, dtype, shape, order = arguments
            return _array(buffer, dtype, shape, order == "F")
        raise LoadError(f"the pickle calls {function} with other arguments than NumPy's")

    def build(self, target: Any, given: Any) -> Any:
        """The array that has this state, or the dtype."""
        if type(target) is _Unfilled:
            _, shape, dtype, fortran, data = given
            return _array(data, dtype, shape, fortran is True)
        if isinstance(target, np.dtype) and _text(given[1]) in ("<", ">", "|", "="):
            return target.newbyteorder(_text(given[1]))
        raise LoadError("the pickle gives a state to what has none: it is damaged")


def _dtype(name: Any, *more: Any) -> np.dtype[Any]:
    if _text(name) not in _KINDS:
        raise LoadError(f"the pickle has an array of {str(name)[:50]!r}, which is no number")
    found: np.dtype[Any] = np.dtype(_text(name))
    return found


def _array(data: Any, dtype: Any, shape: Any, fortran: bool) -> np.ndarray:
    sizes = type(shape) is tuple and all(type(size) is int and size >= 0 for size in shape)
    if not sizes or not isinstance(data, (bytes, bytearray)) or not isinstance(dtype, np.dtype):
        raise LoadError("the pickle makes an array of other things than NumPy's: it is damaged")
    # NumPy says where there are not as many bytes as the shape takes.
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _no_id(given: Any) -> NoReturn:
    raise LoadError("the pickle speaks of objects outside of it: it is damaged")


def _text(value: Any) -> Any:
    """Python 2's text as Python 3's, in containers, too."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list):
        return [_text(each) for each in value]
    return value


def read_pickle(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The dictionary of a file that Python 2 or 3 has pickled: numbers, text, lists, arrays.

    LoadError that names the file where it is damaged or holds anything else.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        found = Unpickler(data, _ArrayNames(), _no_id, encoding="bytes").load()
        if not isinstance(found, dict):
            raise LoadError(f"the pickle is of a {type(found).__name__}, not of a dict")
    except LoadError as error:
        raise LoadError(f"{path}: {error}") from error
    return {str(_text(key)): _text(value) for key, value in found.items()}
