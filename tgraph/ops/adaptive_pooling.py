"""Pooling to a given size: windows that divide an input into parts, and random ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import cast, require_tensor, widened
from ..core.planned import planned
from ..core.tensor import Tensor, unwritten
from ..runtime.dtypes import int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .basic_draws import uniform
from .channels_last import keeps_channels_last
from .pooling import check_planes, max_pool1d, max_pool2d, max_pool3d

OutputSize = int | None | Sequence[int | None]
_MAX_POOLS = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def _output_sizes(x: Tensor, output_size: Any, count: int, name: str) -> tuple[int, ...]:
    """One for each spatial dimension; None is that of the input."""
    if count == 1 and isinstance(output_size, Sequence) and len(output_size) != 1:
        raise RuntimeError(f"{name}: 'output_size' should contain one int, got {output_size}")
    given = output_size if isinstance(output_size, Sequence) else (output_size,) * count
    for wanted in given:
        is_size = hasattr(wanted, "__index__") and not isinstance(wanted, (bool, Tensor))
        if output_size is None or not (is_size or wanted is None):
            raise TypeError(
                f"{name}(): argument 'output_size' must be int or tuple of ints, with None for the "
                f"size of the input, got {output_size!r}"
            )
    if len(given) != count:
        raise RuntimeError(f"{name}: output_size must be {count} numbers, got {output_size}")
    if require_tensor(x, name).ndim <= count:
        raise ValueError(
            f"Input dimension should be at least {count + 1}, got {x.ndim} (in {name})"
        )
    sizes = tuple(
        size if wanted is None else wanted for size, wanted in zip(x._type.shape[-count:], given)
    )
    if min(sizes) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{min(sizes)}. Trying to create tensor with negative dimension {min(sizes)}"
        )
    check_planes(x, count)
    return sizes


@functools.lru_cache(maxsize=64)
def _parts(size: int, parts: int) -> tuple[Any, Any]:
    """The first place and the length of each of the windows that divide an axis."""
    at = np.arange(parts)
    first = at * size // parts
    return first, -(-(at + 1) * size // parts) - first


@functools.lru_cache(maxsize=64)
def _windows(shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[Any, Any]:
    """[places, taps]: positions in the flat plane, and whether they are taps of their window.

    Windows that are smaller than others have their last tap several times along an axis.
    """
    places, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for size, parts in zip(shape, sizes):
        first, length = _parts(size, parts)
        taps = np.arange(length.max(initial=1))
        own = first[:, None] + np.minimum(taps, length[:, None] - 1)
        is_own = taps < length[:, None]
        outer = (len(places) * parts, places.shape[1] * len(taps))
        places = (places[:, None, :, None] * size + own[None, :, None]).reshape(outer)
        inside = (inside[:, None, :, None] & is_own[None, :, None]).reshape(outer)
    return places, inside


def _in_plane(x: Tensor, count: int) -> Tensor:
    """The spatial dimensions as one."""
    shape = x._type.shape
    return m.reshape(x, (*shape[: x.ndim - count], math.prod(shape[x.ndim - count :])))


@planned
def _adaptive_average(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    if not x._type.dtype.is_differentiable:
        raise NotImplementedError(
            f'"adaptive_avg_pool" not implemented for {x._type.dtype.name}; convert it to a '
            "floating point dtype"
        )
    count = len(sizes)
    shape = x._type.shape[-count:]
    outer = x._type.shape[: x.ndim - count]
    if not x._type.numel or 0 in sizes:
        return m.expand(m.reshape(r.sum(x), (1,) * x.ndim), (*outer, *sizes))
    if all(size % parts == 0 for size, parts in zip(shape, sizes)):
        inner = [each for size, parts in zip(shape, sizes) for each in (parts, size // parts)]
        axes = tuple(range(len(outer) + 1, len(outer) + 2 * count, 2))
        return r.mean(m.reshape(x, (*outer, *inner)), axes)
    places, inside = _windows(shape, sizes)
    wide = widened(x)
    at, is_inside, numbers = (
        unwritten(current_context().array_constant(table, x._type.device))
        for table in (places, inside, inside.sum(1).astype(wide._type.dtype.numpy))
    )
    taps = apply(p.index, _in_plane(wide, count), at, axis=len(outer))
    own = e.where(is_inside, taps, 0)
    means = e.div(r.sum(own, -1), numbers)
    return cast(m.reshape(means, (*outer, *sizes)), x._type.dtype)


@planned
def _adaptive_maximum(x: Tensor, sizes: tuple[int, ...], return_indices: bool) -> Any:
    count = len(sizes)
    shape = x._type.shape[-count:]
    outer = x._type.shape[: x.ndim - count]
    if not x._type.numel or 0 in sizes:
        none = m.expand(m.reshape(r.sum(x), (1,) * x.ndim), (*outer, *sizes))
        return (none, cast(none.detach(), int64)) if return_indices else none
    if all(size % parts == 0 for size, parts in zip(shape, sizes)):
        window = tuple(size // parts for size, parts in zip(shape, sizes))
        return _MAX_POOLS[count](x, window, return_indices=return_indices)
    places = current_context().array_constant(_windows(shape, sizes)[0], x._type.device)
    taps = apply(p.index, _in_plane(x.detach(), count), places, axis=len(outer))
    first = m.unsqueeze(apply(p.argmax, taps, axes=(len(outer) + 1,), keepdims=False), -1)
    found = apply(p.gather, m.expand(places, taps._type.shape), first, axis=len(outer) + 1)
    return _at_places(x, m.reshape(found, (*outer, *sizes)), count, return_indices)


def _at_places(x: Tensor, places: Tensor, count: int, return_indices: bool) -> Any:
    """The elements at `places` of each flat plane, and those if asked for."""
    flat = _in_plane(places, count)
    values = m.reshape(
        apply(p.gather, _in_plane(x, count), flat, axis=flat.ndim - 1), places._type.shape
    )
    return (values, places) if return_indices else values


def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over windows that divide the last dimension into `output_size` parts."""
    return _adaptive_average(input, _output_sizes(input, output_size, 1, "adaptive_avg_pool1d"))


