"""Reductions over an array module, and scans: `axes` is a tuple, `keepdims` a bool.

Sums and products of half types accumulate in float32; integers keep their type and wrap. Sums of
floats are made of blocks, so that their error hardly grows with their length.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .array_functions_complex import view_as_complex, view_as_real
from .array_functions_elementwise import Array, Function, compute_dtype, quietly
from .dtypes import from_numpy_dtype

Axes = tuple[int, ...]


def _accumulation(name: str) -> Function:
    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        dtype, reduce = x.dtype, getattr(xp, name).reduce
        wide = compute_dtype(dtype)
        total = quietly(reduce, x, axis=axes, dtype=wide, keepdims=keepdims)
        return total if wide is dtype else quietly(total.astype, dtype)

    return function


def _scan(name: str) -> Function:
    """Running values: sums and products are kept in float64 where they are floats.

    Sums start from 0.0, not from -0.0.
    """

    def function(xp: Any, x: Array, *start: Array, axis: int, reverse: bool) -> Array:
        dtype = from_numpy_dtype(x.dtype)
        combine = getattr(xp, name)
        wide = x.dtype
        if name in ("add", "multiply"):
            wide = _WIDEST.get(x.dtype.kind, wide) if dtype.is_differentiable else wide
        else:
            wide = dtype.compute.numpy
        ordered = _flipped(x, axis) if reverse else x
        if dtype.name == "bfloat16":
            ordered = ordered.astype(np.float32)
        if not _in_rows(xp, x, axis):
            total = quietly(_taken_into_the_last, combine, ordered, axis, wide)
        elif name in ("add", "multiply"):
            running = xp.cumsum if name == "add" else xp.cumprod
            total = quietly(running, ordered, axis=axis, dtype=wide)
        else:
            total = quietly(_extremes_so_far, xp, combine, ordered.astype(wide), axis)
        if start or (name == "add" and dtype.is_differentiable):
            total = quietly(combine, total, start[0] if start else 0.0)
        if dtype.compute is not dtype:  # rounded as generated code does, which computes in float32
            total = quietly(total.astype, dtype.compute.numpy)
        total = quietly(total.astype, x.dtype, copy=False)
        return xp.ascontiguousarray(_flipped(total, axis)) if reverse else total

    return function


# What sums and products of floats (V: bfloat16) and complex numbers are kept in.
_WIDEST = {
    "f": np.dtype(np.float64), "V": np.dtype(np.float64), "c": np.dtype(np.complex128)
}  # fmt: skip


def _flipped(x: Array, axis: int) -> Array:
    return x[tuple(slice(None, None, -1 if at == axis else 1) for at in range(x.ndim))]


def _extremes_so_far(xp: Any, combine: Any, x: Array, axis: int) -> Array:
    if xp is np:
        found: Array = combine.accumulate(x, axis)
        return found
    # CuPy's functions do not accumulate: in log2(n) steps, each of twice the reach.
    total, reach = xp.swapaxes(x.copy(), axis, 0), 1
    while reach < len(total):
        total[reach:] = combine(total[reach:], total[:-reach])
        reach *= 2
    return xp.ascontiguousarray(xp.swapaxes(total, 0, axis))


def _linear_scan(xp: Any, a: Array, b: Array, axis: int, reverse: bool) -> Array:
    """Each element is `a` times the one before, plus `b`: one step after another, in float64."""
    order = _flipped if reverse else lambda each, axis: each
    wide = _WIDEST[b.dtype.kind]
    factors, added = (xp.swapaxes(order(each, axis), axis, 0).astype(wide) for each in (a, b))
    found = xp.empty(added.shape, wide)
    last = xp.zeros(added.shape[1:], wide)
    for at in range(len(added)):
        last = found[at] = quietly(xp.add, quietly(xp.multiply, last, factors[at]), added[at])
    if compute_dtype(b.dtype) is not b.dtype:
        found = quietly(found.astype, np.float32)
    found = quietly(found.astype, b.dtype, copy=False)
    return xp.ascontiguousarray(order(xp.swapaxes(found, 0, axis), axis))


# Elements beside each other that NumPy adds at once faster than one after another.
_SIDE_BY_SIDE = 256


def _in_rows(xp: Any, x: Array, axis: int) -> bool:
    """Whether there is no more to gain than NumPy does: it scans one row after another."""
    return xp is not np or prod(x.shape[axis + 1 :]) < _SIDE_BY_SIDE or not x.size


def _taken_into_the_last(combine: Any, x: Array, axis: int, dtype: Any) -> Array:
    total = np.empty(x.shape, dtype)
    results, values = np.moveaxis(total, axis, 0), np.moveaxis(x, axis, 0)
    results[0] = values[0]
    for at in range(1, len(values)):
        combine(results[at - 1], values[at], out=results[at], dtype=dtype)
    return total


# NumPy adds pairwise along contiguous memory, and elsewhere one element after another: so many.
_BLOCK = 256


def _sum(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
    dtype = x.dtype
    if dtype.kind == "c":  # as sums of their parts, which have few roundings
        return view_as_complex(xp, _sum(xp, view_as_real(xp, x), axes, keepdims))
    if dtype.kind not in "fV":  # V: bfloat16
        return quietly(xp.add.reduce, x, axis=axes, dtype=dtype, keepdims=keepdims)
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    if xp is np and axes and x.size > _BLOCK and not _is_pairwise(x, axes, wide):
        x = _sums_of_blocks(x, axes, wide)
    total = quietly(xp.add.reduce, x, axis=axes, dtype=wide, keepdims=keepdims)
    return total if wide is dtype else quietly(total.astype, dtype)


def _sums_of_blocks(x: Array, axes: Axes, dtype: Any) -> Array:
    """Fewer elements with the same sum, until few are left that are not added up pairwise."""
    while not _is_pairwise(x, axes, dtype):
        lengths = {axis: x.shape[axis] for axis in axes}
        axis = max(lengths, key=lengths.__getitem__)
        others = prod(lengths.values()) // max(lengths[axis], 1)
        block = max(1, _BLOCK // others) if others else _BLOCK
        if lengths[axis] <= block:
            return x
        x = _block_sums(x, axes, axis, max(block, 2), dtype)
    return x


def _is_pairwise(x: Array, axes: Axes, dtype: Any) -> bool:
    """Whether NumPy's sum over `axes` is made of at most one block of pairwise sums."""
    if x.dtype != dtype or not x.flags.c_contiguous:
        return False
    run = x.ndim
    while run - 1 in axes:
        run -= 1
    if run == x.ndim - len(axes):
        return True
    outside: int = prod(x.shape[axis] for axis in axes if axis < run)
    return outside <= _BLOCK


