"""Additions of a bias that the matrix product before them makes itself, on CUDA.

cublasLt can add one number per column before it stores a product. Where the kernel behind a product
would do nothing else, the product does it: one launch and one trip through memory less. Where more
is computed with the sum, one kernel does all of that, and reads the product as before.
"""

from __future__ import annotations

from ....runtime.records import NamedTuple, replace
from ...fusion.fused_graph import FusedGraph, Group
from ...fusion.roots import stored_operands
from ...ir import Family, Node
from ...ir import primitives as p
from ...ir.shapes import contiguous_strides, numel
from ...kernel.kernel_io import Root, own_root
from ...kernel.memory_views import alias_base, strided_view

DTYPES = frozenset(("float32", "float16", "bfloat16"))
BIAS_ALIGNMENT = 16
"""Bytes. cublasLt is told how the matrices are aligned, but takes this of the bias for granted."""


class Bias(NamedTuple):
    """What a product adds to its rows: `sum` is the result, which lies where the product would.

    The numbers begin `offset` bytes behind the start of the node `base`.
    """

    sum: Node
    base: Node
    offset: int


def with_biases(fused: FusedGraph) -> tuple[FusedGraph, dict[Node, Bias]]:
    """Let products take over from kernels that do nothing but add a bias; their biases."""
    found = _Biases(fused)
    groups = [each for group in fused.groups for each in found.instead_of(group)]
    # Without the steps that these products were before.
    group_of = found.group_of
    kept = tuple(each for each in groups if group_of[each.nodes[0]] is each)
    stored = fused.stored | {bias.base for bias in found.biases.values()}
    return replace(fused, groups=kept, group_of=group_of, stored=stored), found.biases


class _Biases:
    """Finds the biases of a fused graph: `biases` has them by product."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self.biases: dict[Node, Bias] = {}
        self.group_of = dict(fused.group_of)
        self.outputs = set(map(fused.in_memory, fused.graph.outputs))
        self.readers_of: dict[Node, list[Group]] = {}
        for group in fused.groups:
            for read in group.reads:
                self.readers_of.setdefault(read, []).append(group)

    def instead_of(self, group: Group) -> list[Group]:
        """What comes in the place of a group: where it adds a bias, the product that does.

        A bias that is not there as cublasLt reads it gets a kernel of its own, small as it is.
        """
        found = self._bias(group)
        if found is None:
            return [group]
        product, bias = found
        before = []
        if not self.fused.has_memory(bias.base):
            alone = self._alone(bias.base)
            if alone is None:
                return [group]
            self.group_of[bias.base] = alone
            before = [alone]
        roots = (Root(product, (), stored=False), Root(bias.sum, ()))
        joined = Group(roots, "step", (*self.group_of[product].reads, bias.base))
        self.group_of[product] = self.group_of[bias.sum] = joined
        self.biases[product] = bias
        return [*before, joined]

    def _alone(self, node: Node) -> Group | None:
        """A kernel that computes `node` and nothing else, if it has one."""
        has_memory = self.fused.has_memory
        root = own_root(node)
        if self.fused.kernels.assess("kernel", [root], has_memory).refusal:
            return None
        return Group((root,), "kernel", tuple(stored_operands(node, has_memory)))

    def _bias(self, group: Group) -> tuple[Node, Bias] | None:
        """The product and its bias, if a kernel does nothing but add them."""
        if group.kind != "kernel" or len(group.roots) != 1:
            return None
        (total,) = group.nodes
        if total.primitive is not p.add:
            return None
        for matrix, row in (total.inputs, total.inputs[::-1]):
            product = alias_base(matrix)
            alone = product not in self.outputs and self.readers_of.get(product) == [group]
            if matrix.shape != total.shape or not alone or not _takes_bias(product):
                continue
            if _is_row(row, total, product.shape[1]):
                place = self._place_of_bias(row, total, product)
                return None if place is None else (product, Bias(total, *place))
        return None

    def _place_of_bias(self, row: Node, total: Node, product: Node) -> tuple[Node, int] | None:
        """Where the numbers of `row` begin in memory; in its own, if it must be computed first.

        None where others compute it too, or it needs the product.
        """
        fused = self.fused
        base = row
        while base.primitive.family is Family.VIEW and not fused.has_memory(base):
            base = base.inputs[0]
        memory = fused.rules.buffer(base)
        view = strided_view(row, base, memory) if fused.has_memory(base) else None
        if view is not None and base is not product:
            strides, offset = view
            offset *= row.type.dtype.itemsize
            if offset % BIAS_ALIGNMENT == 0 and _is_dense(row.shape, strides):
                return base, offset
        mine = fused.graph.consumers[row] == (total,) and not fused.has_memory(row)
        needs_product = product in stored_operands(row, fused.has_memory)
        return (row, 0) if mine and not needs_product else None


def _takes_bias(node: Node) -> bool:
    """Whether cublasLt is known to add a bias to this: not to vectors, nor to a batch."""
    if node.primitive is not p.matmul or node.type.dtype.name not in DTYPES:
        return False
    left = node.inputs[0]
    k = left.shape[-2 if node.attrs["transpose_a"] else -1]
    return node.type.ndim == 2 and node.shape[1] > 1 and k > 1


def _is_row(row: Node, total: Node, columns: int) -> bool:
    """Whether `row` has one number for each column, the same in all rows of the sum."""
    shape = row.shape
    while shape and shape[0] == 1:
        shape = shape[1:]
    return numel(shape) == columns and shape == total.shape[total.type.ndim - len(shape) :]


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    dense = zip(shape, strides, contiguous_strides(shape), strict=True)
    return all(stride == wanted for size, stride, wanted in dense if size > 1)
