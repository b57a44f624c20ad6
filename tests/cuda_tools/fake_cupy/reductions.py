"""Reductions, sorting and matrix products of the fake's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import (
    BFLOAT16,
    Host,
    computed,
    converted,
    is_half,
    ndarray,
    perform,
    supported,
)
from .machine import context, machine

_BLOCK = 512  # threads of CuPy's reduction kernels
_SORTED = "?bhilqBHILQefd"


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim))


def _finish(found: Any, reads: ndarray, out: ndarray | None) -> ndarray:
    """A new array of what is computed, or `out` with it."""
    if out is None:
        made: ndarray = computed(found, reads)
        return made
    if out.shape != np.asarray(found()).shape:
        raise ValueError("Out shape is mismatched")
    perform(out, found, reads)
    return out


def _accumulated(function: Any, a: ndarray, axis: Any, dtype: Any, out: Any, keep: Any) -> ndarray:
    axes = _axes(axis, a.ndim)
    if dtype is not None:
        result = supported(dtype)
    elif a.dtype.kind in "bi":
        result = np.dtype(np.int64)
    else:
        result = np.dtype(np.uint64) if a.dtype.kind == "u" else a.dtype
    wide = np.dtype(np.float32) if is_half(result) else result

    host = a._np

    def found() -> Any:
        values = converted(host, wide)
        total = function.reduce(values, axis=axes, dtype=wide, keepdims=bool(keep))
        return converted(total, result)

    return _finish(found, a, out)


def sum_(
    self: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> ndarray:
    return _accumulated(np.add, self, axis, dtype, out, keepdims)


def prod_(
    self: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = None
) -> ndarray:
    return _accumulated(np.multiply, self, axis, dtype, out, keepdims)


def _refuse_empty(name: str, a: ndarray, axes: tuple[int, ...]) -> None:
    if a.size == 0 and all(a.shape[at] for at in range(a.ndim) if at not in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def _extreme(function: Any, a: ndarray, axis: Any, out: Any, keepdims: Any) -> ndarray:
    axes = _axes(axis, a.ndim)
    _refuse_empty(f"cupy_{function.__name__[:3]}", a, axes)
    host = a._np

    def found() -> Any:
        if host.size == 0:
            shape = np.any(host, axis=axes, keepdims=bool(keepdims)).shape
            return np.empty(shape, host.dtype)
        wide = host.astype(np.float32) if host.dtype == BFLOAT16 else host
        return function.reduce(wide, axis=axes, keepdims=bool(keepdims)).astype(host.dtype)

    return _finish(found, a, out)


def max_(self: ndarray, axis: Any = None, out: Any = None, keepdims: Any = False) -> ndarray:
    return _extreme(np.maximum, self, axis, out, keepdims)


def min_(self: ndarray, axis: Any = None, out: Any = None, keepdims: Any = False) -> ndarray:
    return _extreme(np.minimum, self, axis, out, keepdims)


def _truth(function: Any, a: ndarray, axis: Any, out: Any, keepdims: Any) -> ndarray:
    axes = _axes(axis, a.ndim)
    host = a._np
    return _finish(
        lambda: function.reduce(host.astype(bool), axis=axes, keepdims=bool(keepdims)), a, out
    )


def all_(self: ndarray, axis: Any = None, out: Any = None, keepdims: Any = False) -> ndarray:
    return _truth(np.logical_and, self, axis, out, keepdims)


def any_(self: ndarray, axis: Any = None, out: Any = None, keepdims: Any = False) -> ndarray:
    return _truth(np.logical_or, self, axis, out, keepdims)


def _position(name: str, a: ndarray, axis: Any, out: Any, dtype: Any, keepdims: Any) -> ndarray:
    axes = _axes(axis, a.ndim)
    result = np.dtype("q") if dtype is None else np.dtype(dtype)
    _refuse_empty(f"cupy_{name}", a, axes)
    host = a._np

    def found() -> Any:
        kept = [at for at in range(host.ndim) if at not in axes]
        if host.size == 0:
            return np.any(host, axis=axes, keepdims=bool(keepdims)).astype(result)
        wide = host.astype(np.float32) if host.dtype == BFLOAT16 else host
        flat = wide.transpose(*kept, *axes).reshape(*(host.shape[at] for at in kept), -1)
        places = _with_nan(flat, getattr(np, name)(flat, axis=-1))
        if keepdims:
            places = places.reshape([1 if at in axes else n for at, n in enumerate(host.shape)])
        return np.asarray(places).astype(result)

    return _finish(found, a, out)


def _with_nan(flat: Host, places: Any) -> Any:
    """Of several NaN CuPy gives the one that its lowest thread meets first."""
    if flat.dtype.kind != "f" or not np.isnan(flat).any():
        return places
    order = np.lexsort((np.arange(flat.shape[-1]), np.arange(flat.shape[-1]) % _BLOCK))
    missing = np.isnan(flat)[..., order]
    return np.where(missing.any(-1), order[missing.argmax(-1)], places)


def argmax_(
    self: ndarray, axis: Any = None, out: Any = None, dtype: Any = None, keepdims: Any = False
) -> ndarray:
    return _position("argmax", self, axis, out, dtype, keepdims)


def argmin_(
    self: ndarray, axis: Any = None, out: Any = None, dtype: Any = None, keepdims: Any = False
) -> ndarray:
    return _position("argmin", self, axis, out, dtype, keepdims)


def cumsum_(self: ndarray, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    return _running("cumsum", self, axis, dtype, out)


def cumprod_(self: ndarray, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    return _running("cumprod", self, axis, dtype, out)


def _running(name: str, self: ndarray, axis: Any, dtype: Any, out: Any) -> ndarray:
    kinds = {"b": np.int64, "i": np.int64, "u": np.uint64}
    result = supported(dtype or kinds.get(self.dtype.kind, self.dtype))
    wide = np.dtype(np.float32) if is_half(result) else result
    host = self._np

    def running() -> Any:
        return converted(getattr(converted(host, wide), name)(axis, wide), result)

    return _finish(running, self, out)


# -- sorting ---------------------------------------------------------------------------------


def _check_sort(a: ndarray, kind: Any) -> None:
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    if a.dtype.char not in _SORTED or a.dtype == BFLOAT16:
        raise NotImplementedError(f"Sorting arrays with dtype '{a.dtype}' is not supported")


def sort(self: ndarray, axis: int = -1, kind: Any = None) -> None:
    _check_sort(self, kind)
    if self.ndim == 0:
        raise np.exceptions.AxisError("Sorting arrays with the rank of zero is not supported")
    if not self.flags.c_contiguous:
        raise NotImplementedError("Sorting non-contiguous array is not supported.")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, self.ndim))
    host = self._np
    perform(self, lambda: np.sort(host, axis, kind="stable"))


def argsort(self: ndarray, axis: Any = -1, kind: Any = None) -> ndarray:
    _check_sort(self, kind)
    source = self if self.ndim else self.reshape(1)
    host = source._np
    found: ndarray = computed(lambda: np.argsort(host, axis, kind="stable"), source)
    return found


# -- matrix products -------------------------------------------------------------------------


def matmul(a: Any, b: Any, out: ndarray | None = None) -> ndarray:
    """As CuPy's: cuBLAS for floats, which refuses to be captured; own kernels for integers."""
    for each in (a, b):
        if not isinstance(each, ndarray):
            raise TypeError(f"Unsupported type {type(each)}")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("Scalar operands are not allowed, use '*' instead")
    result = np.promote_types(a.dtype, b.dtype)
    floats = result.kind in "fc" or result == BFLOAT16
    if result == BFLOAT16 and a.ndim + b.ndim > 4:
        raise TypeError("the kernels of products of integers do not know bfloat16")
    if floats and a.size and b.size and machine.stream(context.stream_pointer()).capture:
        raise NotImplementedError(
            "calling cuBLAS API during stream capture is currently unsupported"
        )
    wide = np.dtype(np.float32) if is_half(result) else result

    left, right = a._np, b._np

    def found() -> Any:
        product = np.matmul(left.astype(wide), right.astype(wide))
        return np.asarray(product).astype(result)

    if out is None:
        made: ndarray = computed(found, a, b)
        return made
    if out.shape != np.asarray(found()).shape:
        raise ValueError("Output array has an invalid size")
    perform(out, found, a, b)
    return out


METHODS = {
    each.__name__.rstrip("_"): each
    for each in (
        sum_,
        prod_,
        max_,
        min_,
        all_,
        any_,
        argmax_,
        argmin_,
        cumsum_,
        cumprod_,
        sort,
        argsort,
    )
}
