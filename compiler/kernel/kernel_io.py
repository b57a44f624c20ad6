"""What lowering starts from: the nodes that a kernel produces, and where all others lie."""

from __future__ import annotations

from functools import cached_property

from ...runtime.records import record
from ..ir import Family, Node
from ..ir import primitives as p
from ..ir.shapes import contiguous_strides, numel
from ..ir.size_number import is_expression

# Reductions over at most this many elements are written out inside their consumer's body.
UNROLLED_ELEMENTS = 32


class CannotFuse(Exception):
    """The group has no kernel; the text says why."""


@record()
class BufferLayout:
    """Where a materialised node lies: element strides, offset, addressable elements."""

    strides: tuple[int, ...]
    offset: int = 0
    elements: int = 0

    @staticmethod
    def contiguous(shape: tuple[int, ...]) -> BufferLayout:
        return BufferLayout(contiguous_strides(shape), 0, numel(shape))


@record()
class Root:
    """A node that a kernel produces.

    `dims` says for every axis of its iteration shape (the operand's shape for a reduction, its
    own otherwise) whether it is a row axis (True) or an axis of its stage (False). A sum whose
    axes are the last row axes adds up what rows give, see `sums_rows`.
    """

    node: Node
    dims: tuple[bool, ...]
    stored: bool = True

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The sizes of the row axes, without those of size 1."""
        shape = iteration_shape(self.node)
        return tuple([n for n, is_row in zip(shape, self.dims, strict=True) if is_row and n != 1])


def iteration_shape(node: Node) -> tuple[int, ...]:
    """The shape that a kernel producing `node` loops over."""
    return node.inputs[0].shape if node.primitive.family is Family.REDUCE else node.shape


def row_sizes(root: Root) -> tuple[int, ...]:
    """The sizes of a root's row axes, without those of size 1."""
    return root.rows


def inner_sizes(root: Root) -> tuple[int, ...]:
    """The sizes of the axes of a root's stage, without those of size 1."""
    shape = iteration_shape(root.node)
    return tuple(n for n, is_row in zip(shape, root.dims, strict=True) if not is_row and n != 1)


def is_contraction(node: Node) -> bool:
    """Whether a node is a matrix product, whose kernel has a stage that contracts."""
    return node.primitive is p.matmul


def contracted_sizes(node: Node) -> tuple[int, ...]:
    """The sizes of the axes that a product contracts."""
    return (node.inputs[0].shape[-2 if node.attrs["transpose_a"] else -1],)


def has_loops(node: Node) -> bool:
    """Whether a node has loops of its own: over the axes that it reduces, or scans."""
    return node.primitive.family in (Family.REDUCE, Family.SCAN)


def sums_rows(root: Root) -> bool:
    """Whether a root adds up what the rows of its kernel give, instead of what a stage gives."""
    node = root.node
    return node.primitive is p.sum_ and any(root.dims[axis] for axis in node.attrs["axes"])


def kept_axes(node: Node) -> tuple[bool, ...]:
    """For every axis of the iteration shape of such a node whether it is no loop of its own."""
    looped = node.attrs["axes"] if node.primitive.family is Family.REDUCE else (node.attrs["axis"],)
    return tuple(axis not in looped for axis in range(len(iteration_shape(node))))


def own_root(node: Node) -> Root:
    """What a kernel of its own makes of a node."""
    return Root(node, kept_axes(node) if has_loops(node) else (True,) * node.type.ndim)


def is_unrolled(node: Node) -> bool:
    """Whether a reduction is written out inside its consumers rather than looped over.

    One over an open axis never is, as it would be another text for each size.
    """
    if node.primitive is p.fold:
        return numel(node.inputs[0].shape[node.type.ndim :]) <= UNROLLED_ELEMENTS
    if node.primitive.family is not Family.REDUCE or node.primitive in (p.argmax, p.argmin):
        return False
    count = numel([node.inputs[0].shape[axis] for axis in node.attrs["axes"]])
    return not is_expression(count) and count <= UNROLLED_ELEMENTS
