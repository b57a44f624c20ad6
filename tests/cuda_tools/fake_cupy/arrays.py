"""The fake's `cupy.ndarray`: what CuPy's has and tgraph may use, and nothing else.

An array is a NumPy array over memory of a device that the machine knows. Operators stand in
operators.py, indexing in indexing.py, and both are put onto the class in __init__.py.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from . import memory
from .devices import Device, get_current_stream, set_device
from .machine import Range, Work, bytes_at, context, machine

Host = np.ndarray[Any, Any]
CHARS = "?bhilqBHILQefdFD"
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
MOST_AXES = 64


def supported(dtype: Any) -> np.dtype[Any]:
    """The dtype; ValueError for one that arrays cannot have."""
    found: np.dtype[Any] = np.dtype(dtype)
    if found != BFLOAT16 and (found.char not in CHARS or found.byteorder == ">"):
        raise ValueError(f"Unsupported dtype {found}")
    return found


def is_half(dtype: np.dtype[Any]) -> bool:
    return dtype == BFLOAT16 or dtype == np.float16


def converted(values: Any, dtype: np.dtype[Any]) -> Host:
    """Values in another dtype as a GPU converts them: floats saturate in 32 or 64-bit integers.

    Of complex numbers real types take the real parts, without a warning.
    """
    given: Host = np.asarray(values)
    if given.dtype == dtype:
        return given
    values = given.real if given.dtype.kind == "c" and dtype.kind not in "cb" else given
    floats = values.dtype.kind == "f" or values.dtype == BFLOAT16
    with np.errstate(all="ignore"):
        if not floats or dtype.kind not in "iu":
            if floats and dtype.kind == "b":
                return np.asarray(values.astype(np.float64) != 0)
            return np.asarray(values.astype(dtype))
        wide = np.dtype(f"{dtype.kind}{max(dtype.itemsize, 4)}")
        limits, numbers = np.iinfo(wide), np.trunc(values.astype(np.float64))
        top, bottom = numbers >= float(limits.max), numbers <= float(limits.min)
        inside = np.where(top | bottom | np.isnan(numbers), 0, numbers).astype(wide)
        found = np.where(top, wide.type(limits.max), inside)
        return np.where(bottom, wide.type(limits.min), found).astype(dtype)


def _host_view(pointer: int, shape: Sequence[int], dtype: np.dtype[Any], strides: Any) -> Host:
    """Memory of a device as a NumPy array; Violation where it is not memory in use."""
    if 0 in shape:
        return np.empty(shape, dtype)
    if strides is None:
        strides = _dense(shape, dtype.itemsize)
    reach = [(size - 1) * stride for size, stride in zip(shape, strides)]
    low = sum(each for each in reach if each < 0)
    high = sum(each for each in reach if each > 0) + dtype.itemsize
    machine.require([(pointer + low, high - low)], "an array")
    buffer = bytes_at(pointer + low, high - low)
    return np.ndarray(shape, dtype, buffer.data, -low, strides)


def _dense(shape: Sequence[int], step: int) -> tuple[int, ...]:
    strides = [step]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))[: len(shape)] if shape else ()


class Flags:
    """Of an array; there is no `writeable`."""

    def __init__(self, c_contiguous: bool, f_contiguous: bool, owndata: bool) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = c_contiguous, f_contiguous, owndata

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        if name not in ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA"):
            raise KeyError(f"{name} is not defined for cupy.ndarray.flags")
        return bool(getattr(self, name.lower()))


class ndarray:
    """ndarray(shape, dtype=float, memptr=None, strides=None, order='C')"""

    __slots__ = ("__weakref__", "_np", "base", "data")
    __module__ = "cupy"
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    _np: Host
    base: ndarray | None
    data: memory.MemoryPointer

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: memory.MemoryPointer | None = None,
        strides: Any = None,
        order: str | None = "C",
    ) -> None:
        shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        shape = tuple(map(operator.index, shape))
        if any(size < 0 for size in shape):
            raise ValueError("Negative dimensions are not allowed")
        if len(shape) > MOST_AXES:
            raise ValueError(f"maximum supported dimension for an ndarray is {MOST_AXES}")
        if order not in ("C", "F", None):
            raise TypeError("order not understood")
        dtype = supported(dtype)
        if strides is not None and len(strides) != len(shape):
            raise ValueError("len(shape) != len(strides)")
        if strides is None and order == "F":
            strides = tuple(reversed(_dense(shape[::-1], dtype.itemsize)))
        self.data = memory.alloc(math.prod(shape) * dtype.itemsize) if memptr is None else memptr
        self._np = _host_view(self.data.ptr, shape, dtype, strides)
        self.base = None

    # -- what it is --------------------------------------------------------------------------

    dtype = property(lambda self: self._np.dtype)
    strides = property(lambda self: self._np.strides)
    ndim = property(lambda self: self._np.ndim)
    size = property(lambda self: self._np.size)
    nbytes = property(lambda self: self._np.nbytes)
    itemsize = property(lambda self: self._np.itemsize)
    T = property(lambda self: self if self.ndim < 2 else self.transpose())
    device = property(lambda self: Device(self.data.device_id))

    @property
    def mT(self) -> ndarray:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._np.shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._np = self._np.reshape(shape, copy=False)

    @property
    def flags(self) -> Flags:
        flags = self._np.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self.base is None)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": context.stream_pointer() or 1,
            "version": 3,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.data.ptr if self.size else 0, False),
        }

    def __array__(self, dtype: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    # -- views -------------------------------------------------------------------------------

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        if dtype is None:
            return made_view(self, self._np)
        dtype = supported(dtype)
        if self.ndim == 0 and dtype.itemsize != self.itemsize:
            raise ValueError(
                "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
            )
        return made_view(self, self._np.view(dtype))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        sizes = tuple(map(operator.index, sizes))
        if order != "C":
            raise NotImplementedError("the fake's reshape knows order C only")
        try:
            found = self._np.reshape(sizes, copy=False)
        except ValueError:
            if copy is False or math.prod(abs(size) for size in sizes) > self.size:
                raise
            host = self._np
            result: ndarray = computed(lambda: host.reshape(sizes), self)
            return result
        return made_view(self, found) if copy is not True else made_view(self, found).copy()

    def transpose(self, *axes: Any) -> ndarray:
        if len(axes) == 1 and axes[0] is None:
            axes = ()
        return made_view(self, self._np.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        if not all(-self.ndim <= axis < self.ndim for axis in (axis1, axis2)):
            raise ValueError("Axis out of range")
        return made_view(self, self._np.swapaxes(axis1, axis2))

    def squeeze(self, axis: Any = None) -> ndarray:
        return made_view(self, self._np.squeeze(axis))

    def ravel(self, order: str = "C") -> ndarray:
        if order != "C":
            raise NotImplementedError("the fake's ravel knows order C only")
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> ndarray:
        if order != "C":
            raise NotImplementedError("the fake's flatten knows order C only")
        return self.copy().reshape(-1)

    # -- complex numbers ---------------------------------------------------------------------

    @property
    def real(self) -> ndarray:
        return made_view(self, self._np.real) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> ndarray:
        if self.dtype.kind == "c":
            return made_view(self, self._np.imag)
        made = ndarray(self.shape, self.dtype)
        made.fill(0)
        return made

    # -- copies ------------------------------------------------------------------------------

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: Any = True
    ) -> ndarray:
        if casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        return cast(self, dtype, order, True if copy else None)

    def copy(self, order: str = "C") -> ndarray:
        if self.data.device_id == context.device or self.size == 0:
            return cast(self, self.dtype, order, True)
        if not self.flags.forc:
            raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
        made = ndarray(self.shape, self.dtype, order="C" if self.flags.c_contiguous else "F")
        made.data.copy_from_device_async(self.data, self.nbytes)
        return made

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        with self.device:
            return self.copy()

    def __reduce__(self) -> Any:
        from .routines import array

        return array, (self.get(order="A"),)

    def fill(self, value: Any) -> None:
        if isinstance(value, ndarray):
            if value.shape != ():
                raise ValueError("non-scalar cupy.ndarray cannot be used for fill")
            value = value.get()[()]  # CuPy's reads it on the host, too
        number = np.asarray(value, dtype=self.dtype)
        if number.shape != ():
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        if number == 0 and self.flags.c_contiguous:
            self.data.memset_async(0, self.nbytes)  # which makes zeros of negative ones
        else:
            perform(self, lambda: number)

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> Host:
        stream = get_current_stream() if stream is None else stream
        if out is not None:
            if not isinstance(out, np.ndarray):
                raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
            if self.dtype != out.dtype:
                raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
            if self.shape != out.shape:
                raise ValueError(
                    f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}"
                )
            if not (out.flags.c_contiguous or out.flags.f_contiguous):
                raise RuntimeError(
                    "`out` cannot be specified when copying to non-contiguous ndarray"
                )
            order = "C" if out.flags.c_contiguous else "F"
        elif self.size == 0:
            return np.ndarray(self.shape, self.dtype)
        if order == "A":
            order = "F" if self.flags.fnc else "C"
        host: Host = np.empty(self.shape, self.dtype, order) if out is None else out  # type: ignore[call-overload]
        before = context.device
        set_device(self.device.id)
        try:
            dense = self if getattr(self.flags, f"{order.lower()}_contiguous") else None
            dense = cast(self, self.dtype, order, True) if dense is None else dense
            dense.data.copy_to_host_async(host.ctypes.data, dense.nbytes, stream)
            if blocking:
                stream.synchronize()
        finally:
            set_device(before)
        return host

    def set(self, arr: Any, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not self.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        dense = np.asarray(arr, order="C" if self.flags.c_contiguous else "F")
        stream = get_current_stream() if stream is None else stream
        self.data.copy_from_host_async(dense.ctypes.data, self.nbytes, stream)

    # -- on the host -------------------------------------------------------------------------

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self.get().tobytes(order)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))  # type: ignore[index]

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get(), spec)


# -- how arrays come about -------------------------------------------------------------------


def address(host: Host) -> int:
    found: int = host.__array_interface__["data"][0]
    return found


def made_view(array: ndarray, host: Host) -> ndarray:
    """`host`, a view of the array's NumPy array, as an array over the same memory."""
    view = ndarray.__new__(ndarray)
    view._np = host
    moved = array.size and host.size
    view.data = array.data + (address(host) - address(array._np)) if moved else array.data
    view.base = array if array.base is None else array.base
    return view


