"""Rows of images: transposed convolutions, windows, pooling to a size, resampling, sampling."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from opcase import DOUBLE, Array, case, distinct, share, unit

import tgraph as tg
from tgraph.nn import functional as F

FEW = (tg.float32, tg.float64)

# -- transposed convolution ------------------------------------------------------------------


def transposed(
    x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, output_padding: int = 0,
    groups: int = 1, dilation: int = 1,
) -> Array:  # fmt: skip
    """As the definition has it: each element adds the window, times itself."""
    whole = [
        (n - 1) * stride + dilation * (k - 1) + output_padding + 1
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    reads, makes = x.shape[1] // groups, w.shape[1]
    result = np.zeros((x.shape[0], makes * groups, *whole))
    for tap in itertools.product(*map(range, w.shape[2:])):
        at = tuple(
            slice(t * dilation, t * dilation + (n - 1) * stride + 1, stride)
            for t, n in zip(tap, x.shape[2:], strict=True)
        )
        for group in range(groups):
            read = slice(group * reads, (group + 1) * reads)
            window = w[(read, slice(None), *tap)]
            made = (slice(None), slice(group * makes, (group + 1) * makes), *at)
            result[made] += np.einsum("ni...,io->no...", x[:, read], window)
    inner = tuple(slice(padding, n - padding) for n in whole)
    return result[(slice(None), slice(None), *inner)] + b.reshape(-1, *(1,) * len(whole))


for _name, _shapes, _options in [
    ("1d", ((2, 3, 5), (3, 2, 3), (2,)), {"stride": 2, "padding": 1}),
    ("2d", ((2, 3, 3, 4), (3, 2, 3, 2), (2,)), {}),
    ("2d strided", ((2, 4, 3, 2), (4, 1, 3, 4), (2,)),
     {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    ("2d dilated", ((1, 2, 4, 3), (2, 2, 2, 3), (2,)), {"dilation": 2, "padding": 2}),
    ("3d", ((1, 2, 2, 3, 2), (2, 1, 2, 2, 2), (1,)), {"stride": 2, "output_padding": 1}),
]:  # fmt: skip
    case(
        f"conv_transpose{_name}",
        lambda x, w, b, n=_name[:2], o=_options: getattr(F, f"conv_transpose{n}")(x, w, b, **o),
        lambda x, w, b, o=_options: transposed(x, w, b, **o),
        *_shapes,
        dtypes=FEW if _name == "2d" else DOUBLE,
        second=_name == "2d strided",
        layouts=_name == "2d strided",
        tolerance=200,
    )

# -- windows ---------------------------------------------------------------------------------


def columns(x: Array, size: tuple[int, int], stride: int, padding: int, dilation: int) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    places = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], size)]
    taps = [
        x[:, :, i * dilation :: stride, j * dilation :: stride][:, :, : places[0], : places[1]]
        for i in range(size[0])
        for j in range(size[1])
    ]
    return np.stack(taps, 2).reshape(x.shape[0], -1, places[0] * places[1])


def folded(x: Array, out: tuple[int, int], size: tuple[int, int]) -> Array:
    """The transpose of `columns`, by the columns of unit vectors."""
    units = np.eye(out[0] * out[1]).reshape(-1, 1, *out)
    matrix = columns(units, size, 2, 1, 1).reshape(len(units), -1)
    return (x.reshape(x.shape[0], -1, matrix.shape[1]) @ matrix.T).reshape(x.shape[0], -1, *out)


case(
    "unfold columns",
    lambda x: F.unfold(x, (2, 3), dilation=2, padding=1, stride=2),
    lambda x: columns(x, (2, 3), 2, 1, 2),
    (2, 2, 5, 6),
    dtypes=DOUBLE,
)
case(
    "fold",
    lambda x: F.fold(x, (4, 5), (3, 2), padding=1, stride=2),
    lambda x: folded(x, (4, 5), (3, 2)),
    (2, 6, 6),
    dtypes=DOUBLE,
    tolerance=24,
)

# -- pooling ---------------------------------------------------------------------------------


def cubes(x: Array, size: int, stride: int) -> Array:
    count = x.ndim - 2
    axes = tuple(range(2, x.ndim))
    taps = np.lib.stride_tricks.sliding_window_view(x, (size,) * count, axes)
    return taps[(slice(None), slice(None), *(slice(None, None, stride),) * count)]


case(
    "max_pool3d",
    lambda x: F.max_pool3d(x, 2, 1),
    lambda x: cubes(x, 2, 1).max((-1, -2, -3)),
    (1, 2, 3, 3, 4),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
)
case(
    "avg_pool3d",
    lambda x: F.avg_pool3d(x, 2, 1, divisor_override=3),
    lambda x: cubes(x, 2, 1).sum((-1, -2, -3)) / 3,
    (1, 2, 3, 3, 4),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
    tolerance=24,
)
for _count in (1, 2, 3):
    case(
        f"lp_pool{_count}d",
        lambda x, n=_count: getattr(F, f"lp_pool{n}d")(x, 3, 2, 1),
        lambda x: (cubes(x, 2, 1) ** 3).sum(tuple(range(2 - x.ndim, 0))) ** (1 / 3),
        ((1, 2, 4, 3, 3)[: _count + 2], share),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
        tolerance=60,
    )


def parts(x: Array, sizes: Sequence[int], summary: Any) -> Array:
    """A summary of each of the windows that divide the last axes."""
    result = np.zeros((*x.shape[: -len(sizes)], *sizes))
    for at in itertools.product(*map(range, sizes)):
        spans = tuple(
            slice(i * n // m, -(-(i + 1) * n // m))
            for i, n, m in zip(at, x.shape[-len(sizes) :], sizes, strict=True)
        )
        window = x[(Ellipsis, *spans)].reshape(*x.shape[: -len(sizes)], -1)
        result[(Ellipsis, *at)] = summary(window, -1)
    return result


for _kind, _summary in [("avg", np.mean), ("max", np.max)]:
    for _shape, _sizes in [((2, 7), (3,)), ((1, 2, 5, 4), (3, 2)), ((2, 3, 4, 3), (2, 3, 2))]:
        if (_kind, len(_sizes)) != ("avg", 2):  # which has rows elsewhere
            case(
                f"adaptive_{_kind}_pool{len(_sizes)}d",
                lambda x, k=_kind, s=_sizes: getattr(F, f"adaptive_{k}_pool{len(s)}d")(x, s),
                lambda x, f=_summary, s=_sizes: parts(x, s, f),
                _shape,
                dtypes=FEW if len(_sizes) == 1 else DOUBLE,
                second=False,
                layouts=False,
                tolerance=24,
            )


def fractional(x: Array, samples: Array, size: int, out: Sequence[int]) -> tuple[Array, Array]:
    count = len(out)
    most = np.zeros((*x.shape[:2], *out))
    places = np.zeros(most.shape, np.int64)
    for n, c, *at in np.ndindex(*most.shape):
        spans = []
        for axis, i in enumerate(at):
            sample = samples[n, c, 1 - axis if count == 2 else axis]
            last = x.shape[2 + axis] - size
            step = last / (out[axis] - 1)
            first = int((i + sample) * step) - int(sample * step)
            first = last if i == out[axis] - 1 else first
            spans.append(range(first, first + size))
        best = max(itertools.product(*spans), key=lambda place, n=n, c=c: x[(n, c, *place)])
        most[(n, c, *at)] = x[(n, c, *best)]
        places[(n, c, *at)] = np.ravel_multi_index(best, x.shape[2:])
    return most, places


for _count in (2, 3):
    case(
        f"fractional_max_pool{_count}d",
        lambda x, s, n=_count: getattr(F, f"fractional_max_pool{n}d")(
            x, 2, (3,) * n, return_indices=True, _random_samples=s
        ),
        lambda x, s, n=_count: fractional(x, s, 2, (3,) * n),
        (1, 2, 5, 6, 5)[: _count + 2],
        ((1, 2, _count), share),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
        result=("same", tg.int64),
        gradient=False,
    )


def unpooled(x: Array, at: Array, out: Sequence[int]) -> Array:
    flat = np.zeros((*x.shape[:2], int(np.prod(out))))
    np.put_along_axis(flat, at.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), -1)
    return flat.reshape(*x.shape[:2], *out)


for _shape, _out in [((1, 2, 3), (6,)), ((1, 1, 2, 2), (4, 4)), ((1, 1, 1, 1, 2), (2, 2, 4))]:
    _places = distinct(int(np.prod(_out)))
    case(
        f"max_unpool{len(_out)}d",
        lambda x, at, s=_out: getattr(F, f"max_unpool{len(s)}d")(x, at.reshape(x.shape), 2),
        lambda x, at, s=_out: unpooled(x, at.reshape(x.shape), s),
        _shape,
        ((*_shape[:2], int(np.prod(_shape[2:]))), _places, tg.int64),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
    )

# -- channels and places ---------------------------------------------------------------------

case(
    "pixel_shuffle",
    lambda x: F.pixel_shuffle(x, 2),
    lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6),
    (1, 8, 2, 3),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
)
case(
    "pixel_unshuffle",
    lambda x: F.pixel_unshuffle(x, 2),
    lambda x: x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 8, 2, 3),
    (1, 2, 4, 6),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
)
for _name in ("channel_shuffle", "native_channel_shuffle"):
    case(
        _name,
        lambda x, name=_name: getattr(F, name)(x, 3),
        lambda x: x[:, [0, 2, 4, 1, 3, 5]],
        (2, 6, 2),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
    )

# -- resampling ------------------------------------------------------------------------------


def quietly(function: Any, *args: Any) -> Any:
    """What a deprecated function gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def weights(size: int, out: int, kind: str, align: bool = False, scale: float = 0) -> Array:
    """[out, size]: what each place of the result takes of each element."""
    step = (size - 1) / (out - 1) if align else 1 / scale if scale else size / out
    found = np.zeros((out, size))
    for i in range(out):
        at = i * step if align else (i + 0.5) * step - 0.5
        if kind == "nearest":
            found[i, min(int(i * step), size - 1)] += 1
        elif kind == "nearest-exact":
            found[i, min(int((i + 0.5) * step), size - 1)] += 1
        elif kind == "linear":
            at = max(at, 0)
            for j in (int(at), int(at) + 1):
                found[i, min(j, size - 1)] += 1 - abs(at - j)
        else:
            first = int(np.floor(at))
            for j in range(first - 1, first + 3):
                found[i, min(max(j, 0), size - 1)] += keys(at - j, -0.75)
    return found


