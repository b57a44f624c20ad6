"""Order along the last axis of NumPy arrays: sorting and selecting, with equal elements in place.

NaN counts as larger than every number, and as equal to NaN. NumPy sorts and partitions numbers by
vector instructions where the processor has them, but keeps equal elements in order only in a slow
way. So the positions are made a part of the keys, or found from a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import parallel
from .array_functions_elementwise import quietly

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]
Positions = np.ndarray[Any, np.dtype[np.int64]]

# Below, the calls that make keys take longer than sorting.
_FEW = 512
# Elements of which the extreme is looked at first, where so many such groups come to one wanted.
_GROUP, _GROUPS_FOR_ONE = 8, 4
# The bits of negative zeros.
_NEGATIVE_ZEROS: dict[np.dtype[Any], Any] = {
    np.dtype(np.float32): np.int32(-(1 << 31)),
    np.dtype(np.float64): np.int64(-(1 << 63)),
}
# So many elements are worth a thread.
_SHARE = 1 << 16


def in_order(values: Array, descending: bool = False) -> Array:
    """Rows in order: `values` at the positions of `stable_order`.

    >>> in_order(np.array([2.0, np.nan, 1.0]), descending=True)
    array([nan,  2.,  1.])
    """
    ordered = np.empty(values.shape, values.dtype)
    put_in_order(values, ordered, descending)
    return ordered


def put_in_order(values: Array, ordered: Array, descending: bool = False) -> None:
    """Write `in_order(values)` to `ordered`, which is contiguous."""
    keys = _comparable(ordered)
    if _sort_by_threads(values, keys):  # zeros that are equal to others, and not the same
        ordered[...] = np.take_along_axis(values, stable_order(values, descending), -1)
        return
    if descending:
        keys[...] = keys[..., ::-1]
    if keys.dtype.itemsize != ordered.dtype.itemsize:
        quietly(np.copyto, ordered, keys, casting="unsafe")


def _sort_by_threads(values: Array, keys: Array) -> bool:
    """Write rows in order to `keys`; whether there are negative zeros."""
    length, rows = values.shape[-1], math.prod(values.shape[:-1])
    source, target = values.reshape(rows, length), keys.reshape(rows, length)
    count = min(parallel.get_num_threads(), keys.size // _SHARE)
    if count < 2:
        return _sort_rows(source, target)
    if target.shape[0] >= count:
        return any(
            _on_threads(_sort_rows, np.array_split(source, count), np.array_split(target, count))
        )
    has_negative_zeros = _copy_rows(source, target)
    limits = [length * number // count for number in range(1, count)]
    for row in target:  # in parts that are in order once each of them is
        row.partition(limits)
        _on_threads(np.ndarray.sort, np.split(row, limits))
    return has_negative_zeros


def _sort_rows(source: Array, target: Array) -> bool:
    has_negative_zeros = _copy_rows(source, target)
    target.sort(axis=-1)
    return has_negative_zeros


def _copy_rows(source: Array, target: Array) -> bool:
    """Whether there are negative zeros in what it copies."""
    np.copyto(target, _comparable(source))
    least = _NEGATIVE_ZEROS.get(target.dtype)
    return least is not None and bool((target.view(least.dtype) == least).any())


def _on_threads(function: Callable[..., Any], *pieces: Sequence[Array]) -> list[Any]:
    """What `function` gives for each piece, the first of them on this thread."""
    from concurrent.futures import ThreadPoolExecutor  # which takes milliseconds to import

    first, *others = zip(*pieces)
    with ThreadPoolExecutor(len(others)) as pool:
        later = [pool.submit(function, *each) for each in others]
        return [function(*first), *(each.result() for each in later)]


def stable_order(values: Array, descending: bool = False) -> Positions:
    """The positions that put rows in order; equal elements keep theirs, NaN counts as largest.

    >>> stable_order(np.array([2.0, np.nan, 1.0, 2.0]), descending=True)
    array([1, 0, 3, 2])
    """
    values = np.ascontiguousarray(_comparable(values))
    length = values.shape[-1]
    if values.size <= _FEW or length >= 1 << 31:
        return _merged(values, descending)
    keys = _short_keys(values)
    if keys is None:
        keys = _ranks(values)
    if descending:
        np.invert(keys, out=keys)
    keys <<= 32
    keys |= np.arange(length)
    keys.sort(axis=-1)
    keys &= 0xFFFFFFFF
    return keys


def first_in_order(values: Array, count: int, descending: bool = False) -> Positions:
    """`stable_order(values, descending)[..., :count]`, without putting all in order."""
    length = values.shape[-1]
    if values.size <= _FEW or not 0 < count <= length // 2:
        return stable_order(values, descending)[..., :count]
    rows = _comparable(values).reshape(-1, length)
    found = _among_few(rows, count, descending)
    if found is None:
        found = _up_to_a_limit(rows, count, descending)
    return found.reshape(*values.shape[:-1], count)


def _among_few(rows: Array, count: int, descending: bool) -> Positions | None:
    """The first ones of each row, put in order with some others; None where these would be many.

    Of groups of elements the extremes are as many different elements, so at least `count` reach
    what `count` of the extremes do, and where there are many groups, hardly more.
    """
    length = rows.shape[1]
    groups = length // _GROUP
    if groups < _GROUPS_FOR_ONE * count:
        return None
    extreme = np.maximum if descending else np.fmin  # NaN is the largest
    best = rows[:, :groups].copy()
    for start in range(groups, groups * _GROUP, groups):
        quietly(extreme, best, rows[:, start : start + groups], out=best)
    limit = _at_rank(best, groups - count if descending else count - 1)
    kept = _reaches(rows, limit, descending)
    counts = np.count_nonzero(kept, axis=1)
    width = int(counts.max())
    if width > groups:
        return None
    return _in_order(rows, np.flatnonzero(kept), counts, width, descending)[:, :count]


def _in_order(
    rows: Array, found: Positions, counts: Array, width: int, descending: bool
) -> Positions:
    """Chosen elements of each row, `counts` of them, in order; what stands behind them is any."""
    row, at = np.divmod(found, rows.shape[1])
    place = np.arange(found.size) - (np.cumsum(counts) - counts)[row]
    # What fills up rows comes behind all else, and where it is equal too, as it is stored behind.
    values = np.full((rows.shape[0], width), _last_of_all(rows.dtype, descending), rows.dtype)
    positions = np.zeros((rows.shape[0], width), np.int64)
    values[row, place] = rows.reshape(-1)[found]
    positions[row, place] = at
    return np.take_along_axis(positions, stable_order(values, descending), 1)


def _last_of_all(dtype: np.dtype[Any], descending: bool) -> Any:
    if dtype.kind == "f":
        return -np.inf if descending else np.nan
    limits = np.iinfo(dtype)
    return limits.min if descending else limits.max


def _up_to_a_limit(rows: Array, count: int, descending: bool) -> Positions:
    """The first ones of each row: what comes before the last of them, and some that equal it."""
    length = rows.shape[1]
    limit = _at_rank(rows, length - count if descending else count - 1)
    kept = _reaches(rows, limit, descending)
    crowded = np.flatnonzero(np.count_nonzero(kept, axis=1) != count)
    if crowded.size:  # of those that equal the limit, the first ones
        kept[crowded] = _first_reaching(rows[crowded], limit[crowded], count, descending)
    found = np.flatnonzero(kept).reshape(-1, count)
    found -= np.arange(rows.shape[0])[:, None] * length
    inside = stable_order(np.take_along_axis(rows, found, 1), descending)
    return np.take_along_axis(found, inside, 1)


def nth_in_order(values: Array, rank: int) -> Positions:
    """`stable_order(values)[..., rank : rank + 1]`, without putting anything in order."""
    length = values.shape[-1]
    if values.size <= _FEW:
        return stable_order(values)[..., rank : rank + 1]
    rows = _comparable(values).reshape(-1, length)
    limit = _at_rank(rows, rank)
    equal = _equals(rows, limit)
    at = rank - np.count_nonzero(_precedes(rows, limit, False), axis=1)
    found = equal.argmax(1)
    later = np.flatnonzero(at)
    if later.size:
        many = equal[later]
        counted = np.cumsum(many, axis=1, dtype=np.int64)
        found[later] = (many & (counted == 1 + at[later, None])).argmax(1)
    positions: Positions = found.reshape(*values.shape[:-1], 1).astype(np.int64, copy=False)
    return positions


def _comparable(values: Array) -> Array:
    """The same order in a type that NumPy compares fast, with NaN last: not those of 16 bits."""
    if values.dtype.kind == "V" or values.dtype == np.float16:
        wide: Array = quietly(values.astype, np.float32)
        return wide
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def _merged(values: Array, descending: bool) -> Positions:
    if not descending:
        return np.argsort(values, axis=-1, kind="stable").astype(np.int64, copy=False)
    backwards = np.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.ascontiguousarray(values.shape[-1] - 1 - backwards).astype(np.int64, copy=False)


# -- keys ------------------------------------------------------------------------------------


def _short_keys(values: Array) -> npt.NDArray[np.int64] | None:
    """Integers of 32 bits, one sign included, in the same order; None where there are none."""
    if values.dtype == np.float32:
        return _bits_in_order(values)
    if values.dtype.kind == "f":
        return None
    if values.dtype.itemsize < 4 or values.dtype == np.int32:
        return values.astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if high - low >= 1 << 31:
        return None
    above: Positions = (values - values.dtype.type(low)).astype(np.int64)
    return above


def _bits_in_order(values: Array) -> npt.NDArray[np.int64]:
    """The bits of float32 as integers in the order of the numbers; zeros are one, and so are NaN.

    Those of negative numbers count backwards.
    """
    positive = quietly(np.add, values, np.float32(0))  # of which there is one zero
    bits = positive.view(np.int32)
    unknown = np.isnan(positive)
    if unknown.any():
        bits[unknown] = np.iinfo(np.int32).max
    bits ^= (bits >> 31) & np.int32(0x7FFFFFFF)
    wide: Positions = bits.astype(np.int64)
    return wide


def _ranks(values: Array) -> npt.NDArray[np.int64]:
    """How many distinct elements precede each one in its row."""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, -1)
    new = ordered[..., 1:] != ordered[..., :-1]
    if values.dtype.kind == "f":
        new &= ~np.isnan(ordered[..., :-1])
    ranks = np.zeros(values.shape, np.int64)
    found = np.zeros(values.shape, np.int64)
    np.cumsum(new, axis=-1, out=ranks[..., 1:])
    np.put_along_axis(found, order, ranks, -1)
    return found


# -- thresholds ------------------------------------------------------------------------------


def _at_rank(rows: Array, rank: int) -> Array:
    """The element of every row that is `rank` places behind the smallest."""
    return np.partition(rows, rank, axis=1)[:, rank, None]


def _precedes(rows: Array, limit: Array, descending: bool) -> npt.NDArray[np.bool_]:
    """Which elements come before the limit."""
    found: npt.NDArray[np.bool_] = rows > limit if descending else rows < limit
    if rows.dtype.kind == "f":
        unknown, beyond = (rows, limit) if descending else (limit, rows)
        if np.isnan(unknown).any():
            found |= np.isnan(unknown) & ~np.isnan(beyond)
    return found


def _equals(rows: Array, limit: Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = rows == limit
    if rows.dtype.kind == "f" and np.isnan(limit).any():
        found |= np.isnan(rows) & np.isnan(limit)
    return found


def _reaches(rows: Array, limit: Array, descending: bool) -> npt.NDArray[np.bool_]:
    """Which elements come before the limit or equal it."""
    if rows.dtype.kind != "f":
        return rows >= limit if descending else rows <= limit
    if descending:  # NaN, which is the largest, is never less
        return ~(rows < limit) if not np.isnan(limit).any() else _slowly_reaches(rows, limit, True)
    return rows <= limit if not np.isnan(limit).any() else _slowly_reaches(rows, limit, False)


def _slowly_reaches(rows: Array, limit: Array, descending: bool) -> npt.NDArray[np.bool_]:
    return _precedes(rows, limit, descending) | _equals(rows, limit)


def _first_reaching(
    rows: Array, limit: Array, count: int, descending: bool
) -> npt.NDArray[np.bool_]:
    """Which elements come before the limit, and as many of those that equal it as are wanted."""
    before, equal = _precedes(rows, limit, descending), _equals(rows, limit)
    wanted = count - np.count_nonzero(before, axis=1)
    first: npt.NDArray[np.bool_] = equal & (np.cumsum(equal, axis=1) <= wanted[:, None])
    return before | first