@keeps_channels_last
def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over windows that divide the last two dimensions into `output_size` parts.

    >>> import tgraph as tg
    >>> tg.nn.functional.adaptive_avg_pool2d(tg.tensor([[[1.0, 2.0, 6.0]]]), (1, 2))
    tensor([[[1.5000, 4.0000]]])
    """
    return _adaptive_average(input, _output_sizes(input, output_size, 2, "adaptive_avg_pool2d"))


@with_autocast
@keeps_channels_last
def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Means over windows that divide the last three dimensions into `output_size` parts."""
    return _adaptive_average(input, _output_sizes(input, output_size, 3, "adaptive_avg_pool3d"))


def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Maxima over windows that divide the last dimension into `output_size` parts."""
    sizes = _output_sizes(input, output_size, 1, "adaptive_max_pool1d")
    return _adaptive_maximum(input, sizes, bool(return_indices))


@keeps_channels_last
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Maxima over windows that divide the last two dimensions into `output_size` parts.

    With `return_indices` also their positions in the flat plane.
    """
    sizes = _output_sizes(input, output_size, 2, "adaptive_max_pool2d")
    return _adaptive_maximum(input, sizes, bool(return_indices))


@with_autocast
@keeps_channels_last
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Maxima over windows that divide the last three dimensions into `output_size` parts."""
    sizes = _output_sizes(input, output_size, 3, "adaptive_max_pool3d")
    return _adaptive_maximum(input, sizes, bool(return_indices))


# --- windows at random places --------------------------------------------------------------------


@with_autocast
@keeps_channels_last
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows that lie at random, about evenly, to give `output_size`.

    Source: Graham, "Fractional max-pooling" (2015). `_random_samples` [n, c, 2] are the random
    numbers.

    >>> import tgraph as tg
    >>> tg.nn.functional.fractional_max_pool2d(tg.rand(1, 3, 9, 9), 2, output_ratio=0.6).shape
    tgraph.Size([1, 3, 5, 5])
    """
    return _fractional(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 2
    )