def touched(array: ndarray) -> Range:
    """The memory of an array as an address and a number of bytes."""
    low, high = np.lib.array_utils.byte_bounds(array._np)
    return low, high - low


def here(*arrays: Any) -> None:
    """ValueError for an array of another device than the current one."""
    for array in arrays:
        if isinstance(array, ndarray) and array.data.device_id != context.device:
            raise ValueError(
                f"The device where the array resides ({array.data.device_id}) is different from "
                f"the current device ({context.device}). Peer access is unavailable between these "
                "devices."
            )


def perform(out: ndarray, values: Callable[[], Any], *reads: Any) -> None:
    """Let the current stream write values into an array, converted to its dtype."""
    arrays = [each for each in (out, *reads) if isinstance(each, ndarray)]
    here(*arrays)
    if not out.size:
        return
    target = out._np

    def run() -> None:
        with np.errstate(all="ignore"):
            found = values()
        target[...] = converted(found, target.dtype)

    ranges = tuple(touched(each) for each in arrays if each.size)
    machine.enqueue(context.stream_pointer(), Work(run, ranges, "an operation"))


def computed(values: Callable[[], Any], *reads: Any) -> Any:
    """A new array of what `values` gives, whose shape and dtype depend on no data.

    It is called now to learn them, and by the stream, so that a graph computes it anew. It may
    know NumPy arrays, but none of the fake's: graphs keep no memory alive.
    """
    here(*reads)
    for each in reads:
        if isinstance(each, ndarray) and each.size:
            machine.require([touched(each)], "an operation")
    with np.errstate(all="ignore"):
        found = np.asarray(values())
    out = ndarray(found.shape, found.dtype)
    perform(out, values, *reads)
    return out


def cast(array: ndarray, dtype: Any, order: str | None, copy: bool | None) -> ndarray:
    """The array in a dtype and order. `copy` None copies where needed; False refuses to."""
    dtype = supported(dtype)
    order = (order or "K").upper()
    flags = array.flags
    fits = {"K": True, "A": flags.forc, "C": flags.c_contiguous, "F": flags.f_contiguous}
    if dtype == array.dtype and not copy and fits[order]:
        return array
    if copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if order == "A":
        order = "F" if flags.fnc else "C"
    layout = np.empty_like(array._np, dtype, order) if order == "K" else None  # type: ignore[call-overload]
    if layout is None:
        made = ndarray(array.shape, dtype, order=order)
    else:
        made = ndarray(array.shape, dtype, memory.alloc(layout.nbytes), layout.strides)
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        text = "Casting complex values to real discards the imaginary part"
        warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=3)
    host = array._np
    perform(made, lambda: host, array)
    return made


def host_of(value: Any) -> Any:
    """The NumPy array of an array, else the value itself."""
    return value._np if isinstance(value, ndarray) else value
