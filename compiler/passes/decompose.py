"""What a target has no direct form for, in terms of what it has.

- A product of half types is one of float32, rounded once.
- A convolution is one matrix product: the windows of the input as rows, [n * out, window * c],
  times the kernels, [o, window * c]. The gradient with respect to the kernels, a convolution of
  the input with samples and channels swapped, is the same product with the matrix of windows
  transposed, so that both share it. The gradient with respect to the input of a strided
  convolution, whose input is spread by zeros, is cut into convolutions of the results that meet the
  same taps; where windows are apart, it multiplies first and puts them in place (`fold`).
- A convolution of every channel by itself multiplies and sums; it has no matrix to speak of.

A GPU has a kernel for convolutions; there only these last ones, and products of single points, are
put in other terms.
"""

from __future__ import annotations

from ..ir import Graph, Node
from ..ir import primitives as p
from ..ir.shapes import numel
from .convolutions import (
    convolution_by_channel,
    convolution_by_fold,
    convolution_by_phases,
    convolution_by_windows,
    convolution_by_windows_transposed,
    has_phases,
)
from .matching import call, cast, full, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite

# Axes that a GPU's kernel for convolutions has at most.
MAX_SPATIAL = 3
FEW_ROWS = 2


@rewrite(p.matmul, p.convolution)
def half_types_in_float32(build: RewriteBuilder, node: Node) -> Node | None:
    dtype = node.type.dtype
    if dtype.compute is dtype:
        return None
    wide = build.rebuild(node, [cast(build, each, dtype.compute) for each in node.inputs])
    return cast(build, wide, dtype)


@rewrite(p.convolution)
def convolution_as_matmul(build: RewriteBuilder, node: Node) -> Node | None:
    x, w = node.inputs
    if not node.type.numel or not x.type.numel or not w.type.numel:
        return full(build, node.type, 0.0)
    groups = node.attrs["groups"]
    if groups > 1 and w.shape[1] == 1:
        return convolution_by_channel(build, node)
    spread, strided = max(node.attrs["input_dilation"]) > 1, max(node.attrs["strides"]) > 1
    if spread and not strided:
        by_phases = has_phases(node)
        return (convolution_by_phases if by_phases else convolution_by_fold)(build, node)
    if groups == 1 and _swaps_samples_and_channels(x):
        return convolution_by_windows_transposed(build, node)
    return convolution_by_windows(build, node)


def _swaps_samples_and_channels(x: Node) -> bool:
    """Whether `x` is another value with its first two axes swapped, as in a kernel's gradient."""
    swapped = (x.shape[1], x.shape[0], *x.shape[2:])
    permuted = False
    while x.primitive in (p.permute, p.reshape):
        permuted |= x.primitive is p.permute or x.shape != x.inputs[0].shape
        (x,) = x.inputs
        if x.shape == swapped:
            return permuted
    return False


@rewrite(p.convolution)
def convolution_for_gpu(build: RewriteBuilder, node: Node) -> Node | None:
    """A GPU has a kernel for convolutions, half types too; some are less than that."""
    x, w = node.inputs
    groups = node.attrs["groups"]
    # With one or two rows of a product, a tile of it would be almost empty.
    by_channel = groups > 1 and (w.shape[1] == 1 or w.shape[0] // groups <= FEW_ROWS)
    if not node.type.numel or not x.type.numel or not w.type.numel:
        return full(build, node.type, 0.0)
    if by_channel or x.type.ndim - 2 > MAX_SPATIAL:
        if node.type.dtype.is_half:
            return half_types_in_float32.function(build, node)
        return (convolution_by_channel if by_channel else convolution_by_windows)(build, node)
    return _product_of_points(build, node) if _is_product_of_points(node) else None


def _is_product_of_points(node: Node) -> bool:
    """Whether every place of the result is made of the same place of the input alone."""
    attrs = node.attrs
    steps = (*attrs["strides"], *attrs["input_dilation"])
    return (
        attrs["groups"] == 1
        and set(node.inputs[1].shape[2:]) == {1}
        and set(steps) == {1}
        and not any(each for pair in attrs["padding"] for each in pair)
    )


def _product_of_points(build: RewriteBuilder, node: Node) -> Node:
    """[o, c] times [c, places] for every sample: nothing has to change its place."""
    x, w = node.inputs
    samples, channels, *spatial = x.shape
    outputs, places = w.shape[0], numel(tuple(spatial))
    weights = reshape(build, w, (outputs, channels))
    if places == 1:
        rows = reshape(build, x, (samples, channels))
        product = call(build, p.matmul, rows, weights, transpose_a=False, transpose_b=True)
    else:
        columns = reshape(build, x, (samples, channels, places))
        product = call(build, p.matmul, weights, columns, transpose_a=False, transpose_b=False)
    return reshape(build, product, node.shape)


RULES = (half_types_in_float32, convolution_as_matmul)
GPU_RULES = (convolution_for_gpu,)


def decompose(graph: Graph) -> Graph:
    return apply_rules(graph, RULES)


def decompose_for_gpu(graph: Graph) -> Graph:
    """Convolutions stay where there is a kernel for them, products of half types everywhere."""
    return apply_rules(graph, GPU_RULES)