def _block_sums(x: Array, axes: Axes, axis: int, block: int, dtype: Any) -> Array:
    """`x` with blocks along `axis` added up, over the other axes too; what is left is one more."""
    size = x.shape[axis]
    whole = size - size % block
    before, after = (slice(None),) * axis, x.shape[axis + 1 :]
    cut = x[(*before, slice(whole))].reshape((*x.shape[:axis], whole // block, block, *after))
    inner = tuple(each + 1 if each >= axis else each for each in axes)
    sums = quietly(np.add.reduce, cut, axis=inner, dtype=dtype, keepdims=True).squeeze(axis + 1)
    if whole == size:
        return sums
    rest = x[(*before, slice(whole, None))]
    last = quietly(np.add.reduce, rest, axis=axes, dtype=dtype, keepdims=True)
    return np.concatenate((sums, last), axis)


def _choice(ufunc: str, name: str) -> Function:
    """The reduction of NumPy's `ufunc`, of which CuPy has the function `name` only."""

    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        if xp is np:
            return quietly(getattr(np, ufunc).reduce, x, axis=axes, keepdims=keepdims)
        return getattr(xp, name)(x, axis=axes, keepdims=keepdims)

    return function


def _position(name: str) -> Function:
    """The first position of the extreme; NaN counts as the extreme."""

    def function(xp: Any, x: Array, axes: Axes, keepdims: bool) -> Array:
        if x.dtype.kind == "V":  # bfloat16, whose own comparison ignores NaN
            x = x.astype(np.float32)
        if xp is not np:
            return _position_on_device(xp, name, x, axes[0], keepdims)
        found = getattr(xp, name)(x, axis=axes[0], keepdims=keepdims)
        return xp.asarray(found, np.int64)

    return function


def _position_on_device(xp: Any, name: str, x: Array, axis: int, keepdims: bool) -> Array:
    """Of several NaN, CuPy gives any; with an axis that is not empty, it refuses empty arrays."""
    options = {"axis": axis, "keepdims": keepdims}
    if x.size == 0 and x.shape[axis]:
        return xp.any(x, **options).astype(np.int64)
    found = getattr(xp, name)(x, **options)
    if x.dtype.kind != "f":
        return found
    unknown = xp.isnan(x)
    return xp.where(xp.any(unknown, **options), xp.argmax(unknown, **options), found)


FUNCTIONS: dict[str, Function] = {
    "sum": _sum,
    "prod": _accumulation("multiply"),
    "max": _choice("maximum", "max"),
    "min": _choice("minimum", "min"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "any": _choice("logical_or", "any"),
    "all": _choice("logical_and", "all"),
}

SCANS: dict[str, Function] = {
    "cumsum": _scan("add"),
    "cumprod": _scan("multiply"),
    "cummax": _scan("maximum"),
    "cummin": _scan("minimum"),
    "linear_scan": _linear_scan,
}