def keys(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def filtered(size: int, out: int, kind: str) -> Array:
    step = size / out
    wide = max(step, 1.0)
    reach = wide * (2 if kind == "cubic" else 1)
    found = np.zeros((out, size))
    for i in range(out):
        center = (i + 0.5) * step
        for j in range(max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), size)):
            x = abs(j - center + 0.5) / wide
            found[i, j] = keys(x, -0.5) if kind == "cubic" else max(1 - x, 0)
    return found / found.sum(1, keepdims=True)


def resized(x: Array, *matrices: Array) -> Array:
    for axis, matrix in enumerate(matrices):
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis + 2)), 0, axis + 2)
    return x


def rounded(x: Array) -> Array:
    return np.floor(x + 0.5)


for _mode, _kind, _shape, _out, _align in [
    ("nearest", "nearest", (1, 2, 5), (7,), False),
    ("nearest", "nearest", (1, 2, 3, 2), (6, 6), False),
    ("nearest-exact", "nearest-exact", (1, 2, 5, 4), (3, 6), False),
    ("linear", "linear", (1, 2, 5), (7,), True),
    ("bilinear", "linear", (1, 2, 4, 3), (7, 2), False),
    ("trilinear", "linear", (1, 1, 2, 3, 3), (3, 2, 5), False),
    ("bicubic", "cubic", (1, 1, 4, 5), (6, 3), True),
]:
    case(
        f"interpolate {_mode} {len(_out)}d {_shape[-1]}",
        lambda x, m=_mode, s=_out, a=_align: F.interpolate(x, s, mode=m, align_corners=a or None),
        lambda x, k=_kind, s=_out, a=_align: resized(
            x, *(weights(n, made, k, a) for n, made in zip(x.shape[2:], s, strict=True))
        ),
        _shape,
        second=_mode == "linear",
        layouts=_mode == "bilinear",
        dtypes=FEW,
        tolerance=60,
    )
