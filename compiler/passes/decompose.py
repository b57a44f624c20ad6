"""What the CPU has no direct form for, in terms of what it has.

- A product of half types is one of float32, rounded once.
- A convolution is one matrix product: the windows of the input as rows, [n * out, window * c],
  times the kernels, [o, window * c]. The gradient with respect to the kernels, a convolution of
  the input with samples and channels swapped, is the same product with the matrix of windows
  transposed, so that both share it. The gradient with respect to the input of a strided
  convolution, whose input is spread by zeros, multiplies first and adds up overlapping windows
  (`fold`).
- A convolution of every channel by itself multiplies and sums; it has no matrix to speak of.
"""

from __future__ import annotations

from ...runtime.dtypes import float32
from ..ir import Graph, Node
from ..ir import primitives as p
from ..rewrite import RewriteBuilder, apply_rules, rewrite
from .convolutions import (
    convolution_by_channel,
    convolution_by_fold,
    convolution_by_windows,
    convolution_by_windows_transposed,
)
from .matching import cast, full


@rewrite(p.matmul, p.convolution)
def half_types_in_float32(build: RewriteBuilder, node: Node) -> Node | None:
    if not node.type.dtype.is_half:
        return None
    wide = build.rebuild(node, [cast(build, each, float32) for each in node.inputs])
    return cast(build, wide, node.type.dtype)


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
        return convolution_by_fold(build, node)
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


RULES = (half_types_in_float32, convolution_as_matmul)


def decompose(graph: Graph) -> Graph:
    return apply_rules(graph, RULES)
