"""The position of an extreme as two reductions that are vectorised: the extreme, then the least
position that holds it.

A fold over pairs of a value and a position is not something that LLVM makes vectors of. The two
reductions are stages of one kernel, of which the second finds its row in the cache; and where the
results are few, both are shared among threads like any others.
"""

from __future__ import annotations

from ...runtime.dtypes import int32, int64
from ..ir import Graph, Node
from ..ir import primitives as p
from ..ir.shapes import numel
from .matching import call, cast, reshape, scalar
from .rewrite import RewriteBuilder, apply_rules, rewrite

# Where this many elements lie side by side that do not meet, lanes fold pairs, and read them once.
MIN_LANES = 8


@rewrite(p.argmax, p.argmin)
def position_as_two_reductions(build: RewriteBuilder, node: Node) -> Node | None:
    """Where one is NaN the extreme is NaN too, and nothing else equals it."""
    (x,), (axis,) = node.inputs, node.attrs["axes"]
    size, beside = x.shape[axis], numel(x.shape[axis + 1 :])
    if beside >= MIN_LANES or not x.type.numel:
        return None
    whole, kept = (p.max_ if node.primitive is p.argmax else p.min_), {"axes": (axis,)}
    here = call(build, p.eq, x, call(build, whole, x, **kept, keepdims=True))
    if x.type.dtype.is_floating_point:
        here = call(build, p.logical_or, here, call(build, p.isnan, x))
    counted = call(build, p.iota, size=size, dtype=int32 if size < 1 << 31 else int64)
    counted = reshape(build, counted, (size, *(1 for _ in x.shape[axis + 1 :])))
    found = call(build, p.where, here, counted, scalar(build, counted, size - 1))
    first = call(build, p.min_, found, **kept, keepdims=node.attrs["keepdims"])
    return cast(build, first, int64)


def decompose_positions(graph: Graph) -> Graph:
    return apply_rules(graph, (position_as_two_reductions,))
