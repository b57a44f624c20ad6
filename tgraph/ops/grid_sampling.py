"""Images read at places that are data."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.eager_context import current_context
from ..core.operands import cast, require_float, require_tensor, widened
from ..core.planned import planned
from ..core.tensor import Tensor, unwritten
from ..runtime.dtypes import int64
from . import elementwise as e
from . import movement as m
from .linalg import matmul
from .resampling import cubic_weights

_OLD_DEFAULT = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)


@with_autocast
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input` [n, c, h, w] read at the places `grid` [n, h', w', 2]: [n, c, h', w'].

    A place is (x, y), from -1 to 1 for the whole image: the middles of the outermost elements with
    `align_corners`, their borders without. Three dimensions are as two, with (x, y, z). Modes are
    "bilinear", "nearest" and, in two dimensions, "bicubic". Outside there are zeros, or what
    `padding_mode` says: "border" (the nearest place) or "reflection".

    >>> import tgraph as tg
    >>> image = tg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> middle = tg.zeros(1, 1, 1, 2)
    >>> tg.nn.functional.grid_sample(image, middle, align_corners=False).item()
    2.5
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_OLD_DEFAULT, stacklevel=2)
    _check_operands(require_tensor(input, "grid_sample"), require_tensor(grid, "grid_sample"))
    if mode == "bicubic" and input.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def _check_operands(x: Tensor, grid: Tensor) -> None:
    sizes = f"input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
    if x.ndim not in (4, 5) or x.ndim != grid.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got {sizes}"
        )
    if x._type.shape[0] != grid._type.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}"
        )
    if grid._type.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got "
            f"grid with sizes {list(grid.shape)}"
        )
    if 0 in x._type.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            f"sizes {list(x.shape)}"
        )
    require_float(x, "grid_sampler")
    if x._type.dtype is not grid._type.dtype:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{x._type.dtype} and grid has {grid._type.dtype}"
        )


@planned
def _grid_sample(x: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    dtype = x._type.dtype
    samples, channels, *sizes = x._type.shape
    out = grid._type.shape[1:-1]
    if 0 in out or not x._type.numel:
        return m.reshape(e.mul(m.reshape(x, -1)[:0], 0), (samples, channels, *out))
    flat = m.reshape(widened(x), (samples, channels, math.prod(sizes)))
    points = m.reshape(widened(grid), (samples, math.prod(out), len(sizes)))
    # The last coordinate is that of the first dimension.
    places = [
        _unnormalized(m.select(points, 2, len(sizes) - 1 - axis), size, align_corners)
        for axis, size in enumerate(sizes)
    ]
    read = _Reader(flat, sizes, padding, align_corners)
    if mode != "bicubic":
        places = [read.inside(place, axis) for axis, place in enumerate(places)]
    if mode == "nearest":
        result = read([e.round(place) for place in places])
        if grid._requires_grad:
            result = e.mul(result, m.unsqueeze(_one_without_slope(places), 1))
    else:
        axes = [_taps(place, mode) for place in places]
        result = _sum(read, axes, padded=mode == "bicubic")
    return cast(m.reshape(result, (samples, channels, *out)), dtype)


def _one_without_slope(places: Sequence[Tensor]) -> Tensor:
    """1 for each point: the nearest element stays the same, so places have a gradient of 0."""
    one: Any = 1.0
    for place in places:
        known = e.where(e.isnan(place), 1.0, e.floor(place))
        one = e.mul(e.clamp(known, 1.0, 1.0), one)
    return one


def _unnormalized(place: Tensor, size: int, align_corners: bool) -> Tensor:
    """From -1 to 1 as a position along an axis of `size`."""
    if align_corners:
        return e.mul(e.div(e.add(place, 1), 2), size - 1)
    return e.div(e.sub(e.mul(e.add(place, 1), size), 1), 2)


def _taps(place: Tensor, mode: str) -> list[tuple[Tensor, Tensor]]:
    """The positions around a place along one axis, and their weights."""
    first = e.floor(place)
    behind = e.sub(place, first)
    if mode == "bilinear":
        return [(first, e.sub(1, behind)), (e.add(first, 1), behind)]
    steps = (e.add(first, tap) for tap in (-1, 0, 1, 2))
    return list(zip(steps, cubic_weights(behind)))


def _sum(read: _Reader, axes: Sequence[list[tuple[Tensor, Tensor]]], padded: bool) -> Tensor:
    total: Any = None
    for taps in itertools.product(*axes):
        at = [position for position, _ in taps]
        if padded:
            at = [read.inside(position, axis) for axis, position in enumerate(at)]
        weight: Any = None
        for _, factor in taps:
            weight = factor if weight is None else e.mul(weight, factor)
        part = e.mul(read(at), m.unsqueeze(weight, 1))
        total = part if total is None else e.add(total, part)
    return total


class _Reader:
    """Elements of flat planes [n, c, places] at whole positions, [n, points] for each axis."""

    def __init__(
        self, flat: Tensor, sizes: Sequence[int], padding: str, align_corners: bool
    ) -> None:
        self.flat, self.sizes = flat, sizes
        self.padding, self.align_corners = padding, align_corners

    def inside(self, place: Tensor, axis: int) -> Tensor:
        """Where outside places are read, by the mode of padding."""
        size = self.sizes[axis]
        if self.padding == "zeros":
            return place
        if self.padding == "reflection":
            low, span = (0.0, size - 1.0) if self.align_corners else (-0.5, float(size))
            place = _reflected(place, low, span)
        # With no gradient at the edges, as in PyTorch.
        place = e.where(e.gt(place, 0), place, 0.0)
        return e.where(e.lt(place, size - 1), place, float(size - 1))

    def __call__(self, places: Sequence[Tensor]) -> Tensor:
        flat: Any = None
        known: Any = None
        for place, size in zip(places, self.sizes):
            at = cast(e.clamp(_number(place.detach()), 0, size - 1), int64)
            flat = at if flat is None else e.add(e.mul(flat, size), at)
            if self.padding == "zeros":
                is_in = e.logical_and(e.ge(place, 0), e.le(place, size - 1))
                known = is_in if known is None else e.logical_and(known, is_in)
        samples, channels, _ = self.flat._type.shape
        index = m.expand(m.unsqueeze(flat, 1), (samples, channels, flat._type.shape[1]))
        found = apply(p.gather, self.flat, index, axis=2)
        return found if known is None else e.where(m.unsqueeze(known, 1), found, 0)


def _number(place: Tensor) -> Tensor:
    """`place`, and 0 where it is unknown: such places are somewhere in the image."""
    return e.where(e.isnan(place), 0.0, place)


def _reflected(place: Tensor, low: float, span: float) -> Tensor:
    """Mirrored at `low` and `low + span` until it lies between them."""
    if span == 0:
        return e.mul(place, 0.0)
    away = e.sub(place, low)
    away = e.where(e.lt(away, 0), e.neg(away), away)
    turns = e.floor(e.div(away.detach(), span))
    extra = e.fmod(away, span)
    forth = e.eq(e.remainder(turns, 2), 0)
    return e.where(forth, e.add(extra, low), e.add(e.sub(span, extra), low))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Places for `grid_sample`: those of an image of `size` [n, c, h, w], mapped by `theta`.

    `theta` is [n, 2, 3]: a matrix and, in its last column, a shift ([n, 3, 4] for three
    dimensions).

    >>> import tgraph as tg
    >>> same = tg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> tg.nn.functional.affine_grid(same, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if align_corners is None:
        warnings.warn(_OLD_DEFAULT, stacklevel=2)
    if not require_tensor(theta, "affine_grid", "theta")._type.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes = tuple(size)
    count = len(sizes) - 2
    if count not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.ndim != 3 or theta._type.shape[1:] != (count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape Nx{count}x{count + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if align_corners and min(sizes[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _affine_grid(theta, sizes, bool(align_corners))


@planned
def _affine_grid(theta: Tensor, sizes: tuple[int, ...], align_corners: bool) -> Tensor:
    count = len(sizes) - 2
    dtype = theta._type.dtype
    lines = [_line(size, align_corners) for size in sizes[2:]]
    grids = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*(each.ravel() for each in reversed(grids)), np.ones(grids[0].size)], 1)
    device = theta._type.device
    places = unwritten(current_context().array_constant(base.astype(dtype.numpy), device))
    found = matmul(places, m.transpose(theta, 1, 2))
    return m.reshape(found, (theta._type.shape[0], *sizes[2:], count))


def _line(size: int, align_corners: bool) -> Any:
    """The places of an axis, from -1 to 1."""
    if size == 1:
        return np.zeros(1)
    whole = np.linspace(-1.0, 1.0, size)
    return whole if align_corners else whole * ((size - 1) / size)
