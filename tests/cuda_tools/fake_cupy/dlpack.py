"""The fake's DLPack, as CuPy 14.2 has it: capsules of CUDA memory that other libraries can read.

NumPy makes and takes the capsules; what it says of device and type is written over: it would say
that the memory is the host's, and knows no bfloat16.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import memory
from .arrays import BFLOAT16, ndarray
from .devices import Stream, _BaseStream, get_current_stream, set_device
from .machine import context, machine

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
UINT, BFLOAT = 1, 4
VERSION = (1, 0)
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned; a DLManagedTensor begins with its tensor."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def _tensor(capsule: Any) -> _Tensor:
    """What a capsule holds that nobody has taken; ValueError for another."""
    if _is_valid(capsule, _PLAIN):
        return _Tensor.from_address(_pointer(capsule, _PLAIN))
    if not _is_valid(capsule, _VERSIONED):
        raise ValueError(
            "A DLPack tensor object cannot be consumed multiple times (or object was not a DLPack "
            f"capsule). Got: {capsule!r}"
        )
    versioned = _Versioned.from_address(_pointer(capsule, _VERSIONED))
    if versioned.major > VERSION[0]:
        raise BufferError("DLPack exported too new major version.")
    found: _Tensor = versioned.tensor
    return found


class _Bits:
    """An array of the fake as NumPy sees it, which keeps the memory alive."""

    def __init__(self, array: ndarray) -> None:
        self.array = array
        bits = array._np.view(np.uint16) if array.dtype == BFLOAT16 else array._np
        self.__array_interface__ = bits.__array_interface__


class _Given:
    """A capsule as an object that NumPy takes."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


# -- arrays to others ------------------------------------------------------------------------


def dlpack(
    self: ndarray,
    *,
    stream: Any = None,
    max_version: tuple[Any, ...] | None = None,
    dl_device: Any = None,
    copy: Any = None,
) -> Any:
    """`ndarray.__dlpack__`: lets the stream of the reader wait for the current one."""
    if dl_device is not None or copy is not None:
        raise NotImplementedError("the fake's __dlpack__ has neither dl_device nor copy")
    own = get_current_stream()
    _let_wait(own, 1 if stream is None else stream)
    capsule = np.asarray(_Bits(self)).__dlpack__(
        max_version=VERSION if max_version is not None and max_version[0] >= 1 else None
    )
    tensor = _tensor(capsule)
    tensor.device_type, tensor.device_id = CUDA, self.data.device_id
    if self.dtype == BFLOAT16:
        tensor.code = BFLOAT
    return capsule


def _let_wait(own: Any, reader: Any) -> None:
    if not isinstance(reader, int) or reader < -1 or reader == 0:
        raise ValueError(
            "On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or any larger value, "
            f"but {reader} was provided"
        )
    if reader == -1 or reader == (own.ptr or 1):
        return
    other = Stream.null if reader == 1 else _BaseStream(reader, -1)
    other.wait_event(own.record())


def dlpack_device(self: ndarray) -> tuple[int, int]:
    """`ndarray.__dlpack_device__`."""
    return CUDA, self.data.device_id


# -- arrays of others ------------------------------------------------------------------------


class DLPackMemory(memory.BaseMemory):
    """Memory of another library, which is kept until the object dies."""

    def __init__(self, tensor: _Tensor, owner: Any, nbytes: int) -> None:
        self.ptr, self.size, self.device_id = tensor.data or 0, nbytes, tensor.device_id
        if nbytes:
            machine.require([(self.ptr, 1)], "DLPackMemory")
        self._owner = owner


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    """As CuPy's: takes objects of the protocol, and bare capsules."""
    if not hasattr(array, "__dlpack_device__"):
        return _over(array)
    kind, number = array.__dlpack_device__()
    if device is not None:
        raise NotImplementedError("from_dlpack() does not support device yet.")
    if kind == CPU:
        raise TypeError(
            "CPU arrays cannot be directly imported to CuPy. "
            "Use `cupy.array(numpy.from_dlpack(input))` instead."
        )
    if kind not in (CUDA, CUDA_MANAGED):
        raise TypeError(f"Unsupported array type: {kind}")
    with _current(number):
        stream = context.stream_pointer() or 1
        try:
            capsule = array.__dlpack__(stream=stream, max_version=VERSION, copy=copy)
        except TypeError:
            if copy is not None:
                raise
            capsule = array.__dlpack__(stream=stream)
    return _over(capsule)


@contextmanager
def _current(device: int) -> Iterator[None]:
    before = context.device
    set_device(device)
    try:
        yield
    finally:
        set_device(before)


def _over(capsule: Any) -> ndarray:
    tensor = _tensor(capsule)
    if tensor.device_type not in (CUDA, CUDA_MANAGED):
        raise RuntimeError(
            "CuPy is built against CUDA, different from the backend that backs the incoming "
            "DLPack tensor"
        )
    bfloat = tensor.code == BFLOAT and tensor.bits == 16
    tensor.device_type = CPU
    tensor.code = UINT if bfloat else tensor.code
    # A copy: NumPy's taking the capsule may free what does not fit it.
    given = _Tensor.from_buffer_copy(tensor)
    host = np.from_dlpack(_Given(capsule))
    held = DLPackMemory(given, host, host.nbytes)
    pointer = memory.MemoryPointer(held, given.byte_offset)
    dtype = BFLOAT16 if bfloat else host.dtype
    return ndarray(host.shape, dtype, pointer, host.strides)
