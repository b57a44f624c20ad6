"""Resampling along an axis: each place of the result is a weighted sum of places of the input.

Positions and weights are known from sizes alone, and computed in the number type that PyTorch
computes them in, so that the same places are taken. The transpose, which is the gradient, is made
of the transposed table: it gathers too, and adds in one order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import cast
from ..core.tensor import Tensor, unwritten
from ..core.vjp_rules import input_vjp
from ..runtime.dtypes import int32, uint8
from ..runtime.records import NamedTuple
from . import elementwise as e
from . import movement as m
from . import reductions as r

Array = np.ndarray[Any, Any]
# Taps that are written out as a sum; more are an axis that is reduced.
_WRITTEN_OUT = 6


class Resampling(NamedTuple):
    """How an axis of `size` elements is resampled to `made`.

    `kind` is "nearest", "nearest-exact", "linear" or "cubic", with a filter as wide as what is
    skipped if `antialias`, where "lanczos" is one more. `scale` is how many elements of the input
    there are for one of the result, 0 where sizes tell. `precision` names the type of numbers.
    """

    kind: str
    size: int
    made: int
    align_corners: bool
    antialias: bool
    scale: float
    precision: str


@functools.lru_cache(maxsize=128)
def table(how: Resampling) -> tuple[Array, Array]:
    """Positions and weights, [made, taps]."""
    make = _filtered if how.antialias else _TABLES[how.kind]
    return make(how, _step(how))


@functools.lru_cache(maxsize=128)
def _transposed_table(how: Resampling) -> tuple[Array, Array]:
    """For each place of the input, where it went and with which weights: [size, taps]."""
    positions, weights = table(how)
    made = np.broadcast_to(np.arange(how.made)[:, None], positions.shape)
    used = weights != 0
    order = np.argsort(positions[used], kind="stable")
    source, target, weight = positions[used][order], made[used][order], weights[used][order]
    counts = np.bincount(source, minlength=how.size)
    number = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (how.size, int(counts.max(initial=1)))
    at, by = np.zeros(shape, np.int64), np.zeros(shape, weights.dtype)
    at[source, number], by[source, number] = target, weight
    return at, by


# --- tables --------------------------------------------------------------------------------------


def _step(how: Resampling) -> Any:
    real = np.dtype(how.precision).type
    if how.align_corners:
        return real(how.size - 1) / real(how.made - 1) if how.made > 1 else real(0)
    return real(how.scale) if how.scale > 0 else real(how.size) / real(how.made)


def _nearest(how: Resampling, step: Any) -> tuple[Array, Array]:
    at = np.arange(how.made).astype(step.dtype)
    places = at * step if how.kind == "nearest" else (at + step.dtype.type(0.5)) * step
    found = np.minimum(np.floor(places), how.size - 1).astype(np.int64)
    return found[:, None], np.ones((how.made, 1), step.dtype)


def _places(how: Resampling, step: Any, below_zero: bool) -> tuple[Array, Array]:
    """The element before each place, and how far behind it the place is."""
    real = step.dtype.type
    at = np.arange(how.made).astype(step.dtype)
    places = at * step if how.align_corners else (at + real(0.5)) * step - real(0.5)
    if not below_zero:
        places = np.maximum(places, real(0))
    first = np.minimum(np.floor(places), how.size - 1).astype(np.int64)
    return first, np.clip(places - first.astype(step.dtype), real(0), real(1))


def _linear(how: Resampling, step: Any) -> tuple[Array, Array]:
    if how.size == how.made:
        at = np.arange(how.made)
        return at[:, None], np.ones((how.made, 1), step.dtype)
    first, behind = _places(how, step, False)
    positions = np.stack([first, np.minimum(first + 1, how.size - 1)], 1)
    return positions, np.stack([1 - behind, behind], 1)


def cubic_weights(behind: Any) -> list[Any]:
    """Of the four elements around a place, `behind` the second; tensors or arrays.

    Source: Keys, "Cubic convolution interpolation for digital image processing" (1981), with
    a = -0.75.
    """
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    ahead = 1 - behind
    return [far(behind + 1), near(behind), near(ahead), far(ahead + 1)]


def _cubic(how: Resampling, step: Any) -> tuple[Array, Array]:
    first, behind = _places(how, step, True)
    positions = np.clip(first[:, None] + np.arange(-1, 3), 0, how.size - 1)
    return positions, np.stack(cubic_weights(behind), 1).astype(step.dtype)


_TABLES = {"nearest": _nearest, "nearest-exact": _nearest, "linear": _linear, "cubic": _cubic}


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _smooth_cubic(x: Array) -> Array:
    """Keys' cubic with a = -0.5, as of Pillow."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: Array) -> Array:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {"linear": (_triangle, 2), "cubic": (_smooth_cubic, 4), "lanczos": (_lanczos, 6)}


