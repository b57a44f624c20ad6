"""Capsules of DLPack as arrays: what `__dlpack__` of another library gave, to be read once."""

from __future__ import annotations

import ctypes
from typing import Any

# What stands before the device in the C structs of dlpack.h, in bytes: a pointer to the elements;
# of newer ones two numbers of the version, two pointers and the flags before that.
_BEFORE_DEVICE = {b"dltensor": 8, b"dltensor_versioned": 8 + 16 + 8 + 8}

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
        name = _name_of(capsule)
        if name not in _BEFORE_DEVICE:
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                "consumed only once, so you might have already constructed a tensor from it once."
            )
        address = _pointer_of(capsule, name) + _BEFORE_DEVICE[name]
        kind, number = (ctypes.c_int32 * 2).from_address(address)
        self._capsule, self._device = capsule, (kind, number)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule
