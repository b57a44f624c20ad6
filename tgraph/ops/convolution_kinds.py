"""Convolutions of what the primitive does not take: integers and complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..compiler.ir import primitives as p
from ..core.complex_parts import part
from ..core.dispatch import apply
from ..core.tensor import Tensor
from ..runtime.dtypes import int64
from . import elementwise as e
from . import movement as m
from .linalg import matmul


def convolved(
    x: Tensor,
    w: Tensor,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    input_dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The primitive; for integers a product of all windows, which wraps around as they do."""
    if x._type.dtype is not int64:
        return apply(p.convolution, x, w, strides=tuple(strides), padding=tuple(padding),
                     dilation=tuple(dilation), input_dilation=tuple(input_dilation),
                     groups=groups)  # fmt: skip
    count = len(strides)
    lows, highs = ((0, 0, *(pair[at] for pair in padding)) for at in (0, 1))
    interior = (0, 0, *(by - 1 for by in input_dilation))
    padded = apply(p.pad, x, low=lows, high=highs, interior=interior, value=0)
    taps = w._type.shape[2:]
    windows = apply(p.unfold, padded, axes=tuple(range(2, 2 + count)), sizes=taps,
                    strides=tuple(strides), dilations=tuple(dilation))  # fmt: skip
    samples, channels = x._type.shape[:2]
    outputs, places = w._type.shape[0], windows._type.shape[2 : 2 + count]
    length = channels // groups * math.prod(taps)
    order = (0, 1, *range(2 + count, 2 + 2 * count), *range(2, 2 + count))
    columns = m.reshape(m.permute(windows, order), samples, groups, length, math.prod(places))
    rows = m.reshape(w, groups, outputs // groups, length)
    return m.reshape(matmul(rows, columns), samples, outputs, *places)


def of_parts(x: Tensor, w: Tensor, product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A product of complex numbers, by that of their real and imaginary parts."""
    (a, b), (c, d) = ((part(each, 0), part(each, 1)) for each in (x, w))
    real = e.sub(product(a, c), product(b, d))
    return apply(p.complex_, real, e.add(product(a, d), product(b, c)))
