"""A sample of the cases in one file, which is read without PyTorch.

Numbers of double precision are written in single precision: what goes in has no more (`encode.py`),
and what comes out is compared less closely than that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .replay import Record
from .values import Array, Made, Named, Sparse

_SHORTER = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}


class NotPlain(Exception):
    """A record holds something that has no plain form: a function of a test's own, for example."""


class Writer:
    """Records on their way into a file; equal arrays are written once."""

    def __init__(self) -> None:
        self._records: list[Any] = []
        self._tensors: dict[int, int] = {}
        self._arrays: dict[tuple[str, str, tuple[int, ...], bytes], int] = {}

    def add(self, record: Record) -> None:
        """NotPlain where it cannot be written."""
        self._tensors.clear()
        self._records.append([record.family, record.name, record.text,
                              self._plain(record.given), self._plain(record.wanted)])  # fmt: skip

    def write(self, path: Path) -> None:
        stored = [key[:3] for key in self._arrays]
        tables = json.dumps([self._records, stored], separators=(",", ":"))
        numbers = b"".join(key[3] for key in self._arrays)
        np.savez_compressed(
            path, tables=np.frombuffer(tables.encode(), np.uint8),
            numbers=np.frombuffer(numbers, np.uint8),
        )  # fmt: skip

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Array):
            tensor = self._tensors.setdefault(id(value), len(self._tensors))
            return {"array": [self._stored(value), value.dtype, value.grad, value.order,
                              value.parameter, tensor]}  # fmt: skip
        if isinstance(value, Sparse):
            raise NotPlain("a sparse tensor")
        if isinstance(value, Named):
            return {"named": value.path}
        if isinstance(value, Made):
            return {"made": [self._plain(each) for each in value]}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, tuple):
            return {"tuple": [self._plain(each) for each in value]}
        if isinstance(value, dict):
            return {"dict": [[key, self._plain(each)] for key, each in value.items()]}
        if isinstance(value, slice):
            return {"slice": self._plain([value.start, value.stop, value.step])}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if value is ...:
            return {"ellipsis": None}
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise NotPlain(type(value).__name__)

    def _stored(self, value: Array) -> int:
        """The number of the array among those that are written."""
        array = value.values
        short = _short(array)
        if array.dtype.kind in "fc" and not np.array_equal(np.isfinite(array), np.isfinite(short)):
            raise NotPlain("a number beyond single precision")
        key = (short.dtype.str, array.dtype.str, array.shape, short.tobytes())
        if key not in self._arrays:
            self._arrays[key] = len(self._arrays)
        return self._arrays[key]


def _short(array: np.ndarray) -> np.ndarray:
    """In fewer bytes, where that changes no integer."""
    if array.dtype in _SHORTER:
        with np.errstate(over="ignore"):
            return array.astype(_SHORTER[array.dtype])
    if array.dtype == np.int64:
        for dtype in (np.int8, np.int16, np.int32):
            if np.array_equal(array.astype(dtype), array):
                return array.astype(dtype)
    return array


def read(path: Path) -> Iterator[Record]:
    """The records of a file."""
    with np.load(path) as file:
        records, stored = json.loads(file["tables"].tobytes())
        numbers = file["numbers"].tobytes()
    arrays, begin = [], 0
    for short, dtype, shape in stored:
        count = math.prod(shape)
        part = np.frombuffer(numbers, np.dtype(short), count, begin)
        begin += part.nbytes
        arrays.append(part.reshape(shape).astype(dtype))
    for family, name, text, given, wanted in records:
        reader = _Reader(arrays)
        yield Record(family, name, text, reader.value(given), reader.value(wanted))


class _Reader:
    """The values of one record: a tensor that is given twice is one tensor."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self._arrays = arrays
        self._tensors: dict[int, Array] = {}

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(each) for each in plain]
        if not isinstance(plain, dict):
            return plain
        ((kind, held),) = plain.items()
        if kind == "array":
            return self._array(*held)
        if kind == "dict":
            return {key: self.value(each) for key, each in held}
        if kind == "tuple":
            return tuple(self.value(each) for each in held)
        return _KINDS[kind](self.value(held))

    def _array(
        self, index: int, dtype: str, grad: bool, order: Any, parameter: bool, tensor: int
    ) -> Array:
        made = Array(self._arrays[index], dtype, grad, order and tuple(order), parameter)
        return self._tensors.setdefault(tensor, made)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "named": Named,
    "made": lambda held: Made(*held),
    "slice": lambda held: slice(*held),
    "complex": lambda held: complex(*held),
    "ellipsis": lambda held: ...,
}
