"""Reading and writing at indices, with CuPy's rules: positions out of range wrap around."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Host, cast, computed, converted, made_view, ndarray, perform

_SCATTERED = {
    "add": ("int32", "int64", "float16", "float32", "float64", "uint32", "uint64"),
    "sub": ("int32", "uint32"),
    "max": ("int32", "int64", "float32", "float64", "uint32", "uint64"),
    "min": ("int32", "int64", "float32", "float64", "uint32", "uint64"),
    "and": ("int32", "int64", "uint32", "uint64"),
    "or": ("int32", "int64", "uint32", "uint64"),
    "xor": ("int32", "int64", "uint32", "uint64"),
}
_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _prepared(array: ndarray, indices: Any) -> list[Any]:
    """The indices one by one, every axis told: numbers, slices, None and arrays of the fake."""
    from .routines import array as made

    given = list(indices) if isinstance(indices, tuple) else [indices]
    for at, index in enumerate(given):
        if index is None or index is Ellipsis or isinstance(index, (slice, ndarray)):
            continue
        if np.isscalar(index) and not isinstance(index, (bool, np.bool_)):
            continue
        given[at] = made(index)
        if isinstance(index, (list, tuple)) and not given[at].size:
            given[at] = given[at].astype(np.int32)
    axes = 0
    for index in given:
        if isinstance(index, ndarray) and index.dtype.kind not in "biu":
            raise IndexError(
                "arrays used as indices must be of integer or boolean type. "
                f"(actual: {index.dtype.type})"
            )
        axes += _axes(index)
    if sum(index is Ellipsis for index in given) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if axes > array.ndim:
        raise IndexError(
            f"too many indices for array: array is {array.ndim}-dimensional, "
            f"but {axes} were indexed"
        )
    if Ellipsis not in [index for index in given if not isinstance(index, ndarray)]:
        given.append(Ellipsis)
    return given


def _axes(index: Any) -> int:
    """How many axes of the array an index stands for."""
    if index is None or index is Ellipsis:
        return 0
    return index.ndim if isinstance(index, ndarray) and index.dtype.kind == "b" else 1


def _arrays(indices: list[Any]) -> list[ndarray]:
    return [index for index in indices if isinstance(index, ndarray)]


def _for_numpy(array: ndarray, indices: list[Any]) -> Callable[[], tuple[Any, ...]]:
    """What gives the indices as NumPy takes them, positions wrapped into their axes."""
    found: list[Any] = []
    sizes: list[int] = []  # of the axes that positions are of, else 0
    axis = 0
    for index in indices:
        if index is Ellipsis:
            axis += array.ndim - sum(map(_axes, indices))
        known = isinstance(index, ndarray)
        positions = known and index.dtype.kind in "iu"
        sizes.append(array.shape[axis] if positions else 0)
        number = not known and np.isscalar(index)
        found.append(index._np if known else int(index) if number else index)
        axis += _axes(index)

    def wrapped() -> tuple[Any, ...]:
        return tuple(
            each.astype(np.int64) % size if size else each for each, size in zip(found, sizes)
        )

    return wrapped


def _count_on_host(arrays: list[ndarray]) -> None:
    """Masks are counted on the host, which waits for them."""
    for array in arrays:
        if array.dtype.kind == "b":
            array.get()


def getitem(self: ndarray, indices: Any) -> ndarray:
    prepared = _prepared(self, indices)
    arrays = _arrays(prepared)
    if not arrays:
        return made_view(self, self._np[_for_numpy(self, prepared)()])
    _count_on_host(arrays)
    host, places = self._np, _for_numpy(self, prepared)
    found: ndarray = computed(lambda: np.array(host[places()]), self, *arrays)
    return found


def setitem(self: ndarray, indices: Any, value: Any) -> None:
    scatter(self, indices, value, "update")


def scatter(self: ndarray, indices: Any, value: Any, operation: str) -> None:
    """`self[indices] = value`, or another operation; of repeated positions the first one wins."""
    from .operators import ufunc_of_scatter

    prepared = _prepared(self, indices)
    arrays = _arrays(prepared)
    if arrays:
        _count_on_host(arrays)
        _scatter_at(self, prepared, arrays, value, operation)
        return
    target = made_view(self, self._np[_for_numpy(self, prepared)()])
    if operation != "update":
        ufunc_of_scatter(operation)(target, value, target)
    elif not isinstance(value, ndarray):
        target.fill(value)
    else:
        _copy_into(target, value)


def _copy_into(target: ndarray, value: ndarray) -> None:
    source = value._np
    while source.ndim > target.ndim and source.shape[0] == 1:
        source = source[0]
    np.broadcast_shapes(source.shape, target.shape)
    if np.broadcast_shapes(source.shape, target.shape) != target.shape:
        raise ValueError("Out shape is mismatched")
    perform(target, lambda: np.array(np.broadcast_to(source, target.shape)), value)


def _scatter_at(
    self: ndarray, prepared: list[Any], arrays: list[ndarray], value: Any, operation: str
) -> None:
    from .routines import array as made

    values = value if isinstance(value, ndarray) else made(value, dtype=self.dtype)
    values = cast(values, self.dtype, "K", None)
    masks = any(array.dtype.kind == "b" for array in arrays)
    if operation != "update" and not masks and self.dtype.name not in _SCATTERED[operation]:
        raise TypeError(
            f"cupy.{_FUNCTIONS[operation].__name__}.at only supports "
            f"{', '.join(_SCATTERED[operation])} as data type"
        )
    host, at = self._np, _for_numpy(self, prepared)
    shape = np.broadcast_to(np.zeros((), np.uint8), host.shape)[at()].shape
    source = values._np
    while source.ndim > len(shape) and source.shape[0] == 1:
        source = source[0]
    np.broadcast_to(source, shape)

    def results() -> Host:
        result = host.copy()
        places = np.arange(host.size).reshape(host.shape)[at()]
        numbers = np.broadcast_to(converted(source, host.dtype), shape)
        # From the last to the first: a GPU has no order, and NumPy's is the other one.
        places, numbers = places.reshape(-1)[::-1], numbers.reshape(-1)[::-1]
        flat = result.reshape(-1)
        if operation == "update":
            flat[places] = numbers
        else:
            _FUNCTIONS[operation].at(flat, places, numbers)
        return flat.reshape(host.shape)

    if math.prod(shape):
        perform(self, results, values, *arrays)


def take(a: ndarray, indices: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Elements at positions, which wrap around."""
    from .routines import array as made

    if out is not None:
        raise NotImplementedError("the fake's take has no out")
    if not isinstance(indices, ndarray) and not np.isscalar(indices):
        indices = made(indices, dtype=int)
    positions = indices if isinstance(indices, ndarray) else None
    if axis is not None and a.ndim:
        axis = int(np.lib.array_utils.normalize_axis_index(axis, a.ndim))
    whole = axis is None or a.ndim == 0
    size = a.size if whole else a.shape[axis]
    source = a._np
    count = 1 if positions is None else positions.size
    rows = 1 if whole else math.prod(a.shape[:axis] + a.shape[axis + 1 :])
    if not size and count * rows:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if positions is not None and positions.dtype.kind not in "iu":
        raise NotImplementedError("the fake takes at positions that are integers")

    raw = np.asarray(indices if positions is None else positions._np)

    def values() -> Any:
        places = raw.astype(np.int64) % max(size, 1)
        return source.take(places, axis=None if whole else axis)

    found: ndarray = computed(values, a, positions)
    return found


def nonzero(self: ndarray) -> tuple[ndarray, ...]:
    """Positions that are not zero; waits for the device."""
    from .routines import array as made

    if self.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. "
            "Use cp.atleast_1d(scalar).nonzero() instead."
        )
    return tuple(made(each) for each in self.get().nonzero())
