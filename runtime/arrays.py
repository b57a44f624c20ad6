"""One table from the name of a primitive to a function over an array module.

Eager mode, constant folding and the graph interpreter evaluate through it. Functions take the
array module, the arrays, and the primitive's attributes by name. Results have exactly the type
that the primitive's rule gives; views share memory where the array module can make them; no
floating-point warning escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from . import (
    array_functions_complex,
    array_functions_contractions,
    array_functions_control,
    array_functions_elementwise,
    array_functions_factorizations,
    array_functions_indexing,
    array_functions_movement,
    array_functions_reductions,
    array_functions_sorting,
    array_functions_sources,
    array_functions_sparse,
)
from .array_functions_elementwise import Array as Array
from .array_functions_elementwise import Function as Function
from .cuda import arrays as cuda_arrays
from .device import Device
from .meta import MetaArray, NoElementsError

if TYPE_CHECKING:
    import numpy.typing as npt

# Every primitive but `input`, which is fed.
FUNCTIONS: dict[str, Function] = {
    **array_functions_elementwise.FUNCTIONS,
    **array_functions_reductions.FUNCTIONS,
    **array_functions_reductions.SCANS,
    **array_functions_sorting.FUNCTIONS,
    **array_functions_movement.FUNCTIONS,
    **array_functions_indexing.FUNCTIONS,
    **array_functions_contractions.FUNCTIONS,
    **array_functions_factorizations.FUNCTIONS,
    **array_functions_sources.FUNCTIONS,
    **array_functions_sparse.FUNCTIONS,
    **array_functions_complex.FUNCTIONS,
    **array_functions_control.FUNCTIONS,
}


def evaluate(name: str, arrays: Sequence[Array], attrs: Mapping[str, Any], xp: Any = np) -> Any:
    """The value of the primitive `name`: an array, or a tuple of them where it has several.

    >>> import numpy as np
    >>> evaluate("add", [np.array([1, 2]), np.array(10)], {})
    array([11, 12])
    """
    return FUNCTIONS[name](xp, *arrays, **attrs)


def array_module(device: Device) -> Any:
    """The array module that holds a device's values; RuntimeError for a device it cannot reach."""
    return np if device.type == "cpu" else cuda_arrays.module()


def current(device: Device) -> AbstractContextManager[Any]:
    """Makes a device the one that its array module works on."""
    return nullcontext() if device.type == "cpu" else cuda_arrays.current(device)


def place(array: npt.NDArray[Any], device: Device) -> Array:
    """A NumPy array in the memory of a device: itself on the CPU; without elements on `meta`."""
    if device.type == "meta":
        return MetaArray(array.shape, array.dtype)
    return array if device.type == "cpu" else cuda_arrays.upload(array, device)


def copy_elements(target: Array, source: Array) -> None:
    """Write the elements of `source`, of the same type and device, over those of `target`."""
    if isinstance(target, np.ndarray):
        if target.size:  # NumPy looks at the flags even where there is nothing to write
            np.copyto(target, source)
    else:
        with target.device:
            target[...] = source


def module_of(array: Array) -> Any:
    """The array module that an array belongs to."""
    return np if isinstance(array, np.ndarray) else cuda_arrays.module()


def share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have an element in common; on a device, whether they may have one."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        return both and np.may_share_memory(a, b) and np.shares_memory(a, b)
    return cuda_arrays.may_share_memory(a, b)


def writes_meet(written: Sequence[Array], read: Sequence[Array]) -> bool:
    """Whether memory that is written may be that of another array, written or read."""
    if not isinstance(written[0], np.ndarray):
        return cuda_arrays.writes_meet(written, read)
    owners = {id(each) for each in (*written, *read) if each.base is None}
    if len(owners) == len(written) + len(read):
        return False  # each has memory of its own
    for number, target in enumerate(written):
        for other in (*written[number + 1 :], *read):
            if np.may_share_memory(target, other):
                return True
    return False


def address_of(array: Array) -> int:
    """Where the first element of an array lies."""
    found = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
    return int(found)


def contiguous(array: Array) -> Array:
    """The array, or a copy of it that is contiguous."""
    return array if array.flags.c_contiguous else copy_of(array)


def copy_of(array: Array) -> Array:
    """A contiguous copy on the same device."""
    with beside(array):
        return array.copy(order="C")


def with_strides(array: Array, strides: Sequence[int]) -> Array:
    """The array, or a copy of it that has these strides (in elements)."""
    steps = [stride * array.itemsize for stride in strides]
    each = zip(array.shape, array.strides, steps, strict=True)
    if array.size == 0 or all(size == 1 or has == step for size, has, step in each):
        return array
    return strided_copy(array, steps)


def strided_copy(array: Array, steps: Sequence[int]) -> Array:
    """A copy on the same device that has these strides (in bytes)."""
    ends = [(size - 1) * abs(step) // array.itemsize for size, step in zip(array.shape, steps)]
    xp = module_of(array)
    with beside(array):
        memory = xp.zeros(1 + sum(ends), array.dtype)
        upward = xp.lib.stride_tricks.as_strided(memory, array.shape, list(map(abs, steps)))
        copy: Array = upward[tuple([slice(None, None, -1 if step < 0 else 1) for step in steps])]
        copy[...] = array
    return copy


def beside(array: Array) -> AbstractContextManager[Any]:
    """Makes the device of an array the one that its array module works on."""
    return nullcontext() if isinstance(array, np.ndarray) else array.device


@contextmanager
def transfers_without_waiting() -> Iterator[None]:
    """Copies between the CPU and a device inside the block are done when that has come so far."""
    before, cuda_arrays.waiting.on = cuda_arrays.waiting.on, False
    try:
        yield
    finally:
        cuda_arrays.waiting.on = before


def transferred(array: Array, device: Device) -> Array:
    """A copy of an array on another device."""
    if type(array) is MetaArray:
        raise NoElementsError("a copy on another device")
    if device.type == "meta":
        return MetaArray(array.shape, array.dtype)
    with current(device):
        return FUNCTIONS["transfer"](array_module(device), array, device=device)


def to_host(array: Array) -> npt.NDArray[Any]:
    """The elements as a NumPy array: itself, or a copy from another device."""
    if type(array) is MetaArray:
        raise NoElementsError("a copy on the CPU")
    return array if isinstance(array, np.ndarray) else cuda_arrays.download(array)
