"""Functions without array inputs, random bits, host calls and the selector of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import philox
from .array_functions_elementwise import Array, Function
from .array_functions_movement import filled
from .device import CPU, Device
from .dtypes import DType

Ints = tuple[int, ...]


def _constant(xp: Any, value: Array, device: Device = CPU) -> Array:
    return xp.asarray(value)


def _full(xp: Any, shape: Ints, value: Any, dtype: DType, device: Device = CPU) -> Array:
    return filled(xp, shape, value, dtype.numpy)


def _iota(xp: Any, size: int, dtype: DType, device: Device = CPU) -> Array:
    return xp.arange(size).astype(dtype.numpy)


def _random_bits(xp: Any, key: Array, shape: Ints, offset: int) -> Array:
    seed, first = key.tolist()
    return philox.random_bits(seed, first + offset, math.prod(shape), xp).reshape(shape)


def _host_call(
    xp: Any, *inputs: Array, function: Callable[..., Any], results: Any, name: str
) -> tuple[Array, ...]:
    made = tuple(function(*inputs))
    if len(made) != len(results):
        raise RuntimeError(f"{name} gave {len(made)} arrays, its type says {len(results)}")
    for position, (array, wanted) in enumerate(zip(made, results)):
        if array.shape != wanted.shape or array.dtype != wanted.dtype.numpy:
            raise RuntimeError(
                f"{name} gave an array of {array.dtype}{list(array.shape)} as result {position}, "
                f"its type says {wanted}"
            )
    return tuple(map(np.asarray, made))


def _get(xp: Any, results: tuple[Array, ...], index: int) -> Array:
    return results[index]


FUNCTIONS: dict[str, Function] = {
    "constant": _constant,
    "full": _full,
    "iota": _iota,
    "random_bits": _random_bits,
    "host_call": _host_call,
    "get": _get,
}
