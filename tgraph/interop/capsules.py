"""Capsules of DLPack as arrays: what `__dlpack__` of another library gave, to be read once."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# What stands before the device in the C structs of dlpack.h, in bytes: a pointer to the elements;
# of newer ones two numbers of the version, two pointers and the flags before that.
_BEFORE_DEVICE = {b"dltensor": 8, b"dltensor_versioned": 8 + 16 + 8 + 8}

_FLAGS, _READ_ONLY = -16, 1  # of newer ones: bytes from the device on, and the flag

_BEFORE_TYPE = 12  # bytes from the device on: two numbers of it, and how many axes there are

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def is_capsule(value: Any) -> bool:
    """Whether `value` is a capsule of C's."""
    return type(value).__name__ == "PyCapsule"


class CapsuleArray:
    """A capsule as an array that has the protocol; RuntimeError for one that was read before."""

    def __init__(self, capsule: Any) -> None:
        kind, number = (ctypes.c_int32 * 2).from_address(_device_in(capsule))
        self._capsule, self._device = capsule, (kind, number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule


def _device_in(capsule: Any) -> int:
    """The address at which a capsule tells the device; behind it comes the type of elements."""
    name = _name_of(capsule)
    if name not in _BEFORE_DEVICE:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
            "consumed only once, so you might have already constructed a tensor from it once."
        )
    found: int = _pointer_of(capsule, name) + _BEFORE_DEVICE[name]
    return found


# Kinds of elements, as dlpack.h numbers them.
UINT, BFLOAT = 1, 4


def kind_in(capsule: Any) -> int:
    """The kind of the elements of a capsule that was not read yet."""
    return ctypes.c_uint8.from_address(_device_in(capsule) + _BEFORE_TYPE).value


def is_writeable(capsule: Any) -> bool:
    """Whether a capsule that was not read yet says that its elements may be written.

    Those of before DLPack 1.0 do not say it.
    """
    device = _device_in(capsule)
    if _name_of(capsule) != b"dltensor_versioned":
        return False
    return not ctypes.c_uint64.from_address(device + _FLAGS).value & _READ_ONLY


class Writeable:
    """The elements of an array of `np.from_dlpack`, all of which are read-only in NumPy 2.1."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.owner = array
        shown = dict(array.__array_interface__)
        self.__array_interface__ = {**shown, "data": (shown["data"][0], False)}


def relabel(capsule: Any, kind: int) -> Any:
    """The capsule, whose elements are told to be of another kind with as many bits.

    NumPy knows elements of its own types alone. Who has a capsule may do so: the struct is its own
    until another library reads it, and what frees the memory does not ask for the kind.
    """
    ctypes.c_uint8.from_address(_device_in(capsule) + _BEFORE_TYPE).value = kind
    return capsule
