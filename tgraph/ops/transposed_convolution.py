"""Transposed convolutions: what gives a convolution's input its gradient, as an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.composite import composite
from ..core.dispatch import apply
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.vjp_rules import input_vjp
from . import elementwise as e
from . import movement as m
from .channels_last import laid_as
from .convolution import (
    Ints,
    by_sizes,
    channels,
    check_dimensions,
    check_dtypes,
    check_steps,
    spread,
)
from .convolution_gradients import input_gradient, weight_gradient
from .convolution_kinds import of_parts

Sizes = tuple[int, ...]


@composite("conv_transpose")
def _transposed(
    x: Tensor, w: Tensor, shape: Sizes, strides: Sizes, pads: Sizes, dilations: Sizes, groups: int
) -> Any:
    attrs = _attributes(strides, pads, dilations, groups)
    return input_gradient(x, w, shape, **attrs)


def _attributes(strides: Sizes, pads: Sizes, dilations: Sizes, groups: int) -> dict[str, Any]:
    """Of the convolution whose input has the gradient."""
    return {
        "strides": strides,
        "padding": tuple((by, by) for by in pads),
        "dilation": dilations,
        "input_dilation": (1,) * len(strides),
        "groups": groups,
    }


@input_vjp(_transposed, 0, saves=(1,))
def _transposed_input(
    g: Tensor, out: TensorType, x: TensorType, w: Tensor, shape: Sizes, strides: Sizes,
    pads: Sizes, dilations: Sizes, groups: int,
) -> Any:  # fmt: skip
    whole = apply(p.convolution, g, w, **_attributes(strides, pads, dilations, groups))
    if whole._type.shape == x.shape:
        return whole
    # Where the output was padded by a stride or more, there is a window that nothing came from.
    return apply(p.slice_, whole, starts=(0,) * x.ndim, stops=x.shape, steps=(1,) * x.ndim)


@input_vjp(_transposed, 1, saves=(0,))
def _transposed_weight(
    g: Tensor, out: TensorType, x: Tensor, w: TensorType, shape: Sizes, strides: Sizes,
    pads: Sizes, dilations: Sizes, groups: int,
) -> Any:  # fmt: skip
    return weight_gradient(x, g, w.shape, **_attributes(strides, pads, dilations, groups))


@planned
def _conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
    count: int,
) -> Tensor:
    if x.ndim == count + 1:
        one = m.unsqueeze(x, 0)
        done = _conv_transpose(
            one, weight, bias, stride, padding, output_padding, groups, dilation, count
        )
        return m.squeeze(done, 0)
    name = f"conv_transpose{count}d"
    check_dimensions(x, weight, count, name)
    check_dtypes(x, weight, bias, name)
    strides, pads = spread(stride, count, "stride"), spread(padding, count, "padding")
    apart = spread(dilation, count, "dilation")
    more = spread(output_padding, count, "output_padding")
    check_steps(strides, pads, apart)
    _check_operands(x, weight, bias, groups)
    _check_output_padding(more, strides, apart)
    sizes = tuple(
        (size - 1) * step - 2 * pad + by * (taps - 1) + extra + 1
        for size, step, pad, by, taps, extra in zip(
            x._type.shape[2:], strides, pads, apart, weight._type.shape[2:], more
        )
    )
    if min(sizes) < 1:
        raise RuntimeError(
            f"Given input size per channel: {by_sizes(x.shape[2:])}. Calculated output size per "
            f"channel: {by_sizes(sizes)}. Output size is too small"
        )
    shape = (x._type.shape[0], weight._type.shape[1] * groups, *sizes)
    attrs: dict[str, Any] = {"shape": shape, "strides": strides, "pads": pads,
                             "dilations": apart, "groups": groups}  # fmt: skip
    if x._type.dtype.is_complex:
        result = of_parts(x, weight, lambda x, w: _transposed(x, w, **attrs))
    else:
        result = _transposed(x, weight, **attrs)
    return result if bias is None else e.add(result, channels(bias, count))


def _check_operands(x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> None:
    made, own = weight.shape[1] * groups, f"weight of size {list(weight.shape)}"
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got {own}"
        )
    if x.shape[1] != weight.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, {own}, expected input{list(x.shape)} to have {weight.shape[0]} "
            f"channels, but got {x.shape[1]} channels instead"
        )
    if bias is not None and bias.shape != (made,):
        raise RuntimeError(
            f"Given transposed=1, {own}, expected bias to be 1-dimensional with {made} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )


def _check_output_padding(
    more: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> None:
    if min(more) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if any(extra >= max(step, by) for extra, step, by in zip(more, strides, dilations)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"output_padding: {list(more)}, stride: {list(strides)}, dilation: {list(dilations)}"
        )


@with_autocast
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv1d`: [n, c, length] with [c, o / groups, taps]."""
    return _conv_transpose(
        input, weight, bias, stride, padding, output_padding, groups, dilation, 1
    )


@with_autocast
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv2d`: [n, c, height, width] with [c, o / groups, rows, columns].

    Each element of the input adds the window, times itself, to the result, windows `stride` apart.
    `padding` is cut off, and `output_padding` more is kept at the end of each dimension.

    >>> import tgraph as tg
    >>> x, window = tg.tensor([[[1.0, 2.0]]]), tg.ones(1, 1, 3)
    >>> tg.nn.functional.conv_transpose1d(x, window, stride=2)
    tensor([[[1., 1., 3., 2., 2.]]])
    """
    found = _conv_transpose(
        input, weight, bias, stride, padding, output_padding, groups, dilation, 2
    )
    return laid_as(found, input, weight)


@with_autocast
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv3d`: [n, c, depth, height, width] with [c, o / groups, *window]."""
    found = _conv_transpose(
        input, weight, bias, stride, padding, output_padding, groups, dilation, 3
    )
    return laid_as(found, input, weight)
