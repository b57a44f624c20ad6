"""The fake's module functions, with CuPy's signatures: each is listed, and a test compares them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import indexing, memory, reductions
from .arrays import (
    cast,
    computed,
    converted,
    host_of,
    made_view,
    perform,
    supported,
)
from .arrays import (
    ndarray as Array,
)
from .devices import get_current_stream
from .machine import context, machine
from .ufuncs import where_ufunc


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Array:
    """As CuPy's: 0-d ones are filled, which makes -0.0 to 0.0; others are copied from the host.

    Pinned memory is read when the stream comes to it, other memory at once.
    """
    if subok:
        raise NotImplementedError
    if ndmin:
        raise NotImplementedError("the fake's array has no ndmin")
    order = order or "K"
    if isinstance(obj, Array):
        if obj.data.device_id != context.device:
            obj = obj.copy()
        return cast(obj, obj.dtype if dtype is None else dtype, order, copy)
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(each, Array) for each in obj):
        return cast(stack(obj), obj[0].dtype if dtype is None else dtype, "C", None)
    if (interface := getattr(obj, "__cuda_array_interface__", None)) is not None:
        return array(_over(interface, obj), dtype, copy, order)
    host = np.array(obj, dtype=dtype, copy=None)
    host = host.astype(host.dtype.newbyteorder("="), copy=False)
    if order in "KA":
        order = "F" if isinstance(obj, np.ndarray) and obj.flags.fnc else "C"
    made = Array(host.shape, supported(host.dtype), order=order)
    if host.ndim == 0:
        made.fill(host)
        return made
    stream = get_current_stream()
    fits = host.flags.c_contiguous if order == "C" else host.flags.f_contiguous
    if fits and memory.is_memory_pinned(host.ctypes.data):
        made.data.copy_from_host_async(host.ctypes.data, made.nbytes, stream)
        memory.keep_until_done(stream, host)
    else:
        staged = memory.alloc_pinned_memory(made.nbytes)
        buffer = np.frombuffer(staged, host.dtype, host.size)
        buffer.reshape(host.shape, order=order)[...] = host  # type: ignore[call-overload]
        made.data.copy_from_host_async(staged.ptr, made.nbytes, stream)
        memory.keep_until_done(stream, staged)
    if blocking:
        stream.synchronize()
    return made


def _over(interface: dict[str, Any], owner: object) -> Array:
    """An array over the memory that an object of another library tells of."""
    dtype, shape = np.dtype(interface["typestr"]), interface["shape"]
    block = machine.block_at(interface["data"][0])
    assert block is not None
    held = memory.UnownedMemory(interface["data"][0], dtype.itemsize * math.prod(shape), owner)
    return Array(shape, dtype, memory.MemoryPointer(held, 0), interface.get("strides"))


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: bool | None = None,
    blocking: bool = False,
) -> Array:
    return array(a, dtype, copy, order, blocking=blocking)


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    found = cast(_checked(a), a.dtype if dtype is None else dtype, "C", None)
    return found if found.ndim else found.reshape(1)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None) -> Any:
    if isinstance(a, Array):
        return a.get(stream=stream, order=order, out=out)
    return np.asarray(a, order=order)  # type: ignore[call-overload]


def _checked(a: Any) -> Array:
    if not isinstance(a, Array):
        raise TypeError(f"Argument 'a' has incorrect type (expected cupy.ndarray, got {type(a)})")
    return a


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Array:
    return Array(shape, dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> Array:
    made = Array(shape, dtype, order=order)
    made.data.memset_async(0, made.nbytes)
    return made


def ones(shape: Any, dtype: Any = float, order: str = "C") -> Array:
    made = Array(shape, dtype, order=order)
    made.fill(1)
    return made


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Array:
    if dtype is None:
        known = isinstance(fill_value, Array)
        dtype = fill_value.dtype if known else np.array(fill_value).dtype
    made = Array(shape, dtype, order=order)
    copyto(made, fill_value, casting="unsafe")
    return made


def empty_like(prototype: Any, dtype: Any = None) -> Array:
    layout = np.empty_like(_checked(prototype)._np, prototype.dtype if dtype is None else dtype)
    return Array(prototype.shape, layout.dtype, memory.alloc(layout.nbytes), layout.strides)


def zeros_like(a: Any, dtype: Any = None) -> Array:
    made = empty_like(a, dtype)
    made.data.memset_async(0, made.nbytes)
    return made


def ones_like(a: Any, dtype: Any = None) -> Array:
    made = empty_like(a, dtype)
    made.fill(1)
    return made


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Array:
    made = empty_like(a, dtype)
    copyto(made, fill_value, casting="unsafe")
    return made


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    if dtype is None:
        kinds = [np.dtype(type(each)).kind for each in (start, stop, step)]
        dtype = float if "f" in kinds else int
    if stop is None:
        start, stop = 0, start
    size = int(np.ceil((stop - start) / (1 if step is None else step)))
    made = Array((max(size, 0),), dtype)
    values = start + np.arange(max(size, 0)) * (1 if step is None else step)
    perform(made, lambda: values)
    return made


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if where is not None:
        raise NotImplementedError("the fake's copyto has no where")
    if isinstance(src, np.ndarray):
        if src.size != 1:
            raise ValueError("non-scalar numpy.ndarray cannot be used for copyto")
        src = src.squeeze()[()]
    if not isinstance(src, Array):
        np.copyto(np.empty((), dst.dtype), src, casting=casting)  # type: ignore[arg-type]
        perform(dst, lambda: np.asarray(src))
        return
    if not np.can_cast(src.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast {src.dtype} to {dst.dtype} in {casting} casting mode")
    host = src._np
    while host.ndim > dst.ndim and host.shape[0] == 1:
        host = host[0]
    try:
        np.broadcast_to(host, dst.shape)
    except ValueError:
        raise ValueError(
            f"could not broadcast input array from shape {src.shape} into shape {dst.shape}"
        ) from None
    perform(dst, lambda: np.array(np.broadcast_to(host, dst.shape)), src)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if (x is None) != (y is None):
        raise ValueError("Must provide both 'x' and 'y' or neither.")
    if x is None:
        return indexing.nonzero(_checked(condition))
    return where_ufunc(condition.astype("?", copy=False), x, y)


def concatenate(
    tup: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    if out is not None:
        raise NotImplementedError("the fake's concatenate has no out")
    arrays = list(tup)
    if not arrays:
        raise ValueError("Cannot concatenate from empty tuple")
    for each in arrays:
        if not isinstance(each, Array):
            raise TypeError("Only cupy arrays can be concatenated")
        if each.ndim == 0:
            raise TypeError("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        arrays, axis = [each.ravel() for each in arrays], 0
    if len({each.ndim for each in arrays}) > 1:
        raise ValueError("All arrays to concatenate must have the same ndim")
    result = np.result_type(*{each.dtype for each in arrays}) if dtype is None else np.dtype(dtype)
    hosts = [each._np for each in arrays]
    found: Array = computed(
        lambda: np.concatenate([converted(each, result) for each in hosts], axis), *arrays
    )
    return found


def stack(
    tup: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    return concatenate([expand_dims(each, axis) for each in tup], axis, out, dtype=dtype)


def expand_dims(a: Any, axis: Any) -> Array:
    return made_view(_checked(a), np.expand_dims(a._np, axis))


def broadcast_to(array: Any, shape: Any) -> Array:
    strided = np.broadcast_to(_checked(array)._np, shape)
    # NumPy's is read-only; CuPy knows nothing of that.
    writeable = np.lib.stride_tricks.as_strided(array._np, strided.shape, strided.strides)
    return made_view(array, writeable)


def as_strided(x: Any, shape: Any = None, strides: Any = None) -> Array:
    """`base` of the result is None, as CuPy has it."""
    shape = x.shape if shape is None else tuple(shape)
    return Array(shape, x.dtype, x.data, x.strides if strides is None else tuple(strides))


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Array:
    return indexing.take(_checked(a), indices, axis, out)


def reshape(a: Any, newshape: Any, order: str = "C") -> Array:
    return _checked(a).reshape(newshape, order=order)


def transpose(a: Any, axes: Any = None) -> Array:
    return _checked(a).transpose(axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    return _checked(a).swapaxes(axis1, axis2)


def ravel(a: Any, order: str = "C") -> Array:
    return _checked(a).ravel(order)


def sort(a: Any, axis: Any = -1, kind: Any = None) -> Array:
    made: Any = _checked(a).flatten() if axis is None else a.copy()
    made.sort(axis=-1 if axis is None else axis, kind=kind)
    found: Array = made
    return found


def argsort(a: Any, axis: Any = -1, kind: Any = None) -> Array:
    found: Array = _checked(a).argsort(axis=axis, kind=kind)  # type: ignore[attr-defined]
    return found


def sum_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Array:
    return reductions.sum_(_checked(a), axis, dtype, out, keepdims)


def prod_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Array:
    return reductions.prod_(_checked(a), axis, dtype, out, keepdims)


def max_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    return reductions.max_(_checked(a), axis, out, keepdims)


def min_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    return reductions.min_(_checked(a), axis, out, keepdims)


def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    return reductions.all_(_checked(a), axis, out, keepdims)


def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Array:
    return reductions.any_(_checked(a), axis, out, keepdims)


def argmax_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Array:
    return reductions.argmax_(_checked(a), axis, out, dtype, keepdims)


def argmin_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Array:
    return reductions.argmin_(_checked(a), axis, out, dtype, keepdims)


def cumsum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    return reductions.cumsum_(_checked(a), axis, dtype, out)


def cumprod_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    return reductions.cumprod_(_checked(a), axis, dtype, out)


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    return bool(np.may_share_memory(host_of(a), host_of(b)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__.rstrip("_"): each
    for each in (
        array, asarray, ascontiguousarray, asnumpy, empty, zeros, ones, full, empty_like,
        zeros_like, ones_like, full_like, arange, copyto, where, concatenate, stack, expand_dims,
        broadcast_to, take, reshape, transpose, swapaxes, ravel, sort, argsort, sum_, prod_, max_,
        min_, all_, any_, argmax_, argmin_, cumsum_, cumprod_, may_share_memory,
    )
}  # fmt: skip
FUNCTIONS["matmul"] = reductions.matmul