for _mode, _kind in [("bilinear", "linear"), ("bicubic", "cubic")]:
    case(
        f"interpolate antialias {_mode}",
        lambda x, m=_mode: F.interpolate(x, (3, 9), mode=m, antialias=True),
        lambda x, k=_kind: resized(x, filtered(8, 3, k), filtered(5, 9, k)),
        (1, 1, 8, 5),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
        tolerance=60,
    )
case(
    "interpolate scale",
    lambda x: F.interpolate(x, scale_factor=(1.6, 0.7), mode="bilinear"),
    lambda x: resized(x, weights(4, 6, "linear", scale=1.6), weights(6, 4, "linear", scale=0.7)),
    (1, 1, 4, 6),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
    tolerance=60,
)
case(
    "interpolate bytes",
    lambda x: F.interpolate(x, (3, 9), mode="bilinear", antialias=True),
    lambda x: rounded(
        resized(rounded(resized(x, np.eye(8), filtered(5, 9, "linear"))), filtered(8, 3, "linear"))
    ),
    (1, 1, 8, 5),
    dtypes=(tg.uint8,),
    gradient=False,
    layouts=False,
)  # fmt: skip
case(
    "interpolate area",
    lambda x: F.interpolate(x, (3, 2), mode="area"),
    lambda x: parts(x, (3, 2), np.mean),
    (1, 1, 4, 4),
    second=False,
    layouts=False,
    dtypes=DOUBLE,
)

