"""Matrix products join the kernels that read them, where the target has a schedule for both.

Products are steps of a library to begin with. Where a kernel is the only one that reads a product,
element by element, both may become one contraction (`kernel/kernel.py`), whose epilogue the kernel
is: then the product makes no trip through memory. What folds over results of the kernel, as the
gradient of a bias does, is a kernel of its own then. A target says for which products it has such
schedules, and what they cost; where the product of the library and a kernel are cheaper, they stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...runtime.records import NamedTuple, replace
from ..ir import Node
from ..ir.size_number import computed
from ..kernel.kernel_io import Root, contracted_sizes, has_loops, own_root
from ..kernel.kernel_needs import KernelNeeds, Traffic
from .fused_graph import Assessment, FusedGraph, Group, Refusal
from .machine import nanoseconds
from .roots import stored_operands

# What one step has to save of both: where they hide what they move behind what they compute, it
# is lost again by blocks that suit the one less, or the other.
LEAST_SAVED = 1 / 16


def with_contractions(fused: FusedGraph) -> FusedGraph:
    """Let kernels take over the products that they read, where that is cheaper."""
    if not any(map(fused.rules.has_epilogues, fused.graph.nodes)):
        return fused
    joining = _Joining(fused)
    for group in fused.groups:
        joining.look_at(group)
    return joining.result()


class _Joined(NamedTuple):
    """What a kernel and a product become: the contraction first, and the time that saves."""

    groups: tuple[Group, ...]
    saved: float


class _Joining:
    """`joined` has what becomes of kernels, `taken` are the products that these compute."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self.joined: dict[Group, tuple[Group, ...]] = {}
        self.taken: dict[Node, Group] = {}
        self.refusals: list[Refusal] = []
        self.outputs = set(map(fused.in_memory, fused.graph.outputs))
        self.readers: dict[Node, list[Group]] = {}
        for group in fused.groups:
            for read in group.reads:
                self.readers.setdefault(read, []).append(group)

    def look_at(self, group: Group) -> None:
        """Join a kernel with the one of its products that saves most, if any does."""
        if group.kind != "kernel":
            return
        found: list[_Joined] = []
        for read in group.reads:
            if not self.fused.rules.has_epilogues(read) or self.readers[read] != [group]:
                continue
            joined = self._joined(group, read)
            if isinstance(joined, _Joined):
                found.append(joined)
            else:
                self.refusals.append(Refusal(group.nodes[0], read, joined))
        if found:
            best = max(found, key=lambda each: each.saved)
            self.joined[group] = best.groups
            self.taken[best.groups[0].nodes[-1]] = best.groups[0]

    def _joined(self, group: Group, product: Node) -> _Joined | str:
        """What a kernel and a product become, or why they stay apart."""
        behind = self._behind(group, product)
        if isinstance(behind, str):
            return behind
        stored = product in self.outputs
        # Behind the others, whose rows may be those of a reshaped product.
        others = [root for root in group.roots if not has_loops(root.node)]
        roots = [Root(each.node, own_root(each.node).dims, each.stored) for each in others]
        roots.append(Root(product, own_root(product).dims, stored))
        found = self._assess("contraction", roots)
        if found.refusal:
            return found.refusal
        if found.may_fail:
            return "what it checks has to be known before a product is computed"
        apart = group.price + self.product_price(product)
        price = found.price + sum(each.price for each in behind)
        if price > apart * (1 - LEAST_SAVED):
            return f"both would take {nanoseconds(price)}, one after the other {nanoseconds(apart)}"
        reads = {**dict.fromkeys(self.fused.group_of[product].reads), **self._operands(others)}
        reads.pop(product)
        alone = group.apart + self.product_price(product) - sum(each.price for each in behind)
        whole = Group(tuple(roots), "contraction", tuple(reads), found.price, alone)
        return _Joined((whole, *behind), apart - price)

    def _behind(self, group: Group, product: Node) -> list[Group] | str:
        """The kernel of what has loops, which reads what the contraction stores; or why not."""
        folds = [root for root in group.roots if has_loops(root.node)]
        others = [root for root in group.roots if not has_loops(root.node)]
        if not folds:
            return []
        reads = self._operands(folds)
        if product in reads or not others:
            return "what reads the product has loops of its own"
        if not self._operands(others).keys().isdisjoint(root.node for root in folds):
            return "what reads the product waits for loops over it"
        found = self._assess("kernel", folds)
        return found.refusal or [
            Group(tuple(folds), "kernel", tuple(reads), found.price, found.price)
        ]

    def _operands(self, roots: Sequence[Root]) -> dict[Node, None]:
        """The nodes in memory from which roots are computed, those of each other left out."""
        found: dict[Node, None] = {}
        for root in roots:
            found.update(stored_operands(root.node, self.fused.has_memory))
        own = {root.node for root in roots}
        return {node: None for node in found if node not in own}

    def _assess(self, kind: str, roots: Sequence[Root]) -> Assessment:
        return self.fused.kernels.assess(kind, roots, self.fused.has_memory)

    def product_price(self, product: Node) -> float:
        """The time of a product as a step of its own."""
        return self.fused.rules.machine.price(_needs(product))

    def result(self) -> FusedGraph:
        """The groups as they have become; a product runs where its kernel stood."""
        fused, gone = self.fused, set(map(self.fused.group_of.__getitem__, self.taken))
        groups = tuple(
            each
            for group in fused.groups
            if group not in gone
            for each in self.joined.get(group, (group,))
        )
        group_of = {node: group for group in groups for node in group.nodes}
        left = {node for node, group in self.taken.items() if not group.roots[-1].stored}
        refusals = (*fused.refusals, *self.refusals)
        return replace(
            fused, groups=groups, group_of=group_of, stored=fused.stored - left, refusals=refusals
        )


def _needs(product: Node) -> KernelNeeds:
    """What a product alone needs."""
    size = product.type.dtype.compute.itemsize
    (steps,) = contracted_sizes(product)
    rows = product.type.numel // computed(max, product.shape[-1], 1)
    return KernelNeeds(
        ((size, product.type.numel * steps),),
        tuple(_traffic(product.inputs)),
        tuple(_traffic([product])),
        rows,
        False,
    )


def _traffic(nodes: Iterable[Node]) -> Iterable[Traffic]:
    for node in nodes:
        yield Traffic(node.type.numel, node.type.numel, node.type.dtype.itemsize)
