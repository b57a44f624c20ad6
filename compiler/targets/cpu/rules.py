"""Fusion for the CPU: products gather windows from images, and scatters write over their base."""

from __future__ import annotations

from ....runtime.dtypes import float32, float64
from ...fusion.rules import FusionRules, is_virtual_source
from ...ir import Node
from ...ir import primitives as p
from ...kernel.memory_views import alias_base, spread_view, unfolded, view_base
from .machine import CPU


class CpuRules(FusionRules):
    """The rules of plans for the CPU."""

    machine = CPU
    scatters_in_place = True

    def find_operand(self, step: Node, operand: Node) -> Node:
        images = self.windows_base(step, operand)
        return super().find_operand(step, operand) if images is None else images

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
