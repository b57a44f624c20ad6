"""NumPy's functions that sort contiguous numbers in place, as plain function pointers.

They use the vectors of the processor and nothing of Python, so that plans can call them from any
thread. NumPy tells of them in its C interface: every dtype has a table of functions, whose layout
is fixed for all of NumPy 2 ("NumPy C-API", `PyArray_ArrFuncs` and `PyDataType_GetArrFuncs`).
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np
from numpy._core import _multiarray_umath as numpy_core  # type: ignore[attr-defined]

from .plan_steps import Address

_GET_ARRAY_FUNCTIONS = 365  # its number among the functions of the C interface
_SORT = 33  # behind 21 casts and 12 other functions: `sort[NPY_QUICKSORT]`
_TYPES = frozenset(
    ("float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
)
"""The types whose order is NumPy's: of 16-bit floats it does not know all."""


@functools.cache
def sort_function(dtype: str) -> Address:
    """The address of ``int sort(void *start, intptr_t count, void *unused)``; 0 without one.

    Ascending, with NaN last; zeros of both signs are equal and may change places.
    """
    if dtype not in _TYPES or not np.__version__.startswith("2."):
        return Address(0)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = _pointers(get_pointer(numpy_core._ARRAY_API, None))
    of_dtype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_GET_ARRAY_FUNCTIONS])
    return Address(_pointers(of_dtype(np.dtype(dtype)))[_SORT] or 0)


def _pointers(address: int) -> ctypes._Pointer[ctypes.c_void_p]:
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))
