"""What fusion decides: groups of nodes, what lies in memory, and which merges were refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ...runtime.memo import Memo
from ...runtime.records import record
from ..ir import Graph, Node
from ..ir.reshape_groups import crosses
from ..kernel.kernel_io import BufferLayout, CannotFuse, Root, row_sizes
from ..kernel.kernel_needs import KernelNeeds
from ..kernel.lower import Lowering
from ..kernel.lower_scatter import ScatterLowering
from ..kernel.memory_views import alias_base
from ..kernel.simplify_loops import has_quotients, simplify_loops
from .rules import FusionRules
from .structure import Structure, Structures, computed_for

HasMemory = Callable[[Node], bool]


@record(eq=False)
class Group:
    """Roots that one kernel computes, and the nodes in memory that it reads.

    `kind` is "kernel", "scatter" (a kernel for one node that nothing merges into), "contraction" (a
    matrix product, the last root, and what a kernel makes of it) or "step" (one node, unfused; two
    where a product adds a bias). `price` is the time of its kernel in
    nanoseconds on the target's machine, `apart` that of a kernel for each of its roots.
    """

    roots: tuple[Root, ...]
    kind: str
    reads: tuple[Node, ...]
    price: float = 0.0
    apart: float = 0.0

    @property
    def nodes(self) -> list[Node]:
        return [root.node for root in self.roots]


@record()
class Refusal:
    """Why two nodes are not computed by one kernel."""

    consumer: Node
    producer: Node
    reason: str


@record()
class Assessment:
    """What is known of the kernel of a group before it is lowered.

    `refusal` tells why there is none; "" where there is. `price` is its time in nanoseconds on the
    target's machine.
    """

    refusal: str = ""
    needs: KernelNeeds | None = None
    price: float = 0.0

    @property
    def may_fail(self) -> bool:
        """Whether the kernel checks positions, divisors or what must hold."""
        return self.needs is not None and self.needs.may_fail


# By the rules of a target and the key of a structure.
_assessed: Memo[tuple[type[FusionRules], Any], Assessment] = Memo(20_000)


class GroupKernels:
    """The kernels that groups of one graph would have, for any choice of what lies in memory."""

    def __init__(self, rules: FusionRules) -> None:
        self.rules = rules
        self.order = {node: position for position, node in enumerate(rules.graph.nodes)}
        self._structures = Structures(self.order, rules.layouts)
        self._structure_of: dict[Group, Structure] = {}

    def structure_of(self, group: Group, has_memory: HasMemory) -> Structure:
        """What the kernel of a group depends on, once it is decided what lies in memory."""
        found = self._structure_of.get(group)
        if found is None:
            found = self.structure(group.kind, group.roots, computed_for(group.nodes, has_memory))
            self._structure_of[group] = found
        return found

    def structure(self, kind: str, roots: Sequence[Root], computed: Iterable[Node]) -> Structure:
        """What the kernel of `roots` depends on, which computes the nodes `computed`."""
        return self._structures.of(kind, roots, computed)

    def assess(
        self,
        kind: str,
        roots: Sequence[Root],
        has_memory: HasMemory,
        structure: Structure | None = None,
    ) -> Assessment:
        """What is known of the kernel of a group. Found out once for each structure."""
        if structure is None:
            computed = computed_for([root.node for root in roots], has_memory)
            structure = self.structure(kind, roots, computed)
        key = (type(self.rules), structure.key)
        found = _assessed.get(key)
        return found or _assessed.keep(key, self._assess(kind, roots, has_memory))

    def _assess(self, kind: str, roots: Sequence[Root], has_memory: HasMemory) -> Assessment:
        try:
            needs = self.lowering(kind, roots, has_memory).needs()
        except CannotFuse as error:
            return Assessment(str(error) or "it has no kernel")
        if kind == "contraction":
            return self._assess_contraction(roots, has_memory, needs)
        if _rows_cross(roots):
            kernel = self.lowering(kind, roots, has_memory).run()
            if has_quotients(simplify_loops(kernel)):
                return Assessment("one of them would find its elements by division")
        return Assessment("", needs, self.rules.machine.price(needs))

    def _assess_contraction(
        self, roots: Sequence[Root], has_memory: HasMemory, needs: KernelNeeds
    ) -> Assessment:
        """What a target makes of a product with an epilogue depends on the kernel itself."""
        kernel = self.lowering("contraction", roots, has_memory, save_rows=False).run()
        try:
            return Assessment("", needs, self.rules.contraction_price(kernel, needs))
        except CannotFuse as error:
            return Assessment(str(error))

    def lowering(
        self,
        kind: str,
        roots: Sequence[Root],
        has_memory: HasMemory,
        name: str = "kernel",
        save_rows: bool = True,
    ) -> Lowering:
        """The lowering of a group over the memory of everything outside it."""
        inside = {root.node for root in roots}
        cache: dict[Node, BufferLayout | None] = {}

        def buffer_of(node: Node) -> BufferLayout | None:
            if node in inside or not has_memory(node):
                return None
            if node not in cache:
                cache[node] = self.rules.buffer(node)
            return cache[node]

        lower = ScatterLowering if kind == "scatter" else Lowering
        return lower(name, roots, buffer_of, self.rules.buffer, self.order, save_rows)


@record(eq=False)
class FusedGraph:
    """A graph cut into groups, in an order in which they can run.

    `stored` are the nodes that lie in memory, `refusals` the merges that were not made. Nothing of
    it changes; kernels are lowered when they are asked for.
    """

    rules: FusionRules
    groups: tuple[Group, ...]
    group_of: Mapping[Node, Group]
    stored: frozenset[Node]
    refusals: tuple[Refusal, ...]
    kernels: GroupKernels

    @property
    def graph(self) -> Graph:
        return self.rules.graph

    def has_memory(self, node: Node) -> bool:
        return node in self.stored

    def in_memory(self, node: Node) -> Node:
        """The node whose memory holds `node`."""
        return node if node in self.stored else alias_base(node)

    def structure(self, group: Group) -> Structure:
        """What the kernel of a group depends on."""
        return self.kernels.structure_of(group, self.stored.__contains__)

    def assess(self, group: Group) -> Assessment:
        """What is known of the kernel of a group before it is lowered."""
        structure = self.structure(group)
        return self.kernels.assess(group.kind, group.roots, self.has_memory, structure)

    def lowering(self, group: Group, name: str = "kernel", save_rows: bool = True) -> Lowering:
        """The lowering of a group over the memory of everything outside it."""
        return self.kernels.lowering(group.kind, group.roots, self.has_memory, name, save_rows)


def _rows_cross(roots: Sequence[Root]) -> bool:
    """Whether a root's axes and the rows of all are different parts of the same numbers."""
    rows = row_sizes(roots[0])
    sizes = (row_sizes(root) for root in roots[1:])
    return any(prod(each) == prod(rows) and crosses(rows, each) for each in sizes)
