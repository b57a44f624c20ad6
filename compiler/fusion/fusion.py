"""Fusion: which nodes are computed together by one kernel.

First every fusible node is either *virtual*, computed inside whoever needs it, or a *root*, which
somebody computes once (`roots`). Then roots are merged into groups, each into the group of a
producer or of a sibling that reads the same data, if the group stays convex (no path leaves it and
comes back), its rows agree, and lowering accepts it. What cannot be merged stays apart, never an
error; the reason is kept for `explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import prod

from ...runtime.records import record
from ..ir import Family, Node
from ..ir.shapes import numel
from ..kernel.kernel_io import Root, has_loops, iteration_shape, kept_axes, row_sizes
from .fused_graph import FusedGraph, Group, GroupKernels, Refusal
from .roots import Roots
from .rules import FusionRules, is_stored_source
from .running_order import RunningOrder

MAX_ROOTS = 24
# Bytes that are worth to be read once by two kernels although one then waits for the other.
LARGE_READ = 1 << 20
MAX_READS = 40
# A kernel with fewer rows than this does not fuse reductions longer than the rules allow.
MIN_PARALLEL_ROWS = 8
MAX_SIBLINGS_TRIED = 4


def fuse(rules: FusionRules) -> FusedGraph:
    """Cut the graph of `rules` into groups. Roots without a kernel of their own run unfused."""
    roots = Roots(rules)
    kernels = GroupKernels(rules)
    forced: set[Node] = set()
    unfused: set[Node] = set()
    while True:
        roots.choose(forced)
        merging = _Merging(roots, kernels, unfused)
        stuck = merging.run()
        if not stuck:
            return merging.result()
        for node in stuck:
            inner = roots.virtual_nodes(node)
            if inner <= forced:
                unfused.add(node)
            forced.update(inner)


@record(eq=False, frozen=False)
class _GrowingGroup:
    """A group while others may still join it. `first` is where its first node stands."""

    roots: list[Root]
    kind: str
    reads: dict[Node, None]
    first: int

    @property
    def nodes(self) -> list[Node]:
        return [root.node for root in self.roots]


class _Merging:
    """Puts roots into groups."""

    def __init__(self, roots: Roots, kernels: GroupKernels, unfused: set[Node]) -> None:
        self.rules, self.graph = roots.rules, roots.graph
        self.roots, self.kernels, self.unfused = roots, kernels, unfused
        self.order = kernels.order
        self.has_memory = roots.has_memory
        self.refusals: list[Refusal] = []
        self.groups: list[_GrowingGroup] = []
        self.group_of: dict[Node, _GrowingGroup] = {}
        # In the order in which they came.
        self.readers_of: dict[Node, dict[_GrowingGroup, None]] = {}
        self.running = RunningOrder(self._producers, self._followers)

    def run(self) -> list[Node]:
        """Put every root into a group; gives the roots that no kernel can compute."""
        stuck = []
        chosen = set(self.roots.chosen)
        for node in self.graph.nodes:
            if self._is_step(node):
                self._new_group(node, "step")
            elif node in chosen and not self._place(node):
                stuck.append(node)
        return stuck

    def result(self) -> FusedGraph:
        """The groups as they have become, in an order in which they can run."""
        for group in self.groups:
            group.roots = self._kept_roots(group)
        stored = frozenset(self.roots.chosen | self.roots.fixed)
        groups = tuple(
            Group(tuple(each.roots), each.kind, tuple(each.reads)) for each in self._sorted()
        )
        group_of = {node: group for group in groups for node in group.nodes}
        return FusedGraph(self.rules, groups, group_of, stored, tuple(self.refusals), self.kernels)

    def _is_step(self, node: Node) -> bool:
        is_step = node in self.roots.fixed and not is_stored_source(node)
        return is_step or node in self.unfused

    def _kept_roots(self, group: _GrowingGroup) -> list[Root]:
        """Without roots that only this kernel reads: those are values inside it."""
        kept = []
        for root in group.roots:
            readers = self.readers_of.get(root.node, ())
            stored = root.node in self.roots.wanted or any(each is not group for each in readers)
            if stored or has_loops(root.node):
                kept.append(Root(root.node, root.dims, stored))
            else:
                self.roots.chosen.discard(root.node)
        return kept

    def _reads(self, node: Node) -> dict[Node, None]:
        """The nodes in memory from which `node` is computed."""
        if self._is_step(node):
            in_memory = self.roots.in_memory
            return {in_memory(each): None for each in self.rules.step_operands(node)}
        return self.roots.reads(node)

    def _new_group(self, node: Node, kind: str) -> _GrowingGroup:
        dims = (True,) * len(iteration_shape(node)) if kind != "step" else ()
        if kind == "kernel" and has_loops(node):
            dims = kept_axes(node)
        first = self.order[node]
        group = _GrowingGroup([Root(node, dims)], kind, self._reads(node), first)
        self.groups.append(group)
        self._register(group, node)
        return group

    def _register(self, group: _GrowingGroup, node: Node) -> None:
        self.group_of[node] = group
        group.first = min(group.first, self.order[node])
        for read in group.reads:
            self.readers_of.setdefault(read, {})[group] = None
        self.running.add(group)

    def _producers(self, group: _GrowingGroup) -> Iterable[_GrowingGroup]:
        """The groups that compute what a group reads."""
        found = map(self.group_of.get, group.reads)
        return [each for each in found if each is not None]

    def _followers(self, group: _GrowingGroup) -> Iterable[_GrowingGroup]:
        """The groups that read what a group computes."""
        return (reader for node in group.nodes for reader in self.readers_of.get(node, ()))

    def _place(self, node: Node) -> bool:
        """Merge `node` into the best group that takes it, or start a group."""
        reads = self._reads(node)
        if node.primitive.family is Family.SCATTER:
            return self._start_group(node, "scatter")
        for group in self._candidates(reads):
            merged = self._merged_roots(group, node, reads)
            if merged is not None:
                group.roots = merged
                group.reads.update(
                    (read, None) for read in reads if self.group_of.get(read) is not group
                )
                self._register(group, node)
                return True
        return self._start_group(node, "kernel")

    def _start_group(self, node: Node, kind: str) -> bool:
        return not self._refusal(kind, self._new_group(node, kind).roots)

    def _refusal(self, kind: str, roots: Sequence[Root]) -> str:
        """Why a group of `roots` has no kernel; "" where it has."""
        return self.kernels.refusal(kind, roots, self.has_memory)

    def _candidates(self, reads: Iterable[Node]) -> list[_GrowingGroup]:
        """Producers' groups, the latest first, then groups that read the same memory."""
        producers: dict[_GrowingGroup, None] = {}
        siblings: dict[_GrowingGroup, None] = {}
        for read in sorted(reads, key=self.order.__getitem__, reverse=True):
            group = self.group_of.get(read)
            if group is not None and group.kind == "kernel":
                producers[group] = None
            if read.type.numel > 1:
                readers = islice(reversed(self.readers_of.get(read, {})), MAX_SIBLINGS_TRIED)
                for reader in reversed(list(readers)):
                    if reader.kind == "kernel":
                        siblings[reader] = None
        return [*producers, *(group for group in siblings if group not in producers)]

    def _delays(self, group: _GrowingGroup, node: Node, reads: Iterable[Node]) -> bool:
        """Whether something that others wait for would wait itself, for little that is shared.

        What is known at the start must not be bound to what comes late: as the number of targets
        that a loss divides by, which its gradient needs before the loss.
        """
        inside = [read for read in reads if self.group_of.get(read) is group]
        outside = [read for read in reads if self.group_of.get(read) is not group]
        shared = [*inside, *(read for read in outside if read in group.reads)]
        if any(read.type.nbytes >= LARGE_READ for read in shared):
            return False
        group_is_early = self._starts(group.reads)
        if group_is_early == self._starts(outside) or (inside and not group_is_early):
            return False
        early = group.nodes if group_is_early else [node]
        return any(len(self._readers(each)) > bool(inside) for each in early)

    def _starts(self, reads: Iterable[Node]) -> bool:
        """Whether nothing has to be computed before."""
        return not any(read in self.group_of for read in reads)

    def _readers(self, node: Node) -> Sequence[Node]:
        """What reads a node, or what alone is computed from it."""
        readers = self.graph.consumers[node]
        while len(readers) == 1 and not self.has_memory(readers[0]):
            readers = self.graph.consumers[readers[0]]
        return readers

    def _merged_roots(
        self, group: _GrowingGroup, node: Node, reads: dict[Node, None]
    ) -> list[Root] | None:
        if len(group.roots) >= MAX_ROOTS or len(group.reads) + len(reads) > MAX_READS:
            return self._refuse(group, node, "the kernel would have too many arguments")
        if self._depends_through_others(group, reads):
            return self._refuse(group, node, "a value between them is computed by another kernel")
        if self._delays(group, node, reads):
            return self._refuse(group, node, "a value that others wait for would have to wait")
        if _scans([node, *group.nodes]) and not any(self.group_of.get(r) is group for r in reads):
            return self._refuse(group, node, "a scan goes with what it reads and is read by alone")
        reason = "their rows differ"
        for roots in _row_choices(group.roots, node):
            rows = prod(row_sizes(roots[0]))
            longest = max(numel(iteration_shape(root.node)) // max(1, rows) for root in roots)
            if rows < MIN_PARALLEL_ROWS and longest > self.rules.max_serial:
                reason = "too few rows to share among threads"
                continue
            if _walks_across(roots):
                reason = "they walk over the same axes in different orders"
                continue
            refusal = self._refusal("kernel", roots)
            if not refusal:
                return roots
            reason = refusal
        return self._refuse(group, node, reason)

    def _refuse(self, group: _GrowingGroup, node: Node, reason: str) -> list[Root] | None:
        """Note why `node` does not join `group`: there are no merged roots."""
        self.refusals.append(Refusal(node, group.roots[-1].node, reason))
        return None

    def _depends_through_others(self, group: _GrowingGroup, reads: Iterable[Node]) -> bool:
        """Whether some value read, computed outside `group`, depends on `group`."""
        found = map(self.group_of.get, reads)
        outside = [each for each in found if each is not None and each is not group]
        return self.running.reaches(group, outside)

    def _sorted(self) -> list[_GrowingGroup]:
        """The groups in an order in which each finds what it reads."""
        order: list[_GrowingGroup] = []
        state: dict[_GrowingGroup, int] = {}
        for start in self.groups:
            stack = [start]
            while stack:
                group = stack[-1]
                if state.get(group) is None:
                    state[group] = 1
                    producers = {self.group_of[r] for r in group.reads if r in self.group_of}
                    stack.extend(
                        sorted(
                            (each for each in producers if state.get(each) is None),
                            key=lambda each: each.first,
                            reverse=True,
                        )
                    )
                    continue
                stack.pop()
                if state[group] == 1:
                    state[group] = 2
                    order.append(group)
        return order


def _scans(nodes: Iterable[Node]) -> bool:
    return any(node.primitive.family is Family.SCAN for node in nodes)


def _row_choices(roots: Sequence[Root], node: Node) -> Iterable[list[Root]]:
    """Ways to loop over `roots` and `node` together: who counts which axis as a row."""
    rows = row_sizes(roots[0])
    if has_loops(node):
        new = Root(node, kept_axes(node))
        wanted = row_sizes(new)
        if wanted == rows:
            yield [*roots, new]
        elif not any(has_loops(root.node) for root in roots):
            adapted = [_with_rows(root.node, wanted, [new]) for root in roots]
            if all(each is not None for each in adapted):
                yield [*(each for each in adapted if each is not None), new]
        return
    found = _with_rows(node, rows, roots)
    if found is not None:
        yield [*roots, found]
    whole = Root(node, (True,) * node.type.ndim)
    if numel(node.shape) == prod(rows) and whole != found:
        yield [*roots, whole]


def _with_rows(node: Node, rows: tuple[int, ...], beside: Sequence[Root]) -> Root | None:
    """`node` as a pointwise root whose row axes have the sizes `rows`."""
    shape = node.shape
    for root in beside:
        if iteration_shape(root.node) == shape and row_sizes(root) == rows:
            return Root(node, root.dims)
    matched = 0
    dims = []
    for size in shape:
        if size == 1:
            dims.append(True)
        elif matched < len(rows) and size == rows[matched]:
            matched += 1
            dims.append(True)
        elif matched == len(rows):
            dims.append(False)
        else:
            return None
    return Root(node, tuple(dims)) if matched == len(rows) else None


def _walks_across(roots: Iterable[Root]) -> bool:
    """Whether some reductions have axes as rows that others fold: a square's rows and columns.

    One of them would read memory in steps.
    """
    rows: dict[tuple[int, ...], tuple[bool, ...]] = {}
    folds = (root for root in roots if root.node.primitive.family is Family.REDUCE)
    return any(
        rows.setdefault(iteration_shape(each.node), each.dims) != each.dims for each in folds
    )