def _filtered(how: Resampling, step: Any) -> tuple[Array, Array]:
    """Filters that are as wide as what lies between two places of the result, at least."""
    real = step.dtype.type
    function, width = _FILTERS[how.kind]
    reach = real(width * 0.5) * step if step >= 1 else real(width * 0.5)
    inverse = real(1) / step if step >= 1 else real(1)
    center = step * (np.arange(how.made).astype(step.dtype) + real(0.5))
    low = np.maximum((center - reach + real(0.5)).astype(np.int64), 0)
    high = np.minimum((center + reach + real(0.5)).astype(np.int64), how.size)
    taps = np.arange(int((high - low).max(initial=1)))
    positions = low[:, None] + taps
    x = (positions.astype(step.dtype) - center[:, None] + real(0.5)) * inverse
    weights = np.where(positions < high[:, None], function(x), 0).astype(step.dtype)
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total).astype(step.dtype)
    return np.minimum(positions, how.size - 1), weights


# --- tensors -------------------------------------------------------------------------------------


@composite("resample")
def resample(x: Tensor, axis: int, how: Resampling) -> Tensor:
    """`x` with `axis` resampled."""
    return _weighted(x, axis, *table(how))


@composite("resample_transposed")
def _resample_transposed(g: Tensor, axis: int, how: Resampling) -> Tensor:
    return _weighted(g, axis, *_transposed_table(how))


@input_vjp(resample)
def _resample_vjp(g: Tensor, out: TensorType, x: TensorType, axis: int, how: Resampling) -> Tensor:
    return _resample_transposed(g, axis=axis, how=how)


@input_vjp(_resample_transposed)
def _resample_transposed_vjp(
    g: Tensor, out: TensorType, x: TensorType, axis: int, how: Resampling
) -> Tensor:
    return resample(g, axis=axis, how=how)


def _weighted(x: Tensor, axis: int, positions: Array, weights: Array) -> Tensor:
    places, taps = positions.shape
    folded = _repeats_back(x, axis, positions, weights)
    if folded > 1:
        return r.sum(m.unflatten(x, axis, (places, folded)), axis + 1)
    device, dtype = x._type.device, x._type.dtype.numpy

    def table(values: Array) -> Tensor:
        return unwritten(current_context().array_constant(values, device))

    behind = (1,) * (x.ndim - axis - 1)
    if taps > _WRITTEN_OUT:
        found = apply(p.index, x, table(positions), axis=axis)
        factors = weights.astype(dtype).reshape(places, taps, *behind)
        return r.sum(e.mul(found, table(factors)), axis + 1)
    total: Any = None
    for tap in range(taps):
        at = table(np.ascontiguousarray(positions[:, tap]))
        part = apply(p.index, x, at, axis=axis)
        column = weights[:, tap]
        if not (column == 1).all():
            factor = column.astype(dtype).reshape(places, *behind)
            part = e.mul(part, table(factor))
        total = part if total is None else e.add(total, part)
    return total


def _repeats_back(x: Tensor, axis: int, positions: Array, weights: Array) -> int:
    """Of how many elements in a row each place is the plain sum; else 0."""
    (places, taps), size = positions.shape, x._type.shape[axis]
    if places * taps != size or not (weights == 1).all():
        return 0
    return taps if np.array_equal(positions.ravel(), np.arange(size)) else 0


# --- bytes ---------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=128)
def _whole_table(how: Resampling) -> tuple[Array, Array, int]:
    """Positions, weights as whole numbers of 16 bits, and of how many bits their fraction is."""
    positions, given = table(how)
    weights = given.copy()
    if not how.antialias:  # an element that is several taps has one weight
        for tap in range(1, positions.shape[1]):
            for before in range(tap):
                same = positions[:, tap] == positions[:, before]
                weights[same, before] += weights[same, tap]
                weights[same, tap] = 0
    bits, most = 0, float(weights.max())
    while bits < 22 and int(0.5 + most * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return positions, np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)).astype(np.int32), bits


def resample_bytes(x: Tensor, axis: int, how: Resampling) -> Tensor:
    """`x`, of bytes, with `axis` resampled in whole numbers, and rounded, as in PyTorch."""
    positions, weights, bits = _whole_table(how)
    total = cast(_weighted(cast(x, int32), axis, positions, weights), int32)
    whole = e.bitwise_right_shift(e.add(total, 1 << (bits - 1)), bits)
    return cast(e.clamp(whole, 0, 255), uint8)
