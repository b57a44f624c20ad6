"""Fusion for the CPU: products gather windows from images, and scatters write over their base."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from math import prod

from ....runtime.dtypes import float32, float64
from ....runtime.records import replace
from ...fusion.rules import FusionRules, is_virtual_source
from ...ir import Node
from ...ir import primitives as p
from ...kernel.kernel import Kernel
from ...kernel.kernel_needs import KernelNeeds, Traffic
from ...kernel.memory_views import alias_base, spread_view, unfolded, view_base
from .contraction_schedule import BLOCK_BYTES, BLOCK_TIME, BLOCK_WIDTH, schedule_contraction
from .machine import CPU
from .packed_panels import Operand, operand_of, shared_operands


class CpuRules(FusionRules):
    """The rules of plans for the CPU."""

    machine = CPU
    scatters_in_place = True
    joins_before_turning = True

    def find_operand(self, step: Node, operand: Node) -> Node:
        images = self.windows_base(step, operand)
        return super().find_operand(step, operand) if images is None else images

    @cached_property
    def _shared(self) -> Counter[Operand]:
        """The matrices that are packed once for several products, which stay what they are."""
        return shared_operands(self.graph)

    def has_epilogues(self, node: Node) -> bool:
        if not self.contractions or node.primitive is not p.matmul:
            return False
        if node.type.dtype not in (float32, float64):
            return False
        return not self._shared[operand_of(node)]

    def contraction_price(self, kernel: Kernel, needs: KernelNeeds) -> float:
        """As that of a kernel, with what its blocks cost: the columns of B that each reads again.

        The kernel behind the product is still started, and called for each block.
        """
        product = schedule_contraction(kernel).product
        item = kernel.results[0].itemsize
        blocks = prod(product.batch) * -(-product.m * product.n * item // BLOCK_BYTES)
        steps = blocks * product.k * min(product.n, BLOCK_WIDTH // item)
        again = replace(needs, reads=(*needs.reads, Traffic(steps, 0, item)))
        return CPU.price(again) + CPU.start + blocks * BLOCK_TIME / min(CPU.units, blocks)

    def windows_base(self, step: Node, node: Node) -> Node | None:
        if step.primitive is not p.matmul or 1 in step.shape[-2:]:
            return None
        windows = unfolded(node)
        if windows is None or node.type.dtype not in (float32, float64):
            return None
        (x,) = windows.inputs
        for base in dict.fromkeys((view_base(x), alias_base(x), x)):
            if not is_virtual_source(base) and spread_view(node, base, self.buffer(base)):
                return base
        return None