@with_autocast
@keeps_channels_last
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over random windows of the last three dimensions; see `fractional_max_pool2d`."""
    return _fractional(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples, 3
    )


def _fractional(
    x: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool,
    samples: Tensor | None, count: int,
) -> Any:  # fmt: skip
    name = f"fractional_max_pool{count}d"
    check_planes(require_tensor(x, name), count)
    shape = x._type.shape[-count:]
    window = _each(kernel_size, count, f"{name}: kernel_size")
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        ratios = _each(output_ratio, count, f"{name}: output_ratio")
        output_size = tuple(int(size * ratio) for size, ratio in zip(shape, ratios))
    sizes = _each(output_size, count, f"{name}: output_size")
    for size, taps, made in zip(shape, window, sizes):
        if made < 1 or taps < 1 or made + taps - 1 > size:
            raise RuntimeError(
                f"{name}(): pool size {taps} is too large relative to the input size {size}, or "
                f"output size {made} too large or not positive"
            )
    batch, channels = (1, *x._type.shape)[-count - 2], x._type.shape[-count - 1]
    if samples is None:
        samples = uniform((batch, channels, count), x._type.dtype, device=x._type.device)
    if samples._type.dtype is not x._type.dtype:
        raise RuntimeError(
            "Expect _random_samples to have the same dtype as input: "
            f"{x._type.dtype}, got {samples._type.dtype}"
        )
    drawn = samples._type.shape
    if len(drawn) != 3 or drawn[0] < batch or drawn[1:] != (channels, count):
        raise RuntimeError(
            f"Expect _random_samples of at least {batch} x {channels} x {count} numbers, got "
            f"{list(samples.shape)}"
        )
    samples = m.slice_axis(samples, 0, 0, batch)
    return _fractional_maximum(x, samples, window, sizes, bool(return_indices))


def _each(given: Any, count: int, name: str) -> tuple[Any, ...]:
    values = tuple(given) if isinstance(given, Sequence) else (given,) * count
    if len(values) != count:
        raise RuntimeError(f"{name} must either be a single number, or a tuple of {count}: {given}")
    return values


@planned
def _fractional_maximum(
    x: Tensor, samples: Tensor, window: tuple[int, ...], sizes: tuple[int, ...],
    return_indices: bool,
) -> Any:  # fmt: skip
    count, outer = len(sizes), x._type.shape[: x.ndim - len(sizes)]
    samples = m.reshape(samples, (*outer, count))
    places: Any = None
    for axis, (size, taps, parts) in enumerate(zip(x._type.shape[-count:], window, sizes)):
        # Of two dimensions the last one has the first sample, of three the last one the last.
        sample = m.select(samples, -1, 1 - axis if count == 2 else axis)
        first = m.unsqueeze(_random_starts(sample, size, taps, parts), -1)
        own = e.add(first, current_context().array_constant(np.arange(taps), x._type.device))
        own = m.reshape(own, (*outer, *_at(axis, count, parts), *_at(axis, count, taps)))
        places = own if places is None else e.add(e.mul(places, size), own)
    flat = m.reshape(places, (*outer, math.prod(sizes), math.prod(window)))
    index = m.reshape(flat, (*outer, math.prod(sizes) * math.prod(window)))
    found = apply(p.gather, _in_plane(x.detach(), count), index, axis=len(outer))
    taps_of = m.reshape(found, flat._type.shape)
    best = m.unsqueeze(apply(p.argmax, taps_of, axes=(len(outer) + 1,), keepdims=False), -1)
    at = apply(p.gather, flat, best, axis=len(outer) + 1)
    return _at_places(x, m.reshape(at, (*outer, *sizes)), count, return_indices)


def _at(axis: int, count: int, size: int) -> tuple[int, ...]:
    return (1,) * axis + (size,) + (1,) * (count - axis - 1)


def _random_starts(sample: Tensor, size: int, taps: int, parts: int) -> Tensor:
    """Where the windows of an axis begin, of which the last one ends with it."""
    device, last = sample._type.device, size - taps
    step = last / (parts - 1) if parts > 1 else 0.0
    at = current_context().array_constant(np.arange(parts), device)
    sample = m.unsqueeze(sample, -1)
    starts = e.sub(cast(e.mul(e.add(sample, at), step), int64), cast(e.mul(sample, step), int64))
    return e.where(e.eq(at, parts - 1), last, starts)
