"""What max-pooling left, put back in its places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply, make_source
from ..core.operands import require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import movement as m
from .channels_last import keeps_channels_last
from .convolution import Ints, spread
from .scatter_reductions import scatter


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Maxima at `indices`, as `max_pool1d` gives them, among zeros; see `max_unpool2d`."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 1)


@with_autocast
@keeps_channels_last
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Maxima at `indices`, as `max_pool2d` gives them, among zeros.

    `output_size` says which of the sizes that are pooled to that of `input` is meant.

    >>> import tgraph as tg
    >>> F = tg.nn.functional
    >>> most, at = F.max_pool2d(tg.tensor([[[1.0, 5.0], [2.0, 3.0]]]), 2, return_indices=True)
    >>> F.max_unpool2d(most, at, 2)
    tensor([[[0., 5.],
             [0., 0.]]])
    """
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 2)


@with_autocast
@keeps_channels_last
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Maxima at `indices`, as `max_pool3d` gives them, among zeros; see `max_unpool2d`."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 3)


def _max_unpool(
    x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any,
    count: int,
) -> Tensor:  # fmt: skip
    name = f"max_unpool{count}d"
    window = spread(kernel_size, count, "kernel_size")
    strides = window if stride is None else spread(stride, count, "stride")
    sizes = _sizes(x, window, strides, spread(padding, count, "padding"), output_size)
    if require_tensor(indices, name, "indices")._type.dtype is not int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices._type.dtype}"
        )
    if require_tensor(x, name).ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Input to {name} should be a {count + 1}d or {count + 2}d Tensor, but got a tensor "
            f"with {x.ndim} dimensions."
        )
    if indices._type.shape != x._type.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) "
            f"but got indices tensor with shape: {list(indices.shape)}"
        )
    return _unpooled(x, indices, sizes)


def _sizes(
    x: Tensor,
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    output_size: Sequence[int] | None,
) -> tuple[int, ...]:
    count = len(window)
    usual = [
        (size - 1) * step + taps - 2 * pad
        for size, step, taps, pad in zip(x._type.shape[-count:], strides, window, pads)
    ]
    sizes = usual if output_size is None else list(output_size)
    if len(sizes) == count + 2:
        sizes = sizes[2:]
    if len(sizes) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it "
            f"has a length of '{len(sizes)}'"
        )
    for axis, (size, made, step) in enumerate(zip(sizes, usual, strides)):
        if not made - step < size < made + step:
            raise ValueError(
                f'invalid output_size "{sizes}" (dim {axis} must be between {made - step} and '
                f"{made + step})"
            )
        if size < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{axis}]={size}"
            )
    return tuple(sizes)


@planned
def _unpooled(x: Tensor, indices: Tensor, sizes: tuple[int, ...]) -> Tensor:
    outer = x._type.shape[: x.ndim - len(sizes)]
    source = make_source(p.full, x._type.device, shape=(), value=0, dtype=x._type.dtype)
    zeros = apply(p.broadcast, source, shape=(*outer, math.prod(sizes)))
    flat = (*outer, math.prod(x._type.shape[len(outer) :]))
    found = scatter(zeros, -1, m.reshape(indices, flat), m.reshape(x, flat))
    return m.reshape(found, (*outer, *sizes))
