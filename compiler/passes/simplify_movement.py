"""Rules about reductions of what is known, and reads of what was just written."""

from __future__ import annotations

import math

import numpy as np

from ..ir import Node
from ..ir import primitives as p
from ..ir.shapes import numel
from .matching import call, full, reshape, scalar, scalar_as, scalar_of
from .rewrite import RewriteBuilder, rewrite

_NESTING = (p.sum_, p.prod, p.max_, p.min_, p.any_, p.all_)


@rewrite(*_NESTING)
def reduction_of_reduction(build: RewriteBuilder, node: Node) -> Node | None:
    """One reduction over the axes of both."""
    (x,) = node.inputs
    if x.primitive is not node.primitive:
        return None
    inner = x.attrs["axes"]
    left = [axis for axis in range(x.inputs[0].type.ndim) if axis not in inner]
    if x.attrs["keepdims"]:
        left = list(range(x.type.ndim))
    axes = tuple(sorted({*inner, *(left[axis] for axis in node.attrs["axes"])}))
    keepdims = node.attrs["keepdims"] and x.attrs["keepdims"]
    whole = call(build, node.primitive, x.inputs[0], axes=axes, keepdims=keepdims)
    return reshape(build, whole, node.shape)


@rewrite(*_NESTING)
def reduction_of_a_broadcast(build: RewriteBuilder, node: Node) -> Node | None:
    """Equal elements: a sum multiplies, an extreme is the element; a product would be a power."""
    (x,) = node.inputs
    if x.primitive is not p.broadcast or node.primitive is p.prod:
        return None
    (source,) = x.inputs
    lead = x.type.ndim - source.type.ndim
    padded = (1,) * lead + source.shape
    repeated = {axis for axis in node.attrs["axes"] if padded[axis] == 1 and x.shape[axis] != 1}
    count = math.prod(x.shape[axis] for axis in repeated)
    if not repeated or count == 0 or not _is_exact(count, node):
        return None
    only_lead = repeated == set(range(lead)) and x.shape[lead:] == source.shape
    if only_lead and not node.attrs["keepdims"]:
        axes = tuple(axis - lead for axis in node.attrs["axes"] if axis >= lead)
        reduced = call(build, node.primitive, source, axes=axes, keepdims=False)
    else:
        narrowed = tuple(1 if axis in repeated else size for axis, size in enumerate(x.shape))
        left = _broadcast_or_reshape(build, source, narrowed)
        reduced = call(build, node.primitive, left, **node.attrs)
    return _times(build, reduced, count) if node.primitive is p.sum_ else reduced


def _broadcast_or_reshape(build: RewriteBuilder, x: Node, shape: tuple[int, ...]) -> Node:
    if x.type.numel == numel(shape):
        return reshape(build, x, shape)
    return call(build, p.broadcast, x, shape=shape)


def _is_exact(count: int, node: Node) -> bool:
    """Whether the type holds this count, which matters for the short ones only."""
    return node.type.dtype.is_integral or scalar_as(count, node.type.dtype) == count


def _times(build: RewriteBuilder, x: Node, count: int) -> Node:
    return call(build, p.mul, x, scalar(build, x, count))


@rewrite(p.sum_, p.max_, p.min_, p.any_, p.all_)
def reduction_of_one_number(build: RewriteBuilder, node: Node) -> Node | None:
    (x,) = node.inputs
    value = scalar_of(x)
    if value is None:
        return None
    count = math.prod(x.shape[axis] for axis in node.attrs["axes"])
    if count == 0:
        return None  # the identity of the reduction, which folding evaluates
    if node.primitive is p.sum_:
        with np.errstate(all="ignore"):
            value = value * count
    return full(build, node.type, value)


@rewrite(p.slice_)
def slice_of_slice_update(build: RewriteBuilder, node: Node) -> Node | None:
    """Reads back what was written, or what the update did not touch."""
    (x,) = node.inputs
    if x.primitive is not p.slice_update:
        return None
    read = [_taken(node, axis) for axis in range(node.type.ndim)]
    written = [_taken(x, axis) for axis in range(node.type.ndim)]
    if read == written:
        return x.inputs[1]
    apart = any(set(r).isdisjoint(w) for r, w in zip(read, written, strict=True))
    return call(build, p.slice_, x.inputs[0], **node.attrs) if apart else None


def _taken(node: Node, axis: int) -> range:
    starts, stops, steps = (node.attrs[name] for name in ("starts", "stops", "steps"))
    return range(starts[axis], stops[axis], steps[axis])


@rewrite(p.slice_update)
def update_over_update(build: RewriteBuilder, node: Node) -> Node | None:
    """The same elements written twice: the first write is never read."""
    base, update = node.inputs
    if base.primitive is not p.slice_update or base.attrs != node.attrs:
        return None
    return build.rebuild(node, [base.inputs[0], update])


@rewrite(p.slice_)
def slice_of_concatenate(build: RewriteBuilder, node: Node) -> Node | None:
    """The slice of one part, where it stays inside that part."""
    (x,) = node.inputs
    if x.primitive is not p.concatenate:
        return None
    axis, begin = x.attrs["axis"], 0
    starts, stops = list(node.attrs["starts"]), list(node.attrs["stops"])
    for part in x.inputs:
        end = begin + part.shape[axis]
        if begin <= starts[axis] and stops[axis] <= end and starts[axis] <= stops[axis]:
            starts[axis] -= begin
            stops[axis] -= begin
            return call(
                build, p.slice_, part,
                starts=tuple(starts), stops=tuple(stops), steps=node.attrs["steps"],
            )  # fmt: skip
        begin = end
    return None


@rewrite(p.reshape, reading=[p.broadcast])
def reshape_of_broadcast(build: RewriteBuilder, node: Node) -> Node | None:
    """A reshape that only adds or drops axes of size one moves below the broadcast."""
    (x,) = node.inputs
    if x.primitive is not p.broadcast:
        return None
    real = [size for size in node.shape if size != 1]
    if real != [size for size in x.shape if size != 1]:
        return None
    (source,) = x.inputs
    lead = x.type.ndim - source.type.ndim
    sizes = iter(
        size for size, whole in zip((1,) * lead + source.shape, x.shape, strict=True) if whole != 1
    )
    narrowed = tuple(1 if size == 1 else next(sizes) for size in node.shape)
    return call(build, p.broadcast, reshape(build, source, narrowed), shape=node.shape)


RULES = (
    reduction_of_reduction,
    reduction_of_a_broadcast,
    reduction_of_one_number,
    slice_of_slice_update,
    update_over_update,
    slice_of_concatenate,
    reshape_of_broadcast,
)
