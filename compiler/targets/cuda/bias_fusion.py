"""Additions of a bias that the matrix product before them makes itself, on CUDA.

cublasLt can add one number per column before it stores a product. Where the kernel behind a product
would do nothing else, the product does it: one launch and one trip through memory less. Where more
is computed with the sum, one kernel does all of that, and reads the product as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...fusion.fusion import Fuser, Fusion, Group
from ...ir import Family, Graph, Node
from ...ir import primitives as p
from ...ir.shapes import contiguous_strides, numel
from ...kernel.kernel_io import BufferLayout, Root
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


class BiasFuser(Fuser):
    """A fuser whose products add biases: `biases` has them by product.

    There are none where `epilogues` is False.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[Node, BufferLayout] | None = None,
        epilogues: bool = True,
    ) -> None:
        self.epilogues = epilogues
        self.biases: dict[Node, Bias] = {}
        super().__init__(graph, inputs)

    def run(self) -> Fusion:
        """As the base's; then products take over from kernels that do nothing but add a bias."""
        fusion = super().run()
        if not self.epilogues:
            return fusion
        groups = [each for group in fusion.groups for each in self._with_bias(group)]
        # Without the steps that these products were before.
        kept = [each for each in groups if self.group_of[each.nodes[0]] is each]
        return Fusion(kept, fusion.refusals)

    def _with_bias(self, group: Group) -> list[Group]:
        """What comes in the place of a group: where it adds a bias, the product that does.

        A bias that is not there as cublasLt reads it gets a kernel of its own, small as it is.
        """
        found = self._bias(group)
        if found is None:
            return [group]
        product, bias = found
        before = []
        if not self.has_memory(bias.base):
            if not self._start_group(bias.base, "kernel"):
                return [group]
            self.is_root.add(bias.base)
            before = [self.group_of[bias.base]]
        roots = [Root(product, (), stored=False), Root(bias.sum, ())]
        reads = {**self.group_of[product].reads, bias.base: None}
        joined = Group(roots, "step", reads)
        self.group_of[product] = self.group_of[bias.sum] = joined
        self.running.rank[joined] = self.running.rank[group]
        self.biases[product] = bias
        return [*before, joined]

    def _bias(self, group: Group) -> tuple[Node, Bias] | None:
        """The product and its bias, if a kernel does nothing but add them."""
        if group.kind != "kernel" or len(group.roots) != 1:
            return None
        (total,) = group.nodes
        if total.primitive is not p.add:
            return None
        for matrix, row in (total.inputs, total.inputs[::-1]):
            product = alias_base(matrix)
            alone = product not in self.wanted and [*self.readers_of.get(product, ())] == [group]
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
        base = row
        while base.primitive.family is Family.VIEW and not self.has_memory(base):
            base = base.inputs[0]
        view = strided_view(row, base, self.buffer(base)) if self.has_memory(base) else None
        if view is not None and base is not product:
            strides, offset = view
            offset *= row.type.dtype.itemsize
            if offset % BIAS_ALIGNMENT == 0 and _is_dense(row.shape, strides):
                return base, offset
        mine = self.graph.consumers[row] == (total,) and not self.has_memory(row)
        return (row, 0) if mine and product not in self._reads(row) else None


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
