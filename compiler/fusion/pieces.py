"""Concatenations of many pieces: each piece is computed where it lies in the whole.

A kernel for all pieces asks at each element which one it is of: as long as loops can be cut where
pieces begin (`kernel.regions`) that is nothing, and with more pieces it is as much work as all of
them together have elements, once for each. So every piece becomes a copy of its own, which lies in
the memory of the whole, and nothing is left to do when all are made. (As with the `ConcatKernel` of
PyTorch's Inductor.) Where pieces of a row are so short that memory would be written a cache line
for each, they are put one behind another in other memory, from which rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.records import record
from ..ir import Builder, Graph, Node, transform
from ..ir import primitives as p
from ..ir.shapes import contiguous_strides, numel
from ..kernel.kernel_io import BufferLayout
from .machine import Machine

ASKED = 3
"""Operations that an element takes for each piece that it may be of."""
SHORTEST_RUN = 4
"""Bytes side by side as which pieces are never written into rows."""
SHORT_RUN = 32
"""Those as which they are written only while caches hold the whole."""


@record()
class Piece:
    """Where a node lies in the memory of `whole`: `offset` elements behind its beginning."""

    whole: Node
    offset: int
    layout: BufferLayout


def pieces_of(graph: Graph) -> dict[Node, Piece]:
    """The nodes that lie in the memory of another."""
    found: dict[Node, Piece] = {}
    for whole in graph.nodes:
        if whole.primitive is not p.assemble:
            continue
        strides, axis, at = contiguous_strides(whole.shape), whole.attrs["axis"], 0
        for piece in whole.inputs:
            extent = 1 + sum((n - 1) * s for n, s in zip(piece.shape, strides, strict=True))
            layout = BufferLayout(strides, 0, extent)
            found[piece] = Piece(whole, at * strides[axis], layout)
            at += piece.shape[axis]
    return found


def assemble_pieces(graph: Graph, machine: Machine) -> Graph:
    """`graph` with an `assemble` of copies where a concatenation has many pieces."""
    graph = _joined(graph)
    if not any(_has_many_pieces(node, machine) for node in graph.nodes):
        return graph

    def rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
        if not _has_many_pieces(node, machine):
            return build.rebuild(node, operands)
        axis = node.attrs["axis"]
        if not _has_short_rows(node, machine):
            return _assembled(build, node, operands, axis)
        first = (axis, *(other for other in range(node.type.ndim) if other != axis))
        permuted = [build.apply(p.permute, [each], {"axes": first}) for each in operands]
        whole = _assembled(build, node, permuted, 0)
        back = tuple(map(first.index, range(node.type.ndim)))
        return build.apply(p.permute, [whole], {"axes": back}, node.where)

    return transform(graph, rewrite)


def _joined(graph: Graph) -> Graph:
    """With the pieces of a piece, which nobody else reads, as pieces of the whole."""
    outputs = set(graph.outputs)

    def is_joined(node: Node, piece: Node) -> bool:
        alike = piece.primitive is p.concatenate and piece.attrs["axis"] == node.attrs["axis"]
        return alike and piece not in outputs and len(graph.consumers[piece]) == 1

    wholes = [node for node in graph.nodes if node.primitive is p.concatenate]
    if not any(is_joined(node, each) for node in wholes for each in node.inputs):
        return graph

    def rewrite(build: Builder, node: Node, operands: tuple[Node, ...]) -> Node:
        pieces: list[Node] = []
        for each, operand in zip(node.inputs, operands, strict=True):
            joins = node.primitive is p.concatenate and is_joined(node, each)
            pieces += operand.inputs if joins else [operand]
        return build.rebuild(node, pieces)

    return transform(graph, rewrite)


def _has_many_pieces(node: Node, machine: Machine) -> bool:
    """Whether to ask for the piece takes longer than to start a kernel for each."""
    if node.primitive is not p.concatenate or len(node.inputs) <= machine.most_pieces:
        return False
    asking = machine.time(ASKED, node.type) + node.type.nbytes * machine.again
    return asking >= machine.start


def _has_short_rows(node: Node, machine: Machine) -> bool:
    """Whether a cache line of the whole would be written, and fetched, for each of many pieces."""
    axis = node.attrs["axis"]
    if numel(node.shape[:axis]) == 1:
        return False
    elements = min(each.shape[axis] for each in node.inputs) * numel(node.shape[axis + 1 :])
    run = elements * node.type.dtype.itemsize
    return run <= SHORTEST_RUN or (run < SHORT_RUN and node.type.nbytes > machine.cache)


def _assembled(build: Builder, node: Node, operands: Sequence[Node], axis: int) -> Node:
    """Copies side by side, each by a builder of its own: equal pieces lie at different places."""
    pieces = [Builder().apply(p.copy, [each], where=node.where) for each in operands]
    return build.apply(p.assemble, pieces, {"axis": axis}, node.where)
