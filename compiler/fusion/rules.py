"""What fusion has to know of a target: which nodes run as steps of their own, and what those read.

Everything here is known of the graph alone, before anything is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..ir import Family, Graph, Node
from ..ir import primitives as p
from ..ir.loop_rows import written_state
from ..kernel.kernel import Kernel
from ..kernel.kernel_io import BufferLayout, CannotFuse
from ..kernel.kernel_needs import KernelNeeds
from ..kernel.memory_views import (
    alias_base,
    can_read,
    reads_strided,
    strided_view,
    view_base,
)
from .machine import Machine
from .pieces import pieces_of

_FUSIBLE = frozenset(
    (
        Family.SOURCE,
        Family.ELEMENTWISE,
        Family.REDUCE,
        Family.VIEW,
        Family.GATHER,
        Family.SCATTER,
        Family.WINDOW,
        Family.RANDOM,
        Family.SCAN,
    )
)


def is_step(node: Node) -> bool:
    """Whether a node runs on its own on every target: a library call, a Python function."""
    return node.primitive.family not in _FUSIBLE


def is_stored_source(node: Node) -> bool:
    """Whether a node lies in memory before the plan starts: inputs and array constants."""
    return node.primitive is p.input_ or (node.primitive is p.constant and node.type.numel != 1)


def is_virtual_source(node: Node) -> bool:
    """Whether a node is a number, or numbers, that kernels write where they are needed."""
    return node.primitive.family is Family.SOURCE and not is_stored_source(node)


class FusionRules:
    """The rules for one graph. A target has its own by a subclass.

    `inputs` tells how those inputs lie that are not dense; `overwriting` are nodes that are to be
    computed in the memory of inputs. Without `contractions`, matrix products stay steps of their
    own.
    """

    machine: Machine
    scatters_in_place = False
    """Whether scatters may write into the memory of what they start from."""
    joins_before_turning = False
    """Whether values that alternate are copied in order before a permute: see `Roots`."""

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[Node, BufferLayout] | None = None,
        overwriting: Collection[Node] = (),
        contractions: bool = True,
    ) -> None:
        self.graph = graph
        self.contractions = contractions
        self.inputs = inputs or {}
        self.overwriting = overwriting
        self.pieces = pieces_of(graph)
        self.layouts = {
            **self.inputs,
            **{node: piece.layout for node, piece in self.pieces.items()},
        }
        self._operands: dict[tuple[Node, Node], Node] = {}
        self._unread: dict[Node, frozenset[int]] = {}

    def is_step(self, node: Node) -> bool:
        """Whether a node runs on its own on this target."""
        return is_step(node)

    def is_costly_number(self, node: Node, spent: float) -> bool:
        """Whether one number that takes `spent` operations is to be computed once, not by all."""
        return False

    def adds_up_rows(self, *nodes: Node) -> bool:
        """Whether a kernel of rows may add them up for all of `nodes`, see `sums_rows`."""
        return False

    def step_operands(self, step: Node) -> list[Node]:
        """What must lie in memory for `step`."""
        unread = self.unread_operands(step)
        return [
            self.step_operand(step, operand)
            for at, operand in enumerate(step.inputs)
            if at not in unread
        ]

    def unread_operands(self, step: Node) -> frozenset[int]:
        """The numbers of the operands that `step` never reads: numbers in rows that a loop writes.

        A scan stacks its results over zeros; nobody has to write these.
        """
        if step.primitive is not p.loop:
            return frozenset()
        found = self._unread.get(step)
        if found is None:
            found = self._unread[step] = frozenset(
                at
                for at in written_state(step)
                if step.inputs[at].type.numel and is_virtual_source(alias_base(step.inputs[at]))
            )
        return found

    def step_operand(self, step: Node, operand: Node) -> Node:
        """What must lie in memory for `step` to read `operand`: that, or what it views."""
        found = self._operands.get((step, operand))
        if found is None:
            found = self._operands[step, operand] = self.find_operand(step, operand)
        return found

    def find_operand(self, step: Node, operand: Node) -> Node:
        """What `step_operand` gives, which asks once."""
        if reads_strided(step):
            return self._strided_base(step, operand)
        base = alias_base(operand)
        return operand if is_virtual_source(base) else base

    def has_epilogues(self, node: Node) -> bool:
        """Whether `node` is a product that may become one contraction with what reads it."""
        return False

    def contraction_price(self, kernel: Kernel, needs: KernelNeeds) -> float:
        """The time of a kernel with a contraction; CannotFuse where the target has none for it."""
        raise CannotFuse("products are the library's")

    def windows_base(self, step: Node, node: Node) -> Node | None:
        """What a product must find in memory to gather windows itself, if it can."""
        return None

    def buffer(self, node: Node) -> BufferLayout:
        """How a node lies in memory: contiguous, but for strided inputs and pieces of others."""
        return self.layouts.get(node) or BufferLayout.contiguous(node.shape)

    def _strided_base(self, step: Node, node: Node) -> Node:
        base = view_base(node)
        if base is node or is_virtual_source(base):
            return node
        view = strided_view(node, base, self.buffer(base))
        if view is None:
            return node
        return base if can_read(step, node, view[0]) else node
