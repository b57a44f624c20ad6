"""Integers that are read as larger or smaller ones, in terms of shifts: low bits lie first."""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Node
from ..ir import primitives as p
from .matching import call, cast, constant, reshape
from .rewrite import RewriteBuilder, apply_rules, rewrite


@rewrite(p.repack)
def repack_is_shifting(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    small, large = sorted((x.type.dtype, node.type.dtype), key=lambda each: each.itemsize)
    ratio = large.itemsize // small.itemsize
    shifts = constant(build, x.type, np.arange(0, large.bits, small.bits).astype(large.numpy))
    if large is x.type.dtype:
        parts = call(build, p.shift_right, reshape(build, x, (*x.shape, 1)), shifts)
        return reshape(build, cast(build, parts, small), node.shape)
    rows = reshape(build, x, (*node.shape, ratio))
    parts = call(build, p.shift_left, cast(build, rows, large), shifts)
    axes = (len(node.shape),)
    return call(build, p.sum_, parts, axes=axes, keepdims=False)


def split_repacked(graph: Graph) -> Graph:
    return apply_rules(graph, (repack_is_shifting,))
