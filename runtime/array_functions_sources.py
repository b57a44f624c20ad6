"""Functions without array inputs, random bits, host calls and the selector of results."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import philox
from .array_functions_elementwise import Array, Function
from .array_functions_movement import filled
from .cuda import arrays as cuda_arrays
from .device import CPU, Device
from .dtypes import DType

if TYPE_CHECKING:
    import numpy.typing as npt

Ints = tuple[int, ...]


def _constant(xp: Any, value: Array, device: Device = CPU) -> Array:
    return _placed(xp, value)


def _placed(xp: Any, array: npt.NDArray[Any]) -> Array:
    """An array of NumPy in `xp`."""
    return np.asarray(array) if xp is np else cuda_arrays.uploaded(array)


def _full(xp: Any, shape: Ints, value: Any, dtype: DType, device: Device = CPU) -> Array:
    return filled(xp, shape, value, dtype.numpy)


def _iota(xp: Any, size: int, dtype: DType, device: Device = CPU) -> Array:
    return xp.arange(size).astype(dtype.numpy)


def _random_bits(xp: Any, key: Array, counter: Array, shape: Ints, device: Device = CPU) -> Array:
    return philox.random_bits(int(key), int(counter), math.prod(shape), xp).reshape(shape)


def _transfer(xp: Any, x: Array, device: Device) -> Array:
    """A copy of `x`, which any array module may hold, in `xp`."""
    if xp is np and not isinstance(x, np.ndarray):
        return cuda_arrays.download(x, wait=cuda_arrays.waiting.on)
    if xp is np:
        return np.array(x, copy=True, order="C")
    return _placed(xp, x) if isinstance(x, np.ndarray) else _from_other_device(xp, x)


def _from_other_device(xp: Any, x: Array) -> Array:
    """A copy on the current device. Its stream knows nothing of that of the other device."""
    if not x.size:
        return xp.empty(x.shape, x.dtype)
    with x.device:
        whole = x.astype(x.dtype, order="C", copy=False)
        xp.cuda.get_current_stream().synchronize()
    copy = xp.array(whole, copy=True)
    xp.cuda.get_current_stream().synchronize()
    return copy


class _Begun(threading.local):
    calls = 0


_begun = _Begun()


def ordered_calls_begun() -> int:
    """How many ordered host calls this thread has begun: what they did cannot be undone."""
    return _begun.calls


def _host_call(
    xp: Any,
    *inputs: Array,
    function: Callable[..., Any],
    results: Any,
    name: str,
    effect: str = "pure",
    serial: int = 0,
) -> tuple[Array, ...]:
    tokens = inputs[-1:] if effect == "ordered" else ()
    inputs = inputs[: len(inputs) - len(tokens)]
    if xp is not np:
        inputs = tuple(map(cuda_arrays.download, inputs))
    _begun.calls += len(tokens)
    made = tuple(function(*inputs))
    if len(made) != len(results):
        raise RuntimeError(f"{name} gave {len(made)} arrays, its type says {len(results)}")
    for position, (array, wanted) in enumerate(zip(made, results)):
        if array.shape != wanted.shape or array.dtype != wanted.dtype.numpy:
            raise RuntimeError(
                f"{name} gave an array of {array.dtype}{list(array.shape)} as result {position}, "
                f"its type says {wanted}"
            )
    return (*(_placed(xp, each) for each in made), *tokens)


def _get(xp: Any, results: tuple[Array, ...], index: int) -> Array:
    return results[index]


FUNCTIONS: dict[str, Function] = {
    "constant": _constant,
    "full": _full,
    "iota": _iota,
    "random_bits": _random_bits,
    "transfer": _transfer,
    "host_call": _host_call,
    "get": _get,
}
