"""Matrix products join the kernels that read them, where the target has a schedule for both.

Products are steps of a library to begin with. Where a kernel is the only one that reads a product,
element by element, both may become one contraction (`kernel/kernel.py`), whose epilogue the kernel
is: then the product makes no trip through memory. A target says for which products it has such
schedules, and what they cost; where the product of the library and a kernel are cheaper, they stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..ir import Node
from ..kernel.kernel_io import Root, contracted_sizes, has_loops, own_root
from ..kernel.kernel_needs import KernelNeeds, Traffic
from .fused_graph import Assessment, FusedGraph, Group, Refusal
from .machine import nanoseconds

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


class _Joining:
    """`joined` has what becomes of kernels, `taken` are the products that these compute."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self.joined: dict[Group, Group] = {}
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
        found: list[tuple[float, Group]] = []
        for read in group.reads:
            if not self.fused.rules.has_epilogues(read) or self.readers[read] != [group]:
                continue
            reason, whole, saved = self._joined(group, read)
            if reason or whole is None:
                self.refusals.append(Refusal(group.nodes[0], read, reason))
            else:
                found.append((saved, whole))
        if found:
            _, whole = max(found, key=lambda each: each[0])
            self.joined[group] = whole
            self.taken[whole.nodes[-1]] = whole

    def _joined(self, group: Group, product: Node) -> tuple[str, Group | None, float]:
        """Why a kernel and a product stay apart; else what they become, and what that saves."""
        if any(has_loops(root.node) or not all(root.dims) for root in group.roots):
            return "what reads the product has loops of its own", None, 0
        stored = product in self.outputs
        # Behind the others, whose rows may be those of a reshaped product.
        roots = (*group.roots, Root(product, own_root(product).dims, stored))
        found = self._assess(roots)
        if found.refusal:
            return found.refusal, None, 0
        if found.may_fail:
            return "what it checks has to be known before a product is computed", None, 0
        apart = group.price + self.product_price(product)
        if found.price > apart * (1 - LEAST_SAVED):
            together = nanoseconds(found.price)
            return f"both would take {together}, one after the other {nanoseconds(apart)}", None, 0
        reads = dict.fromkeys((*self.fused.group_of[product].reads, *group.reads))
        reads.pop(product)
        price = group.apart + apart - group.price
        whole = Group(roots, "contraction", tuple(reads), found.price, price)
        return "", whole, apart - found.price

    def _assess(self, roots: Sequence[Root]) -> Assessment:
        return self.fused.kernels.assess("contraction", roots, self.fused.has_memory)

    def product_price(self, product: Node) -> float:
        """The time of a product as a step of its own."""
        return self.fused.rules.machine.price(_needs(product))

    def result(self) -> FusedGraph:
        """The groups as they have become; a product runs where its kernel stood."""
        fused, gone = self.fused, set(map(self.fused.group_of.__getitem__, self.taken))
        groups = tuple(self.joined.get(group, group) for group in fused.groups if group not in gone)
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
    rows = product.type.numel // max(1, product.shape[-1])
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
