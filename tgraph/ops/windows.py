"""Windows of a tensor: all of them, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..compiler.ir import primitives as p
from ..compiler.ir.shapes import window_count
from ..core.dispatch import apply
from ..core.operands import require_tensor
from ..core.planned import planned
from ..core.tensor import Tensor
from . import movement as m
from .convolution import Ints, spread
from .padding import pad_constant


def windows_of(
    x: Tensor, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Tensor:
    """Windows of the last dimensions: their numbers there, and their elements behind all."""
    count = len(window)
    return apply(
        p.unfold,
        x,
        axes=tuple(range(x.ndim - count, x.ndim)),
        sizes=tuple(window),
        strides=tuple(strides),
        dilations=tuple(dilations),
    )


@planned
def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The windows of [n, c, height, width] as columns: [n, c * window, places].

    >>> import tgraph as tg
    >>> image = tg.arange(9.0).reshape(1, 1, 3, 3)
    >>> tg.nn.functional.unfold(image, 2)[0, :, 0]
    tensor([0., 1., 3., 4.])
    """
    if require_tensor(input, "unfold").ndim not in (3, 4) or 0 in input._type.shape[1:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    window, apart, pads, steps = _arguments(kernel_size, dilation, padding, stride)
    if input.ndim == 3:
        return m.squeeze(unfold(m.unsqueeze(input, 0), window, apart, pads, steps), 0)
    sizes = [size + 2 * by for size, by in zip(input._type.shape[2:], pads)]
    places = _places(sizes, window, apart, steps)
    if min(places) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_by(input.shape[2:])}, kernel_size={_by(window)}, "
            f"dilation={_by(apart)}, padding={_by(pads)}, calculated shape of the array of sliding "
            f"blocks as {_by(places)}, but its components must be at least one."
        )
    padded = input
    if any(pads):
        padded = pad_constant(input, [(0, 0), (0, 0), *((by, by) for by in pads)], 0)
    windows = windows_of(padded, window, steps, apart)
    columns = apply(p.permute, windows, axes=(0, 1, 4, 5, 2, 3))
    samples, channels = input._type.shape[:2]
    return m.reshape(columns, (samples, channels * math.prod(window), math.prod(places)))


@planned
def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns [n, c * window, places] added up to [n, c, height, width]: transposed `unfold`.

    >>> import tgraph as tg
    >>> tg.nn.functional.fold(tg.ones(1, 4, 4), (3, 3), 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    if require_tensor(input, "fold").ndim not in (2, 3) or 0 in input._type.shape[1:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )
    window, apart, pads, steps = _arguments(kernel_size, dilation, padding, stride)
    size = spread(output_size, 2, "output_size")
    if input.ndim == 2:
        return m.squeeze(fold(m.unsqueeze(input, 0), size, window, apart, pads, steps), 0)
    samples, rows, columns = input._type.shape
    taps = math.prod(window)
    if rows % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={_by(window)}."
        )
    whole = [extent + 2 * by for extent, by in zip(size, pads)]
    places = _places(whole, window, apart, steps)
    if min(places) < 1 or math.prod(places) != columns:
        raise RuntimeError(
            f"Given output_size={_by(size)}, kernel_size={_by(window)}, dilation={_by(apart)}, "
            f"padding={_by(pads)}, stride={_by(steps)}, expected size of input's dimension 2 to "
            f"match the calculated number of sliding blocks {places[0]} * {places[1]} = "
            f"{math.prod(places)}, but got input.size(2)={columns}."
        )
    channels = rows // taps
    blocks = m.reshape(input, (samples, channels, *window, *places))
    windows = apply(p.permute, blocks, axes=(0, 1, 4, 5, 2, 3))
    added = apply(
        p.fold, windows, axes=(2, 3), strides=steps, dilations=apart,
        shape=(samples, channels, *whole),
    )  # fmt: skip
    if not any(pads):
        return added
    return pad_constant(added, [(0, 0), (0, 0), *((-by, -by) for by in pads)], 0)


def _arguments(
    kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[tuple[int, ...], ...]:
    given = (("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding),
             ("stride", stride))  # fmt: skip
    for name, each in given:
        if isinstance(each, Sequence) and len(each) == 1:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size 1")
    window = spread(kernel_size, 2, "kernel_size")
    apart, pads = spread(dilation, 2, "dilation"), spread(padding, 2, "padding")
    steps = spread(stride, 2, "stride")
    for name, values in (("kernel size", window), ("dilation", apart), ("stride", steps)):
        if min(values) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {_by(values)}")
    if min(pads) < 0:
        raise RuntimeError(f"padding should be non-negative, but got {_by(pads)}")
    return window, apart, pads, steps


def _places(
    sizes: Sequence[int], window: Sequence[int], apart: Sequence[int], steps: Sequence[int]
) -> list[int]:
    return [window_count(*each) for each in zip(sizes, window, steps, apart)]


def _by(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"
