"""Slices that are written one after another become one concatenation, which has no order.

`out[i] = f(x[i])` in a loop is a chain of updates, each of which gives the whole array anew: an
element of the last one asks at every update whether it was written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...runtime.records import NamedTuple
from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p
from ..ir.shapes import contiguous_strides
from .matching import part, reshape

FEWEST = 7
"""Updates from which on this pays: loops are cut where fewer begin."""


class _Write(NamedTuple):
    """What an update writes: `value`, at positions from `start` to `stop`, exclusive."""

    start: int
    stop: int
    value: Node


class _Chain(NamedTuple):
    """Writes over `base`, in the order of their places along `axis` of its elements in `shape`."""

    base: Node
    shape: tuple[int, ...]
    axis: int
    writes: list[_Write]


def concatenate_updates(graph: Graph) -> Graph:
    """`graph` with long chains of updates at different places as concatenations."""
    chains = _chains(graph) if p.slice_update in graph.primitives else {}
    if not chains:
        return graph
    new: dict[Node, Node] = {node: node for node in graph.inputs}

    def rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
        chain = chains.get(node)
        found = build.rebuild(node, operands) if chain is None else _concatenated(build, chain, new)
        new[node] = found
        return found

    return transform(graph, rewrite)


def _chains(graph: Graph) -> dict[Node, _Chain]:
    """The long chains that can be one concatenation, by their last update."""
    found: dict[Node, _Chain] = {}
    inside: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.primitive is not p.slice_update or node in inside:
            continue
        updates, base = [node], node.inputs[0]
        while base.primitive is p.slice_update and graph.consumers[base] == (updates[-1],):
            if base in graph.outputs:
                break
            updates.append(base)
            base = base.inputs[0]
        inside.update(updates)
        if len(updates) >= FEWEST:
            chain = _along_axis(base, updates) or _along_memory(base, updates)
            if chain is not None:
                found[node] = chain
    return found


def _along_axis(base: Node, updates: Sequence[Node]) -> _Chain | None:
    """The chain if every update writes some of one axis, and all of the others."""
    for axis, size in enumerate(base.shape):
        rest = base.shape[:axis], base.shape[axis + 1 :]
        writes = []
        for each in updates:
            value, start = each.inputs[1], each.attrs["starts"][axis]
            if (value.shape[:axis], value.shape[axis + 1 :]) != rest or not _is_dense(each, axis):
                break
            writes.append(_Write(start, start + value.shape[axis], value))
        else:
            return _in_order(base, base.shape, axis, size, writes)
    return None


def _along_memory(base: Node, updates: Sequence[Node]) -> _Chain | None:
    """The chain if every update writes elements that lie side by side."""
    writes, strides = [], contiguous_strides(base.shape)
    for each in updates:
        value = each.inputs[1]
        wide = [axis for axis, size in enumerate(value.shape) if size != 1]
        first = wide[0] if wide else 0
        if value.shape[first + 1 :] != base.shape[first + 1 :] or not _is_dense(each, first):
            return None
        start = sum(at * step for at, step in zip(each.attrs["starts"], strides, strict=True))
        writes.append(_Write(start, start + value.type.numel, value))
    return _in_order(base, (base.type.numel,), 0, base.type.numel, writes)


def _is_dense(update: Node, axis: int) -> bool:
    steps, sizes = update.attrs["steps"], update.inputs[1].shape
    return not sizes or steps[axis] == 1 or sizes[axis] == 1


def _in_order(
    base: Node, shape: tuple[int, ...], axis: int, size: int, writes: list[_Write]
) -> _Chain | None:
    """The chain, unless something is written twice."""
    writes.sort(key=lambda write: write[:2])
    if any(one.stop > other.start for one, other in pairwise(writes)):
        return None
    return _Chain(base, shape, axis, writes)


def _concatenated(build: Builder, chain: _Chain, new: dict[Node, Node]) -> Node:
    """The concatenation of what is written and what is left of the base."""
    base, shape, axis, writes = chain
    whole = reshape(build, new[base], shape)
    parts, at = [], 0
    for start, stop, value in (*writes, _Write(shape[axis], shape[axis], base)):
        if start > at:
            parts.append(part(build, whole, axis, at, start))
        if stop > start:
            sizes = (*shape[:axis], stop - start, *shape[axis + 1 :])
            parts.append(reshape(build, new[value], sizes))
        at = stop
    return reshape(build, build.apply(p.concatenate, parts, {"axis": axis}), base.shape)