# -- sampling --------------------------------------------------------------------------------


def mirrored(at: float, size: int, align: bool) -> float:
    low, span = (0, size - 1) if align else (-0.5, size)
    away = abs(at - low) % (2 * span)
    return min(away, 2 * span - away) + low


def sampled(x: Array, grid: Array, mode: str, padding: str, align: bool) -> Array:
    """As the definition has it, a point after another."""
    sizes, out = x.shape[2:], grid.shape[1:-1]

    def inside(at: float, size: int) -> float:
        if padding == "reflection":
            at = mirrored(at, size, align)
        return at if padding == "zeros" else min(max(at, 0), size - 1)

    result = np.zeros((*x.shape[:2], *out))
    for n, *point in np.ndindex(x.shape[0], *out):
        places = []
        for axis, size in enumerate(sizes):
            at = grid[(n, *point, len(sizes) - 1 - axis)]
            at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
            places.append(at if mode == "bicubic" else inside(at, size))
        axes = []
        for at, size in zip(places, sizes, strict=True):
            first = int(np.floor(at))
            if mode == "nearest":
                axes.append([(int(np.round(at)), 1.0)])
            elif mode == "bilinear":
                axes.append([(j, 1 - abs(at - j)) for j in (first, first + 1)])
            else:
                axes.append([(int(inside(j, size)), keys(at - j, -0.75))
                             for j in range(first - 1, first + 3)])  # fmt: skip
        for taps in itertools.product(*axes):
            at = tuple(j for j, _ in taps)
            if all(0 <= j < size for j, size in zip(at, sizes, strict=True)):
                result[(n, slice(None), *point)] += x[(n, slice(None), *at)] * np.prod(
                    [w for _, w in taps]
                )
    return result


def wide(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """In (-1.8, 1.8): places in an image and around it."""
    return rng.uniform(-1.8, 1.8, shape)


for _mode, _padding, _align, _shape, _points in [
    ("bilinear", "zeros", False, (2, 2, 3, 4), (2, 2, 3, 2)),
    ("bilinear", "border", True, (1, 2, 3, 4), (1, 2, 3, 2)),
    ("bilinear", "reflection", False, (1, 1, 3, 2, 3), (1, 2, 2, 1, 3)),
    ("nearest", "reflection", True, (1, 2, 3, 4), (1, 3, 3, 2)),
    ("bicubic", "zeros", True, (1, 1, 4, 4), (1, 1, 3, 2)),
]:
    case(
        f"grid_sample {_mode} {_padding} {len(_shape) - 2}d",
        lambda x, g, m=_mode, p=_padding, a=_align: F.grid_sample(x, g, m, p, a),
        lambda x, g, m=_mode, p=_padding, a=_align: sampled(x, g, m, p, a),
        _shape,
        (_points, wide),
        dtypes=FEW if _padding == "zeros" and _mode == "bilinear" else DOUBLE,
        second=_padding == "border",
        layouts=_padding == "border",
        tolerance=400,
    )


def affine(theta: Array, sizes: Sequence[int], align: bool) -> Array:
    lines = [(2 * np.arange(n) + (0 if align else 1)) / (n - 1 if align else n) - 1 for n in sizes]
    grids = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(grids), np.ones(tuple(sizes))], -1)
    return np.einsum("...i,nji->n...j", base, theta)


for _sizes, _align in [((2, 3), False), ((2, 3, 2), True)]:
    case(
        f"affine_grid {len(_sizes)}d",
        lambda t, s=_sizes, a=_align: F.affine_grid(t, (2, 1, *s), a),
        lambda t, s=_sizes, a=_align: affine(t, s, a),
        ((2, len(_sizes), len(_sizes) + 1), unit),
        dtypes=DOUBLE,
        tolerance=40,
    )

for _name, _mode in [("", "nearest"), ("_nearest", "nearest"), ("_bilinear", "linear")]:
    case(
        f"upsample{_name}",
        lambda x, name=_name: quietly(getattr(F, f"upsample{name}"), x, (3, 4)),
        lambda x, m=_mode: resized(x, *(weights(2, n, m, m == "linear") for n in (3, 4))),
        (1, 1, 2, 2),
        second=False,
        layouts=False,
        dtypes=DOUBLE,
    )
