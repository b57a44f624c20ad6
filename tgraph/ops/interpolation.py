"""Images of another size."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ..core.autocast import with_autocast
from ..core.operands import cast, require_tensor, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import float64, uint8
from . import movement as m
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .channels_last import keeps_channels_last
from .resampling import Resampling, resample, resample_bytes

_AREAS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_DIMENSIONS = {"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,),
               "lanczos": (2,), "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3),
               "area": (1, 2, 3)}  # fmt: skip
_KINDS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@with_autocast
@keeps_channels_last
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """[n, c, *spatial] resampled to a `size`, or to one `scale_factor` as large.

    Modes: "nearest" (as in OpenCV) and "nearest-exact" (as in Pillow), "linear", "bilinear",
    "trilinear", "bicubic", "lanczos" (with `antialias` only) and "area" (adaptive means). With
    `align_corners` the first and last elements stay where they are. Positions are computed by
    `scale_factor` as it was given, unless `recompute_scale_factor`. `antialias` widens the filter
    where an image becomes smaller.

    >>> import tgraph as tg
    >>> x = tg.tensor([[[0.0, 1.0]]])
    >>> tg.nn.functional.interpolate(x, scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    count = require_tensor(input, "interpolate").ndim - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | "
            "bilinear | bicubic | trilinear"
        )
    sizes, scales = _sizes(input, size, scale_factor, count)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor or mode == "area":
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and count == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    _check_mode(mode, count)
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "area":
        return _AREAS[count](input, sizes)
    if min(sizes) < 1 or 0 in input._type.shape[1:]:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{list(input.shape[2:])} and output {list(sizes)}"
        )
    kind, dtype = _KINDS.get(mode, mode), input._type.dtype
    if not dtype.is_floating_point and dtype is not uint8 and not kind.startswith("nearest"):
        raise NotImplementedError(
            f'"interpolate" with mode {mode} not implemented for {dtype.name}; convert the input '
            "to a floating point dtype"
        )
    steps = " ".join(repr(1.0 / scale) if scale > 0 else "0" for scale in scales or (0,) * count)
    return _interpolated(input, tuple(sizes), steps, kind, bool(align_corners), antialias)


def _sizes(
    x: Tensor, size: Any, scale_factor: Any, count: int
) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The sizes to make, and the scales that were given."""
    spatial = list(x._type.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, Sequence):
            return (_whole(size, size),) * count, None
        if len(size) != count:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {spatial} and output size of {size}. Please provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) "
                "format."
            )
        return tuple(_whole(each, size) for each in size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    many = isinstance(scale_factor, Sequence)
    for each in scale_factor if many else (scale_factor,):
        if isinstance(each, (str, complex)) or (isinstance(each, Tensor) and each._type.numel != 1):
            raise TypeError(
                "interpolate(): argument 'scale_factor' must be float or tuple of floats, got "
                f"{scale_factor!r}"
            )
    if many and len(scale_factor) != count:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {spatial} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    scales = tuple(map(float, scale_factor if many else (scale_factor,) * count))
    return tuple(math.floor(n * by) for n, by in zip(spatial, scales)), scales


def _whole(size: Any, given: Any) -> int:
    try:
        whole: int = size.__index__()
    except (AttributeError, TypeError):
        kinds = [type(each) for each in given] if isinstance(given, Sequence) else [type(given)]
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, "
            f"int], but got size with types {kinds}"
        ) from None
    return whole


def _check_mode(mode: str, count: int) -> None:
    dims = _DIMENSIONS.get(mode, ()) if isinstance(mode, str) else ()
    if count in dims:
        return
    if len(dims) == 1 and mode != "lanczos" and count in (1, 2, 3):
        raise NotImplementedError(
            f"Got {count + 2}D input, but {mode} mode needs {dims[0] + 2}D input"
        )
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {count + 2}D) for the "
        "modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | "
        f"nearest-exact (got {mode})"
    )


@planned
def _interpolated(
    x: Tensor, sizes: tuple[int, ...], steps: str, kind: str, align_corners: bool,
    antialias: bool,
) -> Tensor:  # fmt: skip
    dtype = x._type.dtype
    scales = [float(each) for each in steps.split()]  # in one string, as plans are found by it
    moves = kind.startswith("nearest")
    in_bytes = dtype is uint8 and not moves
    precise = dtype is float64 or in_bytes
    made = x if moves or in_bytes else widened(x)
    for axis in range(x.ndim - 1, 1, -1):
        how = Resampling(
            kind, x._type.shape[axis], sizes[axis - 2], align_corners, antialias,
            scales[axis - 2], "float64" if precise else "float32",
        )  # fmt: skip
        if how.size != how.made or how.scale not in (0.0, 1.0):
            made = (resample_bytes if in_bytes else resample)(made, axis=axis, how=how)
    return m.clone(x) if made is x else cast(made, dtype)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """The old name of `interpolate` with "nearest"."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """The old name of `interpolate` with "bilinear" and `align_corners`."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
